//! How long calls take.

use crate::ranks::Rank;
use gpumem::collectives::{InPlace, Options, Sum};
use std::time::Instant;

pub(crate) fn speed(rank: &Rank) {
    let begin = Instant::now();
    let (comm, stream) = (rank.join(&Options::new()), rank.stream());
    comm.on(&stream).barrier().unwrap();
    stream.synchronize().unwrap();
    rank.say(&format!("joined after {:.0} ms", begin.elapsed().as_secs_f64() * 1e3));
    for bytes in [8_usize, 4 << 10, 256 << 10, 16 << 20] {
        let mut array = stream.to_device(&vec![0_f32; bytes / 4]).unwrap();
        let rounds = (1_usize << 30).div_ceil(bytes).clamp(20, 1000);
        for _ in 0..10 {
            comm.on(&stream).all_reduce(InPlace, &mut array, Sum).unwrap();
        }
        stream.synchronize().unwrap();
        let begin = Instant::now();
        for _ in 0..rounds {
            comm.on(&stream).all_reduce(InPlace, &mut array, Sum).unwrap();
        }
        let enqueued = begin.elapsed();
        stream.synchronize().unwrap();
        let each = begin.elapsed().as_secs_f64() / rounds as f64;
        let mut waits: Vec<f64> = (0..101)
            .map(|_| {
                let begin = Instant::now();
                comm.on(&stream).all_reduce(InPlace, &mut array, Sum).unwrap();
                stream.synchronize().unwrap();
                begin.elapsed().as_secs_f64() * 1e6
            })
            .collect();
        waits.sort_by(f64::total_cmp);
        let factor = 2.0 * (rank.size as f64 - 1.0) / rank.size as f64;
        rank.say(&format!(
            "all_reduce {bytes:>9} B: {:.2} us, enqueue {:.2} us, with a wait {:.2} us, bus {:.2} GB/s",
            each * 1e6,
            enqueued.as_secs_f64() * 1e6 / rounds as f64,
            waits[50],
            bytes as f64 / each / 1e9 * factor
        ));
    }
}
