//! Temporaries of random lives in one block of memory. `GPUMEM_LIVES` sets the number of sets.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use gpumem_layout::arena::{Temporary, plan};

const STEPS: usize = 30;

struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }

    fn temporaries(&mut self, count: usize) -> Vec<Temporary> {
        let one = |random: &mut Self| {
            let (bytes, first) = (1 + random.below(1000), random.below(20));
            Temporary { bytes, lives: first..=first + random.below(STEPS - 20) }
        };
        (0..count).map(|_| one(self)).collect()
    }
}

/// Checks that no two share a byte while both are alive. Returns the bytes of the arena and those of the largest set that is alive.
fn placed(all: &[Temporary], align: usize) -> (usize, usize) {
    let (starts, total) = plan(all, align).unwrap();
    assert!(all.iter().zip(&starts).all(|(one, start)| start + one.bytes <= total && start % align == 0));
    let alive_at = |step| {
        let mut alive: Vec<_> =
            all.iter().zip(&starts).filter(|(one, _)| one.lives.contains(&step)).collect();
        alive.sort_by_key(|(_, start)| **start);
        for pair in alive.windows(2) {
            assert!(pair[0].1 + pair[0].0.bytes <= *pair[1].1, "{:?} and {:?}", pair[0], pair[1]);
        }
        alive.iter().map(|(one, _)| one.bytes.next_multiple_of(align)).sum()
    };
    (total, (0..STEPS).map(alive_at).max().unwrap())
}

/// An arena as small as the largest set that is alive is not always possible, and to find the smallest one is as hard as packing.
#[cfg_attr(miri, ignore = "takes minutes, and nothing in it is unsafe")]
#[test]
fn random_temporaries_share_no_byte_and_few_are_wasted() {
    let sets = std::env::var("GPUMEM_LIVES").map_or(5_000, |text| text.parse().expect("a number"));
    let (mut random, mut sum) = (Random(7), 0.0);
    for _ in 0..sets {
        let count = 1 + random.below(48);
        let all = random.temporaries(count);
        let (total, alive) = placed(&all, [16, 256][random.below(2)]);
        assert!(4 * total <= 5 * alive, "{total} bytes where {alive} are alive: {all:?}");
        sum += total as f64 / alive as f64;
    }
    let mean = sum / sets as f64;
    // The last one of a set needs no padding.
    assert!(mean < 1.0, "{mean} on average");
}

/// So many that they are placed in turn.
#[cfg_attr(miri, ignore = "takes minutes, and nothing in it is unsafe")]
#[test]
fn five_thousand_temporaries_share_no_byte_and_few_are_wasted() {
    let all = Random(1).temporaries(5000);
    let (total, alive) = placed(&all, 16);
    assert!(4 * total <= 5 * alive, "{total} bytes where {alive} are alive");
}
