//! Failures, real and injected.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod common;

use common::*;
use gpumem_core::{
    DeviceBuffer, DriverDevice, DriverModule, Error, ErrorKind, Event as _, EventOptions, FailedSubmissions,
    Failure, KernelArguments, KernelSource, LaunchConfig, MemoryKind, MemoryUse, MemoryUses, POISONED, Space,
    Stream as _, StreamOptions, SubmissionId, with_uses,
};
use gpumem_host::{Device, Host, HostOptions, Injection, Operation};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

fn both() -> [Device; 4] {
    let brief = Host::open_with(&HostOptions::new().memory(256 << 20)).unwrap();
    [concurrent(), brief, adversarial(1), adversarial(6)]
}

#[test]
fn released_memory_is_not_touched() {
    for device in both() {
        let (faulty, healthy) = (stream(&device), stream(&device));
        let buffer = allocate(&device, 4096);
        let (start, place) = on(&device, &buffer);
        release(&device, buffer);
        let mut data = vec![5u8; 4096];
        copy(&faulty, (start, place), host_mut(&mut data), 4096);
        let result = faulty.synchronize();
        assert!(is_fault(&result), "{result:?}");
        assert_eq!(data, [5; 4096]);
        let good = allocate(&device, 64);
        fill(&healthy, &good, 1);
        assert_eq!(read(&device, &healthy, &good), [1; 64]);
        assert_eq!(device.counters().faults, 1);
        release(&device, good);
    }
}

#[test]
fn ranges_are_checked() {
    for device in both() {
        let other = concurrent();
        let stream = stream(&device);
        let (buffer, foreign) = (allocate(&device, 128), allocate(&other, 128));
        let pinned = try_allocate(&device, 128, MemoryKind::Pinned).unwrap();
        let mut data = vec![0u8; 256];
        let here = on(&device, &buffer);
        let target = host_mut(&mut data);
        let wrong = [
            (here, 129, "runs over an allocation of 128 bytes"),
            ((here.0 + 100, here.1), 29, "runs over an allocation"),
            ((here.0, Space::Host), 128, "taken for the host's"),
            ((foreign.address(), here.1), 128, "is memory of host:"),
            ((pinned.address() + 1, Space::Host), 128, "runs over an allocation"),
            ((64, here.1), 16, "no live memory"),
            ((target.0, here.1), 16, "no live memory"),
        ];
        for (from, bytes, words) in wrong {
            copy(&stream, from, target, bytes);
            let error = stream.synchronize().unwrap_err();
            assert!(error.to_string().contains(words), "{error} lacks {words:?}");
            stream.synchronize().expect("told once");
        }
        copy(&stream, on(&other, &foreign), target, 128);
        stream.synchronize().expect("a peer's memory, named as such");
        release(&device, buffer);
        release(&device, pinned);
        release(&other, foreign);
    }
}

#[test]
fn a_fault_is_reported_by_every_event_and_wait_after_it() {
    for device in both() {
        let (faulty, other) = (stream(&device), stream(&device));
        let (before, behind, later) = (event(&device), event(&device), event(&device));
        let failing = kernel(&device, |_| Err("it failed".into()));
        let count = Arc::new(Mutex::new(0));
        let seen = Arc::clone(&count);
        let body = kernel(&device, move |_| {
            *seen.lock().unwrap() += 1;
            Ok(())
        });
        faulty.record(&before).unwrap();
        launch(&faulty, &failing).unwrap();
        launch(&faulty, &body).unwrap();
        faulty.record(&behind).unwrap();
        other.wait(&behind).unwrap();
        launch(&other, &body).unwrap();
        other.synchronize().expect("a wait orders and does not carry failures");
        assert_eq!(*count.lock().unwrap(), 2, "other work runs on both streams");
        before.synchronize().unwrap();
        assert!(is_fault(&behind.synchronize()));
        assert!(is_fault(&behind.query()));
        assert!(is_fault(&faulty.query()));
        let told = device.synchronize().unwrap_err();
        assert!(told.to_string().contains("it failed"), "{told}");
        device.synchronize().expect("told once");
        faulty.synchronize().expect("the device has told it");
        assert!(is_fault(&behind.synchronize()), "the mark stays a failed one");
        launch(&faulty, &body).unwrap();
        faulty.record(&later).unwrap();
        faulty.synchronize().unwrap();
        later.synchronize().unwrap();
        assert_eq!(*count.lock().unwrap(), 3);
    }
}

