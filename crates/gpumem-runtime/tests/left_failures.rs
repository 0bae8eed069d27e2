//! Failures of streams that are gone, and a subscriber of tracing that uses the library.
#![allow(clippy::unwrap_used, reason = "tests")]

use gpumem_core::ErrorKind;
use gpumem_host::{Host, HostOptions, Injection, Operation};
use gpumem_runtime::{Device, Stream};
use std::{sync::mpsc, thread, time::Duration};

/// Asks streams at every event.
struct Asking([Stream<Host>; 2]);

impl tracing::Subscriber for Asking {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, _: &tracing::Event<'_>) {
        self.0.iter().map(Stream::submission_index).for_each(drop);
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
        drop(tracing::subscriber::with_default(Asking(streams.clone()), work));
        done.send((array.get(3).unwrap(), device.synchronize().is_err())).unwrap();
    });
    assert_eq!(ended.recv_timeout(Duration::from_secs(60)), Ok((2, true)));
}
