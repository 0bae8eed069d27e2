//! Streams and events under the concurrent schedule.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod common;

use common::*;
use gpumem_core::{
    DriverDevice, ErrorKind, Event as _, EventOptions, RawStream, Stream as _, StreamKind, StreamOptions,
};
use gpumem_host::{Host, HostOptions};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::time::Duration;

#[test]
fn streams_run_at_the_same_time() {
    let device = concurrent();
    let (one, two) = (stream(&device), stream(&device));
    // Each kernel waits until the other has started: one after the other they would never end.
    let meeting = Arc::new(Barrier::new(2));
    let body = kernel(&device, move |_| {
        meeting.wait();
        Ok(())
    });
    launch(&one, &body).unwrap();
    launch(&two, &body).unwrap();
    one.synchronize().unwrap();
    two.synchronize().unwrap();
}

#[test]
fn enqueuing_does_not_wait() {
    let device = concurrent();
    let stream = stream(&device);
    let (go, gate) = mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let body = kernel(&device, move |_| gate.lock().unwrap().recv().map_err(|error| error.to_string()));
    let mut data = vec![0u8; 64];
    let buffer = allocate(&device, 64);
    launch(&stream, &body).unwrap();
    fill(&stream, &buffer, 7);
    copy(&stream, on(&device, &buffer), host_mut(&mut data), 64);
    assert!(!stream.query().unwrap(), "the kernel cannot have ended");
    go.send(()).unwrap();
    stream.synchronize().unwrap();
    assert!(stream.query().unwrap());
    assert_eq!(data, [7; 64]);
    release(&device, buffer);
}

#[test]
fn work_goes_on_while_no_thread_waits() {
    let device = concurrent();
    let stream = stream(&device);
    let (done, seen) = mpsc::channel();
    let body = kernel(&device, move |_| done.send(()).map_err(|error| error.to_string()));
    launch(&stream, &body).unwrap();
    seen.recv_timeout(Duration::from_secs(20)).expect("a worker runs it");
}

#[test]
fn one_stream_keeps_its_order() {
    let device = concurrent();
    let stream = stream(&device);
    let seen = Arc::new(Mutex::new(Vec::new()));
    for number in 0..500 {
        let seen = Arc::clone(&seen);
        let body = kernel(&device, move |_| {
            seen.lock().unwrap().push(number);
            Ok(())
        });
        launch(&stream, &body).unwrap();
        if number % 97 == 0 {
            stream.synchronize().unwrap();
        }
    }
    stream.synchronize().unwrap();
    assert_eq!(*seen.lock().unwrap(), (0..500).collect::<Vec<_>>());
}

#[test]
fn events_order_streams_and_devices() {
    let bytes = if cfg!(miri) { 256 } else { 1 << 16 };
    let (first, second) = (concurrent(), concurrent());
    let (produce, consume) = (stream(&first), stream(&second));
    let (from, to) = (allocate(&first, bytes), allocate(&second, bytes));
    let mark = event(&first);
    let slow = kernel(&first, |_| {
        std::thread::sleep(Duration::from_millis(2));
        Ok(())
    });
    for value in 1..=20 {
        launch(&produce, &slow).unwrap();
        fill(&produce, &from, value);
        produce.record(&mark).unwrap();
        consume.wait(&mark).unwrap();
        copy(&consume, on(&first, &from), on(&second, &to), bytes);
        assert!(read(&second, &consume, &to).iter().all(|byte| *byte == value), "round {value}");
    }
    release(&first, from);
    release(&second, to);
}

#[test]
fn recording_again_affects_later_waits_only() {
    let device = concurrent();
    let (one, two, three) = (stream(&device), stream(&device), stream(&device));
    let mark = event(&device);
    assert!(mark.query().unwrap(), "an event that was never recorded counts as done");
    mark.synchronize().unwrap();
    let (go, gate) = mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let blocking = kernel(&device, move |_| gate.lock().unwrap().recv().map_err(|error| error.to_string()));
    one.record(&mark).unwrap();
    two.wait(&mark).unwrap();
    launch(&one, &blocking).unwrap();
    one.record(&mark).unwrap();
    three.wait(&mark).unwrap();
    two.synchronize().unwrap();
    assert!(!three.query().unwrap() && !mark.query().unwrap());
    go.send(()).unwrap();
    three.synchronize().unwrap();
    mark.synchronize().unwrap();
}