/// A use of a whole buffer, by a number that no other test has.
fn used(owner: u64, buffer: &gpumem_host::Buffer, write: bool) -> MemoryUse {
    let (start, bytes) = (buffer.address(), buffer.len());
    MemoryUse { owner: (1 << 60) + owner, start, bytes, write, is_foreign: false }
}

/// Enqueues work that uses this memory.
fn uses(uses: &[MemoryUse], enqueue: impl FnOnce()) {
    struct All<'a>(&'a [MemoryUse]);
    impl MemoryUses for All<'_> {
        fn each(&self, found: &mut dyn FnMut(&MemoryUse)) {
            self.0.iter().for_each(found);
        }
    }
    // SAFETY: the tests read no bytes that were never written.
    unsafe { with_uses(Some(&All(uses)), enqueue) }
}

/// Enqueues commands of one submission, which write this memory.
fn submit(submission: SubmissionId, write: MemoryUse, enqueue: impl FnOnce()) {
    struct Of(SubmissionId, MemoryUse);
    impl MemoryUses for Of {
        fn each(&self, found: &mut dyn FnMut(&MemoryUse)) {
            found(&self.1);
        }
        fn submission(&self) -> Option<SubmissionId> {
            Some(self.0)
        }
    }
    // SAFETY: as in `uses`.
    unsafe { with_uses(Some(&Of(submission, write)), enqueue) }
}

#[test]
fn a_failure_belongs_to_its_submission_and_the_rest_of_that_does_not_run() {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1 << 61);
    for device in both() {
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let id = |submission| SubmissionId { stream: number, submission };
        // SAFETY: no stream has a number so large, and no other test this one.
        let failed = unsafe { FailedSubmissions::of_stream(number) };
        let (stream, buffer, gone) = (stream(&device), allocate(&device, 64), allocate(&device, 64));
        let nowhere = on(&device, &gone);
        release(&device, gone);
        let to = on(&device, &buffer);
        let all = used(number, &buffer, true);
        submit(id(1), all, || {
            copy(&stream, nowhere, to, 32);
            // It builds on the first, which only the caller knows.
            copy(&stream, to, (to.0 + 32, to.1), 32);
        });
        let behind = event(&device);
        stream.record(&behind).unwrap();
        stream.synchronize().expect("the failure is its submission's");
        behind.synchronize().expect("as above");
        device.synchronize().expect("as above");
        assert_eq!(POISONED.find(&all).unwrap().0, all.range(), "a part was called good");
        assert!(failed.find(1..=1).is_some() && device.counters().faults == 1);
        // Another one makes the bytes good.
        submit(id(2), all, || fill(&stream, &buffer, 7));
        assert_eq!(read(&device, &stream, &buffer), [7; 64]);
        assert!(POISONED.find(&all).is_none() && failed.find(2..=9).is_none());
        // No caller can ask for the submission any more, so the stream tells.
        drop(failed);
        submit(id(3), all, || copy(&stream, nowhere, to, 32));
        assert!(is_fault(&stream.synchronize()));
        clear(&all);
        release(&device, buffer);
    }
}

/// Clears all poison.
fn clear(used: &MemoryUse) {
    // SAFETY: as in `uses`.
    unsafe { POISONED.clear(&used.range()) }
}

