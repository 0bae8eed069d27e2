//! Making device arrays.

use super::{ArrayBase, DeviceArray, Owned, Storage, UninitArray, uninit::zeroed};
use crate::device::DeviceCore;
use crate::{Device, IntoArraySpec, ToDevice, memory::Allocation, transfer::Upload};
use gpumem_core::{Backend, Element, Error, Result};
use ndarray::{Dimension, Ix1};
use std::any::Any;

impl<B: Backend> Device<B> {
    /// A new array of zeros. The shape is whatever ndarray takes as one, or an [`ArraySpec`](crate::ArraySpec) with an
    /// order or with strides in bytes. An array of no elements is an ordinary array, and so is one of rank 0.
    ///
    /// The zeros are written by the default stream, and may still be on their way when this returns: whatever uses the array
    /// waits for them, as for any other work. Until they are written, the memory of an array that is dropped at once counts
    /// as in flight (`in_flight` of [`MemoryStatistics`](crate::memory::MemoryStatistics)) and not as idle.
    /// [`Device::uninit_array`] makes an array without any work.
    ///
    /// # Errors
    /// [`TooLarge`](gpumem_core::LayoutError::TooLarge), strides that do not fit the rank, overlap or are misaligned;
    /// out of memory.
    pub fn device_array<T: Element, S: IntoArraySpec>(&self, spec: S) -> Result<DeviceArray<T, S::Dim, B>> {
        zeroed(UninitArray::allocate(self, "device_array", spec.into_spec())?, "device_array")
    }

    /// A new array without contents, to be written as a whole.
    ///
    /// # Errors
    /// As [`device_array`](Self::device_array).
    pub fn uninit_array<T: Element, S: IntoArraySpec>(&self, spec: S) -> Result<UninitArray<T, S::Dim, B>> {
        UninitArray::allocate(self, "uninit_array", spec.into_spec())
    }

    /// A new array of zeros with the shape and element of `like`, packed, its axes in the same order: the layout that
    /// NumPy's `empty_like` gives, for every sign of the strides.
    ///
    /// # Errors
    /// As [`device_array`](Self::device_array).
    pub fn device_array_like<S: ToDevice<B> + ?Sized>(
        &self,
        like: &S,
    ) -> Result<DeviceArray<S::Elem, S::Dim, B>> {
        zeroed(like.source().allocate_like(self, "device_array_like")?, "device_array_like")
    }

    /// A new array with the elements of `source`, packed, its axes in the same order. The source may have any layout
    /// and may be on another device. `device_array_like` is the same without the copy. When it returns is said at
    /// [`copy_to_device`](crate::ArrayBase::copy_to_device).
    ///
    /// # Errors
    /// As [`device_array`](Self::device_array); of the driver.
    pub fn to_device<S: ToDevice<B> + ?Sized>(&self, source: &S) -> Result<DeviceArray<S::Elem, S::Dim, B>> {
        let source = source.source();
        let array = source.allocate_like(self, "to_device")?;
        // SAFETY: every element is written by the copy below, or the array is given up.
        let array = unsafe { array.assume_init() };
        source.copy_to(&self.default_timeline()?, "to_device", array.place(), Upload::Blocking)?;
        Ok(array)
    }

    /// An array over foreign memory, kept alive by `owner` until the last use is over.
    ///
    /// # Safety
    /// * `address` is an address of this device, and `bytes` bytes from there are valid while `owner` lives.
    /// * Whatever else uses the memory meanwhile is ordered by the caller.
    /// * The elements hold initialised bytes.
    ///
    /// # Errors
    /// [`OutOfBuffer`](gpumem_core::LayoutError::OutOfBuffer) where the layout needs more than `bytes`, misalignment.
    /// `owner` is dropped then.
    pub unsafe fn foreign_array<T: Element, S: IntoArraySpec>(
        &self,
        address: u64,
        bytes: usize,
        spec: S,
        owner: impl Any + Send + Sync,
    ) -> Result<DeviceArray<T, S::Dim, B>> {
        let fail = |error| self.core().error("foreign_array", error);
        self.core().check("foreign_array")?;
        let layout = spec.into_spec().layout(size_of::<T>()).map_err(fail)?;
        layout.fits(bytes).map_err(fail)?;
        layout.check_alignment(align_of::<T>()).map_err(fail)?;
        check_address::<T, B>(self.core(), "foreign_array", address)?;
        Ok(ArrayBase::over(Allocation::foreign(self, address, bytes, Box::new(owner)), layout))
    }
}

pub(crate) fn check_address<T, B: Backend>(
    core: &DeviceCore<B>,
    operation: &'static str,
    address: u64,
) -> Result<()> {
    let align = align_of::<T>();
    match address.is_multiple_of(align as u64) {
        true => Ok(()),
        false => {
            let error = gpumem_core::LayoutError::Misaligned { bytes: address as isize, align };
            Err(core.error(operation, error))
        }
    }
}

impl<B: Backend> DeviceArray<u8, Ix1, B> {
    /// Takes a buffer of bytes as an array of `T`. The layout is checked against the length of the buffer.
    ///
    /// # Errors
    /// [`OutOfBuffer`](gpumem_core::LayoutError::OutOfBuffer), misalignment, overlapping strides; the buffer comes back.
    #[allow(clippy::result_large_err)] // the buffer itself comes back
    pub fn into_array<T: Element, S: IntoArraySpec>(
        self,
        spec: S,
    ) -> Result<DeviceArray<T, S::Dim, B>, (Self, Error)> {
        let start = self.layout.offset();
        let layout = spec.into_spec().layout(size_of::<T>()).and_then(|layout| {
            layout.fits(self.layout.extent().len())?;
            let layout = layout.clone().with_offset(layout.offset() + start)?;
            layout.check_alignment(align_of::<T>())?;
            Ok(layout)
        });
        let checked = layout
            .map_err(|error| self.memory.core().error("into_array", error))
            .and_then(|layout| match self.layout.is_c_contiguous() {
                true => Ok(layout),
                false => Err(self.fail("into_array", needs_copy(&self))),
            })
            .and_then(|layout| {
                check_address::<T, B>(self.memory.core(), "into_array", self.memory.address())
                    .map(|()| layout)
            });
        match checked {
            Ok(layout) => Ok(ArrayBase::over(self.memory, layout)),
            Err(error) => Err((self, error)),
        }
    }
}

pub(super) fn needs_copy<S: Storage, D: Dimension>(array: &ArrayBase<S, D>) -> gpumem_core::LayoutError {
    gpumem_core::LayoutError::NeedsCopy { shape: array.shape().to_vec(), strides: array.strides().to_vec() }
}

impl<T: Element, D: Dimension, B: Backend> ArrayBase<Owned<T, B>, D> {
    /// Gives the memory back now, and says what went wrong; dropping the array leaves that for later. Memory of a pool goes
    /// to the pool at once. Otherwise this waits for the last use and calls the driver; inside
    /// [`defer_cleanup`](Device::defer_cleanup) it only queues the memory.
    ///
    /// # Errors
    /// What the driver says.
    pub fn free(self) -> Result<()> {
        crate::memory::free(self.memory)
    }

    /// A copy of the array in new memory of the same device, packed.
    ///
    /// # Errors
    /// Out of memory; of the driver.
    pub fn try_clone(&self) -> Result<Self> {
        self.device()?.to_device(self)
    }
}
