//! Fills the tables of an imported trace.

use crate::trace::{
    Trace, TraceAllocation, TraceEvent, TraceEventKind, TraceKind, TraceKindStart, TraceStream, TraceThread,
};
use gpumem_core::MemoryKind;
use std::collections::HashMap;

pub(super) struct Tables {
    pub(super) trace: Trace,
    pub(super) kind: TraceKind,
    align: u64,
    streams: HashMap<u64, u32>,
    threads: HashMap<u64, u32>,
    names: HashMap<String, u32>,
}

impl Tables {
    /// Tables of device memory that `operation` allocates with that alignment.
    pub(super) fn new(operation: &str, align: u64) -> Self {
        let kind = TraceKind::of(MemoryKind::Device).unwrap_or_else(|| unreachable!("it is allocated"));
        let trace = Trace { operations: vec![operation.to_owned()], ..Trace::empty() };
        let (streams, threads, names) = Default::default();
        Self { trace, kind, align, streams, threads, names }
    }

    /// Memory of a size, on a stream.
    pub(super) fn memory(&mut self, device: u32, bytes: u64, stream: u64, name: Option<String>) -> u32 {
        let (table, index) = (&mut self.trace.streams, &mut self.streams);
        let stream = *index.entry(stream).or_insert_with(|| {
            table.push(TraceStream { number: stream });
            table.len() as u32 - 1
        });
        let (table, index) = (&mut self.trace.names, &mut self.names);
        let name = name.map(|name| {
            *index.entry(name).or_insert_with_key(|name| {
                table.push(name.clone());
                table.len() as u32 - 1
            })
        });
        let (kind, align) = (Some(self.kind), self.align);
        let (operation, stream, host_first) = (Some(0), Some(stream), false);
        let memory = TraceAllocation { device, kind, bytes, align, name, operation, stream, host_first };
        self.trace.allocations.push(memory);
        self.trace.allocations.len() as u32 - 1
    }

    pub(super) fn event(&mut self, time: u64, thread: u64, what: TraceEventKind) {
        let (table, index) = (&mut self.trace.threads, &mut self.threads);
        let thread = *index.entry(thread).or_insert_with(|| {
            table.push(TraceThread { number: thread, name: None });
            table.len() as u32 - 1
        });
        self.trace.events.push(TraceEvent { time, thread, what });
    }

    pub(super) fn start(&self, reserved: u64) -> TraceKindStart {
        TraceKindStart { kind: self.kind, reserved, other: 0 }
    }
}