#[test]
fn failures_spread_to_work_that_uses_the_data() {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    for device in both() {
        let first = NEXT.fetch_add(10, std::sync::atomic::Ordering::Relaxed);
        let (one, two, behind) = (stream(&device), stream(&device), event(&device));
        let [a, b, c] = [(); 3].map(|()| allocate(&device, 64));
        let gone = allocate(&device, 64);
        let nowhere = on(&device, &gone);
        release(&device, gone);
        let poison = |number, buffer: &_| POISONED.find(&used(first + number, buffer, false));
        // A copy from released memory; a fill after it, which uses other bytes; a copy on another stream from bytes that
        // failed work was to write.
        uses(&[used(first, &a, true)], || copy(&one, nowhere, on(&device, &a), 64));
        uses(&[used(first + 1, &b, true)], || fill(&one, &b, 7));
        one.record(&behind).unwrap();
        two.wait(&behind).unwrap();
        uses(&[used(first, &a, false), used(first + 2, &c, true)], || {
            copy(&two, on(&device, &a), on(&device, &c), 64);
        });
        for (faulty, words) in [
            (&one, "copy: the range of 64 bytes"),
            (&two, "copy: it uses bytes that were to be written by copy, which failed on host:"),
        ] {
            let error = faulty.synchronize().unwrap_err();
            assert!(error.to_string().contains(words), "{error} lacks {words:?}");
            faulty.synchronize().expect("told once");
        }
        for (number, buffer) in [(0, &a), (2, &c)] {
            let (bytes, failure) = poison(number, buffer).expect("it was not written");
            assert_eq!(bytes, buffer.address()..buffer.address() + 64);
            let place = format!("host:{}, stream 0", device.ordinal());
            assert_eq!((&*failure.work, &*failure.place), ("copy", &*place));
        }
        assert!(poison(1, &b).is_none());
        assert_eq!(read(&device, &two, &b), [7; 64]);
        // A fill clears its 64 bytes.
        uses(&[used(first + 2, &c, true)], || fill(&two, &c, 9));
        assert_eq!(read(&device, &two, &c), [9; 64]);
        assert!(poison(2, &c).is_none() && poison(0, &a).is_some());
        let mut half = vec![3u8; 32];
        copy(&two, host_mut(&mut half), on(&device, &a), 32);
        two.synchronize().unwrap();
        assert_eq!(poison(0, &a).unwrap().0, a.address() + 32..a.address() + 64);
        for buffer in [a, b, c] {
            clear(&used(0, &buffer, true));
            release(&device, buffer);
        }
    }
}

/// Bytes that a call of the host has torn.
fn tear(stream: &gpumem_host::Stream, torn: MemoryUse) {
    let failure = Arc::new(Failure::new("upload", "here", "it was cancelled"));
    // SAFETY: as in `uses`.
    uses(&[torn], || unsafe { stream.poison(&[torn], &failure) }.unwrap());
}

#[test]
fn torn_bytes_are_poisoned_in_their_turn_and_fail_no_wait() {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1 << 50);
    for device in both() {
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let (stream, buffer) = (stream(&device), allocate(&device, 64));
        let all = used(number, &buffer, true);
        let (seen, before) = (Arc::new(Mutex::new(None)), all);
        let look = Arc::clone(&seen);
        let body = kernel(&device, move |_| {
            *look.lock().unwrap() = Some(POISONED.find(&before).is_none());
            Ok(())
        });
        launch(&stream, &body).unwrap();
        uses(&[all], || fill(&stream, &buffer, 7));
        tear(&stream, all);
        stream.synchronize().expect("the call that failed has told it");
        assert_eq!(*seen.lock().unwrap(), Some(true), "earlier work is not refused");
        let (bytes, failure) = POISONED.find(&all).expect("earlier work does not clear it");
        assert_eq!((bytes, &*failure.work), (all.range(), "upload"));
        assert_eq!(device.counters().faults, 0);
        uses(&[all], || fill(&stream, &buffer, 9));
        stream.synchronize().unwrap();
        assert!(POISONED.find(&all).is_none());
        release(&device, buffer);
    }
    // What is still to come when the device is lost.
    let device = adversarial(1);
    let (stream, buffer) = (stream(&device), allocate(&device, 64));
    let all = used(1 << 51, &buffer, true);
    uses(&[all], || fill(&stream, &buffer, 7));
    tear(&stream, all);
    device.lose("the test");
    assert!(POISONED.find(&all).is_some_and(|(bytes, _)| bytes == all.range()));
    let failure = Arc::new(Failure::new("upload", "here", "it was cancelled"));
    // SAFETY: as in `uses`.
    let refused = unsafe { stream.poison(&[all], &failure) }.unwrap_err();
    assert!(matches!(refused.kind(), ErrorKind::DeviceLost { .. }), "{refused}");
    clear(&all);
}

