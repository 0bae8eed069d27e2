//! Copies that the calling thread does itself, and when it must not.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod common;

use common::*;
use gpumem_core::{CopyRegion, DeviceBuffer, ErrorKind, Stream as _};
use gpumem_host::{Buffer, Device, Host, HostOptions, Injection, Operation, Stream};
use std::sync::mpsc;

fn brief() -> Device {
    Host::open_with(&HostOptions::new().memory(16 << 20).brief_bytes(512)).unwrap()
}

fn up(stream: &Stream, device: &Device, source: &[u8], destination: &Buffer) -> bool {
    let region = CopyRegion::linear(host(source), on(device, destination), source.len());
    // SAFETY: both sides outlive the call, and only this thread uses them.
    unsafe { stream.try_copy_sync(&region) }
}

#[test]
fn an_idle_stream_copies_at_once_and_counts_it() {
    let device = brief();
    let (stream, buffer) = (stream(&device), allocate(&device, 4096));
    let before = device.counters().copies;
    assert!(up(&stream, &device, &[7; 4096], &buffer));
    assert_eq!(device.counters().copies, before + 1);
    assert!(stream.query().unwrap(), "nothing was enqueued");
    assert_eq!(read(&device, &stream, &buffer), [7; 4096]);
    assert!(!up(&stream, &device, &[8; 4097], &allocate(&device, 4097)), "not brief");
    assert!(!up(&stream, &device, &[], &buffer), "nothing to copy");
}

#[test]
fn the_cached_ranges_of_the_last_copy_are_looked_up_again_if_too_short() {
    let device = brief();
    let (stream, buffer, other) = (stream(&device), allocate(&device, 64), allocate(&device, 64));
    let source = [5; 128];
    let copy = |from: &[u8], to: &Buffer, offset: u64| {
        let (address, space) = on(&device, to);
        let region = CopyRegion::linear(host(from), (address + offset, space), from.len());
        // SAFETY: the backend checks that the memory is live; only this thread uses it.
        unsafe { stream.try_copy_sync(&region) }
    };
    assert!(copy(&source[..64], &buffer, 0));
    assert!(copy(&source[3..19], &buffer, 48), "a part of the same block");
    assert!(!copy(&source[..17], &buffer, 48), "over its end");
    assert!(copy(&source[..64], &other, 0), "another block");
    // Memory of a device that is taken for the host's, at an address where an array of the host has been before or not.
    let region = CopyRegion::linear(
        (other.address(), gpumem_core::Space::Host),
        (buffer.address(), gpumem_core::Space::Device(device.ordinal())),
        64,
    );
    // SAFETY: as above.
    assert!(!unsafe { stream.try_copy_sync(&region) });
    release(&device, other);
    assert!(copy(&source[..64], &buffer, 0));
}

#[test]
fn copies_of_a_dropped_stream_still_count() {
    let device = brief();
    let buffer = allocate(&device, 64);
    let before = device.counters();
    for _ in 0..3 {
        let stream = stream(&device);
        assert!(up(&stream, &device, &[1; 64], &buffer) && up(&stream, &device, &[1; 32], &buffer));
        stream.destroy().unwrap();
    }
    let after = device.counters();
    assert_eq!((after.copies - before.copies, after.copied_bytes - before.copied_bytes), (6, 3 * 96));
}

#[test]
fn nothing_overtakes_what_is_enqueued() {
    let device = brief();
    let (stream, buffer) = (stream(&device), allocate(&device, 64));
    let (go, wait) = mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let slow = kernel(&device, move |_| wait.lock().unwrap().recv().map_err(|why| why.to_string()));
    launch(&stream, &slow).unwrap();
    fill(&stream, &buffer, 1);
    assert!(!up(&stream, &device, &[2; 64], &buffer), "a kernel and a fill are pending");
    go.send(()).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(read(&device, &stream, &buffer), [1; 64], "a refused copy moves nothing");
    assert!(up(&stream, &device, &[2; 64], &buffer));
    assert_eq!(read(&device, &stream, &buffer), [2; 64]);
}

/// The adversarial schedule decides when each copy runs, so none may escape it.
#[test]
fn an_adversarial_schedule_is_never_bypassed() {
    for seed in 0..8 {
        let device = adversarial(seed);
        let (stream, buffer) = (stream(&device), allocate(&device, 64));
        assert!(!up(&stream, &device, &[2; 64], &buffer));
        assert_eq!(read(&device, &stream, &buffer), [0; 64]);
    }
}

#[test]
fn invalid_copies_are_left_to_the_enqueued_path() {
    let device = brief();
    let (stream, buffer) = (stream(&device), allocate(&device, 64));
    // A failure to come.
    device.inject(Injection::next(Operation::Copy, ErrorKind::NotReady));
    assert!(!up(&stream, &device, &[2; 64], &buffer));
    device.clear_injections();
    // Other work has failed, which is no reason.
    launch(&stream, &kernel(&device, |_| Err("on purpose".into()))).unwrap();
    while stream.query().is_ok() {
        std::thread::yield_now();
    }
    assert!(up(&stream, &device, &[2; 64], &buffer));
    assert!(is_fault(&stream.synchronize()));
    // A range that is no memory of the device, or runs over it.
    assert!(!up(&stream, &device, &[2; 65], &buffer));
    let address = buffer.address();
    release(&device, buffer);
    let region =
        CopyRegion::linear(host(&[2; 64]), (address, gpumem_core::Space::Device(device.ordinal())), 64);
    // SAFETY: the backend checks that the memory is live.
    assert!(!unsafe { stream.try_copy_sync(&region) });
    // A lost device.
    device.lose("on purpose");
    let elsewhere = brief();
    assert!(!up(&stream, &device, &[2; 64], &allocate(&elsewhere, 64)));
}
