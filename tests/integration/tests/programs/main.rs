//! Random programs over the public API, each operation checked against a model that does one after the other.
//!
//! `GPUMEM_OPERATIONS` asks for so many operations in all, `GPUMEM_SEED` for another first seed.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod around;
mod boards;
#[path = "../common/mod.rs"]
mod common;
mod ends;
mod hosts;
mod model;
mod program;
mod steps;

use common::{direct_double, double, host, packing_double};
use gpumem_core::Backend;
use gpumem_host::HostOptions;
use gpumem_runtime::Device;
use host_double::{Double, DoubleOptions};
use program::Program;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    thread,
    time::Instant,
};

/// Operations of one program.
const STEPS: usize = 400;

fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).map_or(otherwise, |text| text.parse().unwrap())
}

/// Runs one program alone, and then three on the same device at the same time, of which none fails.
fn run<B: Backend>(device: &Device<B>, seed: u64) -> usize {
    Program::new(device, seed, true).run(STEPS);
    thread::scope(|scope| {
        for thread in 1..=3 {
            scope.spawn(move || Program::new(device, seed + (thread << 32), false).run(STEPS / 4));
        }
    });
    device.synchronize().unwrap();
    assert_eq!(device.take_errors(), [], "seed {seed}");
    STEPS + 3 * (STEPS / 4)
}

#[test]
fn programs_agree_with_the_model() {
    let (wanted, first) = (number("GPUMEM_OPERATIONS", 4000), number("GPUMEM_SEED", 1));
    let (begin, mut done, mut seed) = (Instant::now(), 0, first);
    while done < wanted as usize {
        println!("seed {seed}");
        let options = || match seed % 3 {
            0 => HostOptions::new(),
            1 => HostOptions::new().adversarial(seed),
            _ => HostOptions::new().brief_bytes(0).adversarial(seed),
        };
        done += match seed % 4 {
            0 | 1 => run(&host(options()).0, seed),
            2 if seed % 8 == 2 => run(&direct_double(options()).0, seed),
            2 => run(&packing_double(options()).0, seed),
            _ => run(&double(options()).0, seed),
        };
        seed += 1;
    }
    println!("{done} operations, seeds {first} to {}, {:.1} s", seed - 1, begin.elapsed().as_secs_f32());
}

#[test]
fn programs_find_streams_that_do_not_wait() {
    let finds = |seed| {
        let host = HostOptions::new().adversarial(seed);
        let options = DoubleOptions { host, ignores_waits: true, ..DoubleOptions::default() };
        let device: Device<Double> = Device::from_raw(Double::open_with(&options).unwrap());
        catch_unwind(AssertUnwindSafe(|| Program::new(&device, seed, false).run(STEPS))).is_err()
    };
    assert!((1..20).any(finds));
}
