//! The functions that the library calls: one for each kind of event.
//!
//! While nothing is recorded each costs one relaxed load.

use super::{
    clock::clock,
    event::{AllocationInfo, CollectiveInfo, FOREIGN, LogEvent, kind_byte},
    event_log::EventLog,
    thread_writer,
};
use gpumem_core::MemoryKind;
use parking_lot::Mutex;
use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// A device's slot for a recording. The fields that every use reads come first.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Recorder {
    /// The number of the recording that is running, if it keeps uses and waits, or 0.
    of_uses: AtomicU64,
    /// The number of the recording that is running, or 0.
    session: AtomicU64,
    log: Mutex<Option<Arc<EventLog>>>,
}

impl Recorder {
    /// Starts to record, unless something is recording.
    pub fn start(&self, log: impl FnOnce() -> Arc<EventLog>) -> Option<Arc<EventLog>> {
        let mut slot = self.log.lock();
        if slot.is_some() {
            return None;
        }
        let log = log();
        *slot = Some(log.clone());
        self.of_uses.store(if log.keeps_uses() { log.session } else { 0 }, Ordering::Release);
        self.session.store(log.session, Ordering::Release);
        Some(log)
    }

    /// Ends that recording.
    pub fn stop(&self, log: &Arc<EventLog>) {
        let mut slot = self.log.lock();
        if slot.as_ref().is_some_and(|running| Arc::ptr_eq(running, log)) {
            self.session.store(0, Ordering::Release);
            self.of_uses.store(0, Ordering::Release);
            *slot = None;
        }
    }

    #[inline(always)]
    fn session(&self) -> Option<u64> {
        match self.session.load(Ordering::Relaxed) {
            0 => None,
            session => Some(session),
        }
    }

    #[inline(always)]
    fn session_of_uses(&self) -> Option<u64> {
        match self.of_uses.load(Ordering::Relaxed) {
            0 => None,
            session => Some(session),
        }
    }

    #[inline(always)]
    fn write(&self, session: u64, note: LogEvent) {
        thread_writer::write(session, &note, || self.log.lock().clone());
    }

    #[inline(always)]
    fn write_named(&self, session: u64, note: LogEvent, name: Option<&Arc<str>>) {
        match name {
            None => self.write(session, note),
            Some(name) => thread_writer::write_named(session, note, name, || self.log.lock().clone()),
        }
    }

    /// Records that memory was allocated, as the allocation of that number.
    #[inline]
    pub fn allocated(&self, id: u64, request: impl FnOnce() -> AllocationInfo, name: Option<&Arc<str>>) {
        if let Some(session) = self.session() {
            self.note_allocated(session, id, request, name);
        }
    }

    /// Not in line, as [`note_use`](Self::note_use).
    #[inline(never)]
    fn note_allocated(
        &self,
        session: u64,
        id: u64,
        request: impl FnOnce() -> AllocationInfo,
        name: Option<&Arc<str>>,
    ) {
        self.write_named(session, LogEvent::Allocate { request: request(), id }, name);
    }

    /// No memory was found.
    pub fn failed(&self, request: impl FnOnce() -> AllocationInfo, name: Option<&Arc<str>>) {
        if let Some(session) = self.session() {
            self.write_named(session, LogEvent::Fail { request: request() }, name);
        }
    }

    /// An allocation is about to go back.
    #[inline(always)]
    pub fn freed(&self, id: u64, kind: MemoryKind, bytes: usize) {
        if let Some(session) = self.session() {
            self.note_freed(session, id, kind, bytes);
        }
    }

    /// Not in line, as [`note_use`](Self::note_use).
    #[inline(never)]
    fn note_freed(&self, session: u64, id: u64, kind: MemoryKind, bytes: usize) {
        self.write(session, LogEvent::Free { id, bytes: bytes as u64, kind: kind_byte(kind) });
    }

    /// Whether uses and waits are recorded: [`used`](Self::used) does nothing otherwise.
    #[inline]
    pub fn keeps_uses(&self) -> bool {
        self.session_of_uses().is_some()
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
        let Some(session) = self.session_of_uses() else { return };
        let (kind, start, bytes) =
            (kind.map_or(FOREIGN, kind_byte), extent.start as u64, extent.len() as u64);
        self.write(session, LogEvent::Use { id, start, bytes, stream, submission, operation, write, kind });
    }

    /// A stream was told to wait for another one.
    #[inline]
    pub fn waited(&self, stream: u64, of: u64, submission: u64) {
        if let Some(session) = self.session_of_uses() {
            self.note_wait(session, LogEvent::Wait { stream, of, submission, nanoseconds: 0 });
        }
    }

    #[inline(never)]
    fn note_wait(&self, session: u64, note: LogEvent) {
        self.write(session, note);
    }

    /// The host is about to wait. The time, if that is recorded.
    #[inline]
    pub fn begin_wait(&self) -> Option<u64> {
        self.session_of_uses().map(|_| clock().now())
    }

    /// The host has waited since then.
    #[inline]
    pub fn end_wait(&self, begin: Option<u64>, of: u64, submission: u64) {
        if let (Some(begin), Some(session)) = (begin, self.session_of_uses()) {
            let nanoseconds = clock().nanoseconds(clock().now()).saturating_sub(clock().nanoseconds(begin));
            self.write(session, LogEvent::Wait { stream: 0, of, submission, nanoseconds });
        }
    }

    /// An operation of several ranks has ended now. Does nothing unless [uses](Self::keeps_uses) are recorded.
    pub fn collective(&self, info: CollectiveInfo) {
        if let Some(session) = self.session_of_uses() {
            self.write(session, LogEvent::Collective(info));
        }
    }

    /// The driver has given so many bytes, or taken them back.
    pub fn reserved(&self, kind: MemoryKind, bytes: i64) {
        if let Some(session) = self.session() {
            self.write(session, LogEvent::Reserve { bytes, kind: kind_byte(kind) });
        }
    }
}
