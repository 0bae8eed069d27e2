//! `defer_cleanup_everywhere` affects the whole process, so its test has a separate one.
#![allow(clippy::unwrap_used, missing_docs, reason = "a test")]

use gpumem_core::MemoryKind;
use gpumem_host::{Host, HostOptions};
use gpumem_runtime::{Device, memory::defer_cleanup_everywhere};

/// Drops one array more than may be pending, then allocates.
fn drop_too_many(device: &Device<Host>) {
    let arrays: Vec<_> = (0..11).map(|_| device.uninit_array::<u8, _>(16).unwrap()).collect();
    drop(arrays);
    look(device);
}

/// An allocation that looks after the queue, and stays.
fn look(device: &Device<Host>) {
    std::mem::forget(device.uninit_array::<u8, _>(1).unwrap());
}

#[test]
fn one_call_defers_on_all_devices_and_a_panic_ends_it() {
    let devices = [(); 2].map(|()| {
        let raw = Host::open_with(&HostOptions::new().memory(1 << 20)).unwrap();
        let device = Device::from_raw(raw.clone());
        device.set_memory_resource(MemoryKind::Device, device.driver_memory()).unwrap();
        (device, raw)
    });
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _all = defer_cleanup_everywhere();
        for (device, raw) in &devices {
            drop_too_many(device);
            assert_eq!((device.pending_frees().0, raw.counters().releases), (11, 0));
        }
        std::panic::resume_unwind(Box::new("on purpose"));
    }));
    assert!(panicked.is_err());
    for (device, raw) in &devices {
        look(device);
        assert_eq!((device.pending_frees(), raw.counters().releases), ((0, 0), 11));
    }
    // Nothing would free later what a device has left that is closed meanwhile.
    let raw = Host::open_with(&HostOptions::new()).unwrap();
    let device = Device::<Host>::from_raw(raw.clone());
    drop(device.uninit_array::<u8, _>(16).unwrap());
    let _all = defer_cleanup_everywhere();
    drop(device);
    let is_free = || raw.counters().live_allocations == 0;
    let mut looks = (0..60_000).map(|_| std::thread::sleep(std::time::Duration::from_millis(1)));
    assert!(is_free() || looks.any(|()| is_free()));
}
