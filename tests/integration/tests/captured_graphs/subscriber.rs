//! A subscriber of tracing that asks the graph and the stream of which it is told.

use super::{LEN, device, events::OnEvent, failures::graph};
use host_double::Trouble;
use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc::channel,
    },
    thread,
    time::Duration,
};

#[test]
fn a_subscriber_may_ask_the_graph_and_the_stream() {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let (device, raw) = device();
        let stream = device.stream().unwrap();
        let mut told = BTreeSet::new();
        for call in 0..120 {
            let (graph, mut x) = (graph(&device), device.to_device(&[0_i64; LEN]).unwrap());
            device.synchronize().unwrap();
            raw.script().begin(Some((call, Trouble::Refuse)));
            let (asked, events) = ((graph.clone(), stream.clone()), Arc::new(AtomicUsize::new(0)));
            let counted = events.clone();
            let asking = OnEvent(move || {
                let _ = (asked.0.report(), asked.1.synchronize());
                counted.fetch_add(1, Ordering::Relaxed);
            });
            let _ = tracing::subscriber::with_default(asking, || {
                [1_i64, 2].map(|a| graph.launch(&stream, (&mut x, a)).map(drop))
            });
            let struck = raw.script().struck().filter(|_| events.load(Ordering::Relaxed) > 0);
            told.extend(struck);
            raw.script().begin(None);
            let _ = (stream.synchronize(), device.take_errors());
        }
        sender.send(told).unwrap();
    });
    let told = receiver.recv_timeout(Duration::from_secs(60)).unwrap();
    assert!(told.contains("begin_capture") && told.contains("set_launch"), "{told:?}");
}
