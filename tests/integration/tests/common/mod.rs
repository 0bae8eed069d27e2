//! Devices of one test's own.
#![allow(dead_code, reason = "each test program uses a part")]

#[cfg(target_os = "linux")]
pub(crate) mod refused_calls;
pub(crate) mod subscriber;

use gpumem_core::Backend;
use gpumem_host::{Host, HostOptions};
use gpumem_runtime::Device;
use host_double::{Double, DoubleDevice, DoubleOptions};

/// A device of the host backend, with the backend's own device.
pub(crate) fn host(options: HostOptions) -> (Device<Host>, gpumem_host::Device) {
    let raw = Host::open_with(&options).unwrap();
    (Device::from_raw(raw.clone()), raw)
}

/// A device that copies as a GPU does, with the backend's own device.
pub(crate) fn double(options: HostOptions) -> (Device<Double>, DoubleDevice) {
    let raw = Double::open_with(&DoubleOptions {
        host: options,
        is_direct: false,
        is_packing: false,
        ..DoubleOptions::default()
    })
    .unwrap();
    (Device::from_raw(raw.clone()), raw)
}

/// As [`double`], with a way to walk any layout in its own memory.
pub(crate) fn packing_double(options: HostOptions) -> (Device<Double>, DoubleDevice) {
    let raw = Double::open_with(&DoubleOptions {
        host: options,
        is_direct: false,
        is_packing: true,
        ..DoubleOptions::default()
    })
    .unwrap();
    (Device::from_raw(raw.clone()), raw)
}

/// As [`double`], with direct copies and any layout, as the host has.
pub(crate) fn direct_double(options: HostOptions) -> (Device<Double>, DoubleDevice) {
    let raw = Double::open_with(&DoubleOptions {
        host: options,
        is_direct: true,
        is_packing: true,
        ..DoubleOptions::default()
    })
    .unwrap();
    (Device::from_raw(raw.clone()), raw)
}

/// Asserts that no object of the device is left, and that no error is unreported.
pub(crate) fn is_clean<B: Backend>(device: &Device<B>, host: &gpumem_host::Device) {
    device.synchronize().unwrap();
    device.flush().unwrap();
    let left = host.counters();
    assert_eq!(device.take_errors(), []);
    let bytes =
        [left.live_device_bytes, left.live_pinned_bytes, left.live_mapped_bytes, left.live_managed_bytes];
    assert_eq!((left.live_allocations, bytes, left.live_registered_bytes), (0, [0; 4], 0));
}
