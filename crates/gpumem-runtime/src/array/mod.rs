//! n-d arrays in device memory, and their views.

mod create;
pub(crate) mod destination;
mod field;
pub(crate) mod file;
mod freeze;
pub(crate) mod host;
mod raw;
mod reshape;
pub(crate) mod rows;
mod save;
mod scope;
pub(crate) mod source;
mod split;
mod storage;
mod stream;
mod transfer;
mod uninit;
mod views;

pub(crate) use create::check_address;
pub use destination::{Destination, FromDevice};
pub use field::Field;
pub use file::FileView;
pub use host::{
    DeviceVisible, HostArray, HostKind, LockArrays, Managed, ManagedArray, Mapped, MappedArray, MappedHost,
    MappedRegisteredArray, OwnedKind, Pinned, PinnedArray, PinnedHost, RegisterError, Registered,
    RegisteredArray, UninitHostArray, view_at, view_mut_at,
};
pub use raw::{RawAccess, RawParts};
pub use scope::Scope;
pub use source::{Scalar, Source, ToDevice};
pub use storage::{Exclusive, Frozen, Imported, OnBackend, Owned, Shared, Storage, StorageMut};
pub use uninit::UninitArray;
pub(crate) use uninit::align;

use crate::{
    Device, Layout,
    device::{AllocationRef, FrozenMemory},
    transfer::ArrayRef,
};
use gpumem_core::{Backend, Element, Error, HostAccess, LayoutError, MemoryKind, Result};
use gpumem_memory::may_block;
use ndarray::{Dimension, Ix0};
use std::{fmt, marker::PhantomData, sync::Arc};

/// An n-d array of elements in memory of a device, or a view of one. `S` says which: [`DeviceArray`], [`DeviceView`],
/// [`DeviceViewMut`].
///
/// * Shape and strides are read without a driver call; strides count **bytes**, as in NumPy and Numba.
/// * Views share memory and are borrows: any number of shared ones, or one mutable one, or several mutable ones of
///   disjoint parts ([`split_mut`](Self::split_mut)). Making one costs O(number of axes).
/// * Methods without a stream have finished on return, but for uploads of less than 512 KiB: their elements have left the caller's
///   memory then, and arrive before anything else of the library's that uses the array. The same methods of
///   [`Stream`](crate::Stream) return at once and work in stream order.
/// * Dropping an array never waits and never reaches the driver.
#[must_use = "an array or a view that is dropped at once does nothing"]
pub struct ArrayBase<S: OnBackend, D: Dimension> {
    pub(crate) memory: AllocationRef<S::Backend>,
    pub(crate) layout: Layout,
    pub(crate) owner: S::Owner,
    marker: PhantomData<(S, D)>,
}

/// An array that owns its memory.
pub type DeviceArray<T, D, B> = ArrayBase<Owned<T, B>, D>;
/// A shared view of device memory.
pub type DeviceView<'a, T, D, B> = ArrayBase<Shared<'a, T, B>, D>;
/// A mutable view of device memory.
pub type DeviceViewMut<'a, T, D, B> = ArrayBase<Exclusive<'a, T, B>, D>;
/// An array that is never written any more: see [`freeze`](ArrayBase::freeze). Cloning it shares the memory.
pub type FrozenArray<T, D, B> = ArrayBase<Frozen<T, B>, D>;
/// One value in device memory, usually a record: read and written whole or by field. Numba's `DeviceRecord`.
pub type DeviceRecord<T, B> = ArrayBase<Owned<T, B>, Ix0>;

impl<T: Element, D: Dimension, B: Backend> FrozenArray<T, D, B> {
    pub(crate) fn frozen(owner: Arc<FrozenMemory<B>>, layout: Layout) -> Self {
        Self { memory: owner.memory.clone(), layout, owner, marker: PhantomData }
    }
}

impl<S: Storage, D: Dimension> ArrayBase<S, D> {
    /// The rank of the layout is that of `D`, and the layout lies in the memory: guaranteed by every caller.
    #[inline]
    pub(crate) fn over(memory: AllocationRef<S::Backend>, layout: Layout) -> Self
    where
        S: OnBackend<Owner = ()>,
    {
        Self { memory, layout, owner: (), marker: PhantomData }
    }

    /// The same array in another layout, which lies in the memory and has the rank of `E`.
    pub(crate) fn laid_out<E: Dimension>(self, layout: Layout) -> ArrayBase<S, E> {
        ArrayBase { layout, ..self.into_dimension() }
    }

