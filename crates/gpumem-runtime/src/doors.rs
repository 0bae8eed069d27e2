//! The doors from the handles that users hold to the order of work and to the bookkeeping of memory.

use crate::{
    Storage, StorageMut, Stream, ToDevice, UninitArray, Varying,
    array::ArrayBase,
    device::{Allocation, AllocationRef, Device},
    key::Key,
    transfer::ArrayRef,
};
use gpumem_core::{Backend, Element, Result};
use gpumem_memory::{memory::DeviceCore, track::Timeline};
use ndarray::Dimension;
use std::{any::Any, sync::Arc};

impl<B: Backend> Device<B> {
    /// The core, for the other crates of gpumem.
    #[doc(hidden)]
    #[inline]
    pub fn core_by(&self, _: Key) -> &Arc<DeviceCore<B>> {
        self.core()
    }
}

impl<B: Backend> Device<B> {
    /// A handle that belongs to no recording of a graph, for what outlives each.
    #[doc(hidden)]
    pub fn outside_recording_by(&self, _: Key) -> Self {
        self.outside_recording()
    }

    /// Whether the handle belongs to the recording of a graph, for the other crates of gpumem.
    #[doc(hidden)]
    pub fn is_recording_by(&self, _: Key) -> bool {
        self.recording().is_some()
    }
}

impl<B: Backend> Stream<B> {
    /// The stream as the ordering code sees it, for the other crates of gpumem.
    #[doc(hidden)]
    #[inline]
    pub fn timeline_by(&self, _: Key) -> &Arc<Timeline<B>> {
        self.timeline()
    }

    /// [`copy_to_device`](Self::copy_to_device) for the other crates of gpumem. Returns the submission of the copy, or of its last part.
    ///
    /// # Errors
    /// As there.
    #[doc(hidden)]
    pub fn copy_to_device_by<D, M, S>(
        &self,
        _: Key,
        destination: &mut ArrayBase<M, D>,
        source: &S,
    ) -> Result<u64>
    where
        D: Dimension,
        M: StorageMut<Backend = B>,
        S: ToDevice<B, Elem = M::Elem, Dim = D> + ?Sized,
    {
        self.copy_numbered(destination, source)
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

impl<T: Element, D: Dimension, B: Backend> UninitArray<T, D, B> {
    /// The memory and the layout, for the other crates of gpumem: what is enqueued there writes it.
    #[doc(hidden)]
    pub fn place_by(&self, _: Key) -> ArrayRef<'_, B> {
        self.place()
    }
}

impl<T, B: Backend> Varying<T, B> {
    /// The placeholder memory and the recorded bytes, for the other crates of gpumem.
    #[doc(hidden)]
    pub fn place_by(&self, _: Key) -> (&AllocationRef<B>, &[u8]) {
        (&self.memory, &self.bytes)
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

    /// Foreign memory, for the other crates of gpumem; `owner` keeps it alive.
    pub fn foreign_by(
        _: Key,
        device: &Device<B>,
        address: u64,
        len: usize,
        owner: Box<dyn Any + Send + Sync>,
    ) -> AllocationRef<B> {
        Self::foreign(device, address, len, owner)
    }
}
