//! Traces of several devices as one.

use super::format::{Trace, TraceEventKind};

/// The index of each entry of one table in another, to which it is added where it is missing.
fn entered<T: PartialEq>(table: &mut Vec<T>, more: Vec<T>) -> Vec<u32> {
    more.into_iter()
        .map(|entry| match table.iter().position(|have| *have == entry) {
            Some(at) => at as u32,
            None => {
                table.push(entry);
                table.len() as u32 - 1
            }
        })
        .collect()
}

impl Trace {
    /// This trace and another one of the same process as one, on one time axis.
    #[must_use]
    pub fn merge(mut self, mut other: Self) -> Self {
        let start = self.start.min(other.start);
        let end = |trace: &Self| trace.start.saturating_add(trace.span);
        let end = end(&self).max(end(&other));
        for trace in [&mut self, &mut other] {
            let later = trace.start - start;
            trace.events.iter_mut().for_each(|event| event.time = event.time.saturating_add(later));
        }
        (self.start, self.span) = (start, end - start);
        self.lost = self.lost.saturating_add(other.lost);

        // A device that was opened twice was two devices.
        let devices = self.devices.len() as u32;
        self.devices.append(&mut other.devices);
        let streams = entered(&mut self.streams, other.streams);
        let threads = entered(&mut self.threads, other.threads);
        let names = entered(&mut self.names, other.names);
        let operations = entered(&mut self.operations, other.operations);
        let of = |table: &[u32], index: u32| table.get(index as usize).copied().unwrap_or(index);
        let memories = self.allocations.len() as u32;
        for mut allocation in other.allocations {
            allocation.device += devices;
            allocation.stream = allocation.stream.map(|stream| of(&streams, stream));
            allocation.name = allocation.name.map(|name| of(&names, name));
            allocation.operation = allocation.operation.map(|operation| of(&operations, operation));
            self.allocations.push(allocation);
        }
        for mut event in other.events {
            event.thread = of(&threads, event.thread);
            match &mut event.what {
                TraceEventKind::Allocate { memory }
                | TraceEventKind::Fail { memory }
                | TraceEventKind::Free { memory } => {
                    *memory += memories;
                }
                TraceEventKind::Use { memory, stream, operation, .. } => {
                    *memory += memories;
                    *stream = stream.map(|stream| of(&streams, stream));
                    *operation = of(&operations, *operation);
                }
                TraceEventKind::Collective { stream, operation, .. } => {
                    *stream = of(&streams, *stream);
                    *operation = of(&operations, *operation);
                }
                TraceEventKind::Wait { stream, of: awaited, .. } => {
                    *stream = stream.map(|stream| of(&streams, stream));
                    *awaited = of(&streams, *awaited);
                }
                TraceEventKind::Reserve { device, .. } | TraceEventKind::Release { device, .. } => {
                    *device += devices
                }
            }
            self.events.push(event);
        }
        self.events.sort_by_key(|event| event.time);
        self
    }
}
