//! Making host arrays.

use super::{HostArray, HostKind, ManagedArray, MappedArray, PinnedArray};
use crate::device::DeviceCore;
use crate::{Device, IntoArraySpec, Layout, memory::Allocation};
use gpumem_core::{Attach, Backend, Element, ErrorKind, MappedOptions, MemoryKind, Result};
use ndarray::Dimension;

impl<K: HostKind, T: Element, D: Dimension, B: Backend> HostArray<K, T, D, B> {
    /// A new array of zeros.
    pub(crate) fn allocate(
        device: &Device<B>,
        operation: &'static str,
        layout: Layout,
        kind: MemoryKind,
    ) -> Result<Self> {
        let align = B::capabilities(device.raw()).allocation_alignment.max(align_of::<T>());
        let memory = Allocation::for_host(device, operation, layout.extent().end, align, kind)?;
        // Zeros make every later read defined.
        memory.zero(operation)?;
        Self::over(operation, memory.into_memory(), layout)
    }
}

impl<T: Element, D: Dimension, B: Backend> PinnedArray<T, D, B> {
    /// A new array with the shape and the order of axes of `layout`, packed.
    pub(crate) fn like(device: &Device<B>, operation: &'static str, layout: &Layout) -> Result<Self> {
        Self::allocate(device, operation, layout.like(), MemoryKind::Pinned)
    }
}

impl<B: Backend> Device<B> {
    /// A page-locked array of zeros: source and destination of truly asynchronous copies.
    ///
    /// # Errors
    /// A shape that is too large, strides that overlap or do not count in whole elements, out of memory.
    pub fn pinned_array<T: Element, S: IntoArraySpec>(&self, spec: S) -> Result<PinnedArray<T, S::Dim, B>> {
        let layout = layout_of::<T, S, B>("pinned_array", spec, self.core())?;
        HostArray::allocate(self, "pinned_array", layout, MemoryKind::Pinned)
    }

    /// A page-locked array of zeros that kernels can use.
    ///
    /// # Errors
    /// As [`pinned_array`](Self::pinned_array); [`Unsupported`](ErrorKind::Unsupported) where
    /// [`Capabilities::mapped`](gpumem_core::Capabilities::mapped) is false.
    pub fn mapped_array<T: Element, S: IntoArraySpec>(
        &self,
        spec: S,
        options: MappedOptions,
    ) -> Result<MappedArray<T, S::Dim, B>> {
        let layout = layout_of::<T, S, B>("mapped_array", spec, self.core())?;
        require("mapped_array", self.capabilities().mapped, "mapped memory", self.core())?;
        HostArray::allocate(self, "mapped_array", layout, MemoryKind::Mapped(options))
    }

    /// An array of zeros that migrates between host and device.
    ///
    /// # Errors
    /// As [`pinned_array`](Self::pinned_array); [`Unsupported`](ErrorKind::Unsupported) where
    /// [`Capabilities::managed`](gpumem_core::Capabilities::managed) is false.
    pub fn managed_array<T: Element, S: IntoArraySpec>(
        &self,
        spec: S,
        attach: Attach,
    ) -> Result<ManagedArray<T, S::Dim, B>> {
        let layout = layout_of::<T, S, B>("managed_array", spec, self.core())?;
        require("managed_array", self.capabilities().managed, "managed memory", self.core())?;
        HostArray::allocate(self, "managed_array", layout, MemoryKind::Managed(attach))
    }
}

/// Refuses a kind of memory that the device does not have.
pub(super) fn require<B: Backend>(
    operation: &'static str,
    has: bool,
    what: &'static str,
    core: &DeviceCore<B>,
) -> Result<()> {
    if has { Ok(()) } else { Err(core.error(operation, ErrorKind::Unsupported { what })) }
}

pub(super) fn layout_of<T: Element, S: IntoArraySpec, B: Backend>(
    operation: &'static str,
    spec: S,
    core: &DeviceCore<B>,
) -> Result<Layout> {
    spec.into_spec().layout(size_of::<T>()).map_err(|error| core.error(operation, error))
}
