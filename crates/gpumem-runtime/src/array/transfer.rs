//! Copies, assignment, fills and single elements. Without a stream, all of them have finished on return.

use super::{ArrayBase, Storage, StorageMut};
use crate::{
    CopyPlan, Progress, ToDevice,
    array::host::{UninitBuffer, packed_shape},
    layout::Layout,
    transfer::{self, ArrayRef, Upload},
};
use gpumem_core::Result;
use gpumem_memory::{may_block, track::Timeline};
use ndarray::{Array, ArrayViewMut, Dimension, Ix0, NdIndex};
use std::{ops::ControlFlow, sync::Arc};

impl<S: Storage, D: Dimension> ArrayBase<S, D> {
    fn default_timeline(&self) -> Result<Arc<Timeline<S::Backend>>> {
        self.device()?.default_timeline()
    }

    /// Copies the elements into a new host array: packed, its axes in the same order. A lost device or work that
    /// failed is an error, never a wrong element.
    /// ```
    /// # use ndarray::{array, s}; let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let array = device.to_device(&array![[1, 2], [3, 4]])?;
    /// assert_eq!(array.copy_to_host()?, array![[1, 2], [3, 4]]);
    /// assert_eq!(array.slice(s![.., 1])?.copy_to_host()?, array![2, 4]);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`AsynchronousFault`](gpumem_core::ErrorKind::AsynchronousFault) if work that wrote the elements
    /// failed, and [`Poisoned`](gpumem_core::ErrorKind::Poisoned) if they were to be written by work that failed
    /// earlier. Returns [`BlockingInCallback`](gpumem_core::ErrorKind::BlockingInCallback) in a callback, and
    /// [`Driver`](gpumem_core::ErrorKind::Driver) if the driver reports a failure. Returns
    /// [`OutOfMemory`](gpumem_core::ErrorKind::OutOfMemory) if the host has no memory for the array.
    pub fn copy_to_host(&self, /* with a stream: stream.copy_to_host(&a) */) -> Result<Array<S::Elem, D>> {
        const OPERATION: &str = "copy_to_host";
        let packed = self.layout.like();
        let shape = packed_shape::<S::Elem, D>(self.raw_dim(), &packed);
        let mut host = UninitBuffer::<S::Elem, D>::new(OPERATION, shape)
            .map_err(|error| self.memory.core().place(error))?;
        let timeline = self.default_timeline()?;
        // SAFETY: there is room for the elements of the packed layout, and no other code uses it.
        unsafe { transfer::download_new(&timeline, OPERATION, self.place(), host.as_mut_ptr(), packed)? };
        // SAFETY: the download has written all of them.
        unsafe { host.into_array(OPERATION) }.map_err(|error| self.memory.core().place(error))
    }

