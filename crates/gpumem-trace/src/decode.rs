//! Decodes the events that threads have written into a trace.

use super::{
    clock::clock,
    event::{AllocationInfo, CollectiveInfo, FOREIGN, LogEvent, TimedEvent},
    event_log::{CompactedState, Copied, EventLog},
    format::{
        Trace, TraceAllocation, TraceDevice, TraceEvent, TraceEventKind, TraceKind, TraceKindStart,
        TraceStream, TraceThread,
    },
};
use std::collections::HashMap;

impl EventLog {
    /// Returns the events in the log at this moment; in a forked child, none.
    pub fn trace(&self) -> Trace {
        trace(self)
    }
}

fn trace(log: &EventLog) -> Trace {
    if !log.origin.is_valid() {
        return Trace::empty();
    }
    let mut copied = log.copy();
    put_in_order(&mut copied.entries);
    let mut making = Decoder::new(log, &copied);
    making.note_older(&copied);
    for (writer, entry) in &copied.entries {
        making.add(*writer, entry, &mut copied.compacted);
    }
    making.finish(log, &copied.compacted)
}

/// An allocation comes before its other events, also if the clocks of two processors differ.
fn put_in_order(entries: &mut [(u32, TimedEvent)]) {
    let mut made: HashMap<u64, u64> = HashMap::new();
    for (_, entry) in &*entries {
        if let LogEvent::Allocate { id, .. } = entry.note {
            made.insert(id, entry.time);
        }
    }
    let mut moved = false;
    for (_, entry) in &mut *entries {
        if let LogEvent::Free { id, .. } | LogEvent::Use { id, .. } = entry.note
            && let Some(time) = made.get(&id).copied().filter(|time| *time > entry.time)
        {
            (entry.time, moved) = (time, true);
        }
    }
    if moved {
        entries.sort_by_key(|(_, entry)| (entry.time, !matches!(entry.note, LogEvent::Allocate { .. })));
    }
}

/// Indices of table entries, by the key of each.
#[derive(Default)]
struct Index {
    streams: HashMap<u64, u32>,
    operations: HashMap<&'static str, u32>,
    /// Allocations, with whether they have been freed.
    allocations: HashMap<u64, (u32, bool)>,
}

struct Decoder {
    trace: Trace,
    index: Index,
    /// The clock's time of the start.
    start: u64,
}

impl Decoder {
    fn new(log: &EventLog, copied: &Copied) -> Self {
        let start = clock().nanoseconds(copied.compacted.until.unwrap_or(log.start));
        let threads = copied.writers.iter();
        let trace = Trace {
            start,
            span: clock().nanoseconds(copied.end).saturating_sub(start),
            lost: copied.lost,
            devices: vec![TraceDevice {
                name: log.initial.device.clone(),
                total: log.initial.total,
                start: Vec::new(),
            }],
            threads: threads
                .map(|writer| TraceThread { number: writer.number, name: writer.name.clone() })
                .collect(),
            names: copied.names.iter().map(ToString::to_string).collect(),
            events: Vec::with_capacity(copied.entries.len()),
            ..Trace::empty()
        };
        Self { trace, index: Index::default(), start }
    }

    fn stream(&mut self, number: u64) -> Option<u32> {
        let streams = &mut self.trace.streams;
        (number != 0).then(|| {
            *self.index.streams.entry(number).or_insert_with(|| {
                streams.push(TraceStream { number });
                streams.len() as u32 - 1
            })
        })
    }

    fn operation(&mut self, operation: &'static str) -> u32 {
        let operations = &mut self.trace.operations;
        *self.index.operations.entry(operation).or_insert_with(|| {
            operations.push(operation.to_owned());
            operations.len() as u32 - 1
        })
    }

    fn asked(&mut self, request: &AllocationInfo) -> u32 {
        let allocation = TraceAllocation {
            device: 0,
            kind: TraceKind::of_slot(request.kind),
            bytes: request.bytes,
            align: 1 << request.align.min(63),
            name: request.name.checked_sub(1),
            operation: Some(self.operation(request.operation)),
            stream: self.stream(request.stream),
            host_first: request.host_first,
        };
        self.trace.allocations.push(allocation);
        self.trace.allocations.len() as u32 - 1
    }

    /// Memory that events are about, and that was allocated before the first of them.
    fn note_older(&mut self, copied: &Copied) {
        let mut held: Vec<_> = copied.compacted.held.iter().collect();
        held.sort_by_key(|(id, _)| **id);
        for (id, request) in held {
            let number = self.asked(request);
            self.index.allocations.insert(*id, (number, false));
        }
        let mut older: HashMap<u64, (u64, u8)> = HashMap::new();
        let mut order = Vec::new();
        let mut made: HashMap<u64, ()> = HashMap::new();
        for (_, entry) in &copied.entries {
            let (id, bytes, kind) = match entry.note {
                LogEvent::Allocate { id, .. } => {
                    made.insert(id, ());
                    continue;
                }
                LogEvent::Free { id, bytes, kind } => (id, bytes, kind),
                LogEvent::Use { id, start, bytes, kind, .. } => (id, start + bytes, kind),
                _ => continue,
            };
            if made.contains_key(&id) || self.index.allocations.contains_key(&id) {
                continue;
            }
            let known = older.entry(id).or_insert_with(|| {
                order.push(id);
                (0, kind)
            });
            known.0 = known.0.max(bytes);
        }
        for id in order {
            let (bytes, kind) = older[&id];
            let kind = if kind == FOREIGN { None } else { TraceKind::of_slot(kind) };
            self.trace.allocations.push(TraceAllocation {
                device: 0,
                kind,
                bytes,
                align: 1,
                name: None,
                operation: None,
                stream: None,
                host_first: false,
            });
            self.index.allocations.insert(id, (self.trace.allocations.len() as u32 - 1, false));
        }
    }

