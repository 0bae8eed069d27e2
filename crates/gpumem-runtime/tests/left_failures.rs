//! Failures of streams that are gone, and a subscriber of tracing that uses the library.
#![allow(clippy::unwrap_used, reason = "tests")]

use gpumem_core::ErrorKind;
use gpumem_host::{Host, HostOptions, Injection, Operation};
use gpumem_runtime::{Device, Stream};
use std::{sync::mpsc, thread, time::Duration};

/// Calls a function with the text of every event.
struct Calling<F>(F);

impl<F: Fn(String) + Send + Sync + 'static> tracing::Subscriber for Calling<F> {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        let mut text = String::new();
        event.record(&mut |_: &tracing::field::Field, value: &dyn std::fmt::Debug| {
            text += &format!("{value:?}")
        });
        (self.0)(text);
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

/// The last reference to a stream goes where later work is noted, under the locks of the array and of its stream.
#[test]
fn no_subscriber_is_called_under_a_lock() {
    let (done, ended) = mpsc::channel();
    thread::spawn(move || {
        let raw = Host::open_with(&HostOptions::new()).unwrap();
        let device: Device<Host> = Device::from_raw(raw.clone());
        let (failing, streams) =
            (device.stream().unwrap(), [device.stream().unwrap(), device.stream().unwrap()]);
        let mut array = device.device_array::<u32, _>(64).unwrap();
        let what = ErrorKind::AsynchronousFault { what: "on purpose".to_owned() };
        raw.inject(Injection::next(Operation::Fill, what));
        failing.fill(&mut array, 1).unwrap();
        drop(failing);
        device.flush().unwrap();
        // The read takes the place of the stream that is gone in the log.
        let work = || {
            streams[0].fill(&mut array, 2).unwrap();
            streams[1].copy_to_host(&array).unwrap()
        };
        let asked = streams.clone();
        let ask = move |_| asked.iter().map(Stream::submission_index).for_each(drop);
        drop(tracing::subscriber::with_default(Calling(ask), work));
        done.send((array.get(3).unwrap(), device.synchronize().is_err())).unwrap();
    });
    assert_eq!(ended.recv_timeout(Duration::from_secs(60)), Ok((2, true)));
}

/// The log of an array of one device has the last reference to another one, which goes where later work is noted.
#[test]
fn no_other_device_ends_under_a_lock() {
    let raw = Host::open_with(&HostOptions::new()).unwrap();
    let (one, two): (Device<Host>, Device<Host>) =
        (Device::from_raw(Host::open_with(&HostOptions::new()).unwrap()), Device::from_raw(raw.clone()));
    let array = one.to_device(&[1_u32; 64]).unwrap();
    let mut copy = two.device_array::<u32, _>(64).unwrap();
    let stream = two.stream().unwrap();
    let what = ErrorKind::AsynchronousFault { what: "on another device".to_owned() };
    raw.inject(Injection::next(Operation::Fill, what));
    stream.fill(&mut copy, 1).unwrap();
    stream.copy_to_device(&mut copy, &array).unwrap();
    drop((copy, stream));
    // Nothing is left for a thread to free: the device is gone but for the log.
    two.flush().unwrap();
    drop(two);
    let (done, ended) = mpsc::channel();
    let told = move |text: String| {
        if text.contains("on another device") {
            done.send(thread::current().id()).unwrap();
        }
    };
    tracing::subscriber::set_global_default(Calling(told)).unwrap();
    for stream in [one.stream().unwrap(), one.stream().unwrap()] {
        drop(stream.copy_to_host(&array).unwrap());
    }
    // It ends on a thread of its own, and tells its failure there.
    assert_ne!(ended.recv_timeout(Duration::from_secs(60)).unwrap(), thread::current().id());
}
