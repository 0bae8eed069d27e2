//! Makes a trace of the events that threads have written.

use super::{
    clock::clock,
    event::{AllocationInfo, CollectiveInfo, LogEvent, TimedEvent},
    event_log::{EventLog, Kept, Summary, ThreadNames},
    format::{
        Trace, TraceAllocation, TraceDevice, TraceEvent, TraceEventKind, TraceKind, TraceKindStart,
        TraceStream, TraceThread,
    },
};
use std::{collections::HashMap, hash::Hash, sync::Arc};

impl EventLog {
    /// Returns the events in the log at this moment; in a forked child, none.
    pub fn trace(&self) -> Trace {
        if !self.is_of_this_process() {
            return Trace::empty();
        }
        let (Kept { blocks, threads, mut summary, lost, .. }, end) = self.copy();
        let mut events = in_order(blocks.iter().flat_map(|block| &**block));
        // Threads fill their blocks at different speeds: events are kept for all threads from one common moment on.
        let first = events.partition_point(|(time, _)| Some(*time) <= summary.until);
        events.drain(..first).for_each(|(time, event)| summary.add(time, event));
        let start = clock().nanoseconds(summary.until.unwrap_or(self.start));
        let device =
            TraceDevice { name: self.initial.device.clone(), total: self.initial.total, start: Vec::new() };
        let trace = Trace {
            start,
            span: clock().nanoseconds(end).saturating_sub(start),
            lost: lost + first as u64,
            devices: vec![device],
            events: Vec::with_capacity(events.len()),
            ..Trace::empty()
        };
        let mut decoder = Decoder { trace, index: Index::default() };
        for (id, request) in &summary.held {
            let memory = decoder.asked(request);
            decoder.index.allocations.insert(*id, (memory, false));
        }
        events.iter().for_each(|(time, event)| decoder.add(*time, event, &threads, &mut summary));
        decoder.note_start(self, &summary);
        decoder.trace
    }
}

/// The events by time. An allocation comes before its other events, also if the clocks of two processors differ.
fn in_order<'a>(events: impl Iterator<Item = &'a TimedEvent> + Clone) -> Vec<(u64, &'a TimedEvent)> {
    let made = events.clone().filter_map(|event| match event.event {
        LogEvent::Allocate { id, .. } => Some((id, event.time)),
        _ => None,
    });
    let made: HashMap<u64, u64> = made.collect();
    let mut events: Vec<_> = events
        .map(|event| match event.event {
            LogEvent::Free { id, .. } | LogEvent::Use { id, .. } => {
                (made.get(&id).map_or(event.time, |made| event.time.max(*made)), event)
            }
            _ => (event.time, event),
        })
        .collect();
    // A thread's own events stay in their order where the clock does not tell them apart.
    events.sort_by_key(|(time, event)| (*time, *time > event.time));
    events
}

/// Indices of table entries, by the key of each.
#[derive(Default)]
struct Index {
    threads: HashMap<u32, u32>,
    streams: HashMap<u64, u32>,
    operations: HashMap<&'static str, u32>,
    names: HashMap<Arc<str>, u32>,
    /// Allocations, with whether they have been freed.
    allocations: HashMap<u64, (u32, bool)>,
}

/// The index of an entry, which is added where it is missing.
fn enter<K: Eq + Hash, T>(
    index: &mut HashMap<K, u32>,
    table: &mut Vec<T>,
    key: K,
    entry: impl FnOnce() -> T,
) -> u32 {
    *index.entry(key).or_insert_with(|| {
        table.push(entry());
        table.len() as u32 - 1
    })
}

struct Decoder {
    trace: Trace,
    index: Index,
}

impl Decoder {
    fn stream(&mut self, number: u64) -> Option<u32> {
        let (index, table) = (&mut self.index.streams, &mut self.trace.streams);
        (number != 0).then(|| enter(index, table, number, || TraceStream { number }))
    }

    fn operation(&mut self, operation: &'static str) -> u32 {
        let (index, table) = (&mut self.index.operations, &mut self.trace.operations);
        enter(index, table, operation, || operation.to_owned())
    }

    /// An allocation, which the table has from now on.
    fn asked(&mut self, request: &AllocationInfo) -> u32 {
        let (index, table) = (&mut self.index.names, &mut self.trace.names);
        let name = request.name.as_ref().map(|name| enter(index, table, name.clone(), || name.to_string()));
        let (operation, stream) = (Some(self.operation(request.operation)), self.stream(request.stream));
        let &AllocationInfo { bytes, kind, align, host_first, .. } = request;
        let align = 1 << align.min(63);
        let allocation =
            TraceAllocation { device: 0, kind, bytes, align, name, operation, stream, host_first };
        self.trace.allocations.push(allocation);
        self.trace.allocations.len() as u32 - 1
    }

