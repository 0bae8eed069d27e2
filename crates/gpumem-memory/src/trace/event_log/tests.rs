//! Threads that write while others read.

use super::super::recorder::Recorder;
use super::*;
use gpumem_core::MemoryKind;
use std::sync::atomic::AtomicBool;

const EVENTS: i64 = 40_000;
const KINDS: [MemoryKind; 2] = [MemoryKind::Device, MemoryKind::Pinned];

fn numbers(kept: &Kept) -> impl Iterator<Item = (TraceKind, i64)> + '_ {
    kept.blocks.iter().flat_map(|block| &**block).filter_map(|event| match event.event {
        LogEvent::Reserve { bytes, kind } => Some((kind, bytes)),
        _ => None,
    })
}

/// Two threads write numbers while another one copies again and again: each copy holds numbers of each thread without
/// a gap.
fn written_and_copied(limit_bytes: usize, overflow: Overflow) -> Kept {
    let (recorder, done) = (Recorder::default(), AtomicBool::new(false));
    let initial = InitialState { device: "paper:0".to_owned(), total: 0, kinds: Vec::new() };
    let log = recorder.start(RecorderOptions { limit_bytes, overflow, uses: true }, initial).unwrap();
    let copy = || {
        let (kept, _) = log.copy();
        let mut last: BTreeMap<TraceKind, i64> = BTreeMap::new();
        for (kind, number) in numbers(&kept) {
            let before = last.insert(kind, number).unwrap_or(number - 1);
            assert_eq!(number, before + 1, "of {kind:?}");
        }
        kept
    };
    std::thread::scope(|scope| {
        let recorder = &recorder;
        let writers = KINDS
            .map(|kind| scope.spawn(move || (0..EVENTS).for_each(|number| recorder.reserved(kind, number))));
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                copy();
            }
        });
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        done.store(true, Ordering::Relaxed);
    });
    recorder.stop(&log);
    recorder.reserved(KINDS[0], -1);
    let kept = copy();
    assert_eq!(kept.lost as usize + numbers(&kept).count(), 2 * EVENTS as usize);
    kept
}

#[test]
fn no_event_is_lost_while_there_is_room() {
    let kept = written_and_copied(64 << 20, Overflow::KeepNewest);
    assert_eq!((kept.lost, kept.threads.len()), (0, 2));
}

#[test]
fn the_newest_events_are_kept_and_the_others_summed_up() {
    let kept = written_and_copied(0, Overflow::KeepNewest);
    assert!(kept.lost > 0 && kept.count > 0 && kept.count <= 4 * BLOCK, "{}", kept.count);
    let dropped: i64 = kept.summary.reserved.values().sum();
    let sum: i64 = numbers(&kept).map(|(_, number)| number).sum();
    assert_eq!(dropped + sum, EVENTS * (EVENTS - 1));
}

#[test]
fn the_oldest_events_are_kept_up_to_the_first_lost_one() {
    let kept = written_and_copied(2 * BLOCK * size_of::<TimedEvent>(), Overflow::KeepOldest);
    assert!(kept.lost > 0 && kept.count <= 4 * BLOCK, "{}", kept.count);
    assert!(numbers(&kept).any(|(_, number)| number == 0), "from the beginning on");
}
