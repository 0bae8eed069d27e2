//! Opens devices, and uses them in a forked child.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod common;

use common::*;
use gpumem_core::{Backend, Barrier, BarrierPoint, DeviceSelector, DriverDevice, ErrorKind, Lowering};
use gpumem_host::{Host, HostOptions};

#[test]
fn a_listed_device_is_opened_once() {
    Host::probe().unwrap();
    let devices = Host::devices().unwrap();
    assert_eq!((devices.len(), devices[0].backend, devices[0].ordinal), (1, "host", 0));
    assert!(devices[0].total_memory > 0);
    let selector: DeviceSelector = "host".parse().unwrap();
    let (one, two) = (Host::open(&selector).unwrap(), Host::open(&selector).unwrap());
    let buffer = allocate(&one, 100);
    assert_eq!(two.counters().live_allocations, one.counters().live_allocations);
    release(&two, buffer);
    assert_eq!(one.info(), &devices[0]);
    for (wish, is_right) in [
        (
            "host:1",
            (|kind| matches!(kind, ErrorKind::NoSuchDevice { found: 1, .. })) as fn(&ErrorKind) -> bool,
        ),
        ("host:1000", |kind| matches!(kind, ErrorKind::NoSuchDevice { .. })),
        ("cuda:0", |kind| matches!(kind, ErrorKind::BackendNotEnabled { .. })),
    ] {
        let error = Host::open(&wish.parse().unwrap()).unwrap_err();
        assert!(is_right(error.kind()), "{wish}: {error}");
    }
}

#[test]
fn private_devices_are_apart() {
    let (one, two) = (concurrent(), concurrent());
    assert!(one.ordinal() >= 1000 && one.ordinal() != two.ordinal());
    let wide = Host::open_with(&HostOptions::new().wave_size(64)).unwrap();
    assert_eq!((wide.capabilities().wave_size, wide.barrier().wave_size()), (64, 64));
    assert_eq!(one.barrier().wave_size(), 32);
    assert_eq!(one.barrier().lowering(BarrierPoint::Wave), Lowering::Suspend);
    let error = Host::open_with(&HostOptions::new().wave_size(16)).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::InvalidArgument { .. }), "{error}");
}

#[cfg(all(unix, not(miri)))]
mod forked {
    use super::*;
    use gpumem_core::{Event as _, EventOptions, MemoryKind, Result, Stream as _, StreamOptions};
    use gpumem_host::{Device, Schedule};
    use std::process::exit;
    use std::sync::atomic::{AtomicBool, Ordering};

    fn is_forked<T>(result: Result<T>) -> bool {
        matches!(result, Err(error) if matches!(error.kind(), ErrorKind::ForkedChild))
    }

