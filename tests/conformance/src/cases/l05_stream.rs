//! Streams and events by themselves.

use crate::{Lab, Level, Verdict, refused};
use gpumem_core::{Backend, ErrorKind, StreamKind, StreamOptions};
use gpumem_runtime::Stream;
use ndarray::Array1;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

cases! { Level::Stream;
    streams_of_every_kind,
    synchronize_finishes_everything,
    queries_never_lie,
    events_mark_what_was_before_them,
    events_tell_the_time_between_them,
    waiting_for_an_event,
    a_per_thread_stream_is_of_one_thread,
    a_foreign_stream_and_its_owner,
    default_stream_is_one,
    work_with_the_device_current,
}

fn works<B: Backend>(stream: &Stream<B>) -> Verdict {
    let mut array = stream.to_device(&[1u32, 2, 3])?;
    stream.fill(&mut array, 9)?;
    let host = stream.copy_to_host(&array)?;
    stream.synchronize()?;
    assert!(stream.query()?);
    assert_eq!(host.copy_to_host()?.to_vec(), [9, 9, 9]);
    Ok(())
}

fn streams_of_every_kind<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    works(&device.stream()?)?;
    works(&device.default_stream()?)?;
    let legacy = device.legacy_stream()?;
    assert_eq!(legacy.kind(), StreamKind::Legacy);
    works(&legacy)?;
    works(&device.per_thread_stream()?)?;
    let [low, high] = device.capabilities().stream_priorities;
    for priority in [low, high, 0, i32::MIN, i32::MAX] {
        // A priority that the device does not have is clamped.
        works(&device.stream_with(StreamOptions { priority, ..StreamOptions::default() })?)?;
    }
    works(&device.stream_with(StreamOptions { non_blocking: false, ..StreamOptions::default() })?)
}

fn synchronize_finishes_everything<B: Backend>(lab: &Lab<B>) -> Verdict {
    let stream = lab.device().stream()?;
    let ran = Arc::new(AtomicUsize::new(0));
    for _ in 0..3 {
        lab.delay(&stream)?;
        let ran = ran.clone();
        stream.add_callback(move |result| {
            thread::sleep(Duration::from_millis(2));
            ran.fetch_add(usize::from(result.is_ok()), Ordering::SeqCst);
        })?;
    }
    stream.synchronize()?;
    assert_eq!(ran.load(Ordering::SeqCst), 3, "callbacks have run when synchronize returns");
    assert!(stream.query()?);
    let other = lab.device().stream()?;
    lab.delay(&other)?;
    lab.device().synchronize()?;
    assert!(other.query()?, "the device waits for all of its streams");
    Ok(())
}

fn queries_never_lie<B: Backend>(lab: &Lab<B>) -> Verdict {
    let stream = lab.device().stream()?;
    assert!(stream.query()?, "a new stream is idle");
    lab.delay(&stream)?;
    let event = stream.record_event()?;
    let start = Instant::now();
    while !event.query()? {
        assert!(start.elapsed() < Duration::from_secs(20), "an event that never comes");
        thread::sleep(Duration::from_micros(100));
    }
    event.synchronize()?;
    stream.synchronize()?;
    assert!(stream.query()?);
    Ok(())
}

fn events_mark_what_was_before_them<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let (stream, other) = (device.stream()?, device.stream()?);
    let mut array = stream.device_array::<u32, _>(1000)?;
    lab.delay(&stream)?;
    stream.fill(&mut array, 1)?;
    let event = stream.record_event()?;
    let late = event.clone();
    lab.delay(&stream)?;
    drop(stream);
    // The event outlives its stream, and any thread may wait for it.
    thread::scope(|scope| scope.spawn(|| late.synchronize()).join()).unwrap_or(Ok(()))?;
    assert!(event.query()?);
    other.wait(&event)?;
    assert_eq!(other.copy_to_host(&array)?.copy_to_host()?, Array1::from_elem(1000, 1));
    Ok(())
}

fn events_tell_the_time_between_them<B: Backend>(lab: &Lab<B>) -> Verdict {
    let stream = lab.device().stream()?;
    let start = stream.record_timed_event()?;
    lab.delay(&stream)?;
    let end = stream.record_timed_event()?;
    match end.elapsed_since(&start) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), &ErrorKind::NotReady),
    }
    end.synchronize()?;
    let elapsed = end.elapsed_since(&start)?;
    assert!((0.0..60_000.0).contains(&elapsed), "{elapsed} ms");
    let plain = stream.record_event()?;
    refused(plain.elapsed_since(&start), |kind| matches!(kind, ErrorKind::InvalidArgument { .. }))
}

