//! Memory: budgets, addresses, registration, resets.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod common;

use common::*;
use gpumem_core::{
    Advice, AllocationRequest, Attach, DeviceBuffer, DriverDevice, ErrorKind, Event as _, Location,
    MappedOptions, MemoryInfo, MemoryKind, RegisterOptions, Stream as _,
};
use gpumem_host::{Host, HostOptions};
use std::ptr::NonNull;

const MIB: usize = 1 << 20;

#[test]
fn memory_is_counted_to_the_byte() {
    let device = Host::open_with(&HostOptions::new().memory(10_000)).unwrap();
    let info = |free| MemoryInfo { free, total: 10_000 };
    assert_eq!(device.memory_info().unwrap(), info(10_000));
    let first = allocate(&device, 6_001);
    assert_eq!(device.memory_info().unwrap(), info(3_999));
    let error = try_allocate(&device, 4_000, MemoryKind::Device).unwrap_err();
    let expected = ErrorKind::OutOfMemory {
        requested: 4_000,
        kind: "device",
        free: 3_999,
        total: 10_000,
        pressure: None,
    };
    assert_eq!(error.kind(), &expected);
    let second = allocate(&device, 3_999);
    assert_eq!(device.memory_info().unwrap(), info(0));
    // The host's memory is not the device's.
    let pinned = try_allocate(&device, MIB, MemoryKind::Pinned).unwrap();
    let managed = try_allocate(&device, MIB, MemoryKind::Managed(Attach::Global)).unwrap();
    let counters = device.counters();
    assert_eq!((counters.live_allocations, counters.live_device_bytes), (4, 10_000));
    assert_eq!((counters.live_pinned_bytes, counters.live_managed_bytes), (MIB as u64, MIB as u64));
    for buffer in [first, second, pinned, managed] {
        release(&device, buffer);
    }
    assert_eq!(device.memory_info().unwrap(), info(10_000));
    let counters = device.counters();
    assert_eq!((counters.allocations, counters.releases, counters.live_allocations), (4, 4, 0));
    assert_eq!(
        (counters.live_device_bytes, counters.live_pinned_bytes, counters.live_managed_bytes),
        (0, 0, 0)
    );
}

#[test]
#[cfg_attr(miri, ignore = "asks for more memory than the interpreter has")]
fn absurd_requests_are_typed_errors() {
    let device = Host::open_with(&HostOptions::new().memory(usize::MAX)).unwrap();
    for kind in [MemoryKind::Device, MemoryKind::Pinned, MemoryKind::Mapped(MappedOptions::default())] {
        for bytes in [usize::MAX, isize::MAX as usize, isize::MAX as usize - 100, 1 << 60] {
            for align in [1, 64, 1 << 30, 1 << 63] {
                let request = AllocationRequest { bytes, align, kind };
                // SAFETY: a valid request.
                let error = unsafe { device.allocate(&request) }.unwrap_err();
                assert!(error.is_out_of_memory(), "{error}");
            }
        }
    }
    assert_eq!(device.memory_info().unwrap().free, usize::MAX, "nothing was taken");
    let senseless = [
        AllocationRequest { bytes: 0, align: 8, kind: MemoryKind::Device },
        AllocationRequest { bytes: 8, align: 3, kind: MemoryKind::Device },
        AllocationRequest { bytes: 8, align: 8, kind: MemoryKind::Registered(RegisterOptions::default()) },
    ];
    for request in senseless {
        // SAFETY: refused.
        let error = unsafe { device.allocate(&request) }.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::InvalidArgument { .. }), "{error}");
    }
}

#[test]
fn memory_is_aligned_and_zero() {
    for device in [concurrent(), adversarial(3)] {
        let stream = stream(&device);
        for align in [1, 16, 64, 256, 4096, 2 * MIB, 4 * MIB] {
            if cfg!(miri) && align > 4096 {
                continue;
            }
            for bytes in [1, 63, 4097] {
                let request = AllocationRequest { bytes, align, kind: MemoryKind::Device };
                // SAFETY: a valid request; the host zeroes memory.
                let buffer = unsafe { device.allocate(&request) }.unwrap();
                assert!(buffer.address().is_multiple_of(align.max(64) as u64));
                assert_eq!((buffer.len(), buffer.host_address()), (bytes, None));
                assert!(read(&device, &stream, &buffer).iter().all(|byte| *byte == 0));
                fill(&stream, &buffer, 0xFF);
                stream.synchronize().unwrap();
                release(&device, buffer);
            }
        }
    }
}

#[test]
fn buffers_go_back_where_they_came_from() {
    let (one, two) = (concurrent(), concurrent());
    let buffer = allocate(&one, 100);
    let address = buffer.address();
    // SAFETY: refused.
    let (buffer, error) = unsafe { two.release(buffer) }.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::WrongDevice { what: "buffer", .. }), "{error}");
    assert_eq!(buffer.address(), address);
    release(&one, buffer);
    assert_eq!(two.counters().releases, 0);
}

