//! Many threads at once: right contents, and nothing left.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{double, host, is_clean};
use gpumem_core::Backend;
use gpumem_host::HostOptions;
use gpumem_runtime::{Device, DeviceArray};
use ndarray::{Array1, Ix1, s};
use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

const THREADS: u32 = 8;
const LENGTH: usize = 600;

type Shared<B> = Arc<Mutex<DeviceArray<u32, Ix1, B>>>;

/// One thread's work until `end`: its own arrays across its own streams, and everybody's shared ones.
fn work<B: Backend>(
    device: &Device<B>,
    thread: u32,
    shared: &Shared<B>,
    fixed: &DeviceArray<u32, Ix1, B>,
    end: Instant,
) {
    let mut round = 0u32;
    while Instant::now() < end {
        round += 1;
        let (one, two) = (device.stream().unwrap(), device.stream().unwrap());
        let mark = thread << 24 | round;
        let numbers = Array1::from_shape_fn(LENGTH + (round as usize % 7) * 1000, |i| mark ^ i as u32);
        let mut array = one.to_device(&numbers).unwrap();
        let copy = two.to_device(&array.slice(s![..;-1]).unwrap()).unwrap();
        // The copy is in flight; the write waits for it by itself.
        one.fill(&mut array, mark).unwrap();
        let back = one.copy_to_host(&copy).unwrap();
        {
            // Shared and mutable: whole writes, on whichever stream comes.
            let mut shared = shared.lock().unwrap();
            two.fill(&mut shared, mark).unwrap();
            let seen = one.copy_to_host(&*shared).unwrap();
            assert!(seen.view().unwrap().iter().all(|value| *value == mark));
        }
        // Shared and read by all at the same time.
        let mut part = Array1::zeros(LENGTH / 2);
        two.scope(|scope| scope.copy_to_host(&fixed.slice(s![..;2])?, part.view_mut())).unwrap().unwrap();
        assert!(part.iter().enumerate().all(|(i, value)| *value == 2 * i as u32));
        assert_eq!(back.view().unwrap(), numbers.slice(s![..;-1]));
        assert_eq!(array.get(LENGTH - 1).unwrap(), mark);
        if round.is_multiple_of(3) {
            device.flush().unwrap();
        }
        // Everything else is dropped in flight.
        drop(two.to_device(&copy).unwrap());
    }
    assert!(round > 0);
}

fn eight_threads<B: Backend>(device: Device<B>, host: &gpumem_host::Device) {
    let streams = host.counters().streams;
    let end = Instant::now() + Duration::from_millis(1000);
    let shared = Arc::new(Mutex::new(device.to_device(&vec![0u32; LENGTH]).unwrap()));
    let fixed = device.to_device(&(0..LENGTH as u32).collect::<Vec<_>>()).unwrap();
    // No stream has to wait for the default stream from here on, so it needs no event, which it would keep.
    device.synchronize().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (device, shared, fixed) = (&device, &shared, &fixed);
            scope.spawn(move || work(device, thread, shared, fixed, end));
        }
    });
    drop((shared, fixed));
    is_clean(&device, host);
    // Only the default stream of the device is left, once the worker that ran the last command has put its stream down.
    let patience = Instant::now() + Duration::from_secs(5);
    while host.counters().streams > streams + 1 && Instant::now() < patience {
        std::thread::yield_now();
    }
    let counters = host.counters();
    assert!(counters.streams <= streams + 1, "{} streams are left", counters.streams);
    assert_eq!((counters.events, counters.faults), (0, 0));
    drop(device);
}

#[test]
fn eight_threads_leak_nothing() {
    let (device, raw) = host(HostOptions::new());
    eight_threads(device, &raw);
}

#[test]
fn eight_threads_leak_nothing_when_copying_as_a_gpu() {
    let (device, raw) = double(HostOptions::new().brief_bytes(0));
    eight_threads(device, raw.host());
}
