//! Page-locked blocks through which pageable host memory is copied.

use super::{Allocation, AllocationRef, Device, HostReady};
use crate::{TransferOptions, tuning::TUNING, worker_pool::WorkerPool};
use gpumem_core::{Backend, ErrorKind, Result};
use gpumem_memory::may_block;
use parking_lot::Mutex;
use std::{collections::VecDeque, ops::RangeInclusive, ptr::NonNull};

/// Blocks that are not being filled or drained. Some may still be read or written by a copy: their access log knows.
#[derive(Debug)]
pub(crate) struct StagingPool<B: Backend> {
    /// The block that was returned last comes last.
    free: Mutex<VecDeque<AllocationRef<B>>>,
    options: Mutex<TransferOptions>,
    workers: WorkerPool,
}

impl<B: Backend> Default for StagingPool<B> {
    fn default() -> Self {
        let options = Mutex::new(TransferOptions::from_environment());
        Self { free: Mutex::default(), options, workers: WorkerPool::default() }
    }
}

/// A block in use. No work used it when it was taken, so that the host may fill it at once. Returns to its pool when
/// dropped; forgetting it only leaks it.
#[derive(Debug)]
pub(crate) struct Staging<B: Backend> {
    device: Device<B>,
    memory: AllocationRef<B>,
}

impl<B: Backend> Staging<B> {
    /// A block of at least `bytes` bytes that no copy uses any more.
    pub(crate) fn take(device: &Device<B>, operation: &'static str, bytes: usize) -> Result<Self> {
        Self::take_within(device, operation, (bytes, 4), usize::MAX)
    }

    /// As [`take`](Self::take), and no longer than it must be, unless no other block is to be had.
    pub(crate) fn take_short(device: &Device<B>, operation: &'static str, bytes: usize) -> Result<Self> {
        Self::take_within(device, operation, (bytes, 1), usize::MAX)
    }

    /// As [`take`](Self::take). Where copies use as many blocks of that size as `most`, one of them is waited for.
    /// Returns the driver's error, or the failure of work that was waited for.
    pub(crate) fn take_of(
        device: &Device<B>,
        operation: &'static str,
        bytes: usize,
        most: usize,
    ) -> Result<Self> {
        Self::take_within(device, operation, (bytes, 4), most)
    }

    /// A block of at least `bytes` bytes, and at most so many `times` as long as a new one would be.
    fn take_within(
        device: &Device<B>,
        operation: &'static str,
        (bytes, times): (usize, usize),
        most: usize,
    ) -> Result<Self> {
        // Before the lock of the pool, which a thread of the parent may hold for ever.
        device.core().check_process(operation)?;
        let wanted = TransferOptions::staging_length(bytes);
        let pool = &device.0.staging;
        if let Some(block) = pool.find(operation, &(bytes..=wanted.saturating_mul(times)), most) {
            return Self::wait(device, operation, block);
        }
        let error = match Allocation::internal(device, operation, wanted) {
            Ok(ready) => return Ok(Self::of(device, ready)),
            Err(error) => error,
        };
        // No more memory is to be had, but perhaps a block that a copy uses.
        let may_wait = error.is_out_of_memory() && may_block(operation).is_ok();
        let lengths = bytes..=wanted.saturating_mul(4);
        match may_wait.then(|| pool.find(operation, &lengths, 0)).flatten() {
            Some(block) => Self::wait(device, operation, block),
            None => Err(error),
        }
    }

    /// A block of the pool, once no copy uses it.
    fn wait(device: &Device<B>, operation: &'static str, block: AllocationRef<B>) -> Result<Self> {
        HostReady::wait(block, operation).map(|ready| Self::of(device, ready))
    }

    fn of(device: &Device<B>, ready: HostReady<B>) -> Self {
        let memory = ready.into_memory();
        memory.forget_poison();
        Self { device: device.clone(), memory }
    }

    pub(crate) fn memory(&self) -> &AllocationRef<B> {
        &self.memory
    }

    /// Where the host sees it.
    /// Returns an error if the host does not see the backend's page-locked memory.
    pub(crate) fn host(&self, operation: &'static str) -> Result<NonNull<u8>> {
        let what = "pinned memory that the host sees";
        self.memory.host().ok_or_else(|| self.memory.core().error(operation, ErrorKind::Unsupported { what }))
    }
}

impl<B: Backend> Drop for Staging<B> {
    fn drop(&mut self) {
        if !self.memory.core().origin.is_valid() {
            return;
        }
        self.device.0.staging.put(self.memory.clone());
    }
}

impl<B: Backend> StagingPool<B> {
    /// Keeps a block for later, unless there are many.
    fn put(&self, block: AllocationRef<B>) {
        let keep = TUNING.staging_kept.max(self.options().block_bytes.saturating_mul(8));
        let mut free = self.free.lock();
        let kept: usize = free.iter().map(|block| block.len()).sum();
        if kept.saturating_add(block.len()) <= keep && block.check("staging").is_ok() {
            free.push_back(block);
        }
    }

    /// A block of such a length, and one that a copy may be using only where there are as many of those as `most`.
    fn find(
        &self,
        operation: &'static str,
        bytes: &RangeInclusive<usize>,
        most: usize,
    ) -> Option<AllocationRef<B>> {
        let fits = |block: &AllocationRef<B>| bytes.contains(&block.len());
        let oldest = |free: &mut VecDeque<_>| free.iter().position(fits).and_then(|at| free.remove(at));
        // The last one lies in a cache still.
        let newest = {
            let mut free = self.free.lock();
            let at = free.iter().rposition(fits).filter(|at| free[*at].is_known_idle());
            at.and_then(|at| free.remove(at))
        };
        if let Some(block) = newest.filter(|block| block.check(operation).is_ok()) {
            return Some(block);
        }
        // One at a time: other threads find the others meanwhile.
        for _ in 0..TUNING.staging_asked {
            let block = oldest(&mut self.free.lock())?;
            if block.check(operation).is_err() {
                // Of before a reset: it is of no use any more.
                continue;
            }
            if block.is_idle() {
                return Some(block);
            }
            self.free.lock().push_back(block);
        }
        let mut free = self.free.lock();
        if free.iter().filter(|block| fits(block)).count() < most {
            return None;
        }
        oldest(&mut free)
    }

    /// Drops every block; their memory is freed as any other. Returns whether there were any.
    pub(crate) fn trim(&self) -> bool {
        let blocks = std::mem::take(&mut *self.free.lock());
        !blocks.is_empty()
    }

    /// How memory of the caller is moved.
    pub(crate) fn options(&self) -> TransferOptions {
        *self.options.lock()
    }

    pub(crate) fn set_options(&self, options: TransferOptions) {
        *self.options.lock() = options.bounded();
    }

    /// The threads that help.
    pub(crate) fn workers(&self) -> &WorkerPool {
        &self.workers
    }
}
