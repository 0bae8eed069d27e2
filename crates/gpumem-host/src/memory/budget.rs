//! How much memory a device has left, and the released memory that is held back.

use super::{Block, Table};
use crate::sync::lock;
use gpumem_core::MemoryInfo;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Most bytes and blocks that are held back.
const QUARANTINE_BYTES: usize = 64 << 20;
const QUARANTINE_BLOCKS: usize = 4096;

/// The device memory that is left. Other kinds of memory are the host's and are not counted here.
#[derive(Debug)]
pub(crate) struct Budget {
    capacity: usize,
    used: AtomicUsize,
    quarantine: Mutex<Quarantine>,
}

#[derive(Debug, Default)]
struct Quarantine {
    blocks: VecDeque<Arc<Block>>,
    bytes: usize,
}

impl Budget {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { capacity, used: AtomicUsize::new(0), quarantine: Mutex::default() }
    }

    pub(crate) fn info(&self) -> MemoryInfo {
        let used = self.used.load(Ordering::Relaxed);
        MemoryInfo { free: self.capacity.saturating_sub(used), total: self.capacity }
    }

    /// Takes bytes out of the budget, or returns how many are left.
    pub(crate) fn take(&self, bytes: usize) -> Result<(), MemoryInfo> {
        let fits = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= self.capacity);
        match self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits) {
            Ok(_) => Ok(()),
            Err(_) => Err(self.info()),
        }
    }

    pub(crate) fn give_back(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Keeps a released block for a while, and frees the oldest ones.
    pub(crate) fn hold_back(&self, block: Arc<Block>, table: &Table) {
        let mut quarantine = lock(&self.quarantine);
        quarantine.bytes += block.len();
        quarantine.blocks.push_back(block);
        while quarantine.bytes > QUARANTINE_BYTES || quarantine.blocks.len() > QUARANTINE_BLOCKS {
            let Some(oldest) = quarantine.blocks.pop_front() else { break };
            quarantine.bytes -= oldest.len();
            table.forget(&oldest);
        }
    }

    /// Forgets everything, after a reset.
    pub(crate) fn clear(&self) {
        self.used.store(0, Ordering::Relaxed);
        *lock(&self.quarantine) = Quarantine::default();
    }
}
