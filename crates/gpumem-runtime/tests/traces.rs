//! Recordings: what is on them, what becomes of them, and that they can be done again.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, reason = "tests")]

#[path = "traces/random.rs"]
mod random;

use gpumem_core::{ErrorKind, MemoryKind};
use gpumem_host::{Host, HostOptions};
use gpumem_runtime::{
    Device,
    memory::{Limit, MemoryResource, Pool, named},
    trace::{
        FORMAT, Happening, Overflow, RecorderOptions, ReplayOptions, ReplayReport, Trace, TraceError,
        TraceEvent, TraceKind,
    },
};
use std::sync::Arc;

fn device() -> Device<Host> {
    Device::from_raw(Host::open_with(&HostOptions::new()).unwrap())
}

fn count(trace: &Trace, of: impl Fn(&Happening) -> bool) -> usize {
    trace.events.iter().filter(|event| of(&event.what)).count()
}

fn is_allocation(what: &Happening) -> bool {
    matches!(what, Happening::Allocate { .. })
}

fn is_free(what: &Happening) -> bool {
    matches!(what, Happening::Free { .. })
}

#[test]
fn a_recording_tells_who_did_what_with_which_memory() {
    let device = device();
    let recording = device.record_memory(RecorderOptions::default()).unwrap();
    let (first, second) = (device.stream().unwrap(), device.stream().unwrap());
    let mut array = named("weights", || first.device_array::<u8, _>(1000)).unwrap();
    first.fill(&mut array, 1).unwrap();
    second.fill(&mut array, 2).unwrap();
    second.synchronize().unwrap();
    let alive = recording.snapshot();
    drop(array);
    let trace = recording.finish();
    trace.check().unwrap();
    alive.check().unwrap();
    assert_eq!((count(&alive, is_free), count(&trace, is_free)), (0, 1), "a snapshot is of its moment");

    let made = trace.events.iter().find_map(|event| match event.what {
        Happening::Allocate { memory } => Some(memory),
        _ => None,
    });
    let memory = made.unwrap();
    let about = &trace.allocations[memory as usize];
    assert_eq!((about.kind, about.bytes), (TraceKind::of(MemoryKind::Device), 1000));
    assert_eq!(trace.names[about.name.unwrap() as usize], "weights");
    assert_eq!(trace.operations[about.operation.unwrap() as usize], "device_array");
    let writes: Vec<_> =
        trace
            .events
            .iter()
            .filter_map(|event| match event.what {
                Happening::Use {
                    memory: of, write: true, stream, bytes: 1000, from: 0, operation, ..
                } if of == memory => Some((stream?, trace.operations[operation as usize].clone())),
                _ => None,
            })
            .collect();
    assert!(writes.len() >= 2 && writes[writes.len() - 1].0 != writes[writes.len() - 2].0, "{writes:?}");
    assert!(writes.iter().any(|(_, operation)| operation == "fill"), "{writes:?}");
    let waits: Vec<_> = trace
        .events
        .iter()
        .filter_map(|event| match event.what {
            Happening::Wait { stream, of, .. } => Some((stream, of)),
            _ => None,
        })
        .collect();
    let last = writes[writes.len() - 1].0;
    assert!(waits.contains(&(None, last)), "the host has waited for the second stream: {waits:?}");
    // Whether the second stream waits for the first depends on whether that is known to be done.
    assert_eq!(trace.threads.len(), 1);
    assert!(trace.threads[0].name.as_deref().unwrap().contains("a_recording"));
    let reserved = count(&trace, |what| matches!(what, Happening::Reserve { .. }));
    assert_eq!(reserved, 1, "the pool has asked the driver once");
}

#[test]
fn one_stream_waits_for_the_other_in_the_trace_as_in_the_counters() {
    // Nothing runs before somebody waits: everything is still pending when the other stream comes.
    let raw = Host::open_with(&HostOptions::new().adversarial(7)).unwrap();
    let device: Device<Host> = Device::from_raw(raw);
    let recording = device.record_memory(RecorderOptions::default()).unwrap();
    let before = device.counters().waits;
    let (first, second) = (device.stream().unwrap(), device.stream().unwrap());
    let mut array = first.device_array::<u8, _>(4096).unwrap();
    second.fill(&mut array, 2).unwrap();
    first.fill(&mut array, 3).unwrap();
    let counted = device.counters().waits - before;
    let trace = recording.finish();
    let waits = count(&trace, |what| matches!(what, Happening::Wait { stream: Some(_), .. }));
    assert!(counted > 0);
    assert_eq!(waits as u64, counted);
}

