//! Every driver call fails once, everywhere; the device is lost at every moment; work faults while it runs.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;
#[path = "common/scenario.rs"]
mod scenario;

use common::{direct_double, double, is_clean};
use gpumem_core::{CollectiveLibrary, Error, ErrorKind, MemoryKind};
use gpumem_host::{HostOptions, Injection, Operation};
use gpumem_integration::{calling, slow_fill};
use gpumem_kernel::config_for_items;
use gpumem_runtime::Device;
use host_double::{Double, DoubleDevice, DoubleOptions, Script, Trouble};
use ndarray::{Array1, ArrayViewMut1, s};
use scenario::{Arrived, is_lost, is_usable, run};
use std::sync::{Arc, Barrier};

type Made = (Device<Double>, DoubleDevice);

/// Both ways of the runtime. One thread and a seed: the same calls every time. Little memory, because the host backend
/// fills every piece that a pool takes.
fn ways() -> [fn() -> Made; 2] {
    const MEMORY: usize = 16 << 20;
    [
        || double(HostOptions::new().adversarial(3).memory(MEMORY)),
        || direct_double(HostOptions::new().adversarial(3).memory(MEMORY)),
    ]
}

/// Driver calls of the scenario without failures, including the calls that free dropped objects.
fn calls(make: fn() -> Made) -> u64 {
    let (device, raw) = make();
    raw.script().begin(None);
    run(&device, &mut Arrived::new()).unwrap();
    device.flush().unwrap();
    is_clean(&device, raw.host());
    raw.script().calls()
}

fn is_refusal(error: &Error) -> bool {
    *error.kind() == Script::REFUSED
}

#[test]
fn every_call_may_fail_once() {
    for make in ways() {
        let count = calls(make);
        assert!(count > 60, "the scenario makes {count} calls");
        for number in 0..count {
            let (device, raw) = make();
            raw.script().begin(Some((number, Trouble::Refuse)));
            let mut arrived = Arrived::new();
            let result = run(&device, &mut arrived);
            device.flush().unwrap();
            assert!(arrived.is_whole(), "call {number}: part of an array arrived");
            let unheard = device.take_errors();
            assert!(unheard.iter().all(is_refusal), "call {number}: {unheard:?}");
            if let Err(error) = &result {
                // Of a part of a page-locked array, the end of the lock tells it.
                let is_told = error.is_poisoned() && error.to_string().contains("REFUSED");
                assert!(is_refusal(error) || is_told, "call {number}: {error}");
            }
            raw.script().begin(None);
            is_usable(&device);
            device.flush().unwrap();
            // A handle whose release failed cannot be released again: it may be gone.
            let left = raw.host().counters().live_allocations;
            let leaked = unheard.iter().filter(|error| error.operation() == "release").count() as u64;
            assert!(left <= leaked, "call {number}: {left} allocations are left, {leaked} may be");
        }
    }
}

/// The memory goes back to the caller still locked, and whatever lies there next can be locked all the same.
#[test]
fn pages_that_were_not_unlocked_can_be_locked_again() {
    for make in ways() {
        let (device, raw) = make();
        let page = gpumem_core::process::page_size();
        // Whole pages, which one call locks.
        let mut array = Array1::from_elem(5 * page, 0u8);
        let start = array.as_ptr().align_offset(page);
        let mut array = array.slice_mut(s![start..start + 4 * page]);
        let lock = |array: &mut ArrayViewMut1<'_, u8>, part: std::ops::Range<usize>| {
            device.pinned([array.slice_mut(s![part])], |locked| locked[0].len())
        };
        // The second call of a scope that uses nothing is the one that unlocks.
        raw.script().begin(Some((1, Trouble::Refuse)));
        assert_eq!(lock(&mut array, 0..3 * page).unwrap(), 3 * page);
        assert_eq!(raw.script().struck(), Some("release"));
        let unheard = device.take_errors();
        assert!(unheard.len() == 1 && unheard.iter().all(is_refusal), "{unheard:?}");
        assert!(raw.host().counters().live_registered_bytes >= 3 * page as u64);
        // Refused once more: the error says so, and nothing is forgotten.
        raw.script().begin(Some((1, Trouble::Refuse)));
        let refused = lock(&mut array, page..2 * page).unwrap_err();
        assert!(matches!(refused.kind(), ErrorKind::Registration { .. }), "{refused}");
        assert!(device.take_errors().iter().all(is_refusal));
        // Pages in the middle, then all of them.
        assert_eq!(lock(&mut array, page..2 * page).unwrap(), page);
        assert_eq!(lock(&mut array, 0..4 * page).unwrap(), 4 * page);
        assert_eq!((device.take_errors(), raw.host().counters().live_registered_bytes), (vec![], 0));
    }
}