    fn add(&mut self, thread: u32, entry: &TimedEvent, compacted: &mut CompactedState) {
        let time = clock().nanoseconds(entry.time).saturating_sub(self.start).min(self.trace.span);
        let what = match entry.note {
            // It was freed before the trace begins, as the clock of another processor has it.
            LogEvent::Allocate { id, .. } if compacted.ended.remove(&id).is_some() => None,
            LogEvent::Allocate { id, request } => {
                let memory = self.asked(&request);
                self.index.allocations.insert(id, (memory, false));
                Some(TraceEventKind::Allocate { memory })
            }
            LogEvent::Fail { request } => Some(TraceEventKind::Fail { memory: self.asked(&request) }),
            LogEvent::Free { id, .. } => match self.index.allocations.get_mut(&id) {
                Some((memory, freed @ false)) => {
                    *freed = true;
                    Some(TraceEventKind::Free { memory: *memory })
                }
                _ => None,
            },
            LogEvent::Use { id, start, bytes, stream, submission, operation, write, .. } => {
                let stream = self.stream(stream);
                let operation = self.operation(operation);
                match self.index.allocations.get(&id) {
                    Some(&(memory, false)) => Some(TraceEventKind::Use {
                        memory,
                        from: start,
                        bytes,
                        write,
                        stream,
                        submission,
                        operation,
                    }),
                    _ => None,
                }
            }
            LogEvent::Wait { stream, of, submission, nanoseconds } => {
                let stream = self.stream(stream);
                self.stream(of).map(|of| TraceEventKind::Wait { stream, of, submission, took: nanoseconds })
            }
            LogEvent::Collective(info) => {
                let CollectiveInfo { operation, stream, sequence, rank, bytes, wait, took } = info;
                let operation = self.operation(operation);
                self.stream(stream).map(|stream| TraceEventKind::Collective {
                    stream,
                    operation,
                    sequence,
                    rank,
                    bytes,
                    wait,
                    took,
                })
            }
            LogEvent::Reserve { bytes, kind } => TraceKind::of_slot(kind).map(|kind| match bytes {
                0.. => TraceEventKind::Reserve { device: 0, kind, bytes: bytes.unsigned_abs() },
                _ => TraceEventKind::Release { device: 0, kind, bytes: bytes.unsigned_abs() },
            }),
        };
        match what {
            Some(what) => self.trace.events.push(TraceEvent { time, thread, what }),
            None => self.trace.lost += 1,
        }
    }

    fn finish(mut self, log: &EventLog, compacted: &CompactedState) -> Trace {
        let made = self.trace.events.iter().filter_map(|event| match event.what {
            TraceEventKind::Allocate { memory } | TraceEventKind::Fail { memory } => Some(memory as usize),
            _ => None,
        });
        let mut is_older = vec![true; self.trace.allocations.len()];
        made.for_each(|memory| is_older[memory] = false);
        // Events carried over from before the window were counted when they happened.
        compacted.held.keys().filter_map(|id| self.index.allocations.get(id)).for_each(|(memory, _)| {
            is_older[*memory as usize] = false;
        });
        for slot in 0..TraceKind::all().count() as u8 {
            let Some(kind) = TraceKind::of_slot(slot) else { continue };
            let known = log.initial.kinds.iter().find(|(of, ..)| *of == slot);
            let (reserved, allocated, granule) = known
                .map_or((0, 0, 1), |(_, reserved, allocated, granule)| {
                    (*reserved, *allocated, *granule as u64)
                });
            let reserved = (reserved as i64 + compacted.reserved.get(&slot).copied().unwrap_or(0)).max(0);
            let rounded = |bytes: u64| bytes.next_multiple_of(granule.max(1));
            let older = self.trace.allocations.iter().zip(&is_older);
            let told: u64 = older
                .filter(|(allocation, is_older)| **is_older && allocation.kind == Some(kind))
                .map(|(allocation, _)| rounded(allocation.bytes))
                .chain(
                    compacted.ended.values().filter(|(_, of)| *of == slot).map(|(bytes, _)| rounded(*bytes)),
                )
                .sum();
            let start = TraceKindStart {
                kind,
                reserved: reserved as u64,
                other: (allocated as u64).saturating_sub(told),
            };
            if start.reserved > 0 || start.other > 0 {
                self.trace.devices[0].start.push(start);
            }
        }
        self.trace
    }
}
