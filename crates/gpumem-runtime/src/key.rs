//! The doors from the handles that users hold to the order of work and to the bookkeeping of memory, and their key.

use crate::{
    Storage, Stream,
    array::ArrayBase,
    device::{Allocation, AllocationRef, Device},
    transfer::ArrayRef,
};
use gpumem_core::{Backend, Result};
use gpumem_memory::{memory::DeviceCore, track::Timeline};
use ndarray::Dimension;
use std::sync::Arc;

/// What a caller needs who looks behind a handle. Safe code can make none, so it cannot fill an array of another's, empty a
/// log, forget poison, or end a stream.
#[derive(Clone, Copy)]
pub struct Key(());

impl Key {
    /// Makes a key.
    ///
    /// # Safety
    /// The caller is a crate of gpumem, and keeps the laws of the order of work and of memory with all that the key opens:
    /// it submits each access to memory, within the bounds of the memory, and records no work that does not run.
    pub const unsafe fn new() -> Self {
        Self(())
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key")
    }
}

impl<B: Backend> Device<B> {
    /// The core, for the other crates of gpumem.
    #[doc(hidden)]
    #[inline]
    pub fn core_by(&self, _: Key) -> &Arc<DeviceCore<B>> {
        self.core()
    }
}

impl<B: Backend> Stream<B> {
    /// The stream as the ordering code sees it, for the other crates of gpumem.
    #[doc(hidden)]
    #[inline]
    pub fn timeline_by(&self, _: Key) -> &Arc<Timeline<B>> {
        self.timeline()
    }
}

impl<S: Storage, D: Dimension> ArrayBase<S, D> {
    /// The memory and the layout, for the other crates of gpumem.
    #[doc(hidden)]
    #[inline]
    pub fn place_by(&self, _: Key) -> ArrayRef<'_, S::Backend> {
        self.place()
    }
}

impl<B: Backend> Allocation<B> {
    /// Memory that no array has, for the other crates of gpumem.
    ///
    /// # Errors
    /// Returns the error of an array's allocation.
    #[inline]
    pub fn new_by(
        _: Key,
        device: &Device<B>,
        operation: &'static str,
        bytes: usize,
        align: usize,
    ) -> Result<AllocationRef<B>> {
        Self::new(device, operation, bytes, align)
    }
}
