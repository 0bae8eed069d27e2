//! Memory as the ordering code sees it: a number, the log of its accesses, and its external borrowers.

mod accesses;
mod borrowed_arc;
mod external_borrows;
mod poison;

use super::{AccessLog, DeviceContext, Timeline, recording::RECORDED};
use crate::sync::{Rank, ShortMutex, ShortMutexGuard};
use borrowed_arc::BorrowedArc;
use external_borrows::ExternalBorrows;
use gpumem_core::{Backend, ErrorKind, MemoryKind, Result};
use std::{fmt, ops::Range, sync::Arc};

/// The fields that every use of a block of memory reads: in two cache lines.
#[repr(C)]
pub struct Tracked<B: Backend> {
    id: u64,
    generation: u64,
    /// Not counted: the allocation that contains this keeps it.
    context: BorrowedArc<DeviceContext<B>>,
    address: u64,
    // Numbered by `id`: work locks the logs of all its memory in that order.
    log: ShortMutex<AccessLog<Arc<Timeline<B>>>>,
    /// Other uses of the memory that may be under way.
    borrows: ExternalBorrows<B>,
    len: usize,
    kind: MemoryKind,
    is_owned: bool,
}

impl<B: Backend> Tracked<B> {
    /// Memory at this address that nothing uses yet. With `is_owned`, the driver allocated it for us, so that it shares
    /// no bytes with any other allocation.
    ///
    /// # Safety
    /// An `Arc` of the same context lives as long as the result.
    #[inline(always)]
    pub unsafe fn new(
        context: &Arc<DeviceContext<B>>,
        generation: u64,
        (address, len): (u64, usize),
        kind: MemoryKind,
        is_owned: bool,
    ) -> Self {
        let id = allocation_id();
        Self {
            id,
            generation,
            // SAFETY: the caller's promise.
            context: unsafe { BorrowedArc::of(context) },
            address,
            log: ShortMutex::numbered(Rank::AccessLog, id, AccessLog::new()),
            borrows: ExternalBorrows::new(is_owned),
            len,
            kind,
            is_owned,
        }
    }

    /// Returns the number of the allocation, unique in this process.
    #[inline]
    pub fn id(&self) -> u64 {
        self.id
    }

    #[inline]
    pub fn context(&self) -> &Arc<DeviceContext<B>> {
        &self.context
    }

    /// Returns whether the driver allocated the memory for us, so that it shares no bytes with any other allocation.
    #[inline]
    pub fn is_owned(&self) -> bool {
        self.is_owned
    }

    #[inline]
    pub fn kind(&self) -> MemoryKind {
        self.kind
    }