#[test]
fn only_one_recording_of_a_device_runs_at_a_time() {
    let device = device();
    let recording = device.record_memory(RecorderOptions::default()).unwrap();
    let error = device.record_memory(RecorderOptions::default()).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::InvalidArgument { .. }), "{error}");
    drop(recording);
    let empty = device.record_memory(RecorderOptions::default()).unwrap().finish();
    assert!(empty.events.is_empty());
    drop(device.uninit_array::<u8, _>(100).unwrap());
    let again = device.record_memory(RecorderOptions::default()).unwrap().finish();
    assert!(again.events.is_empty(), "what happens between two recordings is on none");
}

#[test]
fn what_was_there_before_is_part_of_the_picture() {
    let device = device();
    let old = device.uninit_array::<u8, _>(1024).unwrap();
    let older = device.uninit_array::<u8, _>(4096).unwrap();
    let recording = device.record_memory(RecorderOptions::default()).unwrap();
    let new = device.uninit_array::<u8, _>(512).unwrap();
    drop(old);
    let trace = recording.finish();
    trace.check().unwrap();
    let peak = &trace.peaks()[0];
    assert_eq!(peak.bytes, 1024 + 4096 + 512);
    let unnamed = peak.holders.iter().filter(|holder| holder.name == "made before the trace");
    assert_eq!(unnamed.map(|holder| holder.bytes).sum::<u64>(), 1024 + 4096);
    assert!(peak.reserved >= peak.bytes);
    drop((older, new));
}

#[test]
fn a_lack_of_memory_is_recorded_too() {
    let device = device();
    let limit = Arc::new(Limit::new(device.driver_memory(), 1000));
    device.set_memory_resource(MemoryKind::Device, limit).unwrap();
    let recording = device.record_memory(RecorderOptions::default()).unwrap();
    assert!(named("too much", || device.uninit_array::<u8, _>(2000)).is_err());
    let trace = recording.finish();
    let [failed] =
        trace.events.iter().filter(|event| matches!(event.what, Happening::Fail { .. })).collect::<Vec<_>>()
            [..]
    else {
        panic!("{:?}", trace.events)
    };
    let Happening::Fail { memory } = failed.what else { unreachable!() };
    let asked = &trace.allocations[memory as usize];
    assert_eq!((asked.bytes, &*trace.names[asked.name.unwrap() as usize]), (2000, "too much"));
    assert!(trace.peaks().iter().all(|peak| peak.bytes == 0));
}

/// Makes and drops `count` arrays on each of four threads; each thread keeps one of its own.
fn busy(device: &Device<Host>, count: usize) {
    std::thread::scope(|scope| {
        for number in 0..4 {
            let work = move || {
                let stream = device.stream().unwrap();
                let kept = named("kept", || stream.uninit_array::<u8, _>(1000 + number)).unwrap();
                for size in 1..=count {
                    drop(stream.uninit_array::<u8, _>(size).unwrap());
                }
                kept
            };
            let worker = std::thread::Builder::new().name(format!("worker {number}"));
            worker.spawn_scoped(scope, move || std::mem::forget(work())).unwrap();
        }
    });
}

