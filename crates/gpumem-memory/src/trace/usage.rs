//! How much memory was in use, and by which allocations.

use super::format::{Trace, TraceEventKind, TraceKind};
use serde::Serialize;
use std::collections::BTreeMap;

/// Memory of one kind on one device, over the time of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Usage {
    /// Index of the device.
    pub device: u32,
    /// The kind.
    pub kind: TraceKind,
    /// (time, bytes in use, bytes held by the resource) from each time on, the first at 0.
    pub steps: Vec<(u64, u64, u64)>,
}

/// The moment at which most memory of a kind was in use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Peak {
    /// Index of the device.
    pub device: u32,
    /// The kind.
    pub kind: TraceKind,
    /// Nanoseconds from the start.
    pub time: u64,
    /// Bytes in use.
    pub bytes: u64,
    /// Most bytes that the resource ever held, at whichever time.
    pub reserved: u64,
    /// The holders of these bytes, the largest first.
    pub holders: Vec<PeakHolder>,
}

/// Allocations that go by one name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PeakHolder {
    /// The name, or else the operation.
    pub name: String,
    /// Whether it is a name of the program's, and not an operation.
    pub named: bool,
    /// Bytes of all of them.
    pub bytes: u64,
    /// How many there are.
    pub count: u64,
}

/// The entry for memory that was allocated before the trace began.
const OLDER: &str = "made before the trace";

/// What a step of [`Usage`] changes: device, kind, bytes in use, bytes held.
type Change = (u32, TraceKind, i64, i64);

impl Trace {
    /// Bytes in use and held, for each device and kind that occurs. None for a trace that contradicts itself
    /// ([`check`](Self::check)).
    pub fn usage(&self) -> Vec<Usage> {
        if self.check().is_err() {
            return Vec::new();
        }
        let mut kinds: BTreeMap<(u32, TraceKind), Usage> = BTreeMap::new();
        let mut add = |time: u64, (device, kind, used, reserved): Change| {
            let new = || Usage { device, kind, steps: vec![(0, 0, 0)] };
            let steps = &mut kinds.entry((device, kind)).or_insert_with(new).steps;
            let (last, had, held) = steps.last().copied().unwrap_or_default();
            let step = (time, had.saturating_add_signed(used), held.saturating_add_signed(reserved));
            match steps.last_mut() {
                // A peak between two changes of one moment is kept.
                Some(slot) if last == time && (used == 0 || (had, held) == (0, 0)) => *slot = step,
                _ => steps.push(step),
            }
        };
        for (device, about) in (0..).zip(&self.devices) {
            for start in &about.start {
                add(0, (device, start.kind, start.other as i64, start.reserved as i64));
            }
        }
        for (memory, _) in self.older().into_iter().enumerate().filter(|(_, is_older)| *is_older) {
            self.allocated(memory as u32, 1).into_iter().for_each(|change| add(0, change));
        }
        for event in &self.events {
            let change = match event.what {
                TraceEventKind::Allocate { memory } => self.allocated(memory, 1),
                TraceEventKind::Free { memory } => self.allocated(memory, -1),
                TraceEventKind::Reserve { device, kind, bytes } => Some((device, kind, 0, bytes as i64)),
                TraceEventKind::Release { device, kind, bytes } => Some((device, kind, 0, -(bytes as i64))),
                _ => None,
            };
            change.into_iter().for_each(|change| add(event.time, change));
        }
        kinds.into_values().collect()
    }

    /// The change when memory is allocated, or freed; none for foreign memory.
    fn allocated(&self, memory: u32, sign: i64) -> Option<Change> {
        let allocation = &self.allocations[memory as usize];
        Some((allocation.device, allocation.kind?, sign * allocation.bytes as i64, 0))
    }

    /// Returns for each allocation whether it was there before the first event.
    pub fn older(&self) -> Vec<bool> {
        let mut older = vec![true; self.allocations.len()];
        for event in &self.events {
            // A trace that contradicts itself may name an allocation that it lacks.
            if let TraceEventKind::Allocate { memory } | TraceEventKind::Fail { memory } = event.what
                && let Some(older) = older.get_mut(memory as usize)
            {
                *older = false;
            }
        }
        older
    }

    /// Returns, for each device and kind, the moment at which most memory was in use, with its holders. Returns none
    /// for a trace that contradicts itself.
    pub fn peaks(&self) -> Vec<Peak> {
        let usage = self.usage();
        let older = if usage.is_empty() { Vec::new() } else { self.older() };
        usage.iter().map(|usage| self.peak(usage, older.clone())).collect()
    }

    fn peak(&self, &Usage { device, kind, ref steps }: &Usage, mut alive: Vec<bool>) -> Peak {
        let bytes = steps.iter().map(|(_, used, _)| *used).max().unwrap_or(0);
        let reserved = steps.iter().map(|(.., reserved)| *reserved).max().unwrap_or(0);
        let start = self.devices[device as usize].start.iter().filter(|start| start.kind == kind);
        let other = start.map(|start| start.other).sum::<u64>();
        let is_of = |memory: usize| {
            let allocation = &self.allocations[memory];
            (allocation.device, allocation.kind) == (device, Some(kind))
        };
        let older = (0..alive.len()).filter(|memory| alive[*memory] && is_of(*memory));
        let mut used = other + older.map(|memory| self.allocations[memory].bytes).sum::<u64>();
        let (mut time, mut events) = (0, self.events.iter());
        // Until it is reached for the first time.
        while used < bytes
            && let Some(event) = events.next()
        {
            if let TraceEventKind::Allocate { memory } | TraceEventKind::Free { memory } = event.what
                && is_of(memory as usize)
            {
                let (memory, is_made) =
                    (memory as usize, matches!(event.what, TraceEventKind::Allocate { .. }));
                let change = self.allocations[memory].bytes;
                used = if is_made { used + change } else { used.saturating_sub(change) };
                (alive[memory], time) = (is_made, event.time);
            }
        }
        let mut holders: BTreeMap<(bool, &str), (u64, u64)> = BTreeMap::new();
        if other > 0 {
            holders.insert((false, OLDER), (other, 0));
        }
        for memory in (0..alive.len()).filter(|memory| alive[*memory] && is_of(*memory)) {
            let (bytes, count) = holders.entry(self.label(memory)).or_default();
            (*bytes, *count) = (*bytes + self.allocations[memory].bytes, *count + 1);
        }
        let mut holders: Vec<PeakHolder> = holders
            .into_iter()
            .map(|((named, name), (bytes, count))| PeakHolder { name: name.to_owned(), named, bytes, count })
            .collect();
        holders.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.name.cmp(&b.name)));
        Peak { device, kind, time, bytes, reserved, holders }
    }

    /// The label of an allocation, and whether it is a name that the user gave.
    pub(crate) fn label(&self, memory: usize) -> (bool, &str) {
        let allocation = &self.allocations[memory];
        let (named, entry) = match (allocation.name, allocation.operation) {
            (Some(name), _) => (true, self.names.get(name as usize)),
            (None, Some(operation)) => (false, self.operations.get(operation as usize)),
            (None, None) => return (false, OLDER),
        };
        (named, entry.map_or("", String::as_str))
    }
}