    #[inline]
    #[allow(clippy::len_without_is_empty, reason = "nothing asks for it")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the device's address of the first byte.
    #[inline]
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Returns the uses, with those that borrowers of the memory may have added.
    #[inline]
    pub fn log(&self) -> ShortMutexGuard<'_, AccessLog<Arc<Timeline<B>>>> {
        self.log_since(0)
    }

    /// As [`log`](Self::log), but notes only loans with a number from `since` on.
    #[inline]
    pub(in crate::track) fn log_since(&self, since: u64) -> ShortMutexGuard<'_, AccessLog<Arc<Timeline<B>>>> {
        // The loans are noted within it, so that no reader sees the log without them.
        let mut log = self.lock_log();
        self.borrows.note(&mut log, since);
        log
    }

    /// Locks the log. What aborted work was to write is poisoned first: the use that is noted next may take the place of that work.
    #[inline]
    pub(super) fn lock_log(&self) -> ShortMutexGuard<'_, AccessLog<Arc<Timeline<B>>>> {
        let mut log = self.log.lock();
        if DeviceContext::<B>::has_aborted() {
            self.poison_aborted(&mut log);
        }
        log
    }

    /// As [`log`](Self::log), for a use that is about to wait for those in it, on the stream `by`.
    /// Returns [`Overlap`](ErrorKind::Overlap) if a conflicting use is announced.
    fn log_for(
        &self,
        operation: &'static str,
        extent: &Range<usize>,
        write: bool,
        by: Option<u64>,
    ) -> Result<ShortMutexGuard<'_, AccessLog<Arc<Timeline<B>>>>> {
        let log = self.log();
        self.refuse_borrowed(operation, (extent, None), write, by)?;
        Ok(log)
    }

    /// As [`log`](Self::log), for the only handle, so that no lock is needed.
    #[inline]
    pub fn log_mut(&mut self) -> &mut AccessLog<Arc<Timeline<B>>> {
        let log = self.log.get_mut();
        self.borrows.note(log, 0);
        log
    }

    /// Makes the log that of a kernel's program, which a launch locks within the lock of its stream.
    pub fn set_program(&mut self) {
        self.log.set_rank(Rank::ProgramLog);
    }

    /// Returns how often the device had been reset when the memory was allocated.
    #[inline]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns whether the device has not been reset since the memory was allocated.
    #[inline]
    pub fn is_fresh(&self) -> bool {
        self.generation == self.context.generation()
    }

    /// Checks that the memory may still be used.
    /// Returns [`Stale`](ErrorKind::Stale) after a reset of the device, and the errors of every use of the device.
    pub fn check(&self, operation: &'static str) -> Result<()> {
        self.context.check(operation)?;
        self.check_fresh(operation)
    }

    /// As [`check`](Self::check), for a device that has been checked.
    #[inline]
    pub fn check_beside(&self, context: &Arc<DeviceContext<B>>, operation: &'static str) -> Result<()> {
        match Arc::ptr_eq(context, &self.context) {
            true => self.check_fresh(operation),
            false => self.check(operation),
        }
    }

    #[inline(always)]
    fn check_fresh(&self, operation: &'static str) -> Result<()> {
        match self.is_fresh() {
            true => Ok(()),
            false if self.is_placeholder() => {
                Err(self.context.error(operation, ErrorKind::OfRecording { what: "array" }))
            }
            false => Err(self.context.error(operation, ErrorKind::Stale { what: "array" })),
        }
    }

    /// Placeholder memory of a graph's recording: addresses without bytes, which each launch replaces. It can be named, and never used.
    ///
    /// # Safety
    /// As for [`new`](Self::new).
    pub unsafe fn placeholder(
        context: &Arc<DeviceContext<B>>,
        place: (u64, usize),
        kind: MemoryKind,
    ) -> Self {
        // SAFETY: the caller's promise.
        unsafe { Self::new(context, RECORDED, place, kind, true) }
    }

    /// Whether it is placeholder memory of a graph's recording.
    #[inline]
    pub fn is_placeholder(&self) -> bool {
        self.generation == RECORDED
    }
}

/// Numbers for allocations, unique in this process: logs are locked in their order. Threads take them by the hundred, so
/// that they do not meet here.
#[inline]
fn allocation_id() -> u64 {
    use std::cell::Cell;
    use std::sync::atomic::{AtomicU64, Ordering};
    const MANY: u64 = 256;
    thread_local! {
        static NEXT: Cell<u64> = const { Cell::new(0) };
    }
    // Relaxed: the numbers only have to differ.
    static BATCH: AtomicU64 = AtomicU64::new(1);
    NEXT.try_with(|next| {
        let mut id = next.get();
        if id.is_multiple_of(MANY) {
            // Relaxed: as for `BATCH`. Threads take whole batches, and the order of locks needs no order in time.
            id = BATCH.fetch_add(1, Ordering::Relaxed) * MANY;
        }
        next.set(id + 1);
        id
    })
    // Relaxed: as above. At the end of a thread each allocation takes a batch.
    .unwrap_or_else(|_| BATCH.fetch_add(1, Ordering::Relaxed) * MANY)
}

impl<B: Backend> fmt::Debug for Tracked<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tracked")
            .field("id", &self.id)
            .field("kind", &self.kind)
            .field("bytes", &self.len)
            .finish_non_exhaustive()
    }
}
