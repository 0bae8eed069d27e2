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

impl Trace {
    /// Bytes in use and held, for each device and kind that occurs. None for a trace that contradicts itself
    /// ([`check`](Self::check)).
    pub fn usage(&self) -> Vec<Usage> {
        if self.check().is_err() {
            return Vec::new();
        }
        let mut kinds: BTreeMap<(u32, TraceKind), Usage> = BTreeMap::new();
        let curve = |device, kind| Usage { device, kind, steps: vec![(0, 0, 0)] };
        for (device, about) in (0..).zip(&self.devices) {
            for start in &about.start {
                let usage = kinds.entry((device, start.kind)).or_insert_with(|| curve(device, start.kind));
                usage.steps[0] = (0, start.other, start.reserved);
            }
        }
        let mut add = |device: u32, kind: TraceKind, time: u64, used: i64, reserved: i64| {
            let usage = kinds.entry((device, kind)).or_insert_with(|| curve(device, kind));
            let (last, had, held) = usage.steps.last().copied().unwrap_or_default();
            let step = (time, had.saturating_add_signed(used), held.saturating_add_signed(reserved));
            match usage.steps.last_mut() {
                // Changes of one moment that only go up, or only down, are one step; a peak between two is kept.
                Some(slot) if last == time && used == 0 => *slot = step,
                _ => usage.steps.push(step),
            }
        };
        for (memory, is_older) in self.older().into_iter().enumerate() {
            let allocation = &self.allocations[memory];
            if let (true, Some(kind)) = (is_older, allocation.kind) {
                add(allocation.device, kind, 0, allocation.bytes as i64, 0);
            }
        }
        for event in &self.events {
            match event.what {
                TraceEventKind::Allocate { memory } | TraceEventKind::Free { memory } => {
                    let allocation = &self.allocations[memory as usize];
                    let sign = if matches!(event.what, TraceEventKind::Allocate { .. }) { 1 } else { -1 };
                    if let Some(kind) = allocation.kind {
                        add(allocation.device, kind, event.time, sign * allocation.bytes as i64, 0);
                    }
                }
                TraceEventKind::Reserve { device, kind, bytes } => {
                    add(device, kind, event.time, 0, bytes as i64)
                }
                TraceEventKind::Release { device, kind, bytes } => {
                    add(device, kind, event.time, 0, -(bytes as i64));
                }
                TraceEventKind::Use { .. }
                | TraceEventKind::Wait { .. }
                | TraceEventKind::Collective { .. }
                | TraceEventKind::Fail { .. } => {}
            }
        }
        kinds.into_values().collect()
    }

    /// Returns for each allocation whether it was there before the first event.
    pub fn older(&self) -> Vec<bool> {
        let mut older = vec![true; self.allocations.len()];
        for event in &self.events {
            if let TraceEventKind::Allocate { memory } | TraceEventKind::Fail { memory } = event.what {
                older[memory as usize] = false;
            }
        }
        older
    }

    /// Returns, for each device and kind, the moment at which most memory was in use, with its holders. Returns none
    /// for a trace that contradicts itself.
    pub fn peaks(&self) -> Vec<Peak> {
        let usage = self.usage();
        let older = if usage.is_empty() { Vec::new() } else { self.older() };
        usage.iter().map(|usage| self.peak(usage, &older)).collect()
    }

    fn peak(&self, usage: &Usage, older: &[bool]) -> Peak {
        let (device, kind) = (usage.device, usage.kind);
        let bytes = usage.steps.iter().map(|(_, used, _)| *used).max().unwrap_or(0);
        let reserved = usage.steps.iter().map(|(.., reserved)| *reserved).max().unwrap_or(0);
        let start = self.devices[device as usize].start.iter().find(|start| start.kind == kind);
        let other = start.map_or(0, |start| start.other);
        let of = |memory: u32| {
            let allocation = &self.allocations[memory as usize];
            (allocation.device == device && allocation.kind == Some(kind)).then_some(allocation.bytes)
        };
        let mut alive: Vec<bool> = (0..self.allocations.len() as u32)
            .map(|memory| older[memory as usize] && of(memory).is_some())
            .collect();
        let before = (0..alive.len() as u32).filter(|memory| alive[*memory as usize]).filter_map(of);
        let mut used = other + before.sum::<u64>();
        let mut time = 0;
        if used < bytes {
            // Until it is reached for the first time.
            for event in &self.events {
                match event.what {
                    TraceEventKind::Allocate { memory } => {
                        let Some(bytes) = of(memory) else { continue };
                        (used, alive[memory as usize]) = (used + bytes, true);
                    }
                    TraceEventKind::Free { memory } => {
                        let Some(bytes) = of(memory) else { continue };
                        (used, alive[memory as usize]) = (used.saturating_sub(bytes), false);
                    }
                    _ => continue,
                }
                time = event.time;
                if used >= bytes {
                    break;
                }
            }
        }
        let mut holders: BTreeMap<(bool, &str), (u64, u64)> = BTreeMap::new();
        if other > 0 {
            holders.insert((false, OLDER), (other, 0));
        }
        for (memory, _) in alive.iter().enumerate().filter(|(_, alive)| **alive) {
            let entry = holders.entry(self.label(memory)).or_default();
            *entry = (entry.0 + self.allocations[memory].bytes, entry.1 + 1);
        }
        let mut holders: Vec<PeakHolder> = holders
            .into_iter()
            .map(|((named, name), (bytes, count))| PeakHolder { name: name.to_owned(), named, bytes, count })
            .collect();
        holders.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.name.cmp(&b.name)));
        Peak { device, kind, time, bytes, reserved, holders }
    }

    /// The label of an allocation, and whether it is a name that the user gave.
    pub(super) fn label(&self, memory: usize) -> (bool, &str) {
        let allocation = &self.allocations[memory];
        match (allocation.name, allocation.operation) {
            (Some(name), _) => (true, self.names.get(name as usize).map_or("", String::as_str)),
            (None, Some(operation)) => {
                (false, self.operations.get(operation as usize).map_or("", String::as_str))
            }
            (None, None) => (false, OLDER),
        }
    }
}
