//! The last operations of a communicator, in the error of a deadline and in recordings.

use crate::common::*;
use gpumem_collectives::{CollectiveRecord, CollectiveState, Communicator, InPlace, Options, Sum};
use gpumem_runtime::trace::{RecorderOptions, TraceEventKind};
use std::{thread, time::Duration};

/// Ranks on devices of their own.
fn apart(count: usize, options: &Options) -> Vec<(Comm, Stream)> {
    let devices: Vec<Device> = (0..count).map(|_| concurrent()).collect();
    let all = Communicator::all_with(&devices, options).unwrap();
    all.into_iter().map(|rank| (rank.device().stream().unwrap(), rank)).map(|(s, r)| (r, s)).collect()
}

fn names(records: &[CollectiveRecord]) -> Vec<(u64, &'static str, usize, CollectiveState)> {
    records.iter().map(|one| (one.sequence, one.call.operation, one.call.count, one.state)).collect()
}

#[test]
fn the_last_operations_are_told_with_their_states() {
    let all = apart(2, &Options::new());
    let mut kept = Vec::new();
    for (comm, stream) in &all {
        let peer = 1 - comm.rank();
        let mut array = stream.to_device(&[1, 2]).unwrap();
        let (mut theirs, mut root) = (stream.to_device(&[0, 0]).unwrap(), stream.to_device(&[3_u8]).unwrap());
        comm.on(stream).all_reduce(InPlace, &mut array, Sum).unwrap();
        comm.group(stream, |group| {
            group.send(&array, peer)?;
            group.receive(&mut theirs, peer)?;
            group.broadcast(&mut root, 1)
        })
        .unwrap();
        kept.push((array, theirs, root));
    }
    for (comm, stream) in &all {
        stream.synchronize().unwrap();
        let (done, recent) = (CollectiveState::Done, comm.recent());
        let expected = [(0, "all_reduce", 2, done), (1, "send", 2, done), (2, "receive", 2, done)];
        assert_eq!(names(&recent)[..3], expected);
        assert_eq!(names(&recent)[3..], [(3, "broadcast", 1, done)]);
        assert_eq!((recent[0].call.reduction, recent[3].call.root), (Some("sum"), Some(1)));
    }
}

#[test]
fn the_error_of_a_deadline_tells_the_last_operations() {
    let all = apart(2, &soon());
    let mut arrays = Vec::new();
    for (comm, stream) in &all {
        let mut array = stream.to_device(&[1_i32, 2]).unwrap();
        comm.on(stream).all_reduce(InPlace, &mut array, Sum).unwrap();
        arrays.push(array);
    }
    all.iter().for_each(|(_, stream)| stream.synchronize().unwrap());
    let (comm, stream) = &all[0];
    comm.on(stream).barrier().unwrap(); // rank 1 does not come
    let text = stream.synchronize().unwrap_err().to_string();
    let told = comm.failure().unwrap();
    assert!(told.to_string().contains("0: all_reduce"), "{told}");
    let expected = "the last operations of this rank: 0: all_reduce of 2 i32 (sum) (done), 1: barrier of 0 u8 (under way)";
    assert!(text.contains(expected), "{text}");
    assert_eq!(names(&told.recent).len(), 2);
    assert_eq!(comm.recent()[1].state, CollectiveState::Failed);
}

#[test]
fn a_recording_has_the_times_of_operations() {
    let all = apart(2, &Options::new());
    let recordings: Vec<_> = all
        .iter()
        .map(|(comm, _)| comm.device().record_memory(RecorderOptions::default()).unwrap())
        .collect();
    let mut arrays = Vec::new();
    for (comm, stream) in &all {
        if comm.rank() == 1 {
            thread::sleep(Duration::from_millis(60)); // rank 0 waits for it
        }
        let mut array = stream.to_device(&[1_i32, 2]).unwrap();
        comm.on(stream).all_reduce(InPlace, &mut array, Sum).unwrap();
        comm.on(stream).broadcast(&mut array, 0).unwrap();
        arrays.push(array);
    }
    all.iter().for_each(|(_, stream)| stream.synchronize().unwrap());
    for (own, recording) in recordings.into_iter().enumerate() {
        let trace = recording.finish();
        trace.check().unwrap();
        let told: Vec<_> = trace
            .events
            .iter()
            .filter_map(|event| match event.what {
                TraceEventKind::Collective { operation, sequence, rank, bytes, wait, took, .. } => {
                    assert!(wait + took <= trace.span, "{event:?}");
                    if own == 0 && sequence == 0 {
                        assert!(wait + took > 40_000_000, "rank 0 waits for rank 1: {event:?}");
                    }
                    Some((trace.operations[operation as usize].as_str(), sequence, rank, bytes))
                }
                _ => None,
            })
            .collect();
        let rank = own as u32;
        assert_eq!(told, [("all_reduce", 0, rank, 8), ("broadcast", 1, rank, 8)]);
        let viewed = trace.to_perfetto();
        // The order of the fields means nothing.
        assert!(viewed.contains("\"name\":\"all_reduce\""), "{viewed}");
        assert!(viewed.contains("\"sequence\":1"), "{viewed}");
    }
}

#[test]
fn no_event_is_written_without_uses() {
    let all = apart(1, &Options::new());
    let (comm, stream) = &all[0];
    let recording =
        comm.device().record_memory(RecorderOptions { uses: false, ..RecorderOptions::default() }).unwrap();
    comm.on(stream).barrier().unwrap();
    stream.synchronize().unwrap();
    let trace = recording.finish();
    assert!(trace.events.iter().all(|event| !matches!(event.what, TraceEventKind::Collective { .. })));
}
