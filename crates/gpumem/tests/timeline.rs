//! The timeline of the photo example, as the viewers of the Trace Event Format read it. A separate program, because a
//! recording holds the work of all threads on the device.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]
#![cfg(feature = "host")]

#[path = "../examples/photo/main.rs"]
#[allow(dead_code, reason = "its main reads the command line")]
mod photo;

use gpumem::trace::{Trace, TraceEventKind};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Runs the example on a small picture, and returns the trace and the events for viewers.
fn run() -> (Trace, Vec<Value>) {
    let folder = tempfile::tempdir().unwrap();
    let [input, output, timeline] =
        ["small.png", "sheet.png", "photo.json"].map(|name| folder.path().join(name));
    image::RgbImage::from_fn(160, 107, |x, y| image::Rgb([x as u8, y as u8, 7])).save(&input).unwrap();
    let options = photo::Options {
        device: Some("host".into()),
        input: Some(input),
        output,
        timeline: Some(timeline.clone()),
    };
    photo::run(&options).unwrap();
    let trace = Trace::from_json(&std::fs::read_to_string(timeline).unwrap()).unwrap();
    let for_viewers = folder.path().join("photo.perfetto.json");
    trace.write(&for_viewers).unwrap();
    let text = std::fs::read_to_string(for_viewers).unwrap();
    let events = serde_json::from_str::<Value>(&text).unwrap()["traceEvents"].as_array().unwrap().clone();
    (trace, events)
}

fn phase<'a>(events: &'a [Value], phase: &'a str) -> impl Iterator<Item = &'a Value> {
    events.iter().filter(move |event| event["ph"] == phase)
}

/// Nanoseconds, from a field of microseconds.
fn time(event: &Value, field: &str) -> u64 {
    (event[field].as_f64().unwrap() * 1e3).round() as u64
}

#[test]
fn the_exported_timeline_matches_the_recording() {
    let (trace, events) = run();
    assert_eq!(trace.lost, 0);

    // The counters reach the peaks, and each peak lists the holders of the memory.
    let peaks = trace.peaks();
    let device = peaks.iter().find(|peak| peak.kind.word() == "device").unwrap();
    let held = |name: &str| device.holders.iter().find(|holder| holder.name == name).unwrap().bytes;
    // A pixel has three bytes; the view "photo" shows all of them.
    assert_eq!((held("original"), held("photo")), (160 * 107 * 3, 160 * 107 * 3));
    for peak in &peaks {
        let counter = format!("{} memory", peak.kind.word());
        let steps: Vec<_> = phase(&events, "C").filter(|event| event["name"] == counter.as_str()).collect();
        let used = |event: &&Value| event["args"]["in use"].as_u64().unwrap();
        assert_eq!(steps.iter().map(used).max(), Some(peak.bytes), "{counter}");
        let reserved = |event: &&Value| used(event) + event["args"]["reserved, not in use"].as_u64().unwrap();
        assert_eq!(steps.iter().map(reserved).max(), Some(peak.reserved), "{counter}");
        let name = format!("peak of {counter}");
        let moment = phase(&events, "i").find(|event| event["name"] == name.as_str()).unwrap();
        assert_eq!((time(moment, "ts"), &moment["args"]["bytes"]), (peak.time, &peak.bytes.into()));
        for holder in &peak.holders {
            assert_eq!(moment["args"]["held by"][&holder.name], holder.bytes, "{}", holder.name);
        }
    }

    // Memory begins once, and ends at most once and under the same name.
    let mut open = BTreeMap::new();
    let key = |event: &Value| ["pid", "cat", "name"].map(|field| event[field].to_string());
    for event in events.iter().filter(|event| event["ph"] == "b" || event["ph"] == "e") {
        let id = event["id"].as_str().unwrap().to_owned();
        match event["ph"] == "b" {
            true => assert_eq!(open.insert(id, Some(key(event))), None),
            false => assert_eq!(open.insert(id, None), Some(Some(key(event)))),
        }
    }
    assert_eq!(open.len(), trace.allocations.iter().filter(|allocation| allocation.kind.is_some()).count());

    // A row for each thread and stream, and slices of one row do not overlap.
    let rows: BTreeMap<_, _> = phase(&events, "M")
        .filter(|event| event["name"] == "thread_name")
        .map(|event| (event["tid"].as_u64().unwrap(), event["args"]["name"].as_str().unwrap()))
        .collect();
    assert_eq!(rows.len(), trace.threads.len() + trace.streams.len());
    let on_rows = || events.iter().filter(|event| event["ph"] == "X" || event["s"] == "t");
    let used: BTreeSet<_> = on_rows().map(|event| rows[&event["tid"].as_u64().unwrap()]).collect();
    let streams = used.iter().filter(|name| name.starts_with("stream ")).count();
    assert_eq!(streams, 3, "the default stream, the one that cuts, and the one that pastes: {used:?}");
    let mut ends = BTreeMap::new();
    for slice in phase(&events, "X") {
        let start = time(slice, "ts");
        let before = ends.insert(slice["tid"].as_u64(), start + time(slice, "dur")).unwrap_or(0);
        assert!(before <= start && start + time(slice, "dur") <= trace.span, "{slice}");
    }
    let is_on_row = |what: &TraceEventKind| {
        matches!(what, TraceEventKind::Use { .. } | TraceEventKind::Wait { .. } | TraceEventKind::Fail { .. })
    };
    assert_eq!(on_rows().count(), trace.events.iter().filter(|event| is_on_row(&event.what)).count());
}
