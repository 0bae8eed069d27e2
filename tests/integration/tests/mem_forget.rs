//! `mem::forget` of everything, with work in flight; panics at every point of a scope (laws 2 and 3).
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;
#[path = "common/scenario.rs"]
mod scenario;

use common::{double, host, is_clean};
use gpumem_core::{Backend, ErrorKind, Result};
use gpumem_host::{HostOptions, Schedule};
use gpumem_runtime::{Device, Stream};
use ndarray::{Array1, Array2, s};
use scenario::{Arrived, UNTOUCHED, is_usable, numbers, run};
use std::{
    any::Any,
    mem,
    panic::{AssertUnwindSafe, catch_unwind, panic_any},
    sync::{Arc, Once},
};

/// Concurrent, and schedules that leave the work in flight for as long as they may.
fn schedules() -> impl Iterator<Item = HostOptions> {
    let adversarial = (0..6).map(|seed| HostOptions::new().schedule(Schedule::Adversarial { seed }));
    // Sends all work to the workers, also short copies.
    [HostOptions::new().brief_bytes(0)].into_iter().chain(adversarial)
}

/// Enqueues work on a stream and returns a handle of every kind.
fn handles<B: Backend>(device: &Device<B>) -> Vec<(&'static str, Box<dyn Any>)> {
    let stream = device.stream().unwrap();
    let numbers = numbers();
    let array = stream.to_device(&numbers).unwrap();
    let mut managed = device.managed_array::<u32, _>((23, 29), Default::default()).unwrap();
    stream.copy_to_host_into(&array, &mut managed).unwrap();
    let mut mapped = device.mapped_array::<u32, _>((23, 29), Default::default()).unwrap();
    stream.copy_to_host_into(&array, &mut mapped).unwrap();
    let mut registered = device.register(numbers.clone()).unwrap();
    stream.copy_to_host_into(&array, &mut registered).unwrap();
    let record = device.to_device(&gpumem_runtime::Scalar(5u64)).unwrap();
    let other = device.stream().unwrap();
    let uninit = device.uninit_array::<u32, _>(1000).unwrap();
    vec![
        ("host array of a copy", Box::new(stream.copy_to_host(&array).unwrap())),
        ("event", Box::new(stream.record_event().unwrap())),
        ("event with a time", Box::new(stream.record_timed_event().unwrap())),
        ("completion of a stream", Box::new(stream.completed())),
        ("completion of an event", Box::new(stream.record_event().unwrap().completed())),
        ("copy on another stream", Box::new(other.to_device(&array).unwrap())),
        ("array", Box::new(array)),
        ("record", Box::new(record)),
        ("managed array", Box::new(managed)),
        ("mapped array", Box::new(mapped)),
        ("registered array", Box::new(registered)),
        ("uninitialised array", Box::new(uninit)),
        ("default stream", Box::new(device.default_stream().unwrap())),
        ("other stream", Box::new(other)),
        ("stream", Box::new(stream)),
        ("device", Box::new(device.clone())),
    ]
}

/// Views keep the memory alive that they borrow; forgetting one only leaks it.
fn forget_views<B: Backend>(device: &Device<B>) {
    let stream = device.stream().unwrap();
    let mut array = stream.to_device(&numbers()).unwrap();
    let mut mapped = device.mapped_array::<u32, _>((23, 29), Default::default()).unwrap();
    mem::forget(array.slice(s![1.., ..]).unwrap());
    mem::forget(array.split_at_mut(0, 3).unwrap());
    stream.fill(&mut array.slice_mut(s![..5, ..]).unwrap(), 3).unwrap();
    mem::forget(mapped.device_view());
    mem::forget(mapped.device_view_mut());
    mem::forget(device.uninit_array::<u32, _>(1000).unwrap());
}

#[test]
fn every_handle_may_be_forgotten() {
    for options in schedules() {
        let (device, raw) = host(options.clone());
        let count = handles(&device).len();
        is_clean(&device, &raw);
        for forgotten in 0..count {
            let (device, raw) = double(options.clone());
            let mut all = handles(&device);
            let (name, handle) = all.swap_remove(forgotten);
            mem::forget(handle);
            drop(all);
            is_usable(&device);
            device.synchronize().unwrap();
            device.flush().unwrap();
            assert_eq!(device.take_errors(), [], "{name}");
            // One handle keeps its own memory at most.
            assert!(raw.host().counters().live_allocations <= 1, "{name}");
        }
    }
}

#[test]
fn all_handles_may_be_forgotten_at_once() {
    for options in schedules() {
        let (device, _) = host(options);
        mem::forget(handles(&device));
        forget_views(&device);
        is_usable(&device);
        device.synchronize().unwrap();
        device.flush().unwrap();
        assert_eq!(device.take_errors(), []);
        drop(device);
    }
}

#[test]
fn objects_of_a_scope_may_be_forgotten() {
    for options in schedules() {
        let (device, raw) = double(options);
        let stream = device.stream().unwrap();
        let array = stream.to_device(&numbers()).unwrap();
        let (mut locked, mut mapped, mut landed) =
            (Array2::zeros((23, 29)), Array2::zeros((23, 29)), Array2::zeros((23, 29)));
        stream
            .scope(|scope| -> Result<()> {
                let mut pinned = scope.pinned(locked.view_mut())?;
                scope.stream().copy_to_host_into(&array, &mut pinned)?;
                let mut visible = scope.mapped(mapped.view_mut())?;
                scope.stream().copy_to_device(&mut visible.device_view_mut(), &array)?;
                mem::forget(visible.device_view());
                mem::forget((pinned, visible));
                scope.copy_to_host(&array, landed.view_mut())
            })
            .unwrap()
            .unwrap();
        for arrived in [&locked, &mapped, &landed] {
            assert_eq!(arrived, &numbers());
        }
        drop((array, stream));
        is_clean(&device, raw.host());
    }
}