    /// Copies the elements into an array of the caller, of any layout, and returns it. Bytes between its elements stay
    /// as they are.
    /// ```
    /// # use ndarray::{Array1, array, s}; let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let array = device.to_device(&array![1, 2, 3])?;
    /// let mut host = Array1::zeros(6);
    /// array.copy_to_host_into(host.slice_mut(s![..;2]))?; // every second element
    /// assert_eq!(host, array![1, 0, 2, 0, 3, 0]);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`ShapeMismatch`](gpumem_core::LayoutError::ShapeMismatch) if the shapes differ; nothing has been
    /// copied then. Otherwise as [`copy_to_host`](Self::copy_to_host).
    pub fn copy_to_host_into<'h>(
        &self,
        destination: impl Into<ArrayViewMut<'h, S::Elem, D>>,
    ) -> Result<ArrayViewMut<'h, S::Elem, D>> {
        let mut destination = destination.into();
        self.device()?.on_default(|timeline| {
            transfer::download(timeline, "copy_to_host", self.place(), &mut destination, None)
        })?;
        Ok(destination)
    }

    /// As [`copy_to_host_into`](Self::copy_to_host_into), and calls `progress` on this thread with the bytes copied so
    /// far: between the pieces of the transfer, a few MiB each, the last time with all bytes. [`ControlFlow::Break`]
    /// ends the transfer between two pieces; elements that have arrived by then stay.
    /// ```
    /// # use {ndarray::Array1, std::ops::ControlFlow};
    /// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let array = device.device_array::<u8, _>(1 << 20)?;
    /// let (mut host, mut last) = (Array1::from_elem(1 << 20, 1), 0);
    /// array.copy_to_host_with_progress(&mut host, |progress| {
    ///     last = progress.done;
    ///     ControlFlow::Continue(())
    /// })?;
    /// assert_eq!(last, 1 << 20);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`Cancelled`](gpumem_core::ErrorKind::Cancelled) after a `Break`. Otherwise as
    /// [`copy_to_host_into`](Self::copy_to_host_into).
    pub fn copy_to_host_with_progress<'h>(
        &self,
        destination: impl Into<ArrayViewMut<'h, S::Elem, D>>,
        mut progress: impl FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<ArrayViewMut<'h, S::Elem, D>> {
        let (mut destination, timeline) = (destination.into(), self.default_timeline()?);
        transfer::download(&timeline, "copy_to_host", self.place(), &mut destination, Some(&mut progress))?;
        Ok(destination)
    }

    /// Returns the element at an index. This is a blocking copy of one element: for a look, not for loops.
    /// ```
    /// # use ndarray::array; let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let array = device.to_device(&array![[1, 2], [3, 4]])?;
    /// assert_eq!(array.get((1, 0))?, 3);
    /// assert!(array.get((2, 0)).is_err());
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`IndexOutOfBounds`](gpumem_core::LayoutError::IndexOutOfBounds) if there is no such element.
    /// Otherwise as [`copy_to_host`](Self::copy_to_host).
    pub fn get<I: NdIndex<D> + ndarray::IntoDimension>(&self, index: I) -> Result<S::Elem> {
        let layout = self.element("get", index.into_dimension().slice())?;
        // Not on the stack, where the caller's may be the only one that there is room for.
        let mut value = transfer::zeros::<S::Elem, Ix0>("get", Ix0().into())?;
        let place = ArrayRef::new(&self.memory, &layout);
        transfer::download(&self.default_timeline()?, "get", place, &mut value.view_mut(), None)?;
        Ok(value.into_scalar())
    }

    fn element(&self, operation: &'static str, index: &[usize]) -> Result<Layout> {
        let fail = |error| self.fail(operation, error);
        let offset = self.layout.index(index).map_err(fail)?;
        let item = Layout::packed(&[], self.layout.item(), crate::Order::C).map_err(fail)?;
        item.with_offset(offset).map_err(fail)
    }
}

impl<S: Storage, D: Dimension> ArrayBase<S, D> {
    /// Returns how [`copy_to_device`](ArrayBase::copy_to_device) of `source` into this array would be done. Nothing
    /// is moved; the time that it takes depends on the number of axes only. Print it.
    ///
    /// # Errors
    /// Returns [`ShapeMismatch`](gpumem_core::LayoutError::ShapeMismatch) if the shapes differ. Returns
    /// [`Driver`](gpumem_core::ErrorKind::Driver) if the driver reports a failure.
    pub fn copy_plan<Src>(&self, source: &Src) -> Result<CopyPlan>
    where
        Src: ToDevice<S::Backend, Elem = S::Elem, Dim = D> + ?Sized,
    {
        source.source().plan(&self.default_timeline()?, "copy_plan", self.place())
    }
}

impl<S: StorageMut, D: Dimension> ArrayBase<S, D> {
    /// Copies a source of equal shape and any layout into this array, from the host or from any device. Returns the
    /// array.
    ///
    /// The source is free again on return, and later work through the library is ordered after the copy. After a short
    /// copy from the host (up to [`TransferOptions::single_block_bytes`](crate::TransferOptions::single_block_bytes))
    /// the elements may still be on their way from memory of the library, as with `cuMemcpyHtoD`: the next wait reports
    /// its errors.
    /// ```
    /// # use ndarray::s; let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let mut array = device.device_array::<f32, _>(3)?;
    /// array.copy_to_device(&[1.0, 2.0, 3.0])?; // from the host
    /// let mut other = device.device_array::<f32, _>(3)?;
    /// other.copy_to_device(&array.slice(s![..;-1])?)?; // from a device, reversed
    /// assert_eq!(other.copy_to_host()?.to_vec(), [3.0, 2.0, 1.0]);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`ShapeMismatch`](gpumem_core::LayoutError::ShapeMismatch) if the shapes differ; nothing has been
    /// copied then. Returns [`Overlap`](gpumem_core::ErrorKind::Overlap) if the two sides share bytes. Returns
    /// [`BlockingInCallback`](gpumem_core::ErrorKind::BlockingInCallback) in a callback, and
    /// [`Driver`](gpumem_core::ErrorKind::Driver) if the driver reports a failure.
    pub fn copy_to_device<Src>(&mut self, source: &Src) -> Result<&mut Self>
    where
        Src: ToDevice<S::Backend, Elem = S::Elem, Dim = D> + ?Sized,
    {
        self.device()?.on_default(|timeline| {
            source.source().copy_to(timeline, "copy_to_device", self.place(), Upload::Blocking)
        })?;
        Ok(self)
    }