#[test]
fn every_failure_is_reported() {
    // Asking whether memory is idle may need an event; if that fails, the caller goes on without an answer.
    let quiet = ["query a stream", "query an event", "create_event", "record"];
    for make in ways() {
        for number in 0..calls(make) {
            let (device, raw) = make();
            raw.script().begin(Some((number, Trouble::Refuse)));
            let result = run(&device, &mut Arrived::new());
            device.flush().unwrap();
            let struck = raw.script().struck().unwrap_or("nothing");
            let is_told = result.is_err() || !device.take_errors().is_empty();
            assert!(is_told || quiet.contains(&struck) || struck == "nothing", "call {number}, {struck}");
        }
    }
}

/// Refuses the next call of an operation, after `act`.
fn refuse_next(operation: &'static str, raw: &Arc<DoubleDevice>, act: impl FnOnce() + Send + 'static) {
    let double = raw.clone();
    raw.script().during(operation, move || {
        double.script().begin(Some((0, Trouble::Refuse)));
        act();
    });
}

/// Neither the stream nor the device can be waited for, so nothing says that the memory is not in use. A pool keeps it in flight, and
/// the driver does not get it back.
#[test]
fn memory_that_may_be_in_use_is_kept_with_an_error() {
    for has_pool in [true, false] {
        let (device, raw) = double(HostOptions::new().memory(16 << 20));
        if !has_pool {
            device.set_memory_resource(MemoryKind::Device, device.driver_memory()).unwrap();
        }
        let raw = Arc::new(raw);
        let stream = device.stream().unwrap();
        let barrier = Arc::new(Barrier::new(2));
        let kernel = calling({
            let barrier = barrier.clone();
            move || {
                barrier.wait();
            }
        });
        let kernel = kernel.load(&device).unwrap();
        let mut array = device.to_device(&[1u32; 1000]).unwrap();
        device.flush().unwrap();
        let before = raw.host().counters().live_allocations;
        kernel.launch(&stream, &config_for_items([1, 1, 1], [1, 1, 1]), (0,)).unwrap();
        stream.fill(&mut array, 2).unwrap();
        drop(array);
        let double = raw.clone();
        refuse_next("synchronize a stream", &raw, move || {
            refuse_next("synchronize the device", &double, || ())
        });
        device.flush().unwrap();
        assert_eq!(raw.script().struck(), Some("synchronize the device"));
        assert_eq!(raw.host().counters().live_allocations, before);
        let told = device.take_errors();
        assert!(told.len() == 1 && told.iter().all(is_refusal), "{told:?}");
        barrier.wait();
        stream.synchronize().unwrap();
        device.flush().unwrap();
        assert_eq!(raw.host().counters().live_allocations, if has_pool { before - 1 } else { before });
    }
}

