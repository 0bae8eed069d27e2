//! The holders of a device's memory, as text and as JSON.

use super::{Holder, ResourceReport};
use crate::memory::DeviceCore;
use gpumem_core::{Backend, DriverDevice, SpillPressure};
use serde::Serialize;
use std::fmt;

/// The holders of a device's memory at one moment. `Display` writes it as text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct MemoryReport {
    /// Name of the device.
    pub device: String,
    /// Bytes that the driver says are free; `None` where it does not say.
    pub free: Option<usize>,
    /// Bytes of the device.
    pub total: usize,
    /// Each kind of memory that has been used.
    pub kinds: Vec<KindReport>,
    /// Items that have been dropped and wait in the queue.
    pub pending_items: usize,
    /// Bytes of these.
    pub pending_bytes: usize,
    /// More pending items than this are freed by the next allocation.
    pub limit_items: usize,
    /// More pending bytes than this are freed by the next allocation.
    pub limit_bytes: usize,
    /// Whether cleanup is deferred at the moment.
    pub deferred: bool,
    /// The allocations under names ([`named`](super::named)), the largest first.
    pub holders: Vec<Holder>,
    /// Allocated bytes without a name: of arrays that were made without one, of staging blocks, and of dropped memory
    /// that is pending. Resources allocate whole units, so small allocations count for more here than their requests;
    /// those that have a name do not.
    pub unnamed_bytes: usize,
    /// The arrays that may leave the device.
    #[serde(with = "Spilling")]
    pub spilling: SpillPressure,
}

/// How JSON has [`SpillPressure`].
#[derive(Serialize)]
#[serde(remote = "SpillPressure")]
struct Spilling {
    evictable_bytes: usize,
    pinned_bytes: usize,
    host_bytes: usize,
    file_bytes: usize,
}

/// The resources of one kind of memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct KindReport {
    /// The word for the kind.
    pub kind: &'static str,
    /// From the outermost to the driver.
    pub resources: Vec<ResourceReport>,
}

impl MemoryReport {
    #[doc(hidden)]
    pub fn of<B: Backend>(core: &DeviceCore<B>) -> Self {
        let info = core.raw.info();
        let (pending_items, pending_bytes) = core.deferred_frees.pending_frees();
        let kinds = core
            .memory
            .in_use()
            .map(|(kind, resource)| KindReport { kind: kind.name(), resources: resource.reports() });
        let kinds: Vec<KindReport> = kinds.collect();
        let holders = core.names.holders();
        let outermost = kinds.iter().filter_map(|kind| kind.resources.first());
        let allocated = outermost
            .fold(0usize, |allocated, resource| allocated.saturating_add(resource.statistics.allocated));
        // Read after the resources: the difference may be off by what is made meanwhile, and is never below zero.
        let named = core.names.allocated();
        let limits = core.deferred_frees.limits();
        Self {
            device: core.name(),
            free: core
                .check("memory_report")
                .and_then(|()| core.raw.memory_info())
                .ok()
                .map(|info| info.free),
            total: info.total_memory,
            kinds,
            pending_items,
            pending_bytes,
            limit_items: limits.items,
            limit_bytes: (info.total_memory as f64 * limits.ratio) as usize,
            deferred: core.deferred_frees.is_deferred(),
            holders,
            unnamed_bytes: allocated.saturating_sub(named),
            spilling: core.reclaim.spilling(),
        }
    }

    /// Returns the report as JSON, with the names of the fields.
    pub fn to_json(&self) -> String {
        // Nothing in it can fail: names and numbers.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }
}

impl fmt::Display for MemoryReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "memory of {}: {} in all", self.device, Bytes(self.total))?;
        if let Some(free) = self.free {
            write!(f, ", {} free", Bytes(free))?;
        }
        writeln!(f)?;
        for kind in &self.kinds {
            for (depth, ResourceReport { resource, statistics }) in kind.resources.iter().enumerate() {
                let name = if depth == 0 { kind.kind } else { "" };
                writeln!(
                    f,
                    "  {name:<8} {resource:<10} allocated {:>10} in {} blocks, reserved {:>10} (peak {}), in flight {}, \
                     largest free {}, {} requests, {} failed",
                    Bytes(statistics.allocated),
                    statistics.blocks,
                    Bytes(statistics.reserved),
                    Bytes(statistics.peak_reserved),
                    Bytes(statistics.in_flight),
                    Bytes(statistics.largest_free),
                    statistics.allocations,
                    statistics.failures,
                )?;
            }
        }
        let deferred = if self.deferred { ", cleanup is deferred" } else { "" };
        writeln!(
            f,
            "  pending  {} items, {} (released beyond {} items or {}){deferred}",
            self.pending_items,
            Bytes(self.pending_bytes),
            self.limit_items,
            Bytes(self.limit_bytes),
        )?;
        for Holder { name, bytes, count } in &self.holders {
            writeln!(f, "  named    {name}: {} in {count}", Bytes(*bytes))?;
        }
        if self.unnamed_bytes > 0 {
            writeln!(f, "  unnamed  {}", Bytes(self.unnamed_bytes))?;
        }
        match self.spilling == SpillPressure::default() {
            true => Ok(()),
            false => writeln!(f, "  spilling {}", self.spilling),
        }
    }
}

/// Bytes for people.
struct Bytes(usize);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut value = self.0 as f64;
        let mut unit = 0;
        while value >= 1024.0 && unit < 4 {
            value /= 1024.0;
            unit += 1;
        }
        let text = match unit {
            0 => format!("{} B", self.0),
            _ => format!("{value:.1} {}iB", ["", "K", "M", "G", "T"][unit]),
        };
        f.pad(&text)
    }
}
