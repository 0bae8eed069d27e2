//! Memory that nothing writes any more.

use super::AllocationRef;
use crate::frozen;
use gpumem_core::Backend;
use std::sync::Arc;

/// Memory that nothing writes while this lives.
#[derive(Debug)]
pub struct FrozenMemory<B: Backend> {
    pub(crate) memory: AllocationRef<B>,
}

impl<B: Backend> FrozenMemory<B> {
    /// The caller gives up all that could write the memory.
    pub(crate) fn new(memory: AllocationRef<B>) -> Arc<Self> {
        let id = memory.id();
        let frozen = Arc::new(Self { memory });
        let owner: frozen::Owner = frozen.clone();
        frozen::insert(id, &owner);
        frozen
    }
}

impl<B: Backend> Drop for FrozenMemory<B> {
    fn drop(&mut self) {
        // In a forked child a thread of the parent may hold the lock for ever.
        if self.memory.context().origin.is_valid() {
            frozen::remove(self.memory.id());
        }
    }
}
