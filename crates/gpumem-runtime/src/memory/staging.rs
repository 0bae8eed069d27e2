//! Page-locked blocks through which borrowed host memory is moved, and what belongs to moving it.

use super::{Allocation, Counted};
use crate::{
    Device,
    transfer::{Crew, TransferOptions},
};
use gpumem_core::{Backend, Error, ErrorKind, HostAccess, Result};
use parking_lot::Mutex;
use std::{collections::VecDeque, ops::RangeInclusive, ptr::NonNull};

/// Most bytes that are kept for later, or what one transfer uses at most, if that is more. Page-locking is slow
/// (milliseconds a MiB), so blocks are kept.
const KEEP: usize = 64 << 20;
/// The smallest block.
const SMALLEST: usize = 64 << 10;
/// So many of the blocks that were given back first are asked for, which takes a call of the driver each.
const ASKED: usize = 4;

/// Blocks that are not being filled or drained. Some may still be read or written by a copy: their use log knows.
#[derive(Debug)]
pub(crate) struct StagingPool<B: Backend> {
    /// The one that was given back last is the last one.
    free: Mutex<VecDeque<Counted<Allocation<B>>>>,
    options: Mutex<TransferOptions>,
    crew: Crew,
}

impl<B: Backend> Default for StagingPool<B> {
    fn default() -> Self {
        let options = Mutex::new(TransferOptions::from_environment());
        Self { free: Mutex::default(), options, crew: Crew::default() }
    }
}

/// A block in use. Goes back to its pool when dropped; forgetting it leaks it, and nothing else.
#[derive(Debug)]
pub(crate) struct Staging<B: Backend> {
    device: Device<B>,
    memory: Counted<Allocation<B>>,
}

impl<B: Backend> Staging<B> {
    /// A block of at least `bytes` bytes that no copy uses any more.
    pub(crate) fn take(device: &Device<B>, operation: &'static str, bytes: usize) -> Result<Self> {
        Self::take_of(device, operation, bytes, usize::MAX)
    }

    /// As [`take`](Self::take). Where copies use as many blocks of that size as `most`, one of them is waited for.
    ///
    /// # Errors
    /// Of the driver, and what the work did wrong that was waited for.
    pub(crate) fn take_of(
        device: &Device<B>,
        operation: &'static str,
        bytes: usize,
        most: usize,
    ) -> Result<Self> {
        let wanted = bytes.max(SMALLEST).checked_next_power_of_two().unwrap_or(bytes);
        let pool = &device.0.staging;
        let memory = match pool.find(operation, bytes..=wanted.saturating_mul(4), most) {
            Found::Idle(memory) => memory,
            Found::Busy(memory) => {
                let whole = 0..memory.len();
                let block = Self { device: device.clone(), memory };
                block.memory.wait_for_host(operation, &whole, HostAccess::Write)?;
                return Ok(block);
            }
            Found::Nothing => Allocation::internal(device, operation, wanted)?,
        };
        Ok(Self { device: device.clone(), memory })
    }

    pub(crate) fn memory(&self) -> &Counted<Allocation<B>> {
        &self.memory
    }

    /// Where the host sees it.
    ///
    /// # Errors
    /// The backend's page-locked memory is not for the host.
    pub(crate) fn host(&self, operation: &'static str) -> Result<NonNull<u8>> {
        let what = "pinned memory that the host sees";
        self.memory.host().ok_or_else(|| Error::new(B::NAME, operation, ErrorKind::Unsupported { what }))
    }
}

impl<B: Backend> Drop for Staging<B> {
    fn drop(&mut self) {
        if !self.memory.core().origin.is_usable() {
            return;
        }
        let pool = &self.device.0.staging;
        let options = pool.options();
        let keep = KEEP.max(options.block_bytes.saturating_mul(8));
        let mut free = pool.free.lock();
        let kept: usize = free.iter().map(|block| block.len()).sum();
        if kept.saturating_add(self.memory.len()) <= keep && self.memory.check("staging").is_ok() {
            free.push_back(self.memory.clone());
        }
    }
}

/// What the pool has.
enum Found<B: Backend> {
    Idle(Counted<Allocation<B>>),
    /// A copy may be using it.
    Busy(Counted<Allocation<B>>),
    Nothing,
}

impl<B: Backend> StagingPool<B> {
    /// A block of such a length, and a busy one only where there are as many of those as `most`.
    fn find(&self, operation: &'static str, bytes: RangeInclusive<usize>, most: usize) -> Found<B> {
        let fits = |block: &Counted<Allocation<B>>| bytes.contains(&block.len());
        let oldest = |free: &mut VecDeque<_>| free.iter().position(fits).and_then(|at| free.remove(at));
        // The last one lies in a cache still.
        let newest = {
            let mut free = self.free.lock();
            let at = free.iter().rposition(fits).filter(|at| free[*at].is_known_idle());
            at.and_then(|at| free.remove(at))
        };
        if let Some(block) = newest.filter(|block| block.check(operation).is_ok()) {
            return Found::Idle(block);
        }
        // One at a time: whoever looks meanwhile finds the others.
        for _ in 0..ASKED {
            let Some(block) = oldest(&mut self.free.lock()) else { return Found::Nothing };
            if block.check(operation).is_err() {
                // Of before a reset: it is of no use any more.
                continue;
            }
            if block.is_idle() {
                return Found::Idle(block);
            }
            self.free.lock().push_back(block);
        }
        let mut free = self.free.lock();
        if free.iter().filter(|block| fits(block)).count() < most {
            return Found::Nothing;
        }
        oldest(&mut free).map_or(Found::Nothing, Found::Busy)
    }

    /// Lets go of every block; they go the way of all memory.
    pub(crate) fn trim(&self) {
        let blocks = std::mem::take(&mut *self.free.lock());
        drop(blocks);
    }

    /// How memory of the caller is moved.
    pub(crate) fn options(&self) -> TransferOptions {
        *self.options.lock()
    }

    pub(crate) fn set_options(&self, options: TransferOptions) {
        *self.options.lock() = options.bounded();
    }

    /// The threads that help.
    pub(crate) fn crew(&self) -> &Crew {
        &self.crew
    }
}
