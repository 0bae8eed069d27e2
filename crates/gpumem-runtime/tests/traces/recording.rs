//! The contents of a recording.

use super::{count, device, is_free};
use gpumem_core::{ErrorKind, MemoryKind};
use gpumem_host::{Host, HostOptions};
use gpumem_runtime::{
    Device,
    memory::{LimitingResource, named},
    trace::{
        FORMAT, RecorderOptions, ReplayOptions, Trace, TraceError, TraceEvent, TraceEventKind, TraceKind,
    },
};
use std::sync::Arc;

#[test]
fn a_recording_names_threads_operations_and_memory() {
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
        TraceEventKind::Allocate { memory } => Some(memory),
        _ => None,
    });
    let memory = made.unwrap();
    let about = &trace.allocations[memory as usize];
    assert_eq!((about.kind, about.bytes), (TraceKind::of(MemoryKind::Device), 1000));
    assert_eq!(trace.names[about.name.unwrap() as usize], "weights");
    assert_eq!(trace.operations[about.operation.unwrap() as usize], "device_array");
    let writes: Vec<_> = trace
        .events
        .iter()
        .filter_map(|event| match event.what {
            TraceEventKind::Use {
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
            TraceEventKind::Wait { stream, of, .. } => Some((stream, of)),
            _ => None,
        })
        .collect();
    let last = writes[writes.len() - 1].0;
    assert!(waits.contains(&(None, last)), "the host has waited for the second stream: {waits:?}");
    // Whether the second stream waits for the first depends on whether that is known to be done.
    assert_eq!(trace.threads.len(), 1);
    assert!(trace.threads[0].name.as_deref().unwrap().contains("a_recording"));
    let reserved = count(&trace, |what| matches!(what, TraceEventKind::Reserve { .. }));
    assert_eq!(reserved, 1, "the pool has asked the driver once");
}

#[test]
fn one_stream_waits_for_the_other_in_the_trace_as_in_the_counters() {
    // Nothing runs before a thread waits: everything is still pending when the other stream comes.
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
    let waits = count(&trace, |what| matches!(what, TraceEventKind::Wait { stream: Some(_), .. }));
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
    assert!(again.events.is_empty(), "events between two recordings are on none");
}

#[test]
fn earlier_allocations_are_in_the_recording() {
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
    let limit = Arc::new(LimitingResource::new(device.driver_memory(), 1000));
    device.set_memory_resource(MemoryKind::Device, limit).unwrap();
    let recording = device.record_memory(RecorderOptions::default()).unwrap();
    assert!(named("too much", || device.uninit_array::<u8, _>(2000)).is_err());
    let trace = recording.finish();
    let [failed] = trace
        .events
        .iter()
        .filter(|event| matches!(event.what, TraceEventKind::Fail { .. }))
        .collect::<Vec<_>>()[..]
    else {
        panic!("{:?}", trace.events)
    };
    let TraceEventKind::Fail { memory } = failed.what else { unreachable!() };
    let asked = &trace.allocations[memory as usize];
    assert_eq!((asked.bytes, &*trace.names[asked.name.unwrap() as usize]), (2000, "too much"));
    assert!(trace.peaks().iter().all(|peak| peak.bytes == 0));
}

#[test]
fn traces_of_two_devices_share_one_time_axis() {
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
            TraceEventKind::Allocate { memory } | TraceEventKind::Free { memory } => {
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
    assert!(broken(&|trace| trace.allocations[0].bytes = 9).contains("past the end"));
    assert!(broken(&|trace| trace.allocations[0].bytes = u64::MAX).contains("are no number"));
    assert!(broken(&|trace| trace.start = u64::MAX).contains("are no number"));
    // Nothing goes wrong with an unchecked trace, either.
    let mut wild = trace.clone();
    wild.events.push(TraceEvent { time: 0, thread: 99, what: TraceEventKind::Free { memory: 99 } });
    wild.events.push(TraceEvent { time: 0, thread: 99, what: TraceEventKind::Allocate { memory: 99 } });
    assert!(wild.peaks().is_empty() && wild.usage().is_empty() && !wild.to_perfetto().contains("ph"));
    assert_eq!(wild.older(), trace.older());
    assert!(wild.clone().merge(wild.clone()).check().is_err());
    let device = super::device();
    let error = device
        .replay_memory(&wild, ReplayOptions::default(), |kind| device.memory_resource(kind))
        .unwrap_err();
    assert!(error.to_string().contains("contradicts itself"), "{error}");
}
