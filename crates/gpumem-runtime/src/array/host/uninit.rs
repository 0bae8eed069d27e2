//! Host arrays whose elements have yet to be written.

use super::{HostArray, HostKind, PinnedArray};
use crate::{
    ArrayBase, Device, IntoArraySpec, Layout, Managed, Mapped, Pinned, Storage, Stream, ToDevice,
    array::align, device::Allocation,
};
use gpumem_core::{Attach, Backend, Element, MappedOptions, MemoryKind, Result};
use ndarray::{ArrayView, Dimension};
use std::fmt;

/// A host array without contents. It can only be written, and becomes a [`HostArray`] by being written as a whole.
#[must_use = "the elements have yet to be written"]
pub struct UninitHostArray<K: HostKind, T: Element, D: Dimension, B: Backend>(HostArray<K, T, D, B>);

impl<K: HostKind, T: Element, D: Dimension, B: Backend> UninitHostArray<K, T, D, B> {
    fn allocate(
        device: &Device<B>,
        operation: &'static str,
        layout: Layout,
        kind: MemoryKind,
    ) -> Result<Self> {
        let align = align::<T, B>(device);
        let memory = Allocation::for_host(device, operation, layout.extent().end, align, kind)?;
        Ok(Self(HostArray::over(operation, memory.into_memory(), layout)?))
    }

    /// Lengths of the axes.
    pub fn shape(&self) -> &[usize] {
        self.0.shape()
    }

    /// Sets every element.
    ///
    /// # Errors
    /// Returns [`DeviceLost`](gpumem_core::ErrorKind::DeviceLost) or [`Stale`](gpumem_core::ErrorKind::Stale) if the
    /// device is lost or was reset; the memory is freed then.
    pub fn fill(mut self, value: T) -> Result<HostArray<K, T, D, B>> {
        self.0.view_mut()?.fill(value);
        Ok(self.0)
    }

    /// Copies every element from an array of the host.
    ///
    /// # Errors
    /// Returns [`ShapeMismatch`](gpumem_core::LayoutError::ShapeMismatch) if the shapes differ, and
    /// [`DeviceLost`](gpumem_core::ErrorKind::DeviceLost) or [`Stale`](gpumem_core::ErrorKind::Stale) if the device
    /// is lost or was reset. The memory is freed then.
    pub fn assign(mut self, source: ArrayView<'_, T, D>) -> Result<HostArray<K, T, D, B>> {
        if self.shape() != source.shape() {
            let (found, expected) = (source.shape().to_vec(), self.shape().to_vec());
            let error = gpumem_core::LayoutError::ShapeMismatch { found, expected };
            return Err(self.0.memory().core().error("assign", error));
        }
        self.0.view_mut()?.assign(&source);
        Ok(self.0)
    }

    /// Copies every element from a source of equal shape, on any device or the host.
    ///
    /// # Errors
    /// Returns [`ShapeMismatch`](gpumem_core::LayoutError::ShapeMismatch) if the shapes differ. Otherwise as
    /// [`copy_to_device`](crate::ArrayBase::copy_to_device). The memory is freed after an error.
    pub fn copy_from<S>(mut self, source: &S) -> Result<HostArray<K, T, D, B>>
    where
        S: ToDevice<B, Elem = T, Dim = D> + ?Sized,
    {
        self.0.copy_from(source)?;
        Ok(self.0)
    }

    /// Declares every element written.
    ///
    /// # Safety
    /// Work that writes every element has been enqueued through this library, so that reading waits for it.
    pub unsafe fn assume_init(self) -> HostArray<K, T, D, B> {
        self.0
    }
}

impl<T: Element, D: Dimension, B: Backend> UninitHostArray<Pinned, T, D, B> {
    /// A packed array with the shape and the order of axes of `source`, to which its elements are copied in the order of `stream`.
    /// A copy that fails later poisons the array.
    pub(crate) fn copy_of<S: Storage<Backend = B, Elem = T>>(
        stream: &Stream<B>,
        operation: &'static str,
        source: &ArrayBase<S, D>,
    ) -> Result<PinnedArray<T, D, B>> {
        let mut array =
            Self::allocate(stream.device(), operation, source.layout().like(), MemoryKind::Pinned)?;
        stream.copy_to_host_into(source, &mut array.0)?;
        Ok(array.0)
    }

    /// As [`copy_of`](Self::copy_of), for a packed source, in memory that the device may still use otherwise: the copy waits for that.
    pub(crate) fn copy_of_packed<S: Storage<Backend = B, Elem = T>>(
        stream: &Stream<B>,
        operation: &'static str,
        source: &ArrayBase<S, D>,
    ) -> Result<PinnedArray<T, D, B>> {
        let (layout, align) = (source.layout().like(), align::<T, B>(stream.device()));
        let memory = Allocation::pinned_in_flight(stream.device(), operation, layout.extent().end, align)?;
        let mut array = Self(HostArray::over(operation, memory, layout)?);
        stream.copy_to_host_into(source, &mut array.0)?;
        Ok(array.0)
    }
}

impl<B: Backend> Device<B> {
    /// Creates a page-locked array without contents, which must be written as a whole.
    ///
    /// # Errors
    /// As for [`pinned_array`](Self::pinned_array).
    pub fn uninit_pinned_array<T: Element, S: IntoArraySpec>(
        &self,
        spec: S,
    ) -> Result<UninitHostArray<Pinned, T, S::Dim, B>> {
        let operation = "uninit_pinned_array";
        let layout = super::create::layout_of::<T, S, B>(operation, spec, self.core())?;
        UninitHostArray::allocate(self, operation, layout, MemoryKind::Pinned)
    }

    /// Creates a page-locked array that kernels can use, without contents, which must be written as a whole.
    ///
    /// # Errors
    /// As for [`mapped_array`](Self::mapped_array).
    pub fn uninit_mapped_array<T: Element, S: IntoArraySpec>(
        &self,
        spec: S,
        options: MappedOptions,
    ) -> Result<UninitHostArray<Mapped, T, S::Dim, B>> {
        let operation = "uninit_mapped_array";
        let layout = super::create::layout_of::<T, S, B>(operation, spec, self.core())?;
        super::create::require(operation, self.capabilities().mapped, "mapped memory", self.core())?;
        UninitHostArray::allocate(self, operation, layout, MemoryKind::Mapped(options))
    }

    /// Creates an array that migrates between host and device, without contents, which must be written as a whole.
    ///
    /// # Errors
    /// As for [`managed_array`](Self::managed_array).
    pub fn uninit_managed_array<T: Element, S: IntoArraySpec>(
        &self,
        spec: S,
        attach: Attach,
    ) -> Result<UninitHostArray<Managed, T, S::Dim, B>> {
        let operation = "uninit_managed_array";
        let layout = super::create::layout_of::<T, S, B>(operation, spec, self.core())?;
        super::create::require(operation, self.capabilities().managed, "managed memory", self.core())?;
        UninitHostArray::allocate(self, operation, layout, MemoryKind::Managed(attach))
    }
}

impl<K: HostKind, T: Element, D: Dimension, B: Backend> fmt::Debug for UninitHostArray<K, T, D, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("UninitHostArray").field(&self.shape()).finish()
    }
}