    /// The allocation of an event, unless it is gone. Memory that was not allocated before is older than the log, and
    /// has at least so many bytes.
    fn used(&mut self, id: u64, bytes: u64, kind: Option<TraceKind>, is_last: bool) -> Option<u32> {
        let allocations = &mut self.trace.allocations;
        let (memory, is_gone) = self.index.allocations.entry(id).or_insert_with(|| {
            let (align, name, operation, stream, host_first) = (1, None, None, None, false);
            let older =
                TraceAllocation { device: 0, kind, bytes, align, name, operation, stream, host_first };
            allocations.push(older);
            (allocations.len() as u32 - 1, false)
        });
        if *is_gone {
            return None;
        }
        *is_gone = is_last;
        let allocation = &mut allocations[*memory as usize];
        if allocation.operation.is_none() {
            allocation.bytes = allocation.bytes.max(bytes);
        }
        Some(*memory)
    }

    fn add(&mut self, time: u64, event: &TimedEvent, threads: &ThreadNames, summary: &mut Summary) {
        let Some(what) = self.what(&event.event, summary) else {
            self.trace.lost += 1;
            return;
        };
        let (index, table) = (&mut self.index.threads, &mut self.trace.threads);
        let thread = enter(index, table, event.thread, || {
            let name = threads.get(&event.thread).and_then(|name| name.as_deref().map(ToOwned::to_owned));
            TraceThread { number: event.thread.into(), name }
        });
        let time = clock().nanoseconds(time).saturating_sub(self.trace.start).min(self.trace.span);
        self.trace.events.push(TraceEvent { time, thread, what });
    }

    fn what(&mut self, event: &LogEvent, summary: &mut Summary) -> Option<TraceEventKind> {
        Some(match *event {
            LogEvent::Allocate { id, .. } if summary.ended.remove(&id).is_some() => {
                // It was freed before the trace begins, as the clock of another processor has it.
                self.index.allocations.insert(id, (0, true));
                return None;
            }
            LogEvent::Allocate { id, ref request } => {
                let memory = self.asked(request);
                self.index.allocations.insert(id, (memory, false));
                TraceEventKind::Allocate { memory }
            }
            LogEvent::Fail { ref request } => TraceEventKind::Fail { memory: self.asked(request) },
            LogEvent::Free { id, bytes, kind } => {
                TraceEventKind::Free { memory: self.used(id, bytes, kind, true)? }
            }
            LogEvent::Use { id, start: from, bytes, stream, submission, operation, write, kind } => {
                let memory = self.used(id, from.saturating_add(bytes), kind, false)?;
                let (stream, operation) = (self.stream(stream), self.operation(operation));
                TraceEventKind::Use { memory, from, bytes, write, stream, submission, operation }
            }
            LogEvent::Wait { stream, of, submission, took } => {
                let stream = self.stream(stream);
                TraceEventKind::Wait { stream, of: self.stream(of)?, submission, took }
            }
            LogEvent::Collective(ref info) => {
                let CollectiveInfo { operation, stream, sequence, rank, bytes, wait, took } = **info;
                let (stream, operation) = (self.stream(stream)?, self.operation(operation));
                TraceEventKind::Collective { stream, operation, sequence, rank, bytes, wait, took }
            }
            LogEvent::Reserve { bytes: change, kind } => {
                let (device, bytes) = (0, change.unsigned_abs());
                match change {
                    0.. => TraceEventKind::Reserve { device, kind, bytes },
                    _ => TraceEventKind::Release { device, kind, bytes },
                }
            }
        })
    }

    /// What the resources held when the trace began, and what was allocated of which no event is known.
    fn note_start(&mut self, log: &EventLog, summary: &Summary) {
        for kind in TraceKind::all() {
            let initial = log.initial.kinds.iter().find(|(of, ..)| *of == kind);
            let (_, reserved, allocated, unit) = initial.copied().unwrap_or((kind, 0, 0, 1));
            let reserved = (reserved as i64 + summary.reserved.get(&kind).copied().unwrap_or(0)).max(0);
            let older = self.trace.allocations.iter().filter(|allocation| allocation.operation.is_none());
            let older = older.map(|allocation| (allocation.bytes, allocation.kind));
            let known = older.chain(summary.ended.values().copied()).filter(|(_, of)| *of == Some(kind));
            let known: u64 = known.map(|(bytes, _)| bytes.next_multiple_of(unit.max(1) as u64)).sum();
            let (reserved, other) = (reserved as u64, (allocated as u64).saturating_sub(known));
            if reserved > 0 || other > 0 {
                self.trace.devices[0].start.push(TraceKindStart { kind, reserved, other });
            }
        }
    }
}
