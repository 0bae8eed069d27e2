//! Threads that write while others read.

use super::*;
use crate::thread_writer;
use std::sync::atomic::AtomicBool;

fn log(limit_bytes: usize, overflow: Overflow) -> Arc<EventLog> {
    let initial = InitialState { device: "paper:0".to_owned(), total: 0, kinds: Vec::new() };
    EventLog::new(RecorderOptions { limit_bytes, overflow, uses: true }, initial)
}

/// Threads write while another one copies again and again: each copy holds, of each thread, events without a
/// gap.
fn written_and_copied(limit_bytes: usize, overflow: Overflow, events: i64) -> Copied {
    let log = log(limit_bytes, overflow);
    let done = AtomicBool::new(false);
    let check = |copied: &Copied| {
        let mut last: HashMap<u8, i64> = HashMap::new();
        for (_, entry) in &copied.entries {
            let LogEvent::Reserve { bytes, kind } = entry.note else { continue };
            let before = last.insert(kind, bytes).unwrap_or(bytes - 1);
            assert_eq!(bytes, before + 1, "of thread {kind}");
        }
    };
    std::thread::scope(|scope| {
        let writers = [0, 1].map(|kind| {
            let log = &log;
            scope.spawn(move || {
                for bytes in 0..events {
                    thread_writer::write(log.session, &LogEvent::Reserve { bytes, kind }, || {
                        Some(log.clone())
                    });
                }
            })
        });
        scope.spawn(|| {
            // Where every step takes long, a few looks are enough.
            let mut looks = if cfg!(miri) { 3 } else { u32::MAX };
            while !done.load(Ordering::Relaxed) && looks > 0 {
                check(&log.copy());
                looks -= 1;
            }
        });
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        done.store(true, Ordering::Relaxed);
    });
    let copied = log.copy();
    check(&copied);
    copied
}

const EVENTS: i64 = if cfg!(miri) { 300 } else { 20_000 };

#[test]
fn no_event_is_lost_while_there_is_room() {
    let copied = written_and_copied(64 << 20, Overflow::KeepNewest, 2 * EVENTS);
    assert_eq!((copied.entries.len(), copied.lost), (4 * EVENTS as usize, 0));
}

#[test]
fn the_newest_events_are_kept_and_the_others_summed_up() {
    let copied = written_and_copied(0, Overflow::KeepNewest, 2 * EVENTS);
    let newest = copied.entries.iter().map(|(_, entry)| entry.time).max();
    assert!(copied.compacted.until < newest && copied.entries.len() <= 4 * WORDS / 3);
    assert_eq!(copied.lost as usize + copied.entries.len(), 4 * EVENTS as usize);
    let added: i64 = copied.compacted.reserved.values().sum();
    let kept: i64 = copied
        .entries
        .iter()
        .map(|(_, entry)| match entry.note {
            LogEvent::Reserve { bytes, .. } => bytes,
            _ => 0,
        })
        .sum();
    assert_eq!(added + kept, 2 * EVENTS * (2 * EVENTS - 1));
}

#[test]
fn the_oldest_events_are_kept_up_to_the_first_lost_one() {
    let copied = written_and_copied(2 * size_of::<EventBuffer>(), Overflow::KeepOldest, 2 * EVENTS);
    assert!(copied.entries.len() <= 2 * WORDS / 3 && copied.lost > 0);
    let first = copied.entries.iter().filter_map(|(_, entry)| match entry.note {
        LogEvent::Reserve { bytes: 0, kind } => Some(kind),
        _ => None,
    });
    assert!(first.count() >= 1, "from the beginning on");
}