#[test]
fn writes_of_a_lost_device_to_another_device_are_poisoned() {
    for seed in [1, 6] {
        let (lost, other) = (adversarial(seed), concurrent());
        let (from, to) = (allocate(&lost, 64), allocate(&other, 64));
        let kept = used(1000 + seed, &to, true);
        let (stream, gate) = (stream(&lost), event(&other));
        let late = crate::stream(&other);
        let (release_it, wait) = mpsc::channel::<()>();
        let wait = Mutex::new(wait);
        let blocking = kernel(&other, move |_| {
            let _ = wait.lock().unwrap().recv_timeout(Duration::from_secs(5));
            Ok(())
        });
        launch(&late, &blocking).unwrap();
        late.record(&gate).unwrap();
        stream.wait(&gate).unwrap();
        uses(&[kept], || copy(&stream, on(&lost, &from), on(&other, &to), 64));
        lost.lose("the test");
        let (_, failure) = POISONED.find(&kept).expect("the copy was dropped");
        assert!(failure.cause.contains("the test"), "{failure}");
        release_it.send(()).unwrap();
        late.synchronize().unwrap();
        clear(&kept);
        release(&other, to);
        let _never_released = from;
    }
}

#[test]
fn an_event_does_not_repeat_errors_reported_before_its_recording() {
    for device in both() {
        let stream = stream(&device);
        let buffer = allocate(&device, 64);
        let here = on(&device, &buffer);
        release(&device, buffer);
        let mut data = [0_u8; 64];
        let record = || {
            let recorded = event(&device);
            stream.record(&recorded).unwrap();
            recorded
        };
        // The stream tells each once.
        for _ in 0..20 {
            copy(&stream, here, host_mut(&mut data), 64);
            let before = record();
            assert!(is_fault(&stream.synchronize()));
            let after = record();
            let everywhere = event(&device);
            device.record_device(&everywhere).unwrap();
            assert!(is_fault(&before.synchronize()));
            after.synchronize().unwrap();
            everywhere.synchronize().unwrap();
            assert!(after.query().unwrap());
        }
    }
}

#[test]
fn panics_of_kernels_are_faults() {
    for device in both() {
        let stream = stream(&device);
        let panicking = kernel(&device, |_| panic!("kernel number {}", 7));
        launch(&stream, &panicking).unwrap();
        let error = stream.synchronize().unwrap_err();
        assert!(error.to_string().contains("panicked: kernel number 7"), "{error}");
        stream.synchronize().unwrap();
    }
}

#[test]
fn a_dropped_stream_leaves_its_fault_to_the_device() {
    for device in both() {
        let failing = kernel(&device, |_| Err("orphan".into()));
        let dropped = stream(&device);
        launch(&dropped, &failing).unwrap();
        dropped.query().map(drop).unwrap_or(());
        drop(dropped);
        // Where workers run it, its end may still be a moment away.
        let told = (0..1000).find_map(|_| {
            std::thread::sleep(Duration::from_millis(1));
            device.synchronize().err()
        });
        assert!(told.is_some_and(|error| error.to_string().contains("orphan")));
    }
}

/// Counts events.
struct Counting(Arc<AtomicUsize>);

impl tracing::Subscriber for Counting {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, _: &tracing::Event<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

/// A stream is dropped under whatever lock of its user's.
#[test]
fn a_subscriber_hears_of_dropped_streams_when_the_device_ends() {
    let (device, heard) = (adversarial(1), Arc::new(AtomicUsize::new(0)));
    tracing::subscriber::with_default(Counting(heard.clone()), || {
        let failing = stream(&device);
        device.inject(Injection::next(Operation::Copy, ErrorKind::AsynchronousFault { what: "it".into() }));
        let (from, mut to) = ([1_u8; 16], [0_u8; 16]);
        copy(&failing, host(&from), host_mut(&mut to), 16);
        while !failing.query().unwrap_or(true) {}
        drop(failing);
        device.schedule_trace();
        let _other = stream(&device);
        assert_eq!(heard.load(Ordering::Relaxed), 0);
        drop(device);
    });
    assert_eq!(heard.load(Ordering::Relaxed), 1);
}

#[test]
fn launches_are_checked() {
    for device in both() {
        let stream = stream(&device);
        let body = kernel(&device, |launch| match (launch.dims.groups, launch.arguments.read::<u32>(0)) {
            ([3, 1, 1], Some(42)) => Ok(()),
            other => Err(format!("{other:?}")),
        });
        let run = |groups, group_size, shared_bytes| {
            let dims = LaunchConfig { groups, group_size, shared_bytes };
            let arguments = KernelArguments::new().with(42u32);
            // SAFETY: the kernel takes one `u32`.
            unsafe { stream.launch(&body, &dims, &arguments) }
        };
        run([3, 1, 1], [1024, 1, 1], 65_536).unwrap();
        let wrong = [
            run([0, 1, 1], [1, 1, 1], 0),
            run([1, 1, 1], [1, 0, 1], 0),
            run([1, 70_000, 1], [1, 1, 1], 0),
            run([1, 1, 1], [1025, 1, 1], 0),
            run([1, 1, 1], [32, 32, 2], 0),
            run([1, 1, 1], [1, 1, 65], 0),
            run([1, 1, 1], [1, 1, 1], 65_537),
        ];
        for result in wrong {
            assert!(matches!(result.unwrap_err().kind(), ErrorKind::InvalidArgument { .. }));
        }
        stream.synchronize().unwrap();
        let other = concurrent();
        let error = launch(&self::stream(&other), &body).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::WrongDevice { what: "kernel", .. }), "{error}");
        for source in [KernelSource::Text(String::new()), KernelSource::Ptx(String::new())] {
            let error = device.compile(&source, &Default::default()).unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::Unsupported { .. }), "{error}");
        }
    }
}

