//! The stress program of `examples/stress_uploads`, shortly on the host; there is how to run it on a GPU.
#![cfg(feature = "host")]
#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "../examples/stress_uploads/stress.rs"]
mod stress;

use gpumem::Device;
use stress::{MODES, Plan};

fn all_modes(threads: u64, rounds: u64) {
    for mode in 1..=MODES {
        let device = Device::open("host").unwrap();
        let plan = Plan { mode, threads, rounds, flushes: mode % 3 > 0, synchronizes: mode % 2 > 0 };
        let outcome = stress::run(&device, &plan);
        assert!(outcome.arrays >= threads * rounds);
        assert_eq!(outcome.wrong, 0, "mode {mode}: {:?}", outcome.first);
    }
}

#[test]
fn uploads_arrive_intact() {
    all_modes(8, 20);
}

#[test]
#[ignore = "minutes"]
fn uploads_from_many_threads_arrive_intact() {
    all_modes(100, 200);
}
