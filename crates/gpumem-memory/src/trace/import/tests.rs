//! What is taken from other libraries, and what is refused.

use super::{FreeTime, pickle};
use crate::trace::{Trace, TraceError, TraceEventKind};
use std::collections::HashSet;

const MIB: u64 = 1 << 20;

const SNAPSHOTS: [&[u8]; 4] = [
    include_bytes!("data/ring.json"),
    include_bytes!("data/ring.2.pickle"),
    include_bytes!("data/ring.4.pickle"),
    include_bytes!("data/ring.5.pickle"),
];

fn place(error: &TraceError) -> (&str, u64) {
    match error {
        TraceError::Import { what, index, .. } => (what, *index),
        other => panic!("{other}"),
    }
}

#[test]
fn a_ring_that_lost_its_beginning_has_what_was_there_before() {
    for bytes in SNAPSHOTS {
        let trace = Trace::from_torch(bytes, FreeTime::Completed).unwrap();
        let older: Vec<u64> = (trace.older().iter().zip(&trace.allocations))
            .filter_map(|(is_older, memory)| is_older.then_some(memory.bytes))
            .collect();
        assert_eq!(older, [2 * MIB, MIB], "B is freed in the history, A stays");
        let [peak] = &trace.peaks()[..] else { panic!("one device") };
        assert_eq!((peak.bytes, peak.reserved, peak.time), (7 * MIB, 12 * MIB, 8000));
        assert_eq!(trace.devices[0].start[0].reserved, 8 * MIB);
        assert_eq!(trace.devices[0].total as u64, 15 * MIB, "3 MiB free at the failure, 12 MiB held");
        assert_eq!(trace.names, ["private pool (0, 1)"]);
        let named = trace.allocations.iter().filter(|memory| memory.name == Some(0));
        assert_eq!(named.map(|memory| memory.bytes).sum::<u64>(), 2 * MIB);
    }
}

#[test]
fn memory_is_free_at_one_of_two_times() {
    let frees = |free| {
        let trace = Trace::from_torch(SNAPSHOTS[0], free).unwrap();
        let is_free = |what: &TraceEventKind| matches!(what, TraceEventKind::Free { .. });
        let frees = trace.events.iter().filter(|event| is_free(&event.what));
        frees.map(|event| event.time).collect::<Vec<u64>>()
    };
    assert_eq!(frees(FreeTime::Requested), [2000, 10_000]);
    assert_eq!(frees(FreeTime::Completed), [4000]);
}