#[test]
fn unknown_kernels_are_named() {
    let device = concurrent();
    let module = device.compile(&KernelSource::Host(Vec::new()), &Default::default()).unwrap();
    let error = module.kernel("missing").unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::NoSuchKernel { name: "missing".into() });
}

#[test]
fn a_lost_device_does_not_hang() {
    for device in both() {
        let (busy, idle) = (stream(&device), stream(&device));
        let buffer = allocate(&device, 64);
        let mark = event(&device);
        let (entered, running) = mpsc::channel();
        let (go, gate) = mpsc::channel::<()>();
        let gate = Mutex::new(gate);
        let threads = device.counters().workers > 0 || device.schedule() == gpumem_host::Schedule::Concurrent;
        let blocking = kernel(&device, move |_| {
            entered.send(()).unwrap();
            gate.lock().unwrap().recv().map_err(|error| error.to_string())
        });
        if threads {
            launch(&busy, &blocking).unwrap();
            running.recv_timeout(Duration::from_secs(20)).unwrap();
        }
        fill(&busy, &buffer, 1);
        busy.record(&mark).unwrap();
        idle.wait(&mark).unwrap();
        fill(&idle, &buffer, 2);
        let outside = concurrent();
        let waiting = stream(&outside);
        waiting.wait(&mark).unwrap();
        device.lose("it fell off the bus");
        device.lose("a later cause");
        // A kernel that is running is waited for: it may still write. Queries, too, do not say that it is over.
        if threads {
            device
                .inject(Injection::next(Operation::Query, ErrorKind::AsynchronousFault { what: "x".into() }));
            assert!(!busy.query().unwrap() && !mark.query().unwrap());
            device.clear_injections();
        }
        std::thread::scope(|scope| {
            let synchronised = scope
                .spawn(|| (busy.synchronize(), idle.synchronize(), mark.synchronize(), device.synchronize()));
            if threads {
                std::thread::sleep(Duration::from_millis(20));
                go.send(()).unwrap();
            }
            let (one, two, three, four) = synchronised.join().unwrap();
            assert!(is_lost(&one) && is_lost(&two) && is_lost(&three) && is_lost(&four));
            assert!(four.unwrap_err().to_string().contains("fell off the bus"));
        });
        let result = waiting.synchronize();
        // Where the schedule had reached the mark before, there was nothing left to wait for.
        assert!(is_fault(&result) || (result.is_ok() && !threads), "{result:?}");
        assert!(is_lost(&busy.query()) && is_lost(&mark.query()));
        assert!(is_lost(&try_allocate(&device, 64, MemoryKind::Device)));
        assert!(is_lost(&device.memory_info()));
        assert!(is_lost(&device.create_stream(&StreamOptions::default())));
        assert!(is_lost(&device.create_event(EventOptions::default())));
        assert!(is_lost(&busy.record(&mark)));
        assert!(is_lost(&launch(&busy, &blocking)));
        // SAFETY: refused.
        let (_buffer, error) = unsafe { device.release(buffer) }.unwrap_err();
        assert!(error.is_device_lost());
        // SAFETY: nothing made before is used again.
        unsafe { device.reset() }.unwrap();
        let (stream, buffer) = (stream(&device), allocate(&device, 64));
        fill(&stream, &buffer, 3);
        assert_eq!(read(&device, &stream, &buffer), [3; 64]);
        release(&device, buffer);
    }
}

