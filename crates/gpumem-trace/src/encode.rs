//! The encoding of an event in the log: three to six words.
//!
//! The first word is the time and what happened; identities and streams take 48 bits, which they reach after years of a
//! million a second. Words of operations go by a number, because they are few and stay where they are.

use super::event::{AllocationInfo, CollectiveInfo, LogEvent, TimedEvent};
use std::{
    cell::Cell,
    ptr,
    sync::atomic::{AtomicPtr, Ordering},
};

/// Most words of an event.
pub(super) const MOST: usize = 6;
/// Bits of the first word that say what happened; the others are the time. They last for years, whatever the clock counts.
const KINDS: u32 = 4;

const ALLOCATE: u64 = 1;
const NAMED: u64 = 2;
const FAIL: u64 = 3;
const FAIL_NAMED: u64 = 4;
const FREE: u64 = 5;
const READ: u64 = 6;
const WRITE: u64 = 7;
const WAIT: u64 = 8;
const RESERVE: u64 = 9;
const COLLECTIVE: u64 = 10;
/// Bits of the rank beside the number of an operation of several ranks.
const RANKS: u32 = 24;

/// An event in words.
#[derive(Debug, Clone, Copy)]
pub(super) struct EncodedEvent {
    words: [u64; MOST],
    len: usize,
}

impl EncodedEvent {
    /// Inlined into every hook, where it is known what happens.
    #[inline(always)]
    pub(super) fn of(time: u64, note: &LogEvent) -> Self {
        let (kind, [a, b, c, d, e], len) = match *note {
            LogEvent::Allocate { request, id } => {
                let kind = if request.name == 0 { ALLOCATE } else { NAMED };
                (kind, asked(&request, id), if request.name == 0 { 4 } else { 5 })
            }
            LogEvent::Fail { request } => {
                let kind = if request.name == 0 { FAIL } else { FAIL_NAMED };
                (kind, asked(&request, 0), if request.name == 0 { 4 } else { 5 })
            }
            LogEvent::Free { id, bytes, kind } => (FREE, [id << 16 | u64::from(kind), bytes, 0, 0, 0], 3),
            LogEvent::Use { id, start, bytes, stream, submission, operation, write, kind } => {
                let first = id << 16 | u64::from(number(operation));
                let words = [first, start, bytes, stream << 16 | u64::from(kind), submission];
                (if write { WRITE } else { READ }, words, 6)
            }
            LogEvent::Wait { stream, of, submission, nanoseconds } => {
                (WAIT, [stream, of, submission, nanoseconds, 0], 5)
            }
            LogEvent::Reserve { bytes, kind } => (RESERVE, [bytes as u64, u64::from(kind), 0, 0, 0], 3),
            LogEvent::Collective(info) => {
                let CollectiveInfo { operation, stream, sequence, rank, bytes, wait, took } = info;
                let first = stream << 16 | u64::from(number(operation));
                let second = sequence << RANKS | u64::from(rank) & ((1 << RANKS) - 1);
                (COLLECTIVE, [first, second, bytes, wait, took], 6)
            }
        };
        Self { words: [time << KINDS | kind, a, b, c, d, e], len }
    }

    #[inline(always)]
    pub(super) fn as_slice(&self) -> &[u64] {
        &self.words[..self.len]
    }
}

#[inline(always)]
fn asked(request: &AllocationInfo, id: u64) -> [u64; 5] {
    let &AllocationInfo { bytes, stream, operation, name, kind, align, host_first } = request;
    let how = u64::from(kind) << 8 | u64::from(align) << 1 | u64::from(host_first);
    [id << 16 | u64::from(number(operation)), bytes, stream << 16 | how, u64::from(name), 0]
}

/// The events that lie in these words, each with the position of its first. Ends at the first word that no writer has
/// encoded.
pub(super) fn entries(words: &[u64]) -> impl Iterator<Item = (usize, TimedEvent)> + '_ {
    let operations = operations();
    let mut at = 0;
    std::iter::from_fn(move || {
        let (entry, len) = decode(words.get(at..)?, &operations)?;
        at += len;
        Some((at - len, entry))
    })
}

