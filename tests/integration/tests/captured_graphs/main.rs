//! Graphs of a driver, on a double that runs what is not ordered in another order each time: random bodies with several streams
//! against a model, a failure of each call, what is kept and what goes, and a subscriber of tracing that asks the graph.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod drops;
#[path = "../common/subscriber.rs"]
#[allow(dead_code, reason = "each test program uses a part")]
mod events;
mod failures;
mod kept;
mod lost;
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
    device_of(HostOptions::new(), true)
}

fn device_of(host: HostOptions, captures: bool) -> (Device<Double>, DoubleDevice) {
    let options = DoubleOptions { host, is_packing: true, captures, ..DoubleOptions::default() };
    let raw = Double::open_with(&options).unwrap();
    (Device::from_raw(raw.clone()), raw)
}

/// No memory of the device is left, and no graph.
fn is_empty(device: &Device<Double>, raw: &DoubleDevice) {
    device.synchronize().unwrap();
    device.flush().unwrap();
    let left = raw.host().counters();
    let bytes = [left.live_device_bytes, left.live_pinned_bytes];
    assert_eq!((left.live_allocations, bytes, raw.graphs(), device.take_errors()), (0, [0; 2], 0, vec![]));
}