fn waiting_for_an_event<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let (first, second) = (device.stream()?, device.stream()?);
    lab.delay(&first)?;
    let event = first.record_event()?;
    let before = device.counters();
    second.wait(&event)?;
    second.wait(&event)?;
    first.wait(&event)?;
    assert!(device.counters().waits <= before.waits + 2, "a stream does not wait for itself");
    let mark = second.record_event()?;
    mark.synchronize()?;
    assert!(event.query()?, "work that waited for the event came after it");
    Ok(())
}

fn a_per_thread_stream_is_of_one_thread<B: Backend>(lab: &Lab<B>) -> Verdict {
    let stream = lab.device().per_thread_stream()?;
    assert_eq!(stream.kind(), StreamKind::PerThread);
    let mut array = stream.device_array::<u8, _>(64)?;
    let wrong = |kind: &ErrorKind| matches!(kind, ErrorKind::WrongThread);
    thread::scope(|scope| {
        let there = scope.spawn(|| {
            refused(stream.fill(&mut array, 1), wrong)?;
            refused(stream.copy_to_host(&array), wrong)?;
            refused(stream.record_event(), wrong)?;
            refused(stream.synchronize(), wrong)
        });
        there.join().unwrap_or_else(|_| super::tools::fail("the other thread panicked"))
    })?;
    stream.fill(&mut array, 2)?;
    // Any stream can wait for its work, through the array.
    let seen = thread::scope(|scope| scope.spawn(|| array.copy_to_host()).join());
    match seen {
        Ok(seen) => assert_eq!(seen?.sum(), 128),
        Err(_) => return super::tools::fail("the other thread panicked"),
    }
    Ok(())
}

/// Keeps the real stream, and notes when it is dropped.
struct Owner<B: Backend> {
    stream: Stream<B>,
    dropped: Arc<AtomicUsize>,
    was_busy: Arc<AtomicBool>,
}

impl<B: Backend> Drop for Owner<B> {
    fn drop(&mut self) {
        self.was_busy.store(!self.stream.query().unwrap_or(false), Ordering::SeqCst);
        self.dropped.fetch_add(1, Ordering::SeqCst);
    }
}

fn a_foreign_stream_and_its_owner<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let (dropped, was_busy) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let own = device.stream()?;
    let raw = own.raw_handle()?;
    let owner = Owner { stream: own, dropped: dropped.clone(), was_busy: was_busy.clone() };
    // SAFETY: the owner keeps the stream of that handle alive.
    let foreign = unsafe { device.external_stream(raw, owner)? };
    works(&foreign)?;
    let clone = foreign.clone();
    drop(foreign);
    assert_eq!(dropped.load(Ordering::SeqCst), 0, "a clone is still there");
    let mut array = device.device_array::<u32, _>(1000)?;
    lab.delay(&clone)?;
    clone.fill(&mut array, 3)?;
    drop(clone);
    assert_eq!(array.copy_to_host()?, Array1::from_elem(1000, 3));
    let start = Instant::now();
    while dropped.load(Ordering::SeqCst) == 0 {
        assert!(start.elapsed() < Duration::from_secs(20), "the owner is never dropped");
        thread::sleep(Duration::from_micros(200));
    }
    device.flush()?;
    assert_eq!(dropped.load(Ordering::SeqCst), 1, "exactly once");
    assert!(!was_busy.load(Ordering::SeqCst), "after the last use");
    Ok(())
}

fn default_stream_is_one<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let (one, two) = (device.default_stream()?, device.default_stream()?);
    assert_eq!(one.raw_handle()?, two.raw_handle()?);
    drop(one);
    works(&two)?;
    drop(two);
    works(&device.default_stream()?)
}

fn work_with_the_device_current<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let stream = device.with_current(|| device.stream())?;
    device.with_current(|| device.with_current(|| works(&stream)))?;
    works(&stream)?;
    thread::scope(|scope| {
        let other = scope.spawn(|| device.with_current(|| works(&stream)));
        other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    let panics =
        || device.with_current(|| -> Verdict { std::panic::resume_unwind(Box::new("in the middle")) });
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics));
    assert!(caught.is_err_and(|panic| panic.downcast_ref() == Some(&"in the middle")));
    works(&stream)
}