fn decode(words: &[u64], operations: &[&'static str]) -> Option<(TimedEvent, usize)> {
    let word = |at: usize| words.get(at).copied();
    let operation = |word: u64| operations.get((word & 0xFFFF) as usize).copied().unwrap_or("another");
    let request = |named: bool| {
        let (first, bytes, how) = (word(1)?, word(2)?, word(3)?);
        Some(AllocationInfo {
            bytes,
            stream: how >> 16,
            operation: operation(first),
            name: if named { word(4)? as u32 } else { 0 },
            kind: (how >> 8) as u8,
            align: (how >> 1 & 0x7F) as u8,
            host_first: how & 1 != 0,
        })
    };
    let first = word(0)?;
    let kind = first & ((1 << KINDS) - 1);
    let (note, len) = match kind {
        ALLOCATE | NAMED => {
            let note = LogEvent::Allocate { request: request(kind == NAMED)?, id: word(1)? >> 16 };
            (note, 4 + usize::from(kind == NAMED))
        }
        FAIL | FAIL_NAMED => {
            (LogEvent::Fail { request: request(kind == FAIL_NAMED)? }, 4 + usize::from(kind == FAIL_NAMED))
        }
        FREE => (LogEvent::Free { id: word(1)? >> 16, bytes: word(2)?, kind: word(1)? as u8 }, 3),
        READ | WRITE => {
            let (id, operation) = (word(1)? >> 16, operation(word(1)?));
            let (stream, kind_byte) = (word(4)? >> 16, word(4)? as u8);
            let (start, bytes, submission) = (word(2)?, word(3)?, word(5)?);
            let write = kind == WRITE;
            (LogEvent::Use { id, start, bytes, stream, submission, operation, write, kind: kind_byte }, 6)
        }
        WAIT => (
            LogEvent::Wait { stream: word(1)?, of: word(2)?, submission: word(3)?, nanoseconds: word(4)? },
            5,
        ),
        RESERVE => (LogEvent::Reserve { bytes: word(1)? as i64, kind: word(2)? as u8 }, 3),
        COLLECTIVE => {
            let (stream, operation) = (word(1)? >> 16, operation(word(1)?));
            let (sequence, rank) = (word(2)? >> RANKS, (word(2)? & ((1 << RANKS) - 1)) as u32);
            let (bytes, wait, took) = (word(3)?, word(4)?, word(5)?);
            let info = CollectiveInfo { operation, stream, sequence, rank, bytes, wait, took };
            (LogEvent::Collective(info), 6)
        }
        _ => return None,
    };
    Some((TimedEvent { time: first >> KINDS, note }, len))
}

/// The operation that was numbered last, and through it those before. Without a lock, which another thread of the parent
/// might hold in a forked child.
static OPERATIONS: AtomicPtr<Operation> = AtomicPtr::new(ptr::null_mut());

/// An operation that was recorded in this process. It is never freed.
struct Operation {
    name: &'static str,
    number: u16,
    before: Option<&'static Operation>,
}

/// The operation that was numbered last.
fn last_operation() -> Option<&'static Operation> {
    // SAFETY: null, or from a box that is never freed.
    unsafe { OPERATIONS.load(Ordering::Acquire).as_ref() }
}

/// Every operation, by its number.
fn operations() -> Vec<&'static str> {
    let mut names: Vec<_> = std::iter::successors(last_operation(), |operation| operation.before)
        .map(|operation| operation.name)
        .collect();
    names.reverse();
    names
}

/// Words that a thread has used last.
const KNOWN: usize = 16;

thread_local! {
    /// By address: where the text starts, its length, and its number.
    static NUMBERS: [Cell<(usize, usize, u16)>; KNOWN] = const { [const { Cell::new((0, 0, 0)) }; KNOWN] };
}

