//! What a future waits for: its own work, and no other.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{double, host};
use gpumem_core::Backend;
use gpumem_host::HostOptions;
use gpumem_integration::calling;
use gpumem_kernel::config_for_items;
use gpumem_runtime::{Completion, Device, Stream};
use std::{
    pin::pin,
    sync::{
        Arc,
        mpsc::{self, Sender},
    },
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
    time::{Duration, Instant},
};

/// More events than a stream keeps.
const EVENTS: usize = 40;

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Whether the future is ready within a time that no machine needs for the work before it.
fn ends(future: Completion) -> bool {
    let (mut future, waker) = (pin!(future), Waker::from(Arc::new(Unpark(thread::current()))));
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(20) {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(result) => return result.is_ok(),
            Poll::Pending => thread::park_timeout(Duration::from_millis(100)),
        }
    }
    false
}

/// Enqueues work that does not end before the sender is dropped.
fn hold<B: Backend>(device: &Device<B>, stream: &Stream<B>) -> Sender<()> {
    let (sender, receiver) = mpsc::channel::<()>();
    let receiver = std::sync::Mutex::new(receiver);
    let kernel = calling(move || assert!(receiver.lock().unwrap().recv().is_err())).load(device).unwrap();
    kernel.launch(stream, &config_for_items([1, 1, 1], [1, 1, 1]), (0,)).unwrap();
    sender
}

fn later_work_delays_none<B: Backend>(device: &Device<B>) {
    let stream = device.stream().unwrap();
    let mut array = device.device_array::<u32, _>(100).unwrap();
    stream.fill(&mut array, 1).unwrap();
    let event = stream.record_event().unwrap();
    let before = stream.completed();
    let held = hold(device, &stream);
    // A thread waits for this first.
    let after = stream.completed();
    for _ in 0..EVENTS {
        drop(stream.record_event().unwrap());
    }
    assert!(ends(event.completed()), "an event whose work is done");
    assert!(ends(before), "a future of earlier work");
    drop(held);
    assert!(ends(after));
    stream.synchronize().unwrap();
}

fn callbacks_delay_none<B: Backend>(device: &Device<B>) {
    let stream = device.stream().unwrap();
    let (sender, receiver) = mpsc::channel::<()>();
    stream.add_callback(move |_| assert!(receiver.recv().is_err())).unwrap();
    let mut array = device.device_array::<u32, _>(100).unwrap();
    stream.fill(&mut array, 1).unwrap();
    assert!(ends(stream.completed()), "behind a callback that waits");
    assert!(ends(stream.record_event().unwrap().completed()));
    drop(sender);
    stream.synchronize().unwrap();
}

fn callbacks_come_before_later_work<B: Backend>(device: &Device<B>) {
    let stream = device.stream().unwrap();
    let (sender, receiver) = mpsc::channel();
    let first = hold(device, &stream);
    // The thread is not there yet when the events come.
    stream.add_callback(move |outcome| drop(sender.send(outcome))).unwrap();
    let held = hold(device, &stream);
    for _ in 0..EVENTS {
        drop(stream.record_event().unwrap());
    }
    drop(first);
    receiver.recv_timeout(Duration::from_secs(20)).unwrap().unwrap();
    drop(held);
    stream.synchronize().unwrap();
}

fn each<B: Backend>(device: &Device<B>) {
    later_work_delays_none(device);
    callbacks_delay_none(device);
    callbacks_come_before_later_work(device);
}

#[test]
fn a_future_waits_for_its_own_work_alone() {
    each(&host(HostOptions::new().workers(3)).0);
    each(&double(HostOptions::new().workers(3)).0);
}
