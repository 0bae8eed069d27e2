//! Threads that record concurrently, and the events that are kept where there is little room.

use super::{busy, count, device, is_allocation, is_free};
use gpumem_host::Host;
use gpumem_runtime::{
    Device,
    memory::named,
    trace::{Overflow, RecorderOptions, TraceEventKind},
};

#[test]
fn concurrent_threads_lose_no_events() {
    let device = device();
    let recording = device.record_memory(RecorderOptions::default()).unwrap();
    busy(&device, 2000);
    let trace = recording.finish();
    trace.check().unwrap();
    assert_eq!(trace.lost, 0);
    assert_eq!((count(&trace, is_allocation), count(&trace, is_free)), (4 * 2001, 4 * 2000));
    let mut names: Vec<_> = trace.threads.iter().filter_map(|thread| thread.name.clone()).collect();
    names.sort();
    assert_eq!(names, ["worker 0", "worker 1", "worker 2", "worker 3"]);
    let kept = trace.peaks()[0].holders.iter().find(|holder| holder.name == "kept").cloned().unwrap();
    assert_eq!((kept.bytes, kept.count), (4 * 1000 + 6, 4));
}

#[test]
fn the_newest_events_are_kept_with_a_summary_of_the_others() {
    let device = device();
    let options = RecorderOptions { limit_bytes: 0, ..RecorderOptions::default() };
    let recording = device.record_memory(options).unwrap();
    let early = named("early", || device.uninit_array::<u8, _>(5000)).unwrap();
    busy(&device, 3000);
    let late = named("late", || device.uninit_array::<u8, _>(70)).unwrap();
    let trace = recording.finish();
    trace.check().unwrap();
    assert!(
        trace.lost > 0 && trace.events.len() < 5 * 4096 / 3 && !trace.events.is_empty(),
        "{}",
        trace.lost
    );
    let peak = &trace.peaks()[0];
    let held = |name: &str| peak.holders.iter().find(|holder| holder.name == name).map(|holder| holder.bytes);
    assert_eq!((held("early"), held("kept")), (Some(5000), Some(4006)), "{peak:?}");
    // At the end exactly the live memory is in use.
    let usage = &trace.usage()[0];
    assert_eq!(usage.steps.last().unwrap().1, 5000 + 4006 + 70);
    let dropped = recording_of_frees(&device, (early, late));
    assert_eq!(dropped, [5000, 70]);
}

fn recording_of_frees<A, B>(device: &Device<Host>, (first, second): (A, B)) -> Vec<u64> {
    let recording = device.record_memory(RecorderOptions::default()).unwrap();
    drop(first);
    drop(second);
    let trace = recording.finish();
    trace.check().unwrap();
    trace.allocations.iter().map(|allocation| allocation.bytes).collect()
}

#[test]
fn threads_that_come_and_go_share_their_room() {
    let device = device();
    let options = RecorderOptions { limit_bytes: 256 << 10, ..RecorderOptions::default() };
    let recording = device.record_memory(options).unwrap();
    for _ in 0..200 {
        let device = &device;
        std::thread::scope(|scope| {
            scope.spawn(|| drop(device.uninit_array::<u8, _>(100).unwrap()));
        });
    }
    let trace = recording.finish();
    trace.check().unwrap();
    assert_eq!((trace.lost, count(&trace, is_allocation), count(&trace, is_free)), (0, 200, 200));
    assert_eq!(trace.threads.len(), 200, "each under its own number");
    let threads = trace.events.iter().filter(|event| is_free(&event.what)).map(|event| event.thread);
    assert_eq!(threads.collect::<std::collections::BTreeSet<_>>().len(), 200);
}

#[test]
fn frees_at_the_end_of_a_thread_are_recorded() {
    use gpumem_runtime::UninitArray;
    use std::cell::RefCell;
    type Kept = Option<UninitArray<u8, ndarray::Ix1, Host>>;
    thread_local! {
        static EARLY: RefCell<Kept> = const { RefCell::new(None) };
        static LATE: RefCell<Kept> = const { RefCell::new(None) };
    }
    let device = device();
    let recording = device.record_memory(RecorderOptions::default()).unwrap();
    for _ in 0..3 {
        let device = device.clone();
        std::thread::spawn(move || {
            // One slot is there before the thread has recorded anything, the other comes after.
            EARLY.set(None);
            let first = device.uninit_array(10).unwrap();
            EARLY.set(Some(first));
            LATE.set(Some(device.uninit_array(20).unwrap()));
        })
        .join()
        .unwrap();
    }
    let trace = recording.finish();
    trace.check().unwrap();
    assert_eq!((count(&trace, is_allocation), count(&trace, is_free)), (6, 6));
}

#[test]
fn the_oldest_events_are_kept_if_the_options_say_so() {
    let device = device();
    let options = RecorderOptions { limit_bytes: 100 << 10, overflow: Overflow::KeepOldest, uses: false };
    let recording = device.record_memory(options).unwrap();
    for size in 1..=2000 {
        drop(device.uninit_array::<u8, _>(size).unwrap());
    }
    let trace = recording.finish();
    trace.check().unwrap();
    let sizes: Vec<u64> = trace.allocations.iter().map(|allocation| allocation.bytes).collect();
    assert!(sizes.len() > 400 && sizes.len() < 2000);
    assert!(sizes.iter().zip(1..).all(|(size, number)| *size == number), "from the first on, without a gap");
    assert!(trace.lost > 0);
    assert_eq!(count(&trace, |what| matches!(what, TraceEventKind::Use { .. })), 0);
}