#[test]
fn many_threads_share_one_stream_and_one_device() {
    let device = concurrent();
    let shared = stream(&device);
    let count = Arc::new(AtomicUsize::new(0));
    let body = {
        let count = Arc::clone(&count);
        kernel(&device, move |_| {
            count.fetch_add(1, Ordering::Relaxed);
            Ok(())
        })
    };
    let threads = if cfg!(miri) { 2 } else { 6 };
    let rounds = if cfg!(miri) { 10 } else { 300 };
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let own = stream(&device);
                let mark = event(&device);
                for round in 0..rounds {
                    launch(&shared, &body).unwrap();
                    shared.record(&mark).unwrap();
                    own.wait(&mark).unwrap();
                    launch(&own, &body).unwrap();
                    match round % 3 {
                        0 => own.synchronize().unwrap(),
                        1 => ask(&mark).unwrap(),
                        _ => {}
                    }
                }
                own.synchronize().unwrap();
            });
        }
    });
    device.synchronize().unwrap();
    assert_eq!(count.load(Ordering::Relaxed), threads * rounds * 2);
}

#[test]
fn dropped_streams_finish_their_work() {
    let device = concurrent();
    let count = Arc::new(AtomicUsize::new(0));
    for round in 0..20 {
        let stream = stream(&device);
        let count = Arc::clone(&count);
        let body = kernel(&device, move |_| {
            std::thread::sleep(Duration::from_micros(100));
            count.fetch_add(1, Ordering::Relaxed);
            Ok(())
        });
        launch(&stream, &body).unwrap();
        if round % 2 == 0 { drop(stream) } else { stream.destroy().unwrap() }
    }
    device.synchronize().unwrap();
    assert_eq!(count.load(Ordering::Relaxed), 20);
    assert_eq!(device.counters().streams_created, 20);
}

#[test]
fn raw_handles_name_live_streams() {
    let device = concurrent();
    let (one, two) = (stream(&device), stream(&device));
    assert!(one.raw() != two.raw() && one.raw() != RawStream(0));
    // SAFETY: the stream is alive.
    let again = unsafe { device.wrap_stream(one.raw()) }.unwrap();
    assert_eq!(again.raw(), one.raw());
    drop(again);
    let count = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&count);
    let body = kernel(&device, move |_| {
        seen.fetch_add(1, Ordering::Relaxed);
        Ok(())
    });
    launch(&one, &body).unwrap();
    one.synchronize().unwrap();
    assert_eq!(count.load(Ordering::Relaxed), 1, "the wrapped handle has destroyed nothing");
    let raw = two.raw();
    drop(two);
    for unknown in [RawStream(0), raw, RawStream(u64::MAX)] {
        // SAFETY: nothing is done with the handle but looking it up.
        let error = unsafe { device.wrap_stream(unknown) }.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::InvalidArgument { .. }), "{error}");
    }
}

#[test]
fn default_streams_are_shared_or_one_a_thread() {
    let device = concurrent();
    let open =
        |kind| device.create_stream(&StreamOptions { kind, ..StreamOptions::default() }).unwrap().raw();
    assert_eq!(open(StreamKind::Legacy), open(StreamKind::Legacy));
    let mine = open(StreamKind::PerThread);
    assert_eq!(mine, open(StreamKind::PerThread));
    assert_ne!(mine, open(StreamKind::Legacy));
    std::thread::scope(|scope| {
        let (legacy, other) =
            scope.spawn(|| (open(StreamKind::Legacy), open(StreamKind::PerThread))).join().unwrap();
        assert_eq!(legacy, open(StreamKind::Legacy));
        assert_ne!(other, mine);
    });
    let elsewhere = concurrent();
    let options = StreamOptions { kind: StreamKind::PerThread, ..StreamOptions::default() };
    assert_ne!(elsewhere.create_stream(&options).unwrap().raw(), mine);
}