#[test]
fn threads_write_side_by_side_and_nothing_is_lost() {
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
fn the_newest_events_are_kept_with_what_the_others_said_about_who_holds_what() {
    let device = device();
    let options = RecorderOptions { limit_bytes: 0, ..RecorderOptions::default() };
    let recording = device.record_memory(options).unwrap();
    let early = named("early", || device.uninit_array::<u8, _>(5000)).unwrap();
    busy(&device, 3000);
    let late = named("late", || device.uninit_array::<u8, _>(70)).unwrap();
    let trace = recording.finish();
    trace.check().unwrap();
    assert!(trace.lost > 0 && trace.events.len() < 5 * 512 && !trace.events.is_empty(), "{}", trace.lost);
    let peak = &trace.peaks()[0];
    let held = |name: &str| peak.holders.iter().find(|holder| holder.name == name).map(|holder| holder.bytes);
    assert_eq!((held("early"), held("kept")), (Some(5000), Some(4006)), "{peak:?}");
    // At the end exactly what is alive is in use.
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
fn what_a_thread_frees_at_its_very_end_is_recorded() {
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
fn the_oldest_events_are_kept_where_that_is_asked_for() {
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
    assert_eq!(count(&trace, |what| matches!(what, Happening::Use { .. })), 0);
}

#[test]
fn a_text_that_is_no_trace_is_refused_with_the_reason() {
    let device = device();
    let recording = device.record_memory(RecorderOptions::default()).unwrap();
    drop(device.device_array::<u8, _>(10).unwrap());
    let trace = recording.finish();
    let good = trace.to_json();
    assert_eq!(Trace::from_json(&good).unwrap(), trace);
    let message = |text: &str| Trace::from_json(text).unwrap_err().to_string();
    assert!(message("{").contains("not the JSON of a trace"));
    let newer = good.replacen(&format!("\"format\":{FORMAT}"), "\"format\":99", 1);
    assert!(matches!(Trace::from_json(&newer), Err(TraceError::Format { found: 99 })), "{}", message(&newer));
    let broken = |change: &dyn Fn(&mut Trace)| {
        let mut trace = trace.clone();
        change(&mut trace);
        message(&trace.to_json())
    };
    assert!(broken(&|trace| trace.events.reverse()).contains("event 1"));
    assert!(broken(&|trace| trace.threads.clear()).contains("thread that is not there"));
    assert!(broken(&|trace| trace.allocations[0].device = 3).contains("allocation 0"));
    assert!(broken(&|trace| trace.events.push(*trace.events.last().unwrap())).contains("is gone"));
    assert!(broken(&|trace| trace.allocations[0].bytes = 9).contains("behind the end"));
    assert!(broken(&|trace| trace.allocations[0].bytes = u64::MAX).contains("are no number"));
    assert!(broken(&|trace| trace.start = u64::MAX).contains("are no number"));
    // Nothing goes wrong with a trace that nobody has checked, either.
    let mut wild = trace.clone();
    wild.events.push(TraceEvent { time: 0, thread: 99, what: Happening::Free { memory: 99 } });
    assert!(wild.peaks().is_empty() && wild.usage().is_empty() && wild.to_html().contains("</html>"));
    assert!(wild.clone().merge(wild.clone()).check().is_err());
    let device = self::device();
    let error =
        wild.replay(&device, ReplayOptions::default(), |kind| device.memory_resource(kind)).unwrap_err();
    assert!(error.to_string().contains("contradicts itself"), "{error}");
}

#[test]
fn traces_of_two_devices_lie_on_one_time_axis() {
    let (one, two) = (device(), device());
    let first = one.record_memory(RecorderOptions::default()).unwrap();
    let early = named("early", || one.uninit_array::<u8, _>(10)).unwrap();
    let second = two.record_memory(RecorderOptions::default()).unwrap();
    let late = named("late", || two.uninit_array::<u8, _>(20)).unwrap();
    drop(early);
    drop(late);
    let (second, first) = (second.finish(), first.finish());
    let both = second.merge(first);
    both.check().unwrap();
    let told: Vec<_> = both
        .events
        .iter()
        .filter_map(|event| match event.what {
            Happening::Allocate { memory } | Happening::Free { memory } => {
                let about = &both.allocations[memory as usize];
                Some((about.device, both.names[about.name? as usize].as_str()))
            }
            _ => None,
        })
        .collect();
    // The second device was named first.
    assert_eq!(told, [(1, "early"), (0, "late"), (1, "early"), (0, "late")]);
    assert_eq!(both.threads.len(), 1, "it was one thread");
    assert_eq!(both.peaks().len(), 2);
}

/// Replays over a pool, and checks that nothing is left anywhere.
fn replay(trace: &Trace, options: ReplayOptions, host: &HostOptions) -> ReplayReport {
    let raw = Host::open_with(host).unwrap();
    let device: Device<Host> = Device::from_raw(raw.clone());
    let mut pools: Vec<Arc<dyn MemoryResource<Host>>> = Vec::new();
    let report = trace
        .replay(&device, options, |kind| {
            let pool = Arc::new(Pool::new(device.driver_memory(), device.pool_options(kind)));
            pools.push(pool.clone());
            Ok(pool)
        })
        .unwrap();
    device.flush().unwrap();
    for pool in pools {
        let left = pool.statistics();
        assert_eq!((left.lent, left.blocks, left.in_flight, left.reserved), (0, 0, 0, 0), "{trace:?}");
    }
    assert_eq!(device.pending(), (0, 0));
    assert!(device.memory_report().holders.is_empty());
    let counters = device.counters();
    assert_eq!(counters.allocations, counters.releases);
    assert_eq!(raw.counters().live_allocations, 0);
    assert!(device.take_errors().is_empty());
    report
}

#[test]
fn a_replay_does_what_was_recorded() {
    let device = device();
    let recording = device.record_memory(RecorderOptions::default()).unwrap();
    busy(&device, 300);
    let (first, second) = (device.stream().unwrap(), device.stream().unwrap());
    let mut array = first.device_array::<u32, _>(5000).unwrap();
    second.fill(&mut array, 2).unwrap();
    let back = second.copy_to_host(&array).unwrap();
    // Freed by another thread than the one that made it.
    std::thread::scope(|scope| {
        scope.spawn(move || drop(array));
    });
    back.view().unwrap();
    drop(back);
    let trace = recording.finish();
    let report = replay(&trace, ReplayOptions::default(), &HostOptions::new());
    assert_eq!(report.allocations as usize, count(&trace, is_allocation));
    assert_eq!(report.frees as usize, count(&trace, is_free));
    assert_eq!((report.failures, report.refused), (0, 0), "{report}");
    assert!(report.uses > 0 && report.peak_reserved >= report.peak_used && report.threads >= 5, "{report}");
    assert!(report.peak_used > 0 && report.nanoseconds() > 0.0);
    // Recording the replay gives the same allocations again.
    let again = self::device();
    let recording = again.record_memory(RecorderOptions::default()).unwrap();
    let options = ReplayOptions { threads: false, ..ReplayOptions::default() };
    trace.replay(&again, options, |kind| again.memory_resource(kind)).unwrap();
    let second = recording.finish();
    let sizes = |trace: &Trace| -> Vec<(u64, Option<String>)> {
        let made = trace.events.iter().filter_map(|event| match event.what {
            Happening::Allocate { memory } => Some(&trace.allocations[memory as usize]),
            _ => None,
        });
        made.map(|made| (made.bytes, made.name.map(|name| trace.names[name as usize].clone()))).collect()
    };
    assert_eq!(sizes(&second), sizes(&trace));
}

#[test]
fn a_replay_over_too_little_memory_counts_what_fails() {
    let recorded = device();
    let recording = recorded.record_memory(RecorderOptions::default()).unwrap();
    let arrays: Vec<_> = (0..10).map(|_| recorded.uninit_array::<u8, _>(1000).unwrap()).collect();
    drop(arrays);
    let trace = recording.finish();
    let device = device();
    let before = device.memory_resource(MemoryKind::Device).unwrap();
    let limited = |_| -> gpumem_core::Result<Arc<dyn MemoryResource<Host>>> {
        Ok(Arc::new(Limit::new(device.driver_memory(), 4000)))
    };
    let report = trace.replay(&device, ReplayOptions::default(), limited).unwrap();
    assert_eq!((report.allocations, report.failures, report.frees), (4, 6, 4), "{report}");
    assert!(report.first_error.as_ref().unwrap().is_out_of_memory());
    assert_eq!(report.peak_used, 4000);
    let after = device.memory_resource(MemoryKind::Device).unwrap();
    assert!(Arc::ptr_eq(&before, &after), "the device has its own resource again");
}

mod properties {
    use super::{random::Recipe, *};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, cases: 48, ..ProptestConfig::default() })]

        #[test]
        fn reading_gives_back_what_was_written(recipe in Recipe::any()) {
            let trace = recipe.trace();
            trace.check().unwrap();
            prop_assert_eq!(Trace::from_json(&trace.to_json()).unwrap(), trace);
        }

        #[test]
        fn any_trace_replays_and_leaves_every_counter_at_zero(recipe in Recipe::any(), seed: u64, threads: bool) {
            let trace = recipe.trace();
            let options = ReplayOptions { work: 4096, threads, ..ReplayOptions::default() };
            let report = replay(&trace, options, &HostOptions::new().adversarial(seed));
            prop_assert_eq!((report.failures, report.refused), (0, 0));
            let older = trace.allocations.len() - count(&trace, |what| {
                matches!(what, Happening::Allocate { .. } | Happening::Fail { .. })
            });
            prop_assert_eq!(report.allocations as usize, count(&trace, is_allocation) + older);
            if !threads {
                let most = trace.peaks().iter().map(|peak| peak.bytes).sum::<u64>();
                prop_assert!(report.peak_used <= most);
            }
        }

        #[test]
        fn the_peak_is_what_its_holders_hold(recipe in Recipe::any()) {
            for peak in recipe.trace().peaks() {
                prop_assert_eq!(peak.bytes, peak.holders.iter().map(|holder| holder.bytes).sum::<u64>());
            }
        }
    }
}
