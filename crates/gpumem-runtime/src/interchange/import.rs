//! Taking in memory of others.

use crate::{
    ArrayBase, CudaArrayInterface, Device, DeviceArray, DeviceViewMut, Layout, Storage, array::Imported,
    device::Allocation, foreign,
};
use gpumem_core::{Backend, DescriptorError, Element, Error, ErrorKind, LayoutError, Result};
use ndarray::{Dimension, IxDyn};
use std::{any::Any, rc::Rc, sync::Arc};

/// An array over foreign memory, which it keeps alive until the last use is over. It can be read, viewed and copied
/// like every array; [`try_into_array`](ArrayBase::try_into_array) makes it one that can be written.
pub type ImportedArray<T, D, B> = ArrayBase<Imported<T, B>, D>;

/// An object with a CUDA array interface: Python's `__cuda_array_interface__`, as a trait.
///
/// # Safety
/// A descriptor is true from the moment it is returned, for as long as `self` lives:
/// * the elements that it describes are memory that the device can read, and write unless it says `read_only`;
/// * they are initialised, and after the work on the stream that it names nothing writes them unordered;
/// * unless it is `read_only`, safe code cannot read or write the elements by any other object: an object that can be
///   cloned, or that shows its elements, is `read_only` or orders their uses. Through `&`, `Rc` and `Arc` every object
///   can only be read;
/// * the stream is alive until the caller has made an event wait for it, which it does at once.
///
/// The library still checks all it can: a faulty descriptor is an error.
pub unsafe trait HasCudaArrayInterface {
    /// Tells whether the object has the interface, without reading the descriptor. If only some objects of a type have
    /// it, answers for this one.
    fn has_cuda_array_interface(&self) -> bool {
        true
    }

    /// The descriptor. Each call makes one anew, as each look at the Python attribute does.
    ///
    /// # Errors
    /// Returns the error of the object.
    fn cuda_array_interface(&self) -> Result<CudaArrayInterface>;
}

macro_rules! through_pointer {
    ($($pointer:ty, $describe:expr;)*) => {$(
        // SAFETY: the object's own type implements the trait, and the pointer keeps it alive. Through a shared pointer
        // it can only be read.
        unsafe impl<O: HasCudaArrayInterface + ?Sized> HasCudaArrayInterface for $pointer {
            fn has_cuda_array_interface(&self) -> bool {
                (**self).has_cuda_array_interface()
            }

            fn cuda_array_interface(&self) -> Result<CudaArrayInterface> {
                (**self).cuda_array_interface().map($describe)
            }
        }
    )*};
}
through_pointer! {
    Box<O>, |descriptor| descriptor;
    &O, to_read;
    Rc<O>, to_read;
    Arc<O>, to_read;
}

/// The same memory, which may only be read.
fn to_read(mut descriptor: CudaArrayInterface) -> CudaArrayInterface {
    descriptor.data.1 = true;
    descriptor
}

/// Whether an object has a CUDA array interface. Tests for its presence only, as Numba's `is_cuda_array` does;
/// [`Device::as_cuda_array`] reads the descriptor.
pub fn is_cuda_array(object: &(impl HasCudaArrayInterface + ?Sized)) -> bool {
    object.has_cuda_array_interface()
}

impl<B: Backend> Device<B> {
    /// Takes an object with a CUDA array interface as an array, without a copy. The object is kept until the last use of
    /// the array on any stream is over.
    ///
    /// The streams that use the array wait by an event for pending work of the object's stream. That work is no use of
    /// the array: the object, which may be dropped before it is done, looks after it.
    ///
    /// Memory of the library's own that comes back, by a [`Loan`](crate::Loan) or through another library that has borrowed it,
    /// becomes another handle of the array's memory: ordered with the array, and only to be read while that is there.
    /// ```
    /// # use ndarray::Ix1; let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let stream = device.stream()?;
    /// let array = stream.to_device(&[1, 2, 3])?;
    /// let loan = array.lend(&stream)?; // in practice an object of another library
    /// let imported = device.as_cuda_array::<i32, Ix1, _>(loan)?; // no copy
    /// assert_eq!(imported.copy_to_host()?.to_vec(), [1, 2, 3]);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`Descriptor`](gpumem_core::ErrorKind::Descriptor) or [`Layout`](gpumem_core::ErrorKind::Layout) for a
    /// descriptor that cannot be taken, with the reason: another element type or rank, a mask, a version, strides or
    /// an address that cannot be, memory of another device. The object is dropped then. Returns
    /// [`InvalidArgument`](gpumem_core::ErrorKind::InvalidArgument) for memory of the library's own that the host
    /// sees, or of another device or backend.
    pub fn as_cuda_array<T, D, O>(&self, object: O) -> Result<ImportedArray<T, D, B>>
    where
        T: Element,
        D: Dimension,
        O: HasCudaArrayInterface + Any + Send + Sync,
    {
        const OPERATION: &str = "as_cuda_array";
        self.core().check(OPERATION)?;
        let descriptor = object.cuda_array_interface()?;
        // SAFETY: the object implements the unsafe trait, whose promise covers this; it is alive until this returns.
        if let Some(own) = unsafe { foreign::find_own::<T, D, B>(self, OPERATION, &descriptor)? } {
            // The allocation keeps itself: a loan that has brought it is not needed any more.
            drop(object);
            return Ok(ArrayBase::over(own.memory, own.layout));
        }
        // SAFETY: the object implements the unsafe trait, whose promise covers this; it is kept as the owner.
        unsafe { self.import_cuda_array(OPERATION, &descriptor, Box::new(object)) }
    }