#[test]
fn snapshots_that_contradict_themselves_are_refused() {
    let entry = |action: &str| format!(r#"{{"action": "{action}", "addr": 512, "size": 512, "stream": 0}}"#);
    let read = |entries: &[String]| {
        let json = format!(r#"{{"segments": [], "device_traces": [[{}]]}}"#, entries.join(","));
        Trace::from_torch(json.as_bytes(), FreeTime::Completed)
    };
    let (alloc, free) = (entry("alloc"), entry("free_completed"));
    assert_eq!(read(&[alloc.clone(), free.clone()]).unwrap().events.len(), 2);
    let error = read(&[alloc.clone(), free.clone(), free]).unwrap_err();
    assert_eq!(place(&error), ("entry", 2));
    assert_eq!(place(&read(&[alloc.clone(), alloc]).unwrap_err()), ("entry", 1));
    assert_eq!(place(&read(&[entry("alloc").replace("size", "bytes")]).unwrap_err()), ("entry", 0));
    assert!(matches!(
        Trace::from_torch(&b"{\"segments\": ["[..], FreeTime::Completed),
        Err(TraceError::Json(_))
    ));
}

#[test]
fn pickles_that_would_run_code_or_end_early_are_refused() {
    let deep_json = "[".repeat(100_000);
    assert!(matches!(Trace::from_torch(deep_json.as_bytes(), FreeTime::Completed), Err(TraceError::Json(_))));
    let refused = |bytes: &[u8]| {
        let error = Trace::from_torch(bytes, FreeTime::Completed).unwrap_err();
        let (what, index) = place(&error);
        assert!(matches!(what, "byte" | "entry"));
        index
    };
    assert_eq!(refused(b"\x80\x02cos\nsystem\n."), 2, "GLOBAL");
    assert_eq!(refused(b"\x80\x04\x8c\x02os\x8c\x06system\x93."), 14, "STACK_GLOBAL");
    assert_eq!(refused(b"\x80\x02)R."), 3, "REDUCE");
    assert_eq!(refused(b"\x80\x04\x8d\0\0\0\0\0\x01\0\0."), 2, "a text of 2^40 bytes");
    assert_eq!(refused(b"\x80\x04\x8e\0\0\0\0\0\x01\0\0."), 2, "2^40 bytes");
    assert_eq!(refused(b"\x80\x02a."), 2, "nothing to append");
    let deep = [b"\x80\x02".to_vec(), vec![b']'; 100_000], vec![b'a'; 99_999], vec![b'.']].concat();
    assert_eq!(refused(&deep), 0, "no snapshot");
    // A list that holds itself.
    assert_eq!(refused(b"\x80\x02]q\0h\0a."), 0);
    for bytes in &SNAPSHOTS[1..] {
        for end in 1..bytes.len() {
            assert!(Trace::from_torch(&bytes[..end], FreeTime::Completed).is_err(), "{end}");
        }
    }
}

#[test]
fn repetitions_are_not_read_more_often_than_the_file_has_bytes() {
    let text = |text: &str| [&[b'X', text.len() as u8, 0, 0, 0][..], text.as_bytes()].concat();
    let entry = [b"}(".to_vec(), text("action"), text("snapshot"), b"u".to_vec()].concat();
    // One entry, ten thousand times in a trace that ten thousand devices have.
    let trace = [b"](".to_vec(), entry, b"q\0".to_vec(), b"h\0".repeat(9_999), b"e".to_vec()].concat();
    let traces = [b"](".to_vec(), trace, b"q\x01".to_vec(), b"h\x01".repeat(9_999), b"e".to_vec()].concat();
    let fields = [b"}(".to_vec(), text("segments"), b"]".to_vec(), text("device_traces"), traces].concat();
    let bytes = [b"\x80\x02".to_vec(), fields, b"u.".to_vec()].concat();
    let error = Trace::from_torch(&bytes[..], FreeTime::Completed).unwrap_err();
    assert_eq!(place(&error), ("entry", bytes.len() as u64));
}

#[test]
fn numbers_of_a_pickle_have_their_sign_and_width() {
    let numbers = |bytes: &[u8]| {
        let (values, outermost) = pickle::read(bytes).unwrap();
        values.as_number(outermost)
    };
    assert_eq!(numbers(b"\x80\x02\x8a\x06\0\0\0\0\0\x7f."), Some(0x7f00_0000_0000));
    assert_eq!(numbers(b"\x80\x02\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\0."), Some(u64::MAX));
    assert_eq!(numbers(b"\x80\x02\x8a\x01\xff."), None, "-1");
    assert_eq!(numbers(b"\x80\x02M\x01\x02."), Some(0x201));
}

const RMM: &str = "Thread,Time,Action,Pointer,Size,Stream
1,23:59:59:999000,allocate,0x7f00,1024,0x0
2,23:59:59:999500,allocate failure,(nil),4096,0x2
1,00:00:00:000500,free,0x7f00,1024,0x0
1,00:00:01.000000,free,0x8f00,2048,0x0
";

#[test]
fn a_log_of_rmm_goes_on_after_midnight() {
    let trace = Trace::from_rmm_csv(RMM.as_bytes()).unwrap();
    let events: Vec<_> = trace.events.iter().map(|event| (event.time, event.thread, event.what)).collect();
    let expected = [
        (0, 0, TraceEventKind::Allocate { memory: 0 }),
        (500_000, 1, TraceEventKind::Fail { memory: 1 }),
        (1_500_000, 0, TraceEventKind::Free { memory: 0 }),
        (1_001_000_000, 0, TraceEventKind::Free { memory: 2 }),
    ];
    assert_eq!(events, expected);
    assert_eq!(trace.peaks()[0].bytes, 3072, "with the memory from before the log");
}

#[test]
fn a_log_of_rmm_that_contradicts_itself_is_refused_with_the_line() {
    let line = |text: &str| {
        let error = Trace::from_rmm_csv(format!("{RMM}{text}\n").as_bytes()).unwrap_err();
        let (what, index) = place(&error);
        assert_eq!(what, "line");
        index
    };
    assert_eq!(line("1,00:00:02:000000,free,0x7f00,1024,0x0"), 6, "freed twice");
    assert_eq!(line("1,00:00:02:000000,allocate,0xa,1,0x0\n1,00:00:02:000000,allocate,0xa,1,0x0"), 7);
    for malformed in ["1,24:00:00:000000,free,0xa,1,0x0", "x", "1,00:00:00:000000,lend,0xa,1,0x0"] {
        assert_eq!(line(malformed), 6);
    }
}

/// Two lines a day, until the nanoseconds are no number.
#[test]
fn a_log_of_six_centuries_is_malformed() {
    let mut text = String::new();
    for _ in 0..214_000 {
        text.push_str(
            "1,23:00:00:000000,allocate failure,0x0,1,0x0\n1,01:00:00:000000,allocate failure,0x0,1,0x0\n",
        );
    }
    let error = Trace::from_rmm_csv(text.as_bytes()).unwrap_err();
    assert!(matches!(error, TraceError::Import { why: "its time is no time of a day", .. }), "{error}");
}

#[test]
fn a_trace_written_for_the_viewer_and_read_again_has_the_same_allocations() {
    let sizes = |trace: &Trace| {
        let mut sizes: Vec<(bool, u64)> =
            trace.older().into_iter().zip(trace.allocations.iter().map(|memory| memory.bytes)).collect();
        sizes.sort_unstable();
        sizes
    };
    for free in [FreeTime::Requested, FreeTime::Completed] {
        let trace = Trace::from_torch(SNAPSHOTS[0], free).unwrap();
        let json = trace.to_memory_viz();
        for again in [FreeTime::Requested, FreeTime::Completed] {
            let read = Trace::from_torch(json.as_bytes(), again).unwrap();
            assert_eq!(sizes(&read), sizes(&trace));
            assert_eq!(read.peaks()[0].bytes, trace.peaks()[0].bytes);
            // Those of the driver are of the viewer's segments.
            let is_driver = |what: &TraceEventKind| {
                matches!(what, TraceEventKind::Reserve { .. } | TraceEventKind::Release { .. })
            };
            let kinds = |trace: &Trace| -> Vec<_> {
                let events = trace.events.iter().filter(|event| !is_driver(&event.what));
                events.map(|event| std::mem::discriminant(&event.what)).collect()
            };
            assert_eq!(kinds(&read), kinds(&trace));
        }
    }
}

#[test]
fn every_block_of_the_viewer_lies_in_a_segment_at_every_time() {
    let trace = Trace::from_torch(SNAPSHOTS[0], FreeTime::Completed).unwrap();
    let json: serde_json::Value = serde_json::from_str(&trace.to_memory_viz()).unwrap();
    let address = |value: &serde_json::Value, key: &str| value[key].as_u64().unwrap();
    let mut segments: HashSet<u64> =
        json["segments"].as_array().unwrap().iter().map(|segment| address(segment, "address")).collect();
    let mut used = 0;
    for entry in json["device_traces"][0].as_array().unwrap().iter().rev() {
        match entry["action"].as_str().unwrap() {
            "segment_free" => assert!(segments.insert(address(entry, "addr"))),
            "segment_alloc" => assert!(segments.remove(&address(entry, "addr"))),
            "oom" => {}
            _ => {
                used += 1;
                assert!(segments.contains(&address(entry, "addr")), "{entry}");
            }
        }
    }
    assert!(used > 3);
}
