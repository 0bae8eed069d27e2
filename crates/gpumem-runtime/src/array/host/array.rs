//! Arrays in memory that the host sees.

use super::{DeviceVisible, HostKind, Managed, view_at, view_mut_at};
use crate::{
    ArrayBase, Device, DeviceView, DeviceViewMut, Layout, Stream, ToDevice,
    device::{Allocation, AllocationRef},
    transfer::{self, ArrayRef, Upload},
};
use gpumem_core::{
    Advice, Backend, DriverDevice, Element, Error, HostAccess, LayoutError, Location, MemoryKind, Result,
    Stream as _,
};
use gpumem_memory::memory::DeviceCore;
use gpumem_memory::track::Access;
use ndarray::{Array, ArrayView, ArrayViewMut, Dimension, IxDyn};
use std::{fmt, marker::PhantomData, ptr::NonNull};

/// An array in memory that the host sees too. See [`PinnedArray`](crate::PinnedArray), [`MappedArray`](crate::MappedArray),
/// [`ManagedArray`](crate::ManagedArray).
///
/// Shape, strides (in bytes), order and initialisation are as for device arrays.
#[must_use = "an array that is dropped at once does nothing"]
pub struct HostArray<K: HostKind, T: Element, D: Dimension, B: Backend> {
    memory: AllocationRef<B>,
    layout: Layout,
    marker: PhantomData<(K, T, D)>,
}

impl<K: HostKind, T: Element, D: Dimension, B: Backend> HostArray<K, T, D, B> {
    /// An array over memory that holds initialised bytes for the whole layout.
    pub(crate) fn over(operation: &'static str, memory: AllocationRef<B>, layout: Layout) -> Result<Self> {
        layout.fits(memory.len()).map_err(|error| memory.core().error(operation, error))?;
        Self::check_elements(memory.core(), operation, &layout)?;
        Ok(Self { memory, layout, marker: PhantomData })
    }

    /// Whether ndarray can see the elements where they lie.
    pub(super) fn check_elements(
        core: &DeviceCore<B>,
        operation: &'static str,
        layout: &Layout,
    ) -> Result<()> {
        let fail = |error| core.error(operation, error);
        if layout.item() != size_of::<T>() {
            return Err(fail(LayoutError::ItemMismatch { found: layout.item(), expected: size_of::<T>() }));
        }
        if let Some(expected) = D::NDIM.filter(|axes| *axes != layout.ndim()) {
            return Err(fail(LayoutError::RankMismatch { found: layout.ndim(), expected }));
        }
        // ndarray counts strides in elements.
        let size = size_of::<T>().max(1);
        let axes = layout.shape().iter().zip(layout.strides());
        if let Some((_, stride)) =
            axes.clone().find(|(len, stride)| **len > 1 && **stride % size as isize != 0)
        {
            return Err(fail(LayoutError::Misaligned { bytes: *stride, align: size }));
        }
        layout.check_alignment(align_of::<T>()).map_err(fail)
    }

    /// An array over memory that holds the layout, whose elements [have been checked](Self::check_elements).
    pub(super) fn over_checked(memory: AllocationRef<B>, layout: Layout) -> Self {
        Self { memory, layout, marker: PhantomData }
    }

    /// The array over other memory of the same length.
    pub(crate) fn with_memory(&self, memory: AllocationRef<B>) -> Result<Self> {
        Self::over("graph", memory, self.layout.clone())
    }

    /// The same memory as elements of any type, for bindings of languages that collect garbage: as
    /// [`ArrayBase::detach_as`].
    ///
    /// # Safety
    /// * The program uses no array over the memory as a promise that its elements stay as they are.
    /// * The bytes that the layout names are initialised.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Layout`](gpumem_core::ErrorKind::Layout) if the layout has elements of another size, is not aligned, or
    /// reaches outside the memory.
    #[doc(hidden)]
    pub unsafe fn detach_as<U: Element>(&self, layout: Layout) -> Result<HostArray<K, U, IxDyn, B>> {
        HostArray::over("detach_as", self.memory.clone(), layout)
    }

    /// Whether no work uses the memory, nothing else has it that could enqueue any, and, unless that `is_told`, none has failed; also
    /// after a reset of the device. Asks the driver, and waits for nothing.
    #[doc(hidden)]
    pub fn is_over(&self, is_told: bool) -> bool {
        let is_idle = || AllocationRef::is_unique(&self.memory) && self.memory.is_idle();
        let is_written = || self.memory.check_written("is_over", &self.layout.extent()).is_ok();
        !self.memory.is_fresh() || (is_idle() && (is_told || is_written()))
    }