#[test]
fn the_device_may_be_lost_at_every_call() {
    for make in ways() {
        for number in 0..calls(make) {
            let (device, raw) = make();
            raw.script().begin(Some((number, Trouble::Lose)));
            let mut arrived = Arrived::new();
            let result = run(&device, &mut arrived);
            let Err(error) = result else { continue };
            assert!(is_lost::<()>(Err(error), Script::CAUSE), "call {number}");
            assert!(arrived.is_whole(), "call {number}: part of an array arrived");
            assert!(is_lost(device.synchronize(), Script::CAUSE));
            assert!(is_lost(device.flush(), Script::CAUSE));
            assert!(is_lost(device.stream().map(drop), Script::CAUSE));
            assert!(is_lost(device.to_device(&[1u8]).map(drop), Script::CAUSE));
            assert!(is_lost(device.memory_info().map(drop), Script::CAUSE));
        }
    }
}

/// Work that faults when it runs, at every command. Where no error is reported, the contents are right.
#[test]
fn every_command_may_fault() {
    for make in ways() {
        for operation in [Operation::Copy, Operation::CopyStrided, Operation::Fill] {
            for number in 0..40 {
                let (device, raw) = make();
                let what = ErrorKind::AsynchronousFault { what: "bit rot".to_owned() };
                raw.host().inject(Injection::next(operation, what).after(number));
                let mut arrived = Arrived::new();
                let result = run(&device, &mut arrived);
                raw.host().clear_injections();
                if let Err(error) = &result {
                    // Of the stream, or of the data.
                    let is_fault = match error.kind() {
                        ErrorKind::AsynchronousFault { what } => what.contains("bit rot"),
                        ErrorKind::Poisoned { failure, .. } => failure.cause.ends_with("bit rot"),
                        _ => false,
                    };
                    assert!(is_fault, "{operation:?} {number}: {error}");
                } else if raw.host().counters().faults > 0 {
                    panic!("{operation:?} {number}: a fault was never reported");
                }
                let _told = device.synchronize();
                device.take_errors();
                is_usable(&device);
                is_clean(&device, raw.host());
            }
        }
    }
}

#[test]
fn a_copy_after_failed_work_is_an_error_and_copies_no_element() {
    for make in ways() {
        for to_the_host in [true, false] {
            let (device, raw) = make();
            let stream = device.stream().unwrap();
            let mut array = device.to_device(&[1u32; 100]).unwrap();
            let what = ErrorKind::AsynchronousFault { what: "bit rot".to_owned() };
            raw.host().inject(Injection::next(Operation::Fill, what));
            stream.fill(&mut array, 2).unwrap();
            // The copy runs on another stream, which is in order.
            let error = match to_the_host {
                true => array.copy_to_host().map(drop).unwrap_err(),
                false => device.to_device(&array).map(drop).unwrap_err(),
            };
            let is_told = matches!(error.kind(), ErrorKind::AsynchronousFault { .. }) || error.is_poisoned();
            assert!(is_told && error.to_string().contains("bit rot"), "{error}");
        }
    }
}

#[test]
fn a_fault_reported_elsewhere_copies_nothing() {
    for make in ways() {
        let (device, raw) = make();
        let stream = device.stream().unwrap();
        let array = device.to_device(&[1u32; 100]).unwrap();
        let mut out = Array1::from_elem(100, scenario::UNTOUCHED);
        let what = ErrorKind::AsynchronousFault { what: "bit rot".to_owned() };
        let pinned = stream.copy_to_host(&array).unwrap();
        raw.host().inject(Injection::next(Operation::Copy, what));
        let result = stream.scope(|scope| {
            scope.copy_to_host(&array, out.view_mut()).unwrap();
            // The device tells it, too, and the copy into the pinned array is no part of it.
            assert!(device.synchronize().is_err());
            assert_eq!(pinned.view().unwrap().to_vec(), [1; 100]);
        });
        assert!(result.is_err(), "the scope ended as if nothing had happened: {out}");
        assert!(out.iter().all(|value| *value == scenario::UNTOUCHED), "{out}");
        is_usable(&device);
    }
}

