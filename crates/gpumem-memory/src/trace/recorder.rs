//! The functions that the library calls: one for each kind of event.
//!
//! While nothing is recorded each costs one relaxed load.

use super::{
    clock::clock,
    event::{AllocationInfo, CollectiveInfo, LogEvent},
    event_log::{EventLog, InitialState, Slots},
    format::TraceKind,
    options::RecorderOptions,
};
use gpumem_core::MemoryKind;
use std::{
    ops::Range,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU8, Ordering},
    },
};

/// Values of [`Recorder::level`].
const ALLOCATIONS: u8 = 1;
const USES: u8 = 2;

/// A device's slot for a recording.
#[derive(Debug, Default)]
pub struct Recorder {
    /// What is recorded, or 0. A hint: whether a slot is open is known under its lock.
    level: AtomicU8,
    slots: OnceLock<Arc<Slots>>,
}

impl Recorder {
    /// Starts to record, unless something is recording.
    pub fn start(&self, options: RecorderOptions, initial: InitialState) -> Option<Arc<EventLog>> {
        // Made by the first recording, and kept: who writes may look at them without a lock.
        let slots = self.slots.get_or_init(Slots::new);
        let log = EventLog::new(options, initial, slots.clone());
        let level = if options.uses { USES } else { ALLOCATIONS };
        // Release: under the locks of the slots, so who sees the level finds them open.
        slots.open(&log, || self.level.store(level, Ordering::Release)).then_some(log)
    }

    /// Ends that recording.
    pub fn stop(&self, log: &Arc<EventLog>) {
        if let Some(slots) = self.slots.get() {
            // Release: under the locks of the slots too; who still sees the old level finds a closed slot.
            slots.close(log, || self.level.store(0, Ordering::Release));
        }
    }

    #[inline(always)]
    fn records(&self) -> bool {
        // Relaxed: only a hint. Who sees an old value writes to a closed slot, which keeps nothing, or misses an event that
        // happened at the same time as the start.
        self.level.load(Ordering::Relaxed) != 0
    }

    /// Whether uses and waits are recorded: [`used`](Self::used) does nothing otherwise.
    #[inline]
    pub fn keeps_uses(&self) -> bool {
        // Relaxed: as for `records`.
        self.level.load(Ordering::Relaxed) == USES
    }

    /// Cold, so that work that is not recorded does not carry the code for it.
    #[cold]
    #[inline(never)]
    fn write(&self, event: impl FnOnce() -> LogEvent) {
        if let Some(slots) = self.slots.get() {
            slots.write(event);
        }
    }

    /// Records that memory was allocated, as the allocation of that number.
    #[inline]
    pub fn allocated(&self, id: u64, request: impl FnOnce() -> AllocationInfo, name: Option<&Arc<str>>) {
        if self.records() {
            self.write(|| LogEvent::Allocate { id, request: request().named(name) });
        }
    }

    /// No memory was found.
    pub fn failed(&self, request: impl FnOnce() -> AllocationInfo, name: Option<&Arc<str>>) {
        if self.records() {
            self.write(|| LogEvent::Fail { request: request().named(name) });
        }
    }

    /// An allocation is about to go back.
    #[inline(always)]
    pub fn freed(&self, id: u64, kind: MemoryKind, bytes: usize) {
        if self.records() {
            self.write(|| LogEvent::Free { id, bytes: bytes as u64, kind: TraceKind::of(kind) });
        }
    }

    /// Work that was enqueued uses memory: at `submission` of `stream`, or at once and by the host (stream 0). Memory without
    /// a kind is foreign.
    pub fn used(
        &self,
        (id, kind): (u64, Option<MemoryKind>),
        extent: &Range<usize>,
        write: bool,
        operation: &'static str,
        (stream, submission): (u64, u64),
    ) {
        if self.keeps_uses() {
            let (start, bytes) = (extent.start as u64, extent.len() as u64);
            let kind = kind.and_then(TraceKind::of);
            self.write(|| LogEvent::Use { id, start, bytes, stream, submission, operation, write, kind });
        }
    }

    /// A stream was told to wait for another one.
    #[inline]
    pub fn waited(&self, stream: u64, of: u64, submission: u64) {
        if self.keeps_uses() {
            self.write(|| LogEvent::Wait { stream, of, submission, took: 0 });
        }
    }

    /// The host is about to wait. The time, if that is recorded.
    #[inline]
    pub fn begin_wait(&self) -> Option<u64> {
        self.keeps_uses().then(|| clock().now())
    }

    /// The host has waited since then.
    #[inline]
    pub fn end_wait(&self, begin: Option<u64>, of: u64, submission: u64) {
        if let Some(begin) = begin
            && self.keeps_uses()
        {
            let took = clock().ticks(clock().now().saturating_sub(begin));
            self.write(|| LogEvent::Wait { stream: 0, of, submission, took });
        }
    }

    /// An operation of several ranks has ended now. Does nothing unless [uses](Self::keeps_uses) are recorded.
    pub fn collective(&self, info: CollectiveInfo) {
        if self.keeps_uses() {
            self.write(|| LogEvent::Collective(Box::new(info)));
        }
    }

    /// The driver has given so many bytes, or taken them back.
    pub fn reserved(&self, kind: MemoryKind, bytes: i64) {
        if let (true, Some(kind)) = (self.records(), TraceKind::of(kind)) {
            self.write(|| LogEvent::Reserve { bytes, kind });
        }
    }
}
