//! Memory that goes back late. Where a driver frees it with a delay, a call that needs it waits, and others do not.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;

use common::is_clean;
use gpumem_host::HostOptions;
use gpumem_runtime::Device;
use host_double::{Double, DoubleDevice, DoubleOptions};
use ndarray::Array1;
use std::time::{Duration, Instant};

const MIB: usize = 1 << 20;
const TOTAL: usize = 256 * MIB;

fn open() -> (Device<Double>, DoubleDevice) {
    let host = HostOptions::new().memory(TOTAL);
    let raw =
        Double::open_with(&DoubleOptions { host, frees_late: true, ..DoubleOptions::default() }).unwrap();
    (Device::from_raw(raw.clone()), raw)
}

/// Fills the device with arrays that a stream uses.
fn fill(device: &Device<Double>, bytes: usize) {
    let stream = device.stream().unwrap();
    let mut arrays = Vec::new();
    while let Ok(array) = device.uninit_array::<u8, _>(bytes) {
        arrays.push(array);
    }
    assert!(arrays.len() >= TOTAL / bytes / 2);
    // Some work on each, however long the arrays are.
    for array in arrays {
        let mut array = array.fill(1).unwrap();
        stream.fill(&mut array, 7).unwrap();
    }
}

#[test]
fn a_request_waits_while_memory_keeps_being_freed() {
    for bytes in [4 * MIB, 16 * MIB] {
        let (device, raw) = open();
        for round in 0..4 {
            fill(&device, bytes);
            let long = device.uninit_array::<u8, _>(TOTAL / 8 * 7);
            assert!(long.is_ok(), "round {round}: {:?}", long.err());
            drop(long);
            device.flush().unwrap();
            assert_eq!(device.memory_info().unwrap().free, TOTAL, "a flush tells the truth");
        }
        is_clean(&device, raw.host());
    }
}

#[test]
fn requests_do_not_wait_where_waiting_is_forbidden_or_useless() {
    let (device, raw) = open();
    // No memory was freed: the request fails at once.
    let held = device.uninit_array::<u8, _>(MIB).unwrap();
    let begin = Instant::now();
    for _ in 0..10 {
        assert!(device.uninit_array::<u8, _>(2 * TOTAL).is_err_and(|error| error.is_out_of_memory()));
    }
    assert!(begin.elapsed() < Duration::from_millis(300), "{:?}", begin.elapsed());
    // Nothing is waited for inside `defer_cleanup`.
    drop(held);
    fill(&device, 4 * MIB);
    let deferred = device.defer_cleanup();
    let begin = Instant::now();
    assert!(device.uninit_array::<u8, _>(TOTAL / 8 * 7).is_err_and(|error| error.is_out_of_memory()));
    assert!(begin.elapsed() < Duration::from_millis(300), "{:?}", begin.elapsed());
    drop(deferred);
    // A request that can never succeed fails after a while.
    let begin = Instant::now();
    assert!(device.uninit_array::<u8, _>(2 * TOTAL).is_err_and(|error| error.is_out_of_memory()));
    assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
    is_clean(&device, raw.host());
}

/// A drop unlocks nothing, and the program may allocate nothing after it.
#[test]
fn arrays_that_are_locked_and_dropped_do_not_pile_up() {
    let (device, raw) = open();
    for _ in 0..100 {
        drop(device.register(Array1::<u32>::zeros(1 << 12)).unwrap());
        assert!(device.pending_frees().0 <= 12);
    }
    assert!(raw.host().counters().live_registered_bytes < MIB as u64);
}
