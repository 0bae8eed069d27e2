//! Arrays in stream order.

use crate::{
    ArrayBase, DeviceArray, HostArray, HostKind, PinnedArray, Storage, StorageMut, Stream, ToDevice,
    UninitArray, UninitHostArray,
    layout::IntoArraySpec,
    transfer::{self, ArrayRef},
};
use gpumem_core::{Backend, Element, Result};
use ndarray::Dimension;

impl<B: Backend> Stream<B> {
    /// Creates an array of zeros in stream order.
    ///
    /// # Errors
    /// As for [`Device::device_array`](crate::Device::device_array).
    pub fn device_array<T: Element, S: IntoArraySpec>(&self, spec: S) -> Result<DeviceArray<T, S::Dim, B>> {
        let operation = "device_array";
        let array = UninitArray::<T, S::Dim, B>::allocate(self.device(), operation, spec.into_spec())?;
        // SAFETY: the fill below is ordered before every later use of the array.
        let array = unsafe { array.assume_init() };
        transfer::fill_zeros(self.timeline(), operation, array.place())?;
        Ok(array)
    }

    /// Creates an array without contents, which must be written as a whole; its memory is likely memory that this
    /// stream has used before.
    ///
    /// # Errors
    /// As for [`Device::uninit_array`](crate::Device::uninit_array).
    pub fn uninit_array<T: Element, S: IntoArraySpec>(&self, spec: S) -> Result<UninitArray<T, S::Dim, B>> {
        UninitArray::allocate(self.device(), "uninit_array", spec.into_spec())
    }

    /// Copies `source` into a new array in stream order. A host array has been read when this returns; page-locked
    /// and device sources are read in stream order.
    /// ```
    /// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let stream = device.stream()?;
    /// let array = stream.to_device(&vec![1.0; 1000])?; // the vector is free again
    /// assert_eq!(array.get(999)?, 1.0);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Device::to_device`](crate::Device::to_device).
    pub fn to_device<S>(&self, source: &S) -> Result<DeviceArray<S::Elem, S::Dim, B>>
    where
        S: ToDevice<B> + ?Sized,
    {
        let source = source.source();
        let array = source.allocate_like(self.device(), "to_device")?;
        // SAFETY: the copy below is ordered before every later use of the array.
        let array = unsafe { array.assume_init() };
        source.copy_to(self.timeline(), "to_device", array.place(), transfer::Upload::Staged)?;
        Ok(array)
    }

    /// Copies `source` into `destination` in stream order, as [`to_device`](Self::to_device).
    /// ```
    /// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let stream = device.stream()?;
    /// let mut array = stream.device_array::<i32, _>(3)?;
    /// stream.copy_to_device(&mut array, &[1, 2, 3])?;
    /// assert_eq!(array.get(2)?, 3);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`ArrayBase::copy_to_device`].
    pub fn copy_to_device<D, M, S>(&self, destination: &mut ArrayBase<M, D>, source: &S) -> Result<()>
    where
        D: Dimension,
        M: StorageMut<Backend = B>,
        S: ToDevice<B, Elem = M::Elem, Dim = D> + ?Sized,
    {
        self.copy_numbered(destination, source).map(drop)
    }

    /// As [`copy_to_device`](Self::copy_to_device), and returns the submission of the copy, or of its last part.
    pub(crate) fn copy_numbered<D, M, S>(&self, destination: &mut ArrayBase<M, D>, source: &S) -> Result<u64>
    where
        D: Dimension,
        M: StorageMut<Backend = B>,
        S: ToDevice<B, Elem = M::Elem, Dim = D> + ?Sized,
    {
        let (timeline, to) = (self.timeline(), destination.place());
        source.source().copy_to(timeline, "copy_to_device", to, transfer::Upload::Staged)
    }

    /// Copies `source` into a new page-locked array in stream order. Reading it waits.
    /// ```
    /// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let stream = device.stream()?;
    /// let array = stream.to_device(&[1, 2, 3])?;
    /// let back = stream.copy_to_host(&array)?; // returns at once
    /// assert_eq!(back.view()?.to_vec(), [1, 2, 3]); // waits
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`OutOfMemory`](gpumem_core::ErrorKind::OutOfMemory) if the host has no page-locked memory left, and
    /// [`Driver`](gpumem_core::ErrorKind::Driver) if the driver reports a failure.
    pub fn copy_to_host<S, D>(&self, source: &ArrayBase<S, D>) -> Result<PinnedArray<S::Elem, D, B>>
    where
        S: Storage<Backend = B>,
        D: Dimension,
    {
        UninitHostArray::copy_of(self, "copy_to_host", source)
    }

    /// Copies `source` into a host array of the library, in stream order. Reading it waits.
    ///
    /// # Errors
    /// Returns [`ShapeMismatch`](gpumem_core::LayoutError::ShapeMismatch) if the shapes differ, and
    /// [`Driver`](gpumem_core::ErrorKind::Driver) if the driver reports a failure.
    pub fn copy_to_host_into<S, D, K>(
        &self,
        source: &ArrayBase<S, D>,
        destination: &mut HostArray<K, S::Elem, D, B>,
    ) -> Result<()>
    where
        S: Storage<Backend = B>,
        D: Dimension,
        K: HostKind,
    {
        let (from, to) = (source.place(), destination.place());
        transfer::copy::<S::Elem, B>(self.timeline(), "copy_to_host", from, to)?;
        Ok(())
    }

    /// Sets every element of `destination` in stream order.
    ///
    /// # Errors
    /// Returns [`Driver`](gpumem_core::ErrorKind::Driver) if the driver reports a failure.
    pub fn fill<M, D>(&self, destination: &mut ArrayBase<M, D>, value: M::Elem) -> Result<()>
    where
        M: StorageMut<Backend = B>,
        D: Dimension,
    {
        transfer::fill(self.timeline(), "fill", destination.place(), value)?;
        Ok(())
    }

    /// Copies `source`, broadcast to the shape of `destination`, in stream order.
    ///
    /// # Errors
    /// Returns [`CannotBroadcast`](gpumem_core::LayoutError::CannotBroadcast) if the source does not fit. Otherwise
    /// as [`copy_to_device`](Self::copy_to_device).
    pub fn assign<D, M, S>(&self, destination: &mut ArrayBase<M, D>, source: &S) -> Result<()>
    where
        D: Dimension,
        M: StorageMut<Backend = B>,
        S: ToDevice<B, Elem = M::Elem> + ?Sized,
    {
        let to = ArrayRef::new(&destination.memory, &destination.layout);
        source.source().broadcast_to(self.timeline(), "assign", to, transfer::Upload::Staged)?;
        Ok(())
    }
}
