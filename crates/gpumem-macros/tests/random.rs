//! Random kernels give the same from the body that is split at its barriers as from the one that awaits them, which check mode
//! runs, with waves of 32 and of 64.
//!
//! The kernels are written anew each time, and compiled as separate programs. `GPUMEM_KERNELS` says how many there are,
//! and `GPUMEM_SEED` which is the first. With `GPUMEM_KERNELS_ON_GPUS` they run on the GPUs of the machine too. Some of the hostile
//! ones run on AMD's simulated GPU each time.
#![allow(clippy::unwrap_used)] // helpers of tests

#[path = "random/generate.rs"]
mod generate;
#[allow(dead_code)] // the checks of other tests
mod gpus;

use std::{env, fs, path::Path};

/// Kernels of one program.
const BATCH: u64 = 250;

fn number(name: &str, or: u64) -> u64 {
    env::var(name).map_or(or, |text| text.parse().unwrap())
}

#[test]
fn both_bodies_of_random_kernels_agree() {
    let (mut seed, mut left) = (number("GPUMEM_SEED", 0), number("GPUMEM_KERNELS", 80));
    let simulator = gpus::simulator().inspect_err(|why| println!("skipped: no simulated GPU: {why}")).ok();
    let cases = trybuild::TestCases::new();
    while left > 0 {
        let count = left.min(BATCH);
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("random_{seed}.rs"));
        fs::write(&path, generate::program(seed..seed + count, simulator.as_deref())).unwrap();
        cases.pass(path);
        (seed, left) = (seed + count, left - count);
    }
}
