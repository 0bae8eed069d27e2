//! Futures as work of streams: no thread waits for them, and later work of their stream does.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod common;

use common::*;
use gpumem_core::{Failure, HostFuture, Result, Stream as _};
use gpumem_host::{Device, Host, HostOptions, Stream};
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::Duration;

type Outcome = Result<(), Failure>;

/// What a test's future waits for.
#[derive(Default)]
struct Gate {
    state: Mutex<(Option<Outcome>, Vec<Waker>)>,
    polls: AtomicUsize,
    is_dropped: AtomicBool,
}

struct NoteDrop(Arc<Gate>);

impl Drop for NoteDrop {
    fn drop(&mut self) {
        self.0.is_dropped.store(true, Ordering::Release);
    }
}

impl Gate {
    fn open(&self, outcome: Outcome) {
        let wakers = {
            let mut state = self.state.lock().unwrap();
            state.0 = Some(outcome);
            std::mem::take(&mut state.1)
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    fn enqueue(self: &Arc<Self>, stream: &Stream) -> Result<()> {
        let noted = NoteDrop(self.clone());
        let future = poll_fn(move |context| {
            let gate = &noted.0;
            gate.polls.fetch_add(1, Ordering::Relaxed);
            let mut state = gate.state.lock().unwrap();
            match state.0.clone() {
                Some(outcome) => Poll::Ready(outcome),
                None => {
                    state.1.push(context.waker().clone());
                    Poll::Pending
                }
            }
        });
        // SAFETY: the future uses no memory of a device.
        unsafe { stream.enqueue_future(HostFuture::new("test", future)) }
    }
}

fn devices() -> Vec<Device> {
    let seeds = if cfg!(miri) { 2 } else { 30 };
    (0..seeds).map(adversarial).chain([concurrent()]).collect()
}

#[test]
fn later_work_of_the_stream_waits_and_other_streams_go_on() {
    for device in devices() {
        let (parked, free) = (stream(&device), stream(&device));
        let (a, b) = (allocate(&device, 8), allocate(&device, 8));
        let gate = Arc::new(Gate::default());
        gate.enqueue(&parked).unwrap();
        fill(&parked, &a, 1);
        fill(&free, &b, 2);
        free.synchronize().unwrap();
        assert_eq!(read(&device, &free, &a), [0; 8]);
        assert!(!parked.query().unwrap());
        gate.open(Ok(()));
        parked.synchronize().unwrap();
        assert_eq!(read(&device, &parked, &a), [1; 8]);
        assert!(gate.is_dropped.load(Ordering::Acquire));
        release(&device, a);
        release(&device, b);
    }
}

#[test]
fn a_parked_future_is_polled_once_for_each_wake() {
    let device = concurrent();
    let stream = stream(&device);
    let gate = Arc::new(Gate::default());
    gate.enqueue(&stream).unwrap();
    while gate.polls.load(Ordering::Relaxed) == 0 {
        std::thread::yield_now();
    }
    std::thread::sleep(Duration::from_millis(20));
    assert!(!stream.query().unwrap());
    assert_eq!(gate.polls.load(Ordering::Relaxed), 1);
    gate.open(Ok(()));
    stream.synchronize().unwrap();
    assert_eq!(gate.polls.load(Ordering::Relaxed), 2);
}

#[test]
fn many_parked_streams_block_no_worker() {
    let options = HostOptions::new().memory(64 << 20).workers(2).brief_bytes(0);
    let device = Host::open_with(&options).unwrap();
    let gate = Arc::new(Gate::default());
    let parked: Vec<Stream> = (0..64).map(|_| stream(&device)).collect();
    parked.iter().for_each(|stream| gate.enqueue(stream).unwrap());
    while gate.polls.load(Ordering::Relaxed) < 64 {
        std::thread::yield_now();
    }
    let (free, buffer) = (stream(&device), allocate(&device, 8));
    fill(&free, &buffer, 3);
    free.synchronize().unwrap();
    gate.open(Ok(()));
    parked.iter().for_each(|stream| stream.synchronize().unwrap());
    release(&device, buffer);
}

#[test]
fn a_failure_is_the_fault_of_the_stream() {
    for device in devices() {
        let stream = stream(&device);
        let gate = Arc::new(Gate::default());
        gate.enqueue(&stream).unwrap();
        gate.open(Err(Failure::new("test", "here", "the test wants it")));
        let error = stream.synchronize().unwrap_err();
        assert!(error.to_string().contains("test on here failed: the test wants it"), "{error}");
        stream.synchronize().unwrap();

        // SAFETY: the future uses no memory of a device.
        unsafe { stream.enqueue_future(HostFuture::new("test", poll_fn(|_| panic!("the test's")))) }.unwrap();
        let error = stream.synchronize().unwrap_err();
        assert!(error.to_string().contains("it panicked: the test's"), "{error}");
    }
}

#[test]
fn a_lost_device_drops_its_futures() {
    for device in devices() {
        let (first, second) = (stream(&device), stream(&device));
        let gates = [(); 3].map(|()| Arc::new(Gate::default()));
        gates[0].enqueue(&first).unwrap();
        gates[1].enqueue(&first).unwrap();
        gates[2].enqueue(&second).unwrap();
        let _ = first.query().unwrap();
        device.lose("the test loses it");
        assert!(is_lost(&first.synchronize()) && is_lost(&second.synchronize()));
        for gate in &gates {
            assert!(gate.is_dropped.load(Ordering::Acquire));
            gate.open(Ok(()));
        }
    }
}

#[test]
fn a_stream_without_a_handle_goes_on_when_its_future_is_woken() {
    for device in devices() {
        let (gate, last) = (Arc::new(Gate::default()), Arc::new(Gate::default()));
        last.open(Ok(()));
        {
            let stream = stream(&device);
            gate.enqueue(&stream).unwrap();
            last.enqueue(&stream).unwrap();
        }
        drop(device);
        assert!(!last.is_dropped.load(Ordering::Acquire));
        gate.open(Ok(()));
        while !last.is_dropped.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
    }
}

#[test]
fn one_thread_moves_futures_of_several_adversarial_devices() {
    for seed in 0..if cfg!(miri) { 3 } else { 100 } {
        let devices = [adversarial(seed), adversarial(seed + 1000), concurrent()];
        let streams = devices.each_ref().map(stream);
        let arrived = Arc::new((AtomicUsize::new(0), Gate::default()));
        for stream in &streams {
            let arrived = arrived.clone();
            let mut has_come = false;
            let future = poll_fn(move |context| {
                let (count, gate) = &*arrived;
                if !std::mem::replace(&mut has_come, true) && count.fetch_add(1, Ordering::AcqRel) == 2 {
                    gate.open(Ok(()));
                }
                let mut state = gate.state.lock().unwrap();
                match state.0.clone() {
                    Some(outcome) => Poll::Ready(outcome),
                    None => {
                        state.1.push(context.waker().clone());
                        Poll::Pending
                    }
                }
            });
            // SAFETY: the future uses no memory of a device.
            unsafe { stream.enqueue_future(HostFuture::new("test", future)) }.unwrap();
        }
        streams[(seed % 3) as usize].synchronize().unwrap();
        streams.iter().for_each(|stream| stream.synchronize().unwrap());
    }
}