    pub(super) fn into_parts(self) -> (AllocationRef<B>, Layout) {
        (self.memory, self.layout)
    }

    pub(super) fn memory(&self) -> &Allocation<B> {
        &self.memory
    }

    pub(crate) fn place(&self) -> ArrayRef<'_, B> {
        ArrayRef::new(&self.memory, &self.layout)
    }

    /// Returns the device that the array belongs to.
    pub fn device(&self) -> Option<&Device<B>> {
        self.memory.device()
    }

    /// Returns the kind of the memory, with its options.
    pub fn kind(&self) -> MemoryKind {
        self.memory.kind()
    }

    /// Returns shape and strides.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the lengths of the axes.
    pub fn shape(&self) -> &[usize] {
        self.layout.shape()
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.layout.len()
    }

    /// Returns whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.layout.is_empty()
    }

    fn first(&self) -> *mut u8 {
        // Without bytes there is no memory; any aligned address will do.
        let base = self.memory.host().unwrap_or(NonNull::<T>::dangling().cast()).as_ptr();
        base.wrapping_add(self.layout.offset())
    }

    /// Waits until nothing writes the elements any more, and returns them.
    /// ```
    /// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let stream = device.stream()?;
    /// let array = stream.to_device(&[1, 2, 3])?;
    /// let pinned = stream.copy_to_host(&array)?;
    /// assert_eq!(pinned.view()?[2], 3); // waits for the copy
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`AsynchronousFault`](gpumem_core::ErrorKind::AsynchronousFault) or
    /// [`Poisoned`](gpumem_core::ErrorKind::Poisoned) if work that was to write the elements failed. Returns
    /// [`DeviceLost`](gpumem_core::ErrorKind::DeviceLost) or [`Stale`](gpumem_core::ErrorKind::Stale) if the device
    /// is lost or was reset, and [`BlockingInCallback`](gpumem_core::ErrorKind::BlockingInCallback) in a callback.
    pub fn view(&self) -> Result<ArrayView<'_, T, D>> {
        self.memory.show_to_host("view", &self.layout.extent(), HostAccess::Read)?;
        // SAFETY: the layout lies in the memory, is aligned and counts in whole elements (`check_elements`). Work that
        // writes it is done, and no such work can be enqueued while `self` is borrowed.
        let view = unsafe { view_at(self.first(), self.layout.shape(), self.layout.strides()) };
        view.into_dimensionality().map_err(|_| rank(self.memory.core(), &self.layout))
    }

    /// Waits until nothing reads or writes the elements any more, and returns them for writing.
    ///
    /// # Errors
    /// As for [`view`](Self::view).
    pub fn view_mut(&mut self) -> Result<ArrayViewMut<'_, T, D>> {
        self.memory.show_to_host("view_mut", &self.layout.extent(), HostAccess::Write)?;
        // SAFETY: as in `view`; all uses are done, none can be enqueued while `self` is borrowed, and the elements do
        // not overlap (checked when the layout was made).
        let view = unsafe { view_mut_at(self.first(), self.layout.shape(), self.layout.strides()) };
        view.into_dimensionality().map_err(|_| rank(self.memory.core(), &self.layout))
    }

    /// Frees the memory now, and reports errors; dropping the array defers both. As [`ArrayBase::free`].
    ///
    /// # Errors
    /// Returns [`Driver`](gpumem_core::ErrorKind::Driver) if the driver reports a failure.
    pub fn free(self) -> Result<()> {
        crate::device::free(self.memory)
    }

    /// Copies the elements into ordinary memory, once nothing writes them any more.
    ///
    /// # Errors
    /// Returns [`OutOfMemory`](gpumem_core::ErrorKind::OutOfMemory) if the host has no memory. Otherwise as
    /// [`view`](Self::view).
    pub fn copy_to_host(&self) -> Result<Array<T, D>> {
        let view = self.view()?;
        let mut copy = transfer::zeros("copy_to_host", view.raw_dim().into())
            .map_err(|error| self.memory.core().place(error))?;
        copy.assign(&view);
        Ok(copy)
    }

    /// Copies `source` into this array, and returns when the elements are there.
    /// ```
    /// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let mut pinned = device.pinned_array::<i32, _>(3)?;
    /// pinned.copy_from(&[1, 2, 3])?; // from the host
    /// pinned.copy_from(&device.to_device(&[4, 5, 6])?)?; // from a device
    /// assert_eq!(pinned.view()?.to_vec(), [4, 5, 6]);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`ShapeMismatch`](gpumem_core::LayoutError::ShapeMismatch) if the shapes differ. Otherwise as
    /// [`ArrayBase::copy_to_device`].
    pub fn copy_from<S>(&mut self, source: &S) -> Result<()>
    where
        S: ToDevice<B, Elem = T, Dim = D> + ?Sized,
    {
        let Some(device) = self.memory.device() else { return Err(rank(self.memory.core(), &self.layout)) };
        source.source().copy_to(&device.default_timeline()?, "copy_from", self.place(), Upload::Blocking)?;
        Ok(())
    }
}

