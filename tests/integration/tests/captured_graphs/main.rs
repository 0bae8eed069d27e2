//! Graphs of a driver, on a double that runs what is not ordered in another order each time: random bodies with several streams
//! against a model, a failure of each call, and a subscriber of tracing that asks the graph.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "../common/subscriber.rs"]
#[allow(dead_code, reason = "each test program uses a part")]
mod events;
mod failures;
mod random;
mod subscriber;

use gpumem::kernel::{Kernel, config_for_items, prelude::*};
use gpumem_core::LaunchConfig;
use gpumem_host::HostOptions;
use gpumem_runtime::Device;
use host_double::{Double, DoubleDevice, DoubleOptions};

#[gpumem::kernel]
fn multiply_add(a: i64, x: Slice<i64>, y: Own<i64>) {
    let at = global_id(0);
    if at < x.len() {
        y[own()] = a * x[at] + y[own()];
    }
}

type MultiplyAdd = Kernel<(i64, Slice<i64>, Own<i64>), Double>;

const LEN: usize = 200;

fn grid() -> LaunchConfig {
    config_for_items([LEN, 1, 1], [50, 1, 1])
}

fn device() -> (Device<Double>, DoubleDevice) {
    let options = DoubleOptions {
        host: HostOptions::new(),
        is_packing: true,
        captures: true,
        ..DoubleOptions::default()
    };
    let raw = Double::open_with(&options).unwrap();
    (Device::from_raw(raw.clone()), raw)
}