#[test]
fn events_remember_the_time_when_asked() {
    let device = concurrent();
    let stream = stream(&device);
    let timed = || device.create_event(EventOptions { timing: true }).unwrap();
    let (start, end) = (timed(), timed());
    let nap = kernel(&device, |_| {
        std::thread::sleep(Duration::from_millis(20));
        Ok(())
    });
    stream.record(&start).unwrap();
    launch(&stream, &nap).unwrap();
    assert!(matches!(start.elapsed(&end).unwrap_err().kind(), ErrorKind::NotReady));
    stream.record(&end).unwrap();
    end.synchronize().unwrap();
    let milliseconds = start.elapsed(&end).unwrap();
    assert!((20.0..60_000.0).contains(&milliseconds), "{milliseconds}");
    assert_eq!(end.elapsed(&start).unwrap(), -milliseconds);
    let untimed = event(&device);
    assert!(matches!(start.elapsed(&untimed).unwrap_err().kind(), ErrorKind::InvalidArgument { .. }));
}

#[test]
fn events_of_another_device_cannot_be_recorded() {
    let (one, two) = (concurrent(), concurrent());
    let error = stream(&one).record(&event(&two)).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::WrongDevice { what: "event", .. }), "{error}");
}

#[test]
fn waiting_for_the_own_stream_inside_a_kernel_is_an_error() {
    let device = concurrent();
    let shared = Arc::new(stream(&device));
    let (inside, saw) = (Arc::clone(&shared), Arc::new(Mutex::new(None)));
    let seen = Arc::clone(&saw);
    let body = kernel(&device, move |_| {
        *seen.lock().unwrap() = Some(inside.synchronize());
        Ok(())
    });
    launch(&shared, &body).unwrap();
    shared.synchronize().unwrap();
    let error = saw.lock().unwrap().take().unwrap().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::BlockingInCallback), "{error}");
}

#[test]
#[cfg(target_os = "linux")]
#[cfg_attr(miri, ignore = "reads /proc")]
fn threads_end_with_their_device() {
    let threads_of = |ordinal: usize| {
        let name = format!("gpumem:h{ordinal}");
        std::fs::read_dir("/proc/self/task")
            .unwrap()
            .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok())
            .filter(|found| found.trim() == name)
            .count()
    };
    let device = Host::open_with(&HostOptions::new().brief_bytes(0).workers(3)).unwrap();
    let ordinal = device.ordinal();
    assert_eq!(threads_of(ordinal), 0, "no thread before there is work");
    let meeting = Arc::new(Barrier::new(3));
    let body = kernel(&device, move |_| {
        meeting.wait();
        Ok(())
    });
    let streams: Vec<_> = (0..3).map(|_| stream(&device)).collect();
    for stream in &streams {
        launch(stream, &body).unwrap();
    }
    // Without help, so that three workers must come.
    while !streams.iter().all(|stream| stream.query().unwrap()) {
        std::thread::yield_now();
    }
    assert_eq!(threads_of(ordinal), 3);
    drop((body, device));
    assert_eq!(threads_of(ordinal), 3, "streams keep the device");
    drop(streams);
    for _ in 0..2_000 {
        if threads_of(ordinal) == 0 {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("the threads of a dropped device go on");
}

#[test]
fn an_event_after_all_streams_waits_for_each() {
    let device = concurrent();
    let streams = [stream(&device), stream(&device), stream(&device)];
    let (go, gate) = mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let held = kernel(&device, move |_| gate.lock().unwrap().recv().map_err(|error| error.to_string()));
    let seen = Arc::new(AtomicUsize::new(0));
    let mark = event(&device);
    device.record_device(&mark).unwrap();
    assert!(mark.query().unwrap(), "there was nothing to wait for");
    launch(&streams[0], &held).unwrap();
    launch(&streams[1], &held).unwrap();
    device.record_device(&mark).unwrap();
    let count = {
        let seen = Arc::clone(&seen);
        kernel(&device, move |_| {
            seen.fetch_add(1, Ordering::SeqCst);
            Ok(())
        })
    };
    streams[2].wait(&mark).unwrap();
    launch(&streams[2], &count).unwrap();
    assert!(!mark.query().unwrap());
    go.send(()).unwrap();
    std::thread::sleep(Duration::from_millis(20));
    assert!(!mark.query().unwrap(), "the second stream is not done");
    assert_eq!(seen.load(Ordering::SeqCst), 0);
    go.send(()).unwrap();
    mark.synchronize().unwrap();
    assert!(mark.query().unwrap());
    streams[2].synchronize().unwrap();
    assert_eq!(seen.load(Ordering::SeqCst), 1);
}
