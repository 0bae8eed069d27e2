//! An item of the queue of deferred frees.

use super::{driver::DriverStats, pending_accesses::PendingAccesses, resource::MemoryBlock};
use gpumem_core::{Backend, MemoryUse};
use std::{any::Any, sync::Arc};

/// An object to be freed through the driver.
pub enum DeferredFree<B: Backend> {
    /// A block, and the number of its resource. The block names its pending uses.
    Memory {
        block: MemoryBlock<B>,
        /// The number of its resource.
        resource: u8,
    },
    /// A block of the driver's resource, with the counts that it leaves.
    Driver {
        block: MemoryBlock<B>,
        stats: Arc<DriverStats>,
    },
    /// Foreign memory: dropping its owner gives it back.
    Foreign {
        owner: Box<dyn Any + Send + Sync>,
        uses: PendingAccesses<B>,
        /// Its bytes, for the backend.
        memory: MemoryUse,
    },
    /// The driver's stream. Threads that wait for it share it.
    Stream(Arc<B::Stream>),
    /// A stream of another library. Its owner, which may destroy it, is dropped once no work and no thread uses it any more.
    ForeignStream {
        raw: Arc<B::Stream>,
        owner: Box<dyn Any + Send + Sync>,
        uses: PendingAccesses<B>,
    },
    Event(B::Event),
    /// The module of a kernel: dropping it unloads it.
    Module {
        module: Box<dyn Any + Send + Sync>,
        uses: PendingAccesses<B>,
    },
}

impl<B: Backend> DeferredFree<B> {
    pub(super) fn bytes(&self) -> usize {
        match self {
            DeferredFree::Memory { block, .. } | DeferredFree::Driver { block, .. } => block.bytes(),
            DeferredFree::Foreign { memory, .. } => memory.bytes,
            _ => 0,
        }
    }

    /// Bytes that freeing it gives back to the driver: other blocks go to a pool.
    pub(super) fn driver_bytes(&self) -> usize {
        match self {
            DeferredFree::Memory { block, .. } if block.is_of_driver() => block.bytes(),
            DeferredFree::Driver { block, .. } => block.bytes(),
            _ => 0,
        }
    }

    /// Whether it has an owner that is not the library.
    pub(super) fn is_foreign(&self) -> bool {
        matches!(self, DeferredFree::Foreign { .. } | DeferredFree::ForeignStream { .. })
    }

    pub(super) fn uses(&self) -> Option<&PendingAccesses<B>> {
        match self {
            DeferredFree::Memory { block, .. } | DeferredFree::Driver { block, .. } => Some(block.uses()),
            DeferredFree::Foreign { uses, .. }
            | DeferredFree::ForeignStream { uses, .. }
            | DeferredFree::Module { uses, .. } => Some(uses),
            _ => None,
        }
    }
}

impl<B: Backend> std::fmt::Debug for DeferredFree<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeferredFree").finish_non_exhaustive()
    }
}