/// The number of an operation. No lock, but for the first time that a thread records it.
#[inline]
fn number(operation: &'static str) -> u16 {
    let (at, len) = (operation.as_ptr() as usize, operation.len());
    NUMBERS.with(|numbers| {
        let slot = &numbers[(at ^ at >> 4 ^ len) % KNOWN];
        match slot.get() {
            (have, of, number) if have == at && of == len => number,
            _ => {
                let number = look_up(operation);
                slot.set((at, len, number));
                number
            }
        }
    })
}

#[cold]
fn look_up(name: &'static str) -> u16 {
    loop {
        let last = last_operation();
        let known = std::iter::successors(last, |operation| operation.before).find(|have| have.name == name);
        match (known, last) {
            (Some(known), _) => return known.number,
            // Names beyond the last number share it.
            (None, Some(Operation { number: u16::MAX, .. })) => return u16::MAX,
            _ => {}
        }
        let number = last.map_or(0, |last| last.number + 1);
        let new = Box::into_raw(Box::new(Operation { name, number, before: last }));
        let expected = last.map_or(ptr::null_mut(), |last| ptr::from_ref(last).cast_mut());
        match OPERATIONS.compare_exchange(expected, new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return number,
            // SAFETY: no other thread has seen it.
            Err(_) => drop(unsafe { Box::from_raw(new) }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WORDS: [&str; 3] = ["fill", "copy_to_device", ""];

    fn requests() -> impl Strategy<Value = AllocationInfo> {
        (any::<u64>(), 0u64..1 << 48, 0usize..3, any::<u32>(), any::<u8>(), 0u8..64, any::<bool>()).prop_map(
            |(bytes, stream, operation, name, kind, align, host_first)| AllocationInfo {
                bytes,
                stream,
                operation: WORDS[operation],
                name,
                kind,
                align,
                host_first,
            },
        )
    }

    fn notes() -> impl Strategy<Value = LogEvent> {
        let id = || 0u64..1 << 48;
        let word = any::<u64>;
        prop_oneof![
            (requests(), id()).prop_map(|(request, id)| LogEvent::Allocate { request, id }),
            requests().prop_map(|request| LogEvent::Fail { request }),
            (id(), word(), any::<u8>()).prop_map(|(id, bytes, kind)| LogEvent::Free { id, bytes, kind }),
            (id(), word(), word(), id(), word(), 0usize..3, any::<bool>(), any::<u8>()).prop_map(
                |(id, start, bytes, stream, submission, operation, write, kind)| {
                    let operation = WORDS[operation];
                    LogEvent::Use { id, start, bytes, stream, submission, operation, write, kind }
                }
            ),
            (word(), word(), word(), word()).prop_map(|(stream, of, submission, nanoseconds)| {
                LogEvent::Wait { stream, of, submission, nanoseconds }
            }),
            (any::<i64>(), any::<u8>()).prop_map(|(bytes, kind)| LogEvent::Reserve { bytes, kind }),
            (0usize..3, id(), 0u64..1 << 40, 0u32..1 << RANKS, word(), word(), word()).prop_map(
                |(operation, stream, sequence, rank, bytes, wait, took)| {
                    let operation = WORDS[operation];
                    let info = CollectiveInfo { operation, stream, sequence, rank, bytes, wait, took };
                    LogEvent::Collective(info)
                }
            ),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, cases: if cfg!(miri) { 5 } else { 256 }, ..ProptestConfig::default() })]

        #[test]
        fn values_are_read_as_they_were_written(notes in prop::collection::vec((0u64..1 << 60, notes()), 0..20)) {
            let mut words = Vec::new();
            for (time, note) in &notes {
                words.extend_from_slice(EncodedEvent::of(*time, note).as_slice());
            }
            let read: Vec<_> = entries(&words).map(|(_, entry)| (entry.time, entry.note)).collect();
            prop_assert_eq!(read, notes);
        }
    }
}