    /// As [`copy_to_device`](Self::copy_to_device), and calls `progress` on this thread with the bytes copied so far:
    /// between the pieces of the transfer if the source is the caller's memory, otherwise once at the end.
    /// [`ControlFlow::Break`] ends the transfer between two pieces; elements that have arrived by then stay.
    ///
    /// # Errors
    /// Returns [`Cancelled`](gpumem_core::ErrorKind::Cancelled) after a `Break`. Otherwise as
    /// [`copy_to_device`](Self::copy_to_device).
    pub fn copy_to_device_with_progress<Src>(
        &mut self,
        source: &Src,
        mut progress: impl FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<&mut Self>
    where
        Src: ToDevice<S::Backend, Elem = S::Elem, Dim = D> + ?Sized,
    {
        let timeline = self.default_timeline()?;
        source.source().copy_with_progress(&timeline, "copy_to_device", self.place(), &mut progress)?;
        Ok(self)
    }

    /// Copies a source into this array that is broadcast to its shape, by NumPy's rules.
    /// ```
    /// # use ndarray::array; let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let mut array = device.device_array::<i32, _>((2, 3))?;
    /// array.assign(&[1, 2, 3])?; // the same row twice
    /// assert_eq!(array.copy_to_host()?, array![[1, 2, 3], [1, 2, 3]]);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`CannotBroadcast`](gpumem_core::LayoutError::CannotBroadcast) if the source does not fit. Otherwise
    /// as [`copy_to_device`](Self::copy_to_device).
    pub fn assign<Src>(&mut self, source: &Src) -> Result<()>
    where
        Src: ToDevice<S::Backend, Elem = S::Elem> + ?Sized,
    {
        let timeline = self.default_timeline()?;
        source.source().broadcast_to(&timeline, "assign", self.place(), Upload::Blocking)?;
        Ok(())
    }

    /// Sets every element.
    /// ```
    /// # use ndarray::{array, s}; let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let mut array = device.device_array::<f32, _>((2, 2))?;
    /// array.slice_mut(s![0, ..])?.fill(1.0)?;
    /// assert_eq!(array.copy_to_host()?, array![[1.0, 1.0], [0.0, 0.0]]);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`BlockingInCallback`](gpumem_core::ErrorKind::BlockingInCallback) in a callback, and
    /// [`Driver`](gpumem_core::ErrorKind::Driver) if the driver reports a failure.
    pub fn fill(&mut self, value: S::Elem) -> Result<()> {
        may_block("fill")?;
        let timeline = self.default_timeline()?;
        self.place().wait_before("fill", true)?;
        let submission = transfer::fill(&timeline, "fill", self.place(), value)?;
        timeline.wait_host(submission).result.map_err(|error| error.in_operation("fill"))
    }

    /// Sets the element at an index. This is a blocking copy of one element: for a correction, not for loops.
    /// ```
    /// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let mut array = device.device_array::<i32, _>(3)?;
    /// array.set(1, 5)?;
    /// assert_eq!(array.copy_to_host()?.to_vec(), [0, 5, 0]);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`IndexOutOfBounds`](gpumem_core::LayoutError::IndexOutOfBounds) if there is no such element.
    /// Otherwise as [`copy_to_device`](Self::copy_to_device).
    pub fn set<I: NdIndex<D> + ndarray::IntoDimension>(&mut self, index: I, value: S::Elem) -> Result<()> {
        let layout = self.element("set", index.into_dimension().slice())?;
        let timeline = self.default_timeline()?;
        let place = ArrayRef::new(&self.memory, &layout);
        transfer::upload(&timeline, "set", &ndarray::aview0(&value), place, Upload::Blocking, None)?;
        Ok(())
    }
}

impl<S: Storage> ArrayBase<S, Ix0> {
    /// Reads the value as a whole.
    /// ```
    /// # use gpumem_runtime::Scalar; let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let value = device.to_device(&Scalar(1.5))?;
    /// assert_eq!(value.read()?, 1.5);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`copy_to_host`](Self::copy_to_host).
    pub fn read(&self) -> Result<S::Elem> {
        self.get(())
    }
}

impl<S: StorageMut> ArrayBase<S, Ix0> {
    /// Writes the value as a whole.
    ///
    /// # Errors
    /// As for [`copy_to_device`](Self::copy_to_device).
    pub fn write(&mut self, value: S::Elem) -> Result<()> {
        self.set((), value)
    }
}