    /// The same array with its rank by another type.
    pub(crate) fn into_dimension<E: Dimension>(self) -> ArrayBase<S, E> {
        let Self { memory, layout, owner, .. } = self;
        ArrayBase { memory, layout, owner, marker: PhantomData }
    }

    pub(crate) fn place(&self) -> ArrayRef<'_, S::Backend> {
        ArrayRef::new(&self.memory, &self.layout)
    }

    /// An error of `operation` on this array.
    #[cold]
    fn fail(&self, operation: &'static str, error: LayoutError) -> Error {
        self.memory.core().error(operation, error)
    }

    /// Returns the lengths of the axes.
    pub fn shape(&self) -> &[usize] {
        self.layout.shape()
    }

    /// Returns the bytes from one element to the next along each axis, of any sign.
    /// ```
    /// # use ndarray::s; let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let array = device.device_array::<f32, _>((3, 4))?;
    /// assert_eq!(array.strides(), [16, 4]);
    /// assert_eq!(array.slice(s![.., ..;-1])?.strides(), [16, -4]);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    pub fn strides(&self) -> &[isize] {
        self.layout.strides()
    }

    /// Returns shape and strides together.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the shape as ndarray's dimension.
    pub fn raw_dim(&self) -> D {
        let mut dim = D::zeros(self.layout.ndim());
        dim.slice_mut().copy_from_slice(self.layout.shape());
        dim
    }

    /// Returns the number of axes.
    pub fn ndim(&self) -> usize {
        self.layout.ndim()
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.layout.len()
    }

    /// Returns whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.layout.is_empty()
    }

    /// Returns the bytes of all elements together; NumPy's `nbytes`.
    pub fn byte_len(&self) -> usize {
        self.layout.packed_bytes()
    }

    /// Returns whether the elements lie side by side in row-major order, by NumPy's relaxed rules.
    pub fn is_c_contiguous(&self) -> bool {
        self.layout.is_c_contiguous()
    }

    /// Returns whether the elements lie side by side in column-major order, by NumPy's relaxed rules.
    pub fn is_f_contiguous(&self) -> bool {
        self.layout.is_f_contiguous()
    }

    /// Returns the device that holds the elements.
    ///
    /// # Errors
    /// Returns [`InvalidArgument`](gpumem_core::ErrorKind::InvalidArgument) for memory of the device itself, which no
    /// handle of a device belongs to.
    pub fn device(&self) -> Result<&Device<S::Backend>> {
        self.memory.device().ok_or_else(|| {
            let why = "memory of the device itself";
            self.memory.core().error("device", gpumem_core::ErrorKind::InvalidArgument { why })
        })
    }

    /// Returns the kind of the memory.
    pub fn kind(&self) -> MemoryKind {
        self.memory.kind()
    }

    /// Address and length in bytes of the driver's block that holds the elements. Arrays are parts of larger blocks,
    /// and another process opens the whole block: the elements begin `address() - driver_block().0` bytes in.
    pub fn driver_block(&self) -> (u64, usize) {
        self.memory.driver_block()
    }

    /// Waits until all work that has been enqueued so far and uses the elements is done, on every stream. The library
    /// itself never needs that. Use it before you hand the [address](Self::address) to code that knows no streams.
    ///
    /// # Errors
    /// Returns [`Poisoned`](gpumem_core::ErrorKind::Poisoned) if work failed that was to write the elements, and
    /// [`BlockingInCallback`](gpumem_core::ErrorKind::BlockingInCallback) in a callback.
    pub fn synchronize(&self) -> Result<()> {
        const OPERATION: &str = "synchronize";
        may_block(OPERATION)?;
        self.memory.show_to_host(OPERATION, &self.layout.extent(), HostAccess::Write)
    }

    /// The device's address of element `[0, 0, ..]`, for looking at. To hand it to another library, use
    /// [`Stream::raw_scope`](crate::Stream::raw_scope), which keeps the ordering, or [`synchronize`](Self::synchronize) first.
    pub fn address(&self) -> u64 {
        self.memory.address().wrapping_add(self.layout.offset() as u64)
    }

    /// The host's address of element `[0, 0, ..]`, where the host sees the memory: that of page-locked, mapped and managed memory, which
    /// may have another address on the device. For looking at, as [`address`](Self::address).
    pub fn host_address(&self) -> Option<usize> {
        Some(self.memory.host()?.addr().get().wrapping_add(self.layout.offset()))
    }
}

impl<S: Storage, D: Dimension> fmt::Debug for ArrayBase<S, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(S::NAME)
            .field("element", &std::any::type_name::<S::Elem>())
            .field("shape", &self.shape())
            .field("strides", &self.strides())
            .field("device", &self.memory.core().name())
            .finish()
    }
}
