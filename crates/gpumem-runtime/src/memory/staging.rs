//! Page-locked blocks through which borrowed host memory is moved.

use super::Allocation;
use crate::Device;
use gpumem_core::{Backend, Result};
use parking_lot::Mutex;
use std::sync::Arc;

/// Most bytes that are kept for later. Page-locking is slow (milliseconds a MiB), so blocks are kept.
const KEEP: usize = 64 << 20;
/// The smallest block.
const SMALLEST: usize = 64 << 10;

/// Blocks that are not being filled or drained. Some may still be read or written by a copy: their use log knows.
#[derive(Debug)]
pub(crate) struct StagingPool<B: Backend> {
    free: Mutex<Vec<Arc<Allocation<B>>>>,
}

impl<B: Backend> Default for StagingPool<B> {
    fn default() -> Self {
        Self { free: Mutex::new(Vec::new()) }
    }
}

/// A block in use. Goes back to its pool when dropped; forgetting it leaks it, and nothing else.
#[derive(Debug)]
pub(crate) struct Staging<B: Backend> {
    device: Device<B>,
    memory: Arc<Allocation<B>>,
}

impl<B: Backend> Staging<B> {
    /// A block of at least `bytes` bytes that no copy uses any more.
    pub(crate) fn take(device: &Device<B>, operation: &'static str, bytes: usize) -> Result<Self> {
        let wanted = bytes.max(SMALLEST).checked_next_power_of_two().unwrap_or(bytes);
        let candidates = {
            let mut free = device.0.staging.free.lock();
            let (fits, rest) =
                std::mem::take(&mut *free).into_iter().partition(|block: &Arc<Allocation<B>>| {
                    block.len() >= bytes && block.len() <= wanted.saturating_mul(4)
                });
            *free = rest;
            fits
        };
        let mut found = None;
        let mut others: Vec<_> = Vec::new();
        for block in candidates {
            match found.is_none() && block.check(operation).is_ok() && block.is_idle() {
                true => found = Some(block),
                false => others.push(block),
            }
        }
        device.0.staging.free.lock().append(&mut others);
        let memory = match found {
            Some(memory) => memory,
            None => Allocation::internal(device, operation, wanted)?,
        };
        Ok(Self { device: device.clone(), memory })
    }

    pub(crate) fn memory(&self) -> &Arc<Allocation<B>> {
        &self.memory
    }
}

impl<B: Backend> Drop for Staging<B> {
    fn drop(&mut self) {
        let mut free = self.device.0.staging.free.lock();
        let kept: usize = free.iter().map(|block| block.len()).sum();
        if kept.saturating_add(self.memory.len()) <= KEEP && self.memory.check("staging").is_ok() {
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
}
