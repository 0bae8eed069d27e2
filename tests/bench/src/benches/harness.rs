//! The harness measured with itself: the same work on both sides. A ratio away from 1 is the error of all the others.

use crate::{Bench, Measure, Pair, Routine};
use std::hint::black_box;

const BYTES: usize = 16 << 20;

pub(super) fn all() -> Vec<Bench> {
    let measure = Measure::Throughput { bytes: BYTES as u64 };
    vec![Bench::new("harness/memcpy/16MiB", "the same memcpy", measure, || {
        Ok(Pair { ours: memcpy(), reference: memcpy() })
    })]
}

fn memcpy() -> Routine {
    let source = vec![1_u8; BYTES];
    let mut destination = vec![0_u8; BYTES];
    Routine::call(move || {
        black_box(destination.as_mut_slice()).copy_from_slice(black_box(&source));
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use crate::{Effort, measure};

    #[test]
    fn equal_work_is_measured_as_nearly_equal() {
        for bench in super::all() {
            let row = measure(bench, Effort::QUICK).unwrap();
            assert!(row.ours > 0.01, "a memcpy moves more than 10 MB/s: {row:?}");
            let ratio = row.ratio.unwrap();
            // Wide, because other programs may run during a test.
            assert!((0.2..5.0).contains(&ratio), "{row:?}");
        }
    }
}