#[test]
fn registration_covers_memory_once() {
    for device in [concurrent(), adversarial(4)] {
        let mut data = vec![1u8; 4096];
        let start = NonNull::new(data.as_mut_ptr()).unwrap();
        let register = |device: &gpumem_host::Device, offset: usize, bytes| {
            let options = RegisterOptions { mapped: true, ..RegisterOptions::default() };
            // SAFETY: inside `data`, which outlives the registrations.
            unsafe { device.register(start.add(offset), bytes, options) }
        };
        let buffer = register(&device, 1000, 1000).unwrap();
        assert_eq!(buffer.host_address().unwrap().as_ptr().addr() as u64, buffer.address());
        assert_eq!(buffer.kind().name(), "registered");
        for (offset, bytes) in [(1000, 1000), (0, 1001), (1999, 10), (1500, 1), (0, 4096)] {
            let error = register(&device, offset, bytes).unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::Registration { .. }), "{offset}+{bytes}: {error}");
        }
        let (before, behind) = (register(&device, 0, 1000).unwrap(), register(&device, 2000, 96).unwrap());
        let elsewhere = concurrent();
        let again = register(&elsewhere, 1000, 1000).unwrap();
        assert_eq!(device.counters().live_registered_bytes, 2096);
        // The device reaches it by its address, until it is unregistered.
        let stream = stream(&device);
        let target = allocate(&device, 1000);
        copy(&stream, on(&device, &buffer), on(&device, &target), 1000);
        assert_eq!(read(&device, &stream, &target), [1; 1000]);
        for buffer in [buffer, before, behind] {
            release(&device, buffer);
        }
        release(&elsewhere, again);
        let error = register(&device, 0, 0).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::InvalidArgument { .. }), "{error}");
        release(&device, register(&device, 0, 4096).unwrap());
        assert_eq!(device.counters().live_registered_bytes, 0);
        release(&device, target);
        data[0] = 2;
    }
}

#[test]
fn hints_are_for_managed_memory() {
    let device = concurrent();
    let stream = stream(&device);
    let managed = try_allocate(&device, 100, MemoryKind::Managed(Attach::Global)).unwrap();
    let plain = allocate(&device, 100);
    let advise = |address, bytes| {
        // SAFETY: a hint touches nothing.
        unsafe { device.advise(address, bytes, Advice::ReadMostly(true)) }
    };
    advise(managed.address(), 100).unwrap();
    assert!(advise(managed.address(), 101).is_err());
    assert!(advise(plain.address(), 100).is_err());
    // SAFETY: inside the buffer.
    unsafe { stream.prefetch(managed.address(), 100, Location::Device) }.unwrap();
    stream.synchronize().unwrap();
    release(&device, managed);
    release(&device, plain);
}

#[test]
fn a_reset_forgets_everything() {
    for device in [concurrent(), adversarial(9)] {
        let old = stream(&device);
        let mark = event(&device);
        let body = kernel(&device, |_| Ok(()));
        let failing = kernel(&device, |_| Err("before the reset".into()));
        let buffer = allocate(&device, 1000);
        let pinned = try_allocate(&device, 1000, MemoryKind::Pinned).unwrap();
        fill(&old, &buffer, 1);
        launch(&old, &failing).unwrap();
        old.record(&mark).unwrap();
        let total = device.memory_info().unwrap().total;
        // SAFETY: nothing made before is used again, but to see that it is refused.
        unsafe { device.reset() }.unwrap();
        assert_eq!(device.memory_info().unwrap(), MemoryInfo { free: total, total });
        let counters = device.counters();
        assert_eq!(
            (counters.live_allocations, counters.live_device_bytes, counters.live_pinned_bytes),
            (0, 0, 0)
        );
        let stale = |result: gpumem_core::Result<()>| match result.unwrap_err().kind() {
            ErrorKind::Stale { what } => *what,
            other => panic!("{other:?}"),
        };
        assert_eq!(stale(launch(&old, &body)), "stream");
        assert_eq!(stale(old.synchronize()), "stream");
        assert_eq!(stale(old.query().map(drop)), "stream");
        assert_eq!(stale(mark.synchronize()), "event");
        let new = stream(&device);
        assert_eq!(stale(new.wait(&mark)), "event");
        assert_eq!(stale(new.record(&mark)), "event");
        assert_eq!(stale(launch(&new, &body)), "kernel");
        for buffer in [buffer, pinned] {
            // SAFETY: refused.
            let (_, error) = unsafe { device.release(buffer) }.unwrap_err();
            assert_eq!(stale(Err(error)), "buffer");
        }
        let buffer = allocate(&device, 1000);
        fill(&new, &buffer, 2);
        assert_eq!(read(&device, &new, &buffer), [2; 1000]);
        device.synchronize().unwrap();
        release(&device, buffer);
    }
}

#[test]
fn peers_are_remembered() {
    let (one, two) = (concurrent(), concurrent());
    assert!(one.can_access_peer(&two).unwrap());
    assert!(!one.has_peer_access(&two));
    one.set_peer_access(&two, true).unwrap();
    one.set_peer_access(&two, true).unwrap();
    assert!(one.has_peer_access(&two) && !two.has_peer_access(&one));
    one.set_peer_access(&two, false).unwrap();
    one.set_peer_access(&two, false).unwrap();
    assert!(!one.has_peer_access(&two));
}

#[test]
fn a_page_with_a_neighbour_from_the_heap_can_be_registered() {
    for device in [concurrent(), adversarial(7)] {
        let buffer = try_allocate(&device, 64, MemoryKind::Pinned).unwrap();
        let own = buffer.host_address().unwrap();
        let register = |start: NonNull<u8>, bytes| {
            // SAFETY: the host does not touch registered memory, and it is deregistered below.
            unsafe { device.register(start, bytes, RegisterOptions::default()) }
        };
        let error = register(own, 64).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Registration { .. }), "{error}");
        // Whole pages are registered, and the block lies on one: so do arrays of the caller, beside it.
        let page = own.addr().get() & !4095;
        let start = NonNull::new(own.as_ptr().with_addr(page)).unwrap();
        let registered = register(start, 4096).unwrap();
        release(&device, registered);
        release(&device, buffer);
    }
}
