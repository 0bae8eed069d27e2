//! Page-locked blocks through which borrowed host memory is moved, and what belongs to moving it.

use super::{Allocation, Counted};
use crate::{
    Device,
    transfer::{Crew, TransferOptions},
};
use gpumem_core::{Backend, Result};
use parking_lot::Mutex;

/// Most bytes that are kept for later, or what one transfer uses at most, if that is more. Page-locking is slow
/// (milliseconds a MiB), so blocks are kept.
const KEEP: usize = 64 << 20;
/// The smallest block.
const SMALLEST: usize = 64 << 10;

/// Blocks that are not being filled or drained. Some may still be read or written by a copy: their use log knows.
#[derive(Debug)]
pub(crate) struct StagingPool<B: Backend> {
    free: Mutex<Vec<Counted<Allocation<B>>>>,
    options: Mutex<TransferOptions>,
    crew: Crew,
}

impl<B: Backend> Default for StagingPool<B> {
    fn default() -> Self {
        let options = Mutex::new(TransferOptions::from_environment());
        Self { free: Mutex::new(Vec::new()), options, crew: Crew::default() }
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
        let wanted = bytes.max(SMALLEST).checked_next_power_of_two().unwrap_or(bytes);
        let fits =
            |block: &Counted<Allocation<B>>| block.len() >= bytes && block.len() <= wanted.saturating_mul(4);
        // One at a time: whoever looks meanwhile finds the others.
        let mut busy: Vec<_> = Vec::new();
        let mut found = None;
        while found.is_none() {
            let candidate = {
                let mut free = device.0.staging.free.lock();
                free.iter().rposition(fits).map(|at| free.swap_remove(at))
            };
            let Some(block) = candidate else { break };
            match block.check(operation).is_ok() && block.is_idle() {
                true => found = Some(block),
                false => busy.push(block),
            }
        }
        if !busy.is_empty() {
            device.0.staging.free.lock().append(&mut busy);
        }
        let memory = match found {
            Some(memory) => memory,
            None => Allocation::internal(device, operation, wanted)?,
        };
        Ok(Self { device: device.clone(), memory })
    }

    pub(crate) fn memory(&self) -> &Counted<Allocation<B>> {
        &self.memory
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
            free.push(self.memory.clone());
        }
    }
}

impl<B: Backend> StagingPool<B> {
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