    /// As [`as_cuda_array`](Self::as_cuda_array), from a descriptor alone and an owner that keeps its memory alive.
    ///
    /// # Safety
    /// The descriptor is true for as long as `owner` lives, as [`HasCudaArrayInterface`] says.
    ///
    /// # Errors
    /// As for [`as_cuda_array`](Self::as_cuda_array).
    pub unsafe fn from_cuda_array_interface<T: Element, D: Dimension>(
        &self,
        descriptor: &CudaArrayInterface,
        owner: impl Any + Send + Sync,
    ) -> Result<ImportedArray<T, D, B>> {
        // SAFETY: the caller's promise.
        unsafe { self.import_cuda_array("from_cuda_array_interface", descriptor, Box::new(owner)) }
    }

    /// # Safety
    /// As for [`from_cuda_array_interface`](Self::from_cuda_array_interface).
    pub(super) unsafe fn import_cuda_array<T: Element, D: Dimension>(
        &self,
        operation: &'static str,
        descriptor: &CudaArrayInterface,
        owner: Box<dyn Any + Send + Sync>,
    ) -> Result<ImportedArray<T, D, B>> {
        // SAFETY: the caller's promise.
        let found = unsafe { foreign::import_cuda_array::<T, D, B>(self, operation, descriptor, owner)? };
        Ok(ArrayBase::over(found.memory, found.layout))
    }
}

impl<T: Element, D: Dimension, B: Backend> ArrayBase<Imported<T, B>, D> {
    /// Returns whether the owner forbids writing, or the memory is that of an array of the library's which is still
    /// there.
    pub fn is_read_only(&self) -> bool {
        Allocation::is_import_read_only(&self.memory)
    }

    /// Makes the array one that can be written.
    ///
    /// # Errors
    /// Returns the array with the error: [`ReadOnly`](gpumem_core::DescriptorError::ReadOnly) if it [may only be
    /// read](Self::is_read_only), [`SelfOverlap`](gpumem_core::LayoutError::SelfOverlap) if elements share memory (a
    /// broadcast array).
    #[allow(clippy::result_large_err)] // the array itself comes back
    pub fn try_into_array(self) -> Result<DeviceArray<T, D, B>, (Self, Error)> {
        let refusal = if self.is_read_only() {
            ErrorKind::from(DescriptorError::ReadOnly)
        } else if self.layout.has_self_overlap() {
            let (shape, strides) = (self.shape().to_vec(), self.strides().to_vec());
            ErrorKind::from(LayoutError::SelfOverlap { shape, strides })
        } else {
            return Ok(ArrayBase::over(self.memory, self.layout));
        };
        let error = self.memory.core().error("try_into_array", refusal);
        Err((self, error))
    }
}

impl<S: Storage, D: Dimension> ArrayBase<S, D> {
    /// A view without a borrow, for bindings of languages that collect garbage. It keeps the memory alive by itself,
    /// and its work on streams is ordered like any other.
    ///
    /// # Safety
    /// * Nothing is written through it while the array, or another view of the same elements, promises its holder that
    ///   they stay as they are: the program knows all of them, and uses none of them as a promise.
    /// * Where the array may only be read, nothing is written at all.
    /// * The memory is not page-locked for a scope ([`Device::pinned`], [`Device::mapped`]), which it would outlive.
    pub unsafe fn detach(&self) -> DeviceViewMut<'static, S::Elem, D, S::Backend> {
        self.memory.note_detached();
        ArrayBase::over(self.memory.clone(), self.layout.clone())
    }

    /// As [`detach`](Self::detach), of elements of any type at places within this array: a field of records, or the same
    /// bytes as other numbers. The layout counts from where [`layout`](Self::layout) counts.
    ///
    /// # Safety
    /// * As for [`detach`](Self::detach), of all bytes that the layout names.
    /// * These bytes are initialised.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Layout`] if the layout has elements of another size, is not aligned, or reaches outside the array, and
    /// [`Unsupported`](ErrorKind::Unsupported) for memory that is page-locked for a scope.
    pub unsafe fn detach_as<U: Element>(
        &self,
        layout: Layout,
    ) -> Result<DeviceViewMut<'static, U, IxDyn, S::Backend>> {
        if self.memory.is_of_scope() {
            let what = "a view without a borrow of memory that is page-locked for a scope";
            return Err(self.memory.core().error("detach_as", ErrorKind::Unsupported { what }));
        }
        let fail = |error| self.memory.core().error("detach_as", error);
        self.memory.note_detached();
        let (own, needs, align) = (self.layout.extent(), layout.extent(), align_of::<U>());
        if layout.item() != size_of::<U>() {
            return Err(fail(LayoutError::ItemMismatch { found: layout.item(), expected: size_of::<U>() }));
        }
        if layout.is_empty() {
            return Ok(ArrayBase::over(self.memory.clone(), layout));
        }
        if needs.start < own.start || needs.end > own.end {
            return Err(fail(LayoutError::OutOfBuffer { needs, length: own.end }));
        }
        layout.check_alignment(align).map_err(fail)?;
        let address = self.memory.address();
        if !address.is_multiple_of(align as u64) {
            return Err(fail(LayoutError::Misaligned { bytes: address as isize, align }));
        }
        Ok(ArrayBase::over(self.memory.clone(), layout))
    }
}