/// The payload of a panicking step, so that a failed assertion is not taken for it.
struct Thrown(usize);

fn keep_quiet_about_what_is_thrown() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !info.payload().is::<Thrown>() {
                usual(info);
            }
        }));
    });
}

/// Six operations on borrowed memory; panics before operation `step`, and after the last for 6.
fn six<B: Backend>(device: &Device<B>, stream: &Stream<B>, arrived: &mut Arrived, step: usize) -> Result<()> {
    let at = |now: usize| {
        if now == step {
            panic_any(Thrown(step));
        }
    };
    let array = stream.to_device(&numbers())?;
    let mut target = device.device_array::<u32, _>((23, 29))?;
    stream.scope(|scope| -> Result<()> {
        at(0);
        scope.copy_to_host(&array, arrived.scoped.view_mut())?;
        at(1);
        let mut locked = scope.pinned(arrived.locked.view_mut())?;
        at(2);
        scope.stream().copy_to_host_into(&array, &mut locked)?;
        at(3);
        scope.stream().copy_to_device(&mut target, &array)?;
        at(4);
        let mut mapped = scope.mapped(arrived.into.view_mut())?;
        at(5);
        scope.stream().copy_to_device(&mut mapped.device_view_mut(), &target)?;
        at(6);
        Ok(())
    })?
}

#[test]
fn a_scope_may_panic_at_every_point() {
    keep_quiet_about_what_is_thrown();
    for options in schedules() {
        for step in 0..=6 {
            let (device, raw) = double(options.clone());
            let stream = device.stream().unwrap();
            let mut arrived = Arrived::new();
            let thrown = catch_unwind(AssertUnwindSafe(|| six(&device, &stream, &mut arrived, step)));
            let Err(thrown) = thrown else { panic!("no panic at {step}") };
            assert_eq!(thrown.downcast_ref::<Thrown>().map(|thrown| thrown.0), Some(step));
            // No copy is in flight: the enqueued copies have arrived, and no others will.
            assert!(stream.query().unwrap(), "work is in flight after a panic at {step}");
            let counters = raw.host().counters();
            assert_eq!(counters.live_registered_bytes, 0, "pages are locked after a panic at {step}");
            let expect = |array: &Array2<u32>, done: bool, what: &str| {
                let right = if done { numbers() } else { Array2::from_elem((23, 29), UNTOUCHED) };
                assert_eq!(array, &right, "{what}, panic at {step}");
            };
            expect(&arrived.scoped, step >= 1, "scope.copy_to_host");
            expect(&arrived.locked, step >= 3, "pinned");
            expect(&arrived.into, step >= 6, "mapped");
            is_usable(&device);
            drop(stream);
            is_clean(&device, raw.host());
        }
    }
}

#[test]
fn page_locking_may_panic_and_an_inner_scope_too() {
    keep_quiet_about_what_is_thrown();
    for options in schedules() {
        let (device, raw) = double(options);
        let array = device.to_device(&[1u32, 2, 3]).unwrap();
        let mut data = Array1::from_elem(3, 0u32);
        let stream = device.stream().unwrap();
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            device.pinned([data.view_mut()], |locked| {
                stream.copy_to_host_into(&array, &mut locked[0]).unwrap();
                stream.scope(|_| -> () { panic_any(Thrown(0)) })
            })
        }));
        assert!(panicked.is_err());
        assert_eq!(data, ndarray::array![1, 2, 3]);
        assert_eq!(raw.host().counters().live_registered_bytes, 0);
        is_usable(&device);
    }
}

#[test]
fn a_callback_may_panic_and_may_not_block() {
    let (device, raw) = host(HostOptions::new());
    let stream = device.stream().unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    stream.add_callback(|_| panic_any("in a callback")).unwrap();
    let (inner, inner_device) = (stream.clone(), device.clone());
    stream
        .add_callback(move |result| {
            let answers = [result, inner.synchronize(), inner_device.synchronize(), inner_device.flush()];
            sender.send(answers).unwrap();
        })
        .unwrap();
    stream.synchronize().unwrap();
    let [result, rest @ ..] = receiver.recv().unwrap();
    result.unwrap();
    for answer in rest {
        assert_eq!(answer.unwrap_err().kind(), &ErrorKind::BlockingInCallback);
    }
    let errors = device.take_errors();
    assert!(
        matches!(errors[0].kind(), ErrorKind::CallbackPanicked { message } if message == "in a callback")
    );
    drop(stream);
    is_clean(&device, &raw);
}

#[test]
fn the_last_handle_may_be_an_array() {
    for options in schedules() {
        let (device, raw) = host(options);
        let mut arrived = Arrived::new();
        run(&device, &mut arrived).unwrap();
        let array = device.to_device(&numbers()).unwrap();
        let stream = device.stream().unwrap();
        let pinned = Arc::new(stream.copy_to_host(&array).unwrap());
        drop((device, stream));
        assert_eq!(array.copy_to_host().unwrap(), numbers());
        drop(array);
        assert_eq!(pinned.view().unwrap(), numbers());
        drop(pinned);
        // A thread of the library gives the rest back.
        let is_empty = || raw.counters().live_allocations == 0;
        for _ in 0..4000 {
            if is_empty() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert!(is_empty(), "{:?}", raw.counters());
    }
}
