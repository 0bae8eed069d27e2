//! Arrays whose elements have yet to be written.

use super::{ArrayBase, DeviceArray};
use crate::{
    ArraySpec, Device, Layout, ToDevice,
    device::Allocation,
    transfer::{self, ArrayRef, Upload},
};
use gpumem_core::{Backend, Element, Result};
use ndarray::Dimension;
use std::fmt;

/// An array without contents, as `MaybeUninit` is a value without one. It can only be written, and becomes a
/// [`DeviceArray`] by being written as a whole.
#[must_use = "the elements have yet to be written"]
pub struct UninitArray<T: Element, D: Dimension, B: Backend>(DeviceArray<T, D, B>);

impl<T: Element, D: Dimension, B: Backend> UninitArray<T, D, B> {
    #[inline]
    pub(crate) fn allocate(device: &Device<B>, operation: &'static str, spec: ArraySpec<D>) -> Result<Self> {
        match spec.packed_bytes(size_of::<T>()) {
            Some(Ok(bytes)) => {
                let align = align::<T, B>(device);
                let memory = Allocation::new(device, operation, bytes, align)?;
                // Last, and where it stays: a layout is larger than all else that is handed on here.
                Ok(Self(ArrayBase::over(memory, spec.counted_layout(size_of::<T>()))))
            }
            Some(Err(error)) => Err(device.core().error(operation, error)),
            None => Self::allocate_strided(device, operation, &spec),
        }
    }

    #[cold]
    fn allocate_strided(device: &Device<B>, operation: &'static str, spec: &ArraySpec<D>) -> Result<Self> {
        let layout = spec.aligned_layout(size_of::<T>(), align_of::<T>());
        Self::with_layout(device, operation, layout.map_err(|error| device.core().error(operation, error))?)
    }

    pub(crate) fn with_layout(device: &Device<B>, operation: &'static str, layout: Layout) -> Result<Self> {
        layout.check_alignment(align_of::<T>()).map_err(|error| device.core().error(operation, error))?;
        let (bytes, align) = (layout.extent().end, align::<T, B>(device));
        let memory = Allocation::new(device, operation, bytes, align)?;
        Ok(Self(ArrayBase::over(memory, layout)))
    }

    /// Zeros in memory that no other array has a part of.
    pub(crate) fn exportable(
        device: &Device<B>,
        operation: &'static str,
        spec: ArraySpec<D>,
    ) -> Result<DeviceArray<T, D, B>> {
        let layout = spec.aligned_layout(size_of::<T>(), align_of::<T>());
        let layout = layout.map_err(|error| device.core().error(operation, error))?;
        let bytes = layout.extent().end;
        let memory = Allocation::alone(device, operation, bytes, align::<T, B>(device))?;
        zeroed(Self(ArrayBase::over(memory, layout)), operation)
    }

    /// Lengths of the axes.
    pub fn shape(&self) -> &[usize] {
        self.0.shape()
    }

    /// Sets every element.
    ///
    /// # Errors
    /// Returns [`Driver`](gpumem_core::ErrorKind::Driver) if the driver reports a failure; the memory is freed then.
    pub fn fill(mut self, value: T) -> Result<DeviceArray<T, D, B>> {
        self.0.fill(value)?;
        Ok(self.0)
    }

    /// Copies every element from a source of equal shape.
    ///
    /// # Errors
    /// Returns [`ShapeMismatch`](gpumem_core::LayoutError::ShapeMismatch) if the shapes differ. Otherwise as
    /// [`copy_to_device`](ArrayBase::copy_to_device). The memory is freed after an error.
    pub fn copy_from<S>(self, source: &S) -> Result<DeviceArray<T, D, B>>
    where
        S: ToDevice<B, Elem = T, Dim = D> + ?Sized,
    {
        let timeline = self.0.device()?.default_timeline()?;
        source.source().copy_to(&timeline, "copy_from", self.0.place(), Upload::Blocking)?;
        Ok(self.0)
    }

    /// Declares every element written.
    ///
    /// # Safety
    /// Work that writes every element has been enqueued, and is ordered before all reads of the array: work that goes
    /// through [`Stream::raw_scope`](crate::Stream::raw_scope) is.
    pub unsafe fn assume_init(self) -> DeviceArray<T, D, B> {
        self.0
    }

    pub(crate) fn place(&self) -> ArrayRef<'_, B> {
        self.0.place()
    }

    /// The array as something that other libraries write to, through [`Stream::raw_scope`](crate::Stream::raw_scope).
    pub fn raw_access(&mut self) -> crate::RawAccess<'_, B> {
        crate::RawAccess::write(&mut self.0)
    }
}

impl<T: Element, D: Dimension, B: Backend> fmt::Debug for UninitArray<T, D, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("UninitArray").field(&self.shape()).finish()
    }
}

/// Alignment of memory for elements.
#[inline]
pub(crate) fn align<T: Element, B: Backend>(device: &Device<B>) -> usize {
    device.capabilities().allocation_alignment.max(align_of::<T>())
}

/// Zeroes an array in the order of its device's default stream.
pub(super) fn zeroed<T: Element, D: Dimension, B: Backend>(
    array: UninitArray<T, D, B>,
    operation: &'static str,
) -> Result<DeviceArray<T, D, B>> {
    let timeline = array.0.device()?.default_timeline()?;
    transfer::fill_zeros(&timeline, operation, array.0.place())?;
    Ok(array.0)
}