impl<K: DeviceVisible, T: Element, D: Dimension, B: Backend> HostArray<K, T, D, B> {
    /// Returns the array as kernels and device copies see it. Views of it keep their device address.
    /// ```
    /// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let mut mapped = device.mapped_array::<i32, _>(3, Default::default())?;
    /// mapped.view_mut()?[1] = 5;
    /// let copy = device.to_device(&mapped.device_view())?;
    /// assert_eq!(copy.get(1)?, 5);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    pub fn device_view(&self) -> DeviceView<'_, T, D, B> {
        ArrayBase::over(self.memory.clone(), self.layout.clone())
    }

    /// As [`device_view`](Self::device_view), for writing.
    pub fn device_view_mut(&mut self) -> DeviceViewMut<'_, T, D, B> {
        ArrayBase::over(self.memory.clone(), self.layout.clone())
    }
}

impl<T: Element, D: Dimension, B: Backend> HostArray<Managed, T, D, B> {
    /// Moves the pages to the device of `stream`, or to the host, in stream order. A hint: results do not depend on it.
    /// ```
    /// # use gpumem_core::{Attach, Location}; let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let stream = device.stream()?;
    /// let managed = device.managed_array::<f32, _>(1000, Attach::Global)?;
    /// let _hint = managed.prefetch(&stream, Location::Device); // results do not depend on it
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`Unsupported`](gpumem_core::ErrorKind::Unsupported) if the device has no such hint, and
    /// [`WrongDevice`](gpumem_core::ErrorKind::WrongDevice) for a stream of another device.
    pub fn prefetch(&self, stream: &Stream<B>, to: Location) -> Result<()> {
        let extent = self.layout.extent();
        if extent.is_empty() {
            return Ok(());
        }
        stream.timeline().check_owns("prefetch", &self.memory)?;
        let address = self.memory.address() + extent.start as u64;
        let access = Access::read(&self.memory, extent.clone());
        stream.timeline().submit("prefetch", &[access], |sink| {
            // SAFETY: the range lies in a live managed buffer, which the access log keeps alive.
            unsafe { sink.stream("prefetch")?.prefetch(address, extent.len(), to) }
        })?;
        Ok(())
    }

    /// Gives the driver a hint about the pages.
    ///
    /// # Errors
    /// Returns [`Unsupported`](gpumem_core::ErrorKind::Unsupported) if the device has no such hint.
    pub fn advise(&self, advice: Advice) -> Result<()> {
        self.memory.check("advise")?;
        let extent = self.layout.extent();
        if extent.is_empty() {
            return Ok(());
        }
        let core = self.memory.core();
        let address = self.memory.address() + extent.start as u64;
        // SAFETY: the range lies in a live managed buffer.
        core.note_loss(unsafe { core.raw.advise(address, extent.len(), advice) })
    }
}

/// Cannot happen: the rank of the layout is the rank of the type.
fn rank<B: Backend>(core: &DeviceCore<B>, layout: &Layout) -> Error {
    let error = LayoutError::RankMismatch { found: layout.ndim(), expected: layout.ndim() };
    core.error("view", error)
}

impl<K: HostKind, T: Element, D: Dimension, B: Backend> fmt::Debug for HostArray<K, T, D, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostArray")
            .field("kind", &K::NAME)
            .field("shape", &self.shape())
            .finish_non_exhaustive()
    }
}