/// Where the last event of a stream could not be recorded, the host waits for its work.
#[test]
fn a_stream_without_a_last_event_leaves_its_memory_usable() {
    const LEN: usize = 32 << 10;
    for options in [HostOptions::new().brief_bytes(0), HostOptions::new().adversarial(5)] {
        let (device, raw) = double(options);
        let slow = slow_fill().load(&device).unwrap();
        let written_by_a_stream_that_ends = || {
            let mut array = device.device_array::<u32, _>(LEN).unwrap();
            let stream = device.stream().unwrap();
            slow.launch(&stream, &config_for_items([1, 1, 1], [1, 1, 1]), (&mut array,)).unwrap();
            raw.host().inject(Injection::next(Operation::Record, Script::REFUSED));
            drop(stream);
            raw.host().clear_injections();
            assert!(device.take_errors().iter().all(is_refusal));
            array
        };
        let other = device.stream().unwrap();
        let copy = other.to_device(&written_by_a_stream_that_ends()).unwrap();
        assert_eq!(copy.copy_to_host().unwrap().to_vec(), [1; LEN]);
        assert_eq!(written_by_a_stream_that_ends().copy_to_host().unwrap().to_vec(), [1; LEN]);
        let mut array = written_by_a_stream_that_ends();
        let _loan = array.lend(&other).unwrap();
        other.fill(&mut array, 7).unwrap();
        assert_eq!(array.copy_to_host().unwrap().to_vec(), [7; LEN]);
        drop(written_by_a_stream_that_ends());
        let array = other.to_device(&[3_u32; LEN]).unwrap();
        assert_eq!(array.copy_to_host().unwrap().to_vec(), [3; LEN]);
        assert!(device.take_errors().is_empty());
    }
}

/// A capture of another library makes the driver refuse a wait for the device. The work that is under way has not failed.
#[test]
fn a_wait_that_the_driver_refuses_fails_no_work() {
    const LEN: usize = 32 << 10;
    for host in [HostOptions::new().brief_bytes(0), HostOptions::new().adversarial(5)] {
        // As a GPU, which does not say whose failure it is.
        let collective_library = Some(CollectiveLibrary::Nccl);
        let options = DoubleOptions { host, collective_library, ..DoubleOptions::default() };
        let raw = Double::open_with(&options).unwrap();
        let device = Device::<Double>::from_raw(raw.clone());
        let (stream, slow) = (device.stream().unwrap(), slow_fill().load(&device).unwrap());
        let mut array = device.device_array::<u32, _>(LEN).unwrap();
        let mut out = Array1::zeros(LEN);
        let scoped = stream.scope(|scope| {
            slow.launch(&stream, &config_for_items([1, 1, 1], [1, 1, 1]), (&mut array,)).unwrap();
            scope.copy_to_host(&array, out.view_mut()).unwrap();
            let event = stream.record_event().unwrap();
            raw.host().inject(Injection::next(Operation::Synchronize, Script::REFUSED));
            assert!(is_refusal(&device.synchronize().unwrap_err()));
            event.synchronize().unwrap();
            assert!(event.query().unwrap());
            7
        });
        assert_eq!((scoped.unwrap(), out.to_vec()), (7, vec![1; LEN]));
        // Nor is the device waited for instead, which would end the capture of a stream that refuses.
        let waits = raw.host().counters().synchronizations;
        let kind = ErrorKind::Unsupported { what: "a captured stream" };
        raw.host().inject(Injection::next(Operation::Synchronize, kind.clone()));
        assert_eq!(stream.synchronize().unwrap_err().kind(), &kind);
        assert_eq!(raw.host().counters().synchronizations, waits + 1);
        stream.synchronize().unwrap();
        assert!(device.take_errors().is_empty());
    }
}

#[test]
fn a_recording_keeps_no_more_than_the_device_has_room_for() {
    for make in ways() {
        let (device, _raw) = make();
        let (elements, mut taken) = (vec![1u8; 1 << 20], 0);
        let recorded = device.record((), |stream, ()| {
            for _ in 0..64 {
                drop(stream.to_device(&elements)?);
                taken += 1;
            }
            Ok(())
        });
        assert!(matches!(recorded.unwrap_err().kind(), ErrorKind::OutOfMemory { .. }));
        assert_eq!(taken, 16);
    }
}
