//! Counts of what a device has done.

use gpumem_core::MemoryKind;
use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {
        /// Counts since the device was opened. A snapshot: other threads may go on meanwhile.
        ///
        /// Calls count when they succeed: an allocation that was made, a command that was enqueued.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        #[non_exhaustive]
        pub struct Counters {
            $($(#[$doc])* pub $name: u64,)+
        }

        #[derive(Debug, Default)]
        pub(crate) struct CounterCells {
            $(pub(crate) $name: Cell,)+
        }

        impl CounterCells {
            pub(crate) fn snapshot(&self) -> Counters {
                Counters { $($name: self.$name.get(),)+ }
            }

            /// Counts all of these up, one by one.
            pub(crate) fn add(&self, more: &Counters) {
                $(if more.$name > 0 {
                    self.$name.add(more.$name);
                })+
            }
        }
    };
}

counters! {
    /// Allocations made.
    allocations,
    /// Freed allocations.
    releases,
    /// Allocations that are alive.
    live_allocations,
    /// Bytes of device memory that are alive.
    live_device_bytes,
    /// Bytes of pinned memory that are alive.
    live_pinned_bytes,
    /// Bytes of mapped memory that are alive.
    live_mapped_bytes,
    /// Bytes of managed memory that are alive.
    live_managed_bytes,
    /// Bytes of the caller's memory that are registered.
    live_registered_bytes,
    /// Registrations made.
    registrations,
    /// Registrations undone.
    deregistrations,
    /// Streams made.
    streams_created,
    /// Streams that are alive.
    streams,
    /// Events made.
    events_created,
    /// Events that are alive.
    events,
    /// Events recorded.
    records,
    /// Waits for an event enqueued, those included that were done already.
    waits,
    /// Copies enqueued.
    copies,
    /// Bytes of these copies.
    copied_bytes,
    /// Strided copies enqueued.
    strided_copies,
    /// Fills enqueued.
    fills,
    /// Movements of managed memory enqueued.
    prefetches,
    /// Kernels enqueued.
    launches,
    /// Modules made.
    modules,
    /// Waits of the host for a stream, an event or the device.
    synchronizations,
    /// Commands that failed when they ran.
    faults,
    /// Worker threads that are alive.
    workers,
}

/// One of the counters.
pub(crate) type CellOf = fn(&CounterCells) -> &Cell;

impl CounterCells {
    /// Counts work: which cell, and how many bytes it copies.
    #[inline]
    pub(crate) fn count(&self, (cell, bytes): (CellOf, u64)) {
        cell(self).up();
        if bytes > 0 {
            self.copied_bytes.add(bytes);
        }
    }

    /// The number of live bytes of a kind.
    pub(crate) fn live_bytes(&self, kind: MemoryKind) -> &Cell {
        match kind {
            MemoryKind::Pinned => &self.live_pinned_bytes,
            MemoryKind::Mapped(_) => &self.live_mapped_bytes,
            MemoryKind::Managed(_) => &self.live_managed_bytes,
            MemoryKind::Registered(_) => &self.live_registered_bytes,
            _ => &self.live_device_bytes,
        }
    }

    /// Nothing is alive any more, after a reset.
    pub(crate) fn forget_memory(&self) {
        let bytes = [
            &self.live_device_bytes,
            &self.live_pinned_bytes,
            &self.live_mapped_bytes,
            &self.live_managed_bytes,
            &self.live_registered_bytes,
        ];
        bytes.into_iter().for_each(Cell::clear);
        self.live_allocations.clear();
    }
}

/// A number that many threads count up and down. Nothing is ordered by it.
#[derive(Debug, Default)]
pub(crate) struct Cell(AtomicU64);

impl Cell {
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn clear(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    pub(crate) fn up(&self) {
        self.add(1);
    }

    pub(crate) fn down(&self) {
        self.sub(1);
    }

    pub(crate) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn sub(&self, count: u64) {
        self.0.fetch_sub(count, Ordering::Relaxed);
    }
}
