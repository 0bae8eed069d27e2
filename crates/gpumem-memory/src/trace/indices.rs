//! The entries of a trace that refer to its tables.

use super::format::{Trace, TraceAllocation, TraceEvent, TraceEventKind};

/// A table that others refer to by index.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Table {
    Devices,
    Streams,
    Threads,
    Names,
    Operations,
    Allocations,
}

/// The error of an index beyond the end, by table.
pub(crate) const ABSENT: [&str; 6] = [
    "it names a device that is not there",
    "it names a stream that is not there",
    "it names a thread that is not there",
    "its name is not there",
    "its operation is not there",
    "it names an allocation that is not there",
];

type Index<'a> = Option<(Table, &'a mut u32)>;

fn any(table: Table, index: &mut Option<u32>) -> Index<'_> {
    index.as_mut().map(|index| (table, index))
}

impl Trace {
    /// The lengths of the tables.
    pub(crate) fn lengths(&self) -> [usize; 6] {
        let (devices, streams, threads) = (self.devices.len(), self.streams.len(), self.threads.len());
        [devices, streams, threads, self.names.len(), self.operations.len(), self.allocations.len()]
    }
}

impl TraceAllocation {
    /// The indices in it.
    pub(crate) fn indices(&mut self) -> impl Iterator<Item = (Table, &mut u32)> {
        let device = Some((Table::Devices, &mut self.device));
        let (name, operation) =
            (any(Table::Names, &mut self.name), any(Table::Operations, &mut self.operation));
        [device, any(Table::Streams, &mut self.stream), name, operation].into_iter().flatten()
    }
}

impl TraceEvent {
    /// The indices in it.
    pub(crate) fn indices(&mut self) -> impl Iterator<Item = (Table, &mut u32)> {
        use Table::{Allocations, Devices, Operations, Streams};
        use TraceEventKind::{Allocate, Collective, Fail, Free, Release, Reserve, Use, Wait};
        let thread = Some((Table::Threads, &mut self.thread));
        let [first, second, third]: [Index<'_>; 3] = match &mut self.what {
            Allocate { memory } | Fail { memory } | Free { memory } => {
                [Some((Allocations, memory)), None, None]
            }
            Use { memory, stream, operation, .. } => {
                [Some((Allocations, memory)), any(Streams, stream), Some((Operations, operation))]
            }
            Wait { stream, of, .. } => [any(Streams, stream), Some((Streams, of)), None],
            Collective { stream, operation, .. } => {
                [Some((Streams, stream)), Some((Operations, operation)), None]
            }
            Reserve { device, .. } | Release { device, .. } => [Some((Devices, device)), None, None],
        };
        [thread, first, second, third].into_iter().flatten()
    }
}
