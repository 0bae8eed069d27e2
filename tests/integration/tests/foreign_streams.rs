//! Streams of other libraries, and work of others on streams of the library.
#![allow(clippy::unwrap_used, reason = "tests")]

use gpumem_core::ErrorKind;
use gpumem_host::{Host, HostOptions, Injection, Operation};
use gpumem_integration::slow_fill;
use gpumem_kernel::config_for_items;
use gpumem_runtime::{Device, RawAccess};
use host_double::{Double, DoubleOptions};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

/// Counts how often it is dropped.
struct Owner(Arc<AtomicUsize>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn the_owner_of_a_stream_is_dropped_only_if_its_last_use_is_proven_to_be_over() {
    for failing in [0, 2] {
        let raw = Host::open_with(&HostOptions::new()).unwrap();
        let device: Device<Host> = Device::from_raw(raw.clone());
        let (stream, drops) = (device.stream().unwrap(), Arc::new(AtomicUsize::new(0)));
        let kernel = slow_fill().load(&device).unwrap();
        let mut array = device.device_array::<u32, _>(1 << 14).unwrap();
        // SAFETY: the stream lives longer.
        let foreign =
            unsafe { device.external_stream(stream.raw_handle().unwrap(), Owner(drops.clone())) }.unwrap();
        kernel.launch(&foreign, &config_for_items([1, 1, 1], [1, 1, 1]), (&mut array,)).unwrap();
        // The wait for the event fails, the one for the device, and the question whether the event has been reached.
        for operation in [Operation::Synchronize, Operation::Synchronize, Operation::Query] {
            if failing > 0 {
                let kind = ErrorKind::Driver { code: 99, name: "REFUSED" };
                raw.inject(Injection::next(operation, kind));
            }
        }
        let before = raw.counters().synchronizations;
        drop(foreign);
        let begun = Instant::now();
        while raw.counters().synchronizations < before + failing && begun.elapsed() < Duration::from_secs(20)
        {
            thread::yield_now();
        }
        thread::sleep(Duration::from_millis(200));
        assert_eq!(drops.load(Ordering::SeqCst), usize::from(failing == 0));
        raw.clear_injections();
    }
}

#[test]
fn a_stream_with_work_of_others_is_not_done() {
    let raw = Host::open_with(&HostOptions::new().adversarial(1)).unwrap();
    let device: Device<Host> = Device::from_raw(raw);
    let stream = device.stream().unwrap();
    // SAFETY: the stream lives longer.
    let other = unsafe { device.external_stream(stream.raw_handle().unwrap(), ()) }.unwrap();
    let kernel = slow_fill().load(&device).unwrap();
    let mut array = device.device_array::<u32, _>(64).unwrap();
    stream.synchronize().unwrap();
    kernel.launch(&other, &config_for_items([1, 1, 1], [1, 1, 1]), (&mut array,)).unwrap();
    while !stream.query().unwrap() {}
    assert!(other.query().unwrap(), "the stream is done before its last work");
}

/// No driver makes the stream wait for the borrower, so the host does.
#[test]
fn a_use_waits_once_for_a_borrower_of_another_backend() {
    let (done, ended) = mpsc::channel();
    thread::spawn(move || {
        let open = |name| {
            let options = DoubleOptions { name, ..DoubleOptions::default() };
            Device::<Double>::from_raw(Double::open_with(&options).unwrap())
        };
        let (near, far) = (open("near"), open("far"));
        let mut array = near.device_array::<u32, _>(64).unwrap();
        let loan = array.lend_mut(&near.stream().unwrap()).unwrap();
        let accesses = [RawAccess::write(&mut array)];
        // SAFETY: nothing is enqueued.
        unsafe { far.stream().unwrap().raw_scope(&accesses, |_| ()) }.unwrap();
        drop(loan);
        done.send(array.copy_to_host().unwrap().to_vec()).unwrap();
    });
    assert_eq!(ended.recv_timeout(Duration::from_secs(60)), Ok(vec![0; 64]));
}

/// Another thread waits for the stream, without an event, while the last handle goes: the driver has the stream's handle until it returns.
#[test]
fn the_owner_of_a_stream_is_not_dropped_while_a_thread_waits_for_it() {
    let raw = Double::open_with(&DoubleOptions::default()).unwrap();
    let (device, drops) = (Device::<Double>::from_raw(raw.clone()), Arc::new(AtomicUsize::new(0)));
    let stream = device.stream().unwrap();
    let mut array = stream.device_array::<u32, _>(64).unwrap();
    // SAFETY: the stream lives longer.
    let foreign =
        unsafe { device.external_stream(stream.raw_handle().unwrap(), Owner(drops.clone())) }.unwrap();
    foreign.fill(&mut array, 7).unwrap();
    let (seen, (done, outcome), double) = (drops.clone(), mpsc::channel(), raw.clone());
    let inside = move || {
        // As another thread does meanwhile.
        thread::spawn(move || drop(foreign)).join().unwrap();
        thread::sleep(Duration::from_millis(200));
        done.send(seen.load(Ordering::SeqCst)).unwrap();
    };
    // The second stream that is waited for.
    let next = move || double.script().during("synchronize a stream", inside);
    raw.script().during("synchronize a stream", next);
    device.synchronize().unwrap();
    assert_eq!(outcome.try_recv(), Ok(0), "the owner is dropped inside the wait");
    device.flush().unwrap();
    assert_eq!(drops.load(Ordering::SeqCst), 1);
}