    /// Runs `child` in a forked child while threads of the parent keep the device's locks busy. Returns the child's
    /// report.
    fn fork(busy: &Device, child: impl FnOnce() -> Result<(), &'static str>) {
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let stream = stream(busy);
                let buffer = allocate(busy, 1 << 16);
                while !stop.load(Ordering::Relaxed) {
                    fill(&stream, &buffer, 1);
                    drop(event(busy));
                    release(busy, allocate(busy, 64));
                    stream.synchronize().unwrap();
                }
                release(busy, buffer);
            });
            std::thread::sleep(std::time::Duration::from_millis(5));
            // SAFETY: the child uses only functions that work in a forked child, and leaves by `_exit`.
            let pid = unsafe { libc::fork() };
            assert!(pid >= 0, "fork failed");
            if pid == 0 {
                // SAFETY: nothing of the parent runs in the child; a hang becomes a signal.
                unsafe { libc::alarm(20) };
                let code = match child() {
                    Ok(()) => 0,
                    Err(what) => {
                        eprintln!("in the child: {what}");
                        1
                    }
                };
                // SAFETY: ends the child at once.
                unsafe { libc::_exit(code) };
            }
            let mut status = 0;
            // SAFETY: our own child, and a valid place for its status.
            let waited = unsafe { libc::waitpid(pid, &raw mut status, 0) };
            stop.store(true, Ordering::Relaxed);
            thread.join().unwrap();
            assert_eq!((waited, status), (pid, 0), "status {status:#x}");
        });
    }

    fn check(condition: bool, what: &'static str) -> Result<(), &'static str> {
        if condition { Ok(()) } else { Err(what) }
    }

    fn old_is_refused_and_new_works(device: &Device) {
        let (old_stream, old_event) = (stream(device), event(device));
        let body = kernel(device, |_| Ok(()));
        let old_buffer = allocate(device, 64);
        // A copy of the list's device, so that its registry is in use as well.
        let listed = Host::open(&DeviceSelector::ordinal("host", 0)).unwrap();
        let mut handles = Some((old_stream, old_event, old_buffer, body));
        fork(device, || {
            let Some((stream, event, buffer, body)) = handles.take() else { exit(9) };
            for old in [device, &listed] {
                check(is_forked(old.memory_info()), "memory_info")?;
                check(is_forked(old.synchronize()), "synchronize")?;
                check(is_forked(try_allocate(old, 64, MemoryKind::Device)), "allocate")?;
                check(is_forked(old.create_stream(&StreamOptions::default())), "create_stream")?;
                check(is_forked(old.create_event(EventOptions::default())), "create_event")?;
                check(is_forked(old.can_access_peer(old)), "can_access_peer")?;
                // SAFETY: refused.
                check(is_forked(unsafe { old.reset() }), "reset")?;
            }
            check(is_forked(stream.synchronize()) && is_forked(stream.query()), "stream")?;
            check(is_forked(event.synchronize()) && is_forked(event.query()), "event")?;
            check(is_forked(stream.record(&event)), "record")?;
            check(is_forked(stream.wait(&event)), "wait")?;
            check(is_forked(launch(&stream, &body)), "launch")?;
            check(device.schedule_trace().is_empty(), "trace")?;
            // SAFETY: refused.
            check(unsafe { device.release(buffer) }.is_err(), "release")?;
            drop((stream, event, body));

            let new = Host::open(&DeviceSelector::ordinal("host", 0)).map_err(|_| "open")?;
            let private = Host::open_with(&HostOptions::new().brief_bytes(0)).map_err(|_| "open_with")?;
            for device in [new, private] {
                let stream = common::stream(&device);
                let buffer = allocate(&device, 1 << 20);
                fill(&stream, &buffer, 6);
                check(read(&device, &stream, &buffer).iter().all(|byte| *byte == 6), "contents")?;
                release(&device, buffer);
            }
            Ok(())
        });
        let (stream, event, buffer, body) = handles.take().unwrap();
        launch(&stream, &body).unwrap();
        stream.record(&event).unwrap();
        event.synchronize().unwrap();
        release(device, buffer);
    }

    #[test]
    fn a_forked_child_opens_its_own_devices() {
        for device in [concurrent(), adversarial(2)] {
            old_is_refused_and_new_works(&device);
        }
    }

    #[test]
    fn the_environment_sets_devices_up() {
        // In a child, because the environment belongs to all threads.
        fork(&concurrent(), || {
            for (name, value) in
                [("GPUMEM_HOST_DEVICES", "3"), ("GPUMEM_HOST_MEMORY", "5M"), ("GPUMEM_HOST_SEED", "77")]
            {
                // SAFETY: the child has one thread.
                unsafe { std::env::set_var(name, value) };
            }
            let devices = Host::devices().map_err(|_| "devices")?;
            check(devices.len() == 3 && devices[2].total_memory == 5 << 20, "list")?;
            let device = Host::open(&DeviceSelector::ordinal("host", 2)).map_err(|_| "open")?;
            check(device.ordinal() == 2, "ordinal")?;
            check(device.schedule() == Schedule::Adversarial { seed: 77 }, "schedule")?;
            let total = device.memory_info().map_err(|_| "memory_info")?.total;
            check(total == 5 << 20, "memory")?;
            // SAFETY: as above.
            unsafe { std::env::set_var("GPUMEM_HOST_MEMORY", "much") };
            check(Host::devices().is_err(), "a wrong size")
        });
    }
}
