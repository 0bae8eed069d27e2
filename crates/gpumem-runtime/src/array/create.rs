//! Making device arrays.

use super::{ArrayBase, DeviceArray, Owned, Storage, UninitArray, uninit::zeroed};
use crate::{Device, IntoArraySpec, ToDevice, device::Allocation, transfer::Upload};
use gpumem_core::{Backend, Element, Error, Result};
use gpumem_memory::memory::DeviceCore;
use ndarray::{Dimension, Ix1};
use std::any::Any;

impl<B: Backend> Device<B> {
    /// Creates an array of zeros. The shape is anything that ndarray takes as one, or an
    /// [`ArraySpec`](crate::ArraySpec) with an order or with strides in bytes. An array of no elements is an ordinary
    /// array, and so is one of rank 0.
    ///
    /// The zeros are written by the default stream, and may still be on their way when this returns: uses of the array
    /// wait for them, as for any other work. Until they are written, the memory of an array that is dropped at once
    /// counts as in flight (`in_flight` of [`MemoryStatistics`](crate::memory::MemoryStatistics)) and not as idle.
    /// [`Device::uninit_array`] makes an array without any work.
    /// ```
    /// # use gpumem_runtime::{ArraySpec, Order};
    /// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let matrix = device.device_array::<f32, _>((480, 640))?;
    /// assert_eq!((matrix.shape(), matrix.byte_len()), (&[480, 640][..], 480 * 640 * 4));
    /// let columns = device.device_array::<f32, _>(ArraySpec::new((480, 640)).order(Order::F))?;
    /// assert!(columns.is_f_contiguous());
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`TooLarge`](gpumem_core::LayoutError::TooLarge) if the array has more than `isize::MAX` bytes.
    /// Returns [`RankMismatch`](gpumem_core::LayoutError::RankMismatch),
    /// [`SelfOverlap`](gpumem_core::LayoutError::SelfOverlap) or [`Misaligned`](gpumem_core::LayoutError::Misaligned)
    /// if strides do not fit. Returns [`OutOfMemory`](gpumem_core::ErrorKind::OutOfMemory) if the device has no room.
    pub fn device_array<T: Element, S: IntoArraySpec>(&self, spec: S) -> Result<DeviceArray<T, S::Dim, B>> {
        zeroed(UninitArray::allocate(self, "device_array", spec.into_spec())?, "device_array")
    }

    /// Creates an array without contents, which must be written as a whole. Nothing is enqueued.
    /// ```
    /// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let empty = device.uninit_array::<f32, _>(1000)?;
    /// let array = empty.fill(1.0)?; // only now can it be read
    /// assert_eq!(array.get(999)?, 1.0);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`device_array`](Self::device_array).
    pub fn uninit_array<T: Element, S: IntoArraySpec>(&self, spec: S) -> Result<UninitArray<T, S::Dim, B>> {
        UninitArray::allocate(self, "uninit_array", spec.into_spec())
    }

    /// Creates an array of zeros with the shape and element of `like`, packed, its axes in the same order: the layout
    /// that NumPy's `empty_like` gives, for every sign of the strides.
    /// ```
    /// # use ndarray::Array2; let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let host = Array2::<f64>::ones((3, 4));
    /// let zeros = device.device_array_like(&host)?;
    /// assert_eq!(zeros.copy_to_host()?, 0.0 * host);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`device_array`](Self::device_array).
    pub fn device_array_like<S: ToDevice<B> + ?Sized>(
        &self,
        like: &S,
    ) -> Result<DeviceArray<S::Elem, S::Dim, B>> {
        zeroed(like.source().allocate_like(self, "device_array_like")?, "device_array_like")
    }

    /// Copies `source` into a new array, packed, its axes in the same order. The source may have any layout and may
    /// be on another device. `device_array_like` is the same without the copy. When it returns is said at
    /// [`copy_to_device`](crate::ArrayBase::copy_to_device).
    /// ```
    /// # use ndarray::array; let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let host = array![[1.0, 2.0], [3.0, 4.0]];
    /// let array = device.to_device(&host)?; // an ndarray array, a view, a slice, a Vec
    /// let turned = device.to_device(&array.t())?; // or an array of a device
    /// assert_eq!(turned.copy_to_host()?, host.t());
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`OutOfMemory`](gpumem_core::ErrorKind::OutOfMemory) if the device has no room. Otherwise as
    /// [`copy_to_device`](crate::ArrayBase::copy_to_device).
    pub fn to_device<S: ToDevice<B> + ?Sized>(&self, source: &S) -> Result<DeviceArray<S::Elem, S::Dim, B>> {
        let source = source.source();
        let array = source.allocate_like(self, "to_device")?;
        // SAFETY: every element is written by the copy below, or the array is given up.
        let array = unsafe { array.assume_init() };
        source.copy_to(&self.default_timeline()?, "to_device", array.place(), Upload::Blocking)?;
        Ok(array)
    }

    /// Makes an array over foreign memory, which `owner` keeps alive until the last use is over.
    ///
    /// # Safety
    /// * `address` is an address of this device, and `bytes` bytes from there are valid while `owner` lives.
    /// * The caller orders all other uses of the memory meanwhile.
    /// * The elements hold initialised bytes.
    ///
    /// # Errors
    /// Returns [`OutOfBuffer`](gpumem_core::LayoutError::OutOfBuffer) if the layout needs more than `bytes`, and
    /// [`Misaligned`](gpumem_core::LayoutError::Misaligned) if elements would not be aligned. `owner` is dropped
    /// then.
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
    /// ```
    /// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let bytes = device.device_array::<u8, _>(4096)?;
    /// let floats = bytes.into_array::<f32, _>((4, 8)).map_err(|(_, error)| error)?;
    /// assert_eq!(floats.shape(), [4, 8]);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the buffer with the error: [`OutOfBuffer`](gpumem_core::LayoutError::OutOfBuffer) if the layout needs
    /// more bytes, [`Misaligned`](gpumem_core::LayoutError::Misaligned) if elements would not be aligned,
    /// [`SelfOverlap`](gpumem_core::LayoutError::SelfOverlap) if strides overlap,
    /// [`NeedsCopy`](gpumem_core::LayoutError::NeedsCopy) if the buffer is a strided view.
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
    /// Frees the memory now, and reports errors; dropping the array defers both. Memory of a pool goes to the pool at
    /// once. Otherwise this waits for the last use and calls the driver; inside
    /// [`defer_cleanup`](Device::defer_cleanup) it only queues the memory.
    ///
    /// # Errors
    /// Returns [`Driver`](gpumem_core::ErrorKind::Driver) if the driver reports a failure.
    pub fn free(self) -> Result<()> {
        crate::device::free(self.memory)
    }

    /// Copies the array into new memory of the same device, packed.
    ///
    /// # Errors
    /// As for [`Device::to_device`].
    pub fn try_clone(&self) -> Result<Self> {
        self.device()?.to_device(self)
    }
}