#[test]
fn injected_failures_strike_the_named_call() {
    let failure = || ErrorKind::Driver { code: 77, name: "INJECTED" };
    for device in both() {
        let (stream, mark) = (stream(&device), event(&device));
        let buffer = allocate(&device, 64);
        let mut data = vec![0u8; 64];
        let body = kernel(&device, |_| Ok(()));
        let (from, to) = (on(&device, &buffer), host_mut(&mut data));
        type Call<'a> = Box<dyn FnMut() -> Result<(), Error> + 'a>;
        let mut calls: Vec<(Operation, Call<'_>)> = vec![
            (Operation::CreateStream, Box::new(|| device.create_stream(&StreamOptions::default()).map(drop))),
            (Operation::CreateEvent, Box::new(|| device.create_event(EventOptions::default()).map(drop))),
            (Operation::Record, Box::new(|| stream.record(&mark))),
            (Operation::Wait, Box::new(|| stream.wait(&mark))),
            (Operation::Launch, Box::new(|| launch(&stream, &body))),
            (Operation::Synchronize, Box::new(|| stream.synchronize())),
            (Operation::Synchronize, Box::new(|| mark.synchronize())),
            (Operation::Synchronize, Box::new(|| device.synchronize())),
            (Operation::Query, Box::new(|| stream.query().map(drop))),
            (Operation::MemoryInfo, Box::new(|| device.memory_info().map(drop))),
            (
                Operation::Copy,
                Box::new(|| {
                    // SAFETY: both sides live until the device is synchronised below.
                    unsafe { stream.copy(&gpumem_core::CopyRegion::linear(from, to, 64)) }
                }),
            ),
            (
                Operation::Allocate,
                Box::new(|| {
                    try_allocate(&device, 8, MemoryKind::Device).map(|buffer| release(&device, buffer))
                }),
            ),
        ];
        for (operation, call) in &mut calls {
            device.inject(Injection::next(*operation, failure()).after(1));
            call().unwrap();
            assert_eq!(call().unwrap_err().kind(), &failure(), "{operation:?}");
            call().unwrap();
        }
        drop(calls);
        device.synchronize().unwrap();

        device.inject(Injection::next(Operation::Release, failure()));
        // SAFETY: nothing is pending.
        let (buffer, error) = unsafe { device.release(buffer) }.unwrap_err();
        assert_eq!(error.kind(), &failure());
        device.inject(Injection::next(Operation::Release, failure()));
        device.clear_injections();
        release(&device, buffer);
    }
}

#[test]
fn faults_and_losses_can_be_injected() {
    for device in both() {
        let stream = stream(&device);
        let buffer = allocate(&device, 64);
        let what = ErrorKind::AsynchronousFault { what: "bit rot".into() };
        device.inject(Injection::next(Operation::Fill, what));
        fill(&stream, &buffer, 9);
        assert!(stream.synchronize().unwrap_err().to_string().contains("bit rot"));
        assert_eq!(read(&device, &stream, &buffer), [0; 64]);
        device
            .inject(Injection::next(Operation::Synchronize, ErrorKind::DeviceLost { cause: "gone".into() }));
        assert!(is_lost(&stream.synchronize()));
        assert!(is_lost(&device.memory_info()));
    }
}

#[test]
fn everything_is_counted() {
    for device in both() {
        let before = device.counters();
        {
            let (one, two) = (stream(&device), stream(&device));
            let mark = event(&device);
            let buffer = allocate(&device, 100);
            let body = kernel(&device, |_| Ok(()));
            fill(&one, &buffer, 1);
            launch(&one, &body).unwrap();
            one.record(&mark).unwrap();
            two.wait(&mark).unwrap();
            assert_eq!(read(&device, &two, &buffer), [1; 100]);
            let now = device.counters();
            assert_eq!((now.streams, now.events), (before.streams + 2, before.events + 1));
            release(&device, buffer);
        }
        device.synchronize().unwrap();
        let after = device.counters();
        let counts = [
            (after.fills, before.fills),
            (after.launches, before.launches),
            (after.records, before.records),
            (after.waits, before.waits),
            (after.copies, before.copies),
            (after.modules, before.modules),
            (after.events_created, before.events_created),
        ];
        assert!(counts.iter().all(|(after, before)| *after == before + 1), "{after:?}");
        assert_eq!(after.copied_bytes, before.copied_bytes + 100);
        assert_eq!(after.synchronizations, before.synchronizations + 2);
        assert_eq!((after.events, after.faults), (0, 0));
    }
}
