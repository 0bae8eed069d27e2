//! Memory for the temporaries of several graphs.

use crate::{
    Device,
    device::{Allocation, AllocationRef},
};
use gpumem_core::{Backend, Result};
use parking_lot::Mutex;
use std::{fmt, sync::Arc};

/// One block for the temporaries of several graphs, as large as the largest of them needs: [`Device::record_in`]. Launches of these
/// graphs run one after the other, on whichever streams. Cloning it is cheap and gives the same memory, which lives as long as a clone
/// or a graph that uses it.
pub struct GraphMemory<B: Backend>(Arc<Inner<B>>);

struct Inner<B: Backend> {
    device: Device<B>,
    /// Nothing is called under the lock.
    block: Mutex<Option<Block<B>>>,
}

/// Memory, and what its address is a multiple of.
struct Block<B: Backend> {
    memory: AllocationRef<B>,
    align: usize,
}

impl<B: Backend> Block<B> {
    fn fits(&self, bytes: usize, align: usize) -> bool {
        self.memory.is_fresh() && self.memory.len() >= bytes && self.align.is_multiple_of(align)
    }
}

impl<B: Backend> GraphMemory<B> {
    /// No memory yet, of the device: graphs that are recorded make it grow.
    pub fn new(device: &Device<B>) -> Self {
        Self(Arc::new(Inner { device: device.outside_recording(), block: Mutex::default() }))
    }

    /// Returns [`WrongDevice`](gpumem_core::ErrorKind::WrongDevice) for memory of another device.
    pub(super) fn check(&self, operation: &'static str, device: &Device<B>) -> Result<()> {
        device.core().check_same(operation, "memory of graphs", self.0.device.core())
    }

    /// The block for one launch of a graph that needs so many bytes, from a multiple of `align` on. The graph keeps it by the log of
    /// its uses only. Every launch asks, because other graphs may have put another block in the place of one that fitted.
    /// Returns [`OutOfMemory`](ErrorKind::OutOfMemory) if there was none that fits, and no room for one.
    pub(super) fn block(
        &self,
        operation: &'static str,
        bytes: usize,
        align: usize,
    ) -> Result<AllocationRef<B>> {
        let (mut most, mut widest) = (bytes, align);
        if let Some(block) = &*self.0.block.lock() {
            if block.fits(bytes, align) {
                return Ok(block.memory.clone());
            }
            // Other graphs need as much as before.
            (most, widest) = (most.max(block.memory.len()), widest.max(block.align));
        }
        let memory = Allocation::new(&self.0.device, operation, most, widest)?;
        let made = Block { memory: memory.clone(), align: widest };
        let mut block = self.0.block.lock();
        // Another thread may have made one that is larger.
        let old = match block.as_ref().is_some_and(|block| block.fits(most, widest)) {
            true => Some(made),
            false => block.replace(made),
        };
        drop(block);
        drop(old);
        Ok(memory)
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
