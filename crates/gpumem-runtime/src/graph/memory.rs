//! Memory for the temporaries of several graphs.

use crate::{
    Device,
    device::{Allocation, AllocationRef},
};
use gpumem_core::{Backend, ErrorKind, Result};
use parking_lot::Mutex;
use std::{fmt, sync::Arc};

const OPERATION: &str = "record";

/// One block for the temporaries of several graphs, as large as the largest of them needs: [`Device::record_in`]. Launches of these
/// graphs run one after the other, on whichever streams. Cloning it is cheap and gives the same memory, which lives as long as a clone
/// or a graph that uses it.
pub struct GraphMemory<B: Backend>(Arc<Inner<B>>);

struct Inner<B: Backend> {
    device: Device<B>,
    /// Nothing is called under the lock.
    block: Mutex<Option<AllocationRef<B>>>,
}

impl<B: Backend> GraphMemory<B> {
    /// No memory yet, of the device: graphs that are recorded make it grow.
    pub fn new(device: &Device<B>) -> Self {
        Self(Arc::new(Inner { device: device.outside_recording(), block: Mutex::default() }))
    }

    /// The block that a launch uses. The graph keeps it by the log of its uses only.
    pub(super) fn block(&self) -> Option<AllocationRef<B>> {
        self.0.block.lock().clone()
    }

    /// Makes the block at least so large.
    /// Returns [`WrongDevice`](ErrorKind::WrongDevice) for memory of another device, and
    /// [`OutOfMemory`](ErrorKind::OutOfMemory).
    pub(super) fn reserve(&self, device: &Device<B>, bytes: usize, align: usize) -> Result<()> {
        let (own, core) = (self.0.device.core(), device.core());
        if !own.is_same(core.context()) {
            let (has, wants) = (own.name(), core.name());
            return Err(
                core.error(OPERATION, ErrorKind::WrongDevice { what: "memory of graphs", has, wants })
            );
        }
        let fits = |block: &AllocationRef<B>, bytes| {
            block.is_fresh() && block.len() >= bytes && block.address().is_multiple_of(align as u64)
        };
        let before = self.block();
        if before.as_ref().is_some_and(|block| fits(block, bytes)) {
            return Ok(());
        }
        let bytes = before.map_or(bytes, |block| block.len().max(bytes));
        let made = Allocation::new(&self.0.device, OPERATION, bytes, align)?;
        let mut block = self.0.block.lock();
        // Another thread may have made a larger one.
        let old = match block.as_ref().is_some_and(|block| fits(block, bytes)) {
            true => Some(made),
            false => block.replace(made),
        };
        drop(block);
        drop(old);
        Ok(())
    }
}

impl<B: Backend> Clone for GraphMemory<B> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<B: Backend> fmt::Debug for GraphMemory<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GraphMemory").finish_non_exhaustive()
    }
}
