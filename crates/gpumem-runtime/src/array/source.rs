//! Sources of copies to a device.

use crate::{
    ArrayBase, CopyPlan, CudaArrayInterface, Device, HostArray, HostKind, Storage, UninitArray,
    array::{file::FileView, host::packed_shape, rows},
    device::{Allocation, AllocationRef},
    foreign::{self, described_layout},
    key::Key,
    layout::Layout,
    transfer::{self, ArrayRef, Upload},
};
use gpumem_core::{Backend, Element, Error, ErrorKind, Result};
use gpumem_memory::{may_block, track::Timeline};
use ndarray::{ArrayD, ArrayView, Dimension, Ix0, IxDyn};
use std::{borrow::Cow, ops::Range, sync::Arc};

/// A source of a copy to a device of backend `B`: ndarray arrays and views of any layout, slices, arrays and vectors of
/// Rust, a [`Scalar`], device arrays and views (of any device), the host arrays of the library, [arrays in files](FileView), and
/// objects with a CUDA array interface (through [`cuda_array`](crate::cuda_array)).
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be copied to a device",
    note = "arrays and views of ndarray, slices, vectors and device arrays can, where the elements are numbers, `gpumem::Bool`, or \
            `#[repr(C)]` structs with `#[derive(Clone, Copy, Pod, Zeroable)]` (of `gpumem::bytemuck`)"
)]
pub trait ToDevice<B: Backend> {
    /// Element type.
    type Elem: Element;
    /// Rank.
    type Dim: Dimension;

    /// The elements, borrowed.
    fn source(&self) -> Source<'_, Self::Elem, Self::Dim, B>;
}

/// Borrowed elements on their way to a device; made by [`ToDevice::source`].
#[derive(Debug)]
pub struct Source<'a, T: Element, D: Dimension, B: Backend>(From<'a, T, D, B>);

#[derive(Debug)]
enum From<'a, T: Element, D: Dimension, B: Backend> {
    Host(ArrayView<'a, T, D>),
    Memory {
        memory: &'a AllocationRef<B>,
        layout: Cow<'a, Layout>,
    },
    File(Cow<'a, FileView<T, D>>),
    /// Memory of an object that is borrowed for `'a`, or why it did not say where.
    Described(Result<CudaArrayInterface>),
}

/// Elements that a kernel can use where they lie.
#[derive(Debug)]
pub struct InPlace<B: Backend> {
    /// The memory with the elements.
    pub memory: AllocationRef<B>,
    /// Where they lie in it.
    pub layout: Layout,
    /// The memory belongs to a borrowed object: the library waits for its uses before the borrow ends.
    pub borrowed: bool,
    /// It may not be written.
    pub read_only: bool,
}

/// One value as a source of rank 0: `device.to_device(&Scalar(3.0f32))`.
/// ```
/// # use gpumem_runtime::Scalar; let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
/// let value = device.to_device(&Scalar(3.0f32))?;
/// assert_eq!((value.ndim(), value.read()?), (0, 3.0));
/// # Ok::<(), gpumem_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scalar<T>(pub T);

impl<'a, T: Element, D: Dimension, B: Backend> Source<'a, T, D, B> {
    /// A source in ordinary memory, for implementations of [`ToDevice`] outside this crate.
    pub fn host(view: ArrayView<'a, T, D>) -> Self {
        Self(From::Host(view))
    }

    /// A source in memory of the library.
    pub(crate) fn memory(memory: &'a AllocationRef<B>, layout: &'a Layout) -> Self {
        Self(From::Memory { memory, layout: Cow::Borrowed(layout) })
    }

    /// A source in a file.
    pub(crate) fn file(view: &'a FileView<T, D>) -> Self {
        Self(From::File(Cow::Borrowed(view)))
    }

    /// A source that an object with a CUDA array interface has described.
    pub(crate) fn described(descriptor: Result<CudaArrayInterface>) -> Self {
        Self(From::Described(descriptor))
    }

    /// Shape and strides of the elements.
    #[doc(hidden)]
    pub fn layout(&self, operation: &'static str) -> Result<Layout> {
        match &self.0 {
            From::Memory { layout, .. } => Ok(Layout::clone(layout)),
            From::Host(view) => Layout::of_ndarray(view.shape(), view.strides(), size_of::<T>())
                .map_err(|error| Error::new("", operation, error)),
            From::File(view) => Ok(view.layout().clone()),
            From::Described(descriptor) => {
                described_layout::<T>(descriptor.as_ref().map_err(Clone::clone)?, operation)
            }
        }
    }

    /// The elements of some rows: positions of the first axis.
    pub(crate) fn rows(&self, rows: Range<usize>) -> Result<Source<'_, T, D, B>, ErrorKind> {
        Ok(Source(match &self.0 {
            From::Host(view) => {
                let mut view = view.view();
                rows::narrow(&mut view, rows)?;
                From::Host(view)
            }
            From::Memory { memory, layout } => {
                From::Memory { memory, layout: Cow::Owned(rows::of_layout(layout, rows)?) }
            }
            From::File(view) => From::File(Cow::Owned(view.rows(rows)?)),
            From::Described(Ok(all)) => From::Described(Ok(rows::of_descriptor::<T>(all, rows)?)),
            From::Described(Err(error)) => From::Described(Err(error.clone())),
        }))
    }

    /// The elements where they lie, if kernels of the stream's device can use them there: in memory of the library with a
    /// device address, and in that of an object that has described it.
    #[doc(hidden)]
    pub fn in_place(
        &self,
        _: Key,
        timeline: &Timeline<B>,
        device: &Device<B>,
        operation: &'static str,
    ) -> Result<Option<InPlace<B>>> {
        let (memory, layout, borrowed, read_only) = match &self.0 {
            From::Host(_) | From::File(_) => return Ok(None),
            From::Memory { memory, layout } => {
                ((*memory).clone(), Layout::clone(layout), false, memory.is_read_only())
            }
            From::Described(descriptor) => {
                let descriptor = descriptor.as_ref().map_err(Clone::clone)?;
                // SAFETY: the object is borrowed by the source; users of the memory wait before that ends, because it
                // is said to be borrowed.
                let array = unsafe { foreign::described::<T, B>(device, descriptor, operation)? };
                // The access log keeps the library's memory alive, also without the object.
                let read_only = Allocation::is_import_read_only(&array.memory);
                (array.memory.clone(), array.layout.clone(), !array.memory.is_shared(), read_only)
            }
        };
        let usable = memory.core().is_same(&timeline.context) && memory.kind().is_device_accessible();
        Ok(usable.then_some(InPlace { memory, layout, borrowed, read_only }))
    }

    /// The elements in ordinary memory, packed as `layout`, which is [`like`](Layout::like) their own.
    #[doc(hidden)]
    pub fn packed(
        &self,
        timeline: &Arc<Timeline<B>>,
        device: &Device<B>,
        operation: &'static str,
        layout: &Layout,
    ) -> Result<ArrayD<T>> {
        let shape = packed_shape::<T, _>(IxDyn(layout.shape()), layout);
        let mut packed = transfer::zeros(operation, shape).map_err(|error| timeline.context.place(error))?;
        match &self.0 {
            From::Host(view) => packed.assign(&view.view().into_dyn()),
            From::Memory { memory, layout } => {
                let place = ArrayRef::new(memory, layout);
                transfer::download(timeline, operation, place, &mut packed.view_mut(), None)?;
            }
            From::File(view) => {
                let elements = packed.as_slice_memory_order_mut().unwrap_or_default();
                view.side(view.layout().clone())
                    .read_packed(layout, bytemuck::cast_slice_mut(elements))
                    .map_err(|error| timeline.context.error(operation, error))?;
            }
            From::Described(descriptor) => {
                let descriptor = descriptor.as_ref().map_err(Clone::clone)?;
                // SAFETY: the object is borrowed by the source, and the copy is over when this returns.
                let array = unsafe { foreign::described::<T, B>(device, descriptor, operation)? };
                let place = ArrayRef::new(&array.memory, &array.layout);
                let copied = transfer::download(timeline, operation, place, &mut packed.view_mut(), None);
                array.give_back(operation, copied)?;
            }
        }
        Ok(packed)
    }

    /// An array of the same shape and element, packed, with the order of axes kept.
    pub(crate) fn allocate_like(
        &self,
        device: &Device<B>,
        operation: &'static str,
    ) -> Result<UninitArray<T, D, B>> {
        let layout = self.layout(operation).map_err(|error| device.core().place(error))?;
        UninitArray::with_layout(device, operation, layout.like())
    }

    /// Copies the elements. Returns the submission index of the last copy, 0 for none.
    #[doc(hidden)]
    pub fn copy_to(
        &self,
        timeline: &Arc<Timeline<B>>,
        operation: &'static str,
        destination: ArrayRef<'_, B>,
        upload: Upload,
    ) -> Result<u64> {
        match &self.0 {
            From::Host(view) => transfer::upload(timeline, operation, view, destination, upload, None),
            From::Memory { memory, layout } => {
                copy_memory::<T, B>(timeline, operation, ArrayRef::new(memory, layout), destination, upload)
            }
            From::File(view) => {
                let side = view.side(view.layout().clone());
                transfer::upload_file::<T, B>(timeline, operation, &side, destination, upload, None)
            }
            From::Described(descriptor) => {
                copy_described::<T, B>(timeline, operation, descriptor, None, destination)
            }
        }
    }

    /// How [`copy_to`](Self::copy_to) would do it.
    pub(crate) fn plan(
        &self,
        timeline: &Arc<Timeline<B>>,
        operation: &'static str,
        destination: ArrayRef<'_, B>,
    ) -> Result<CopyPlan> {
        match &self.0 {
            From::Memory { memory, layout } => {
                CopyPlan::between(timeline, operation, ArrayRef::new(memory, layout), destination)
            }
            From::Host(_) => {
                let caller = self.layout(operation).map_err(|error| timeline.context.place(error))?;
                CopyPlan::borrowed(timeline, operation, caller, destination)
            }
            From::File(view) => CopyPlan::of_file(timeline, operation, view.layout(), destination),
            From::Described(descriptor) => {
                let descriptor = descriptor.as_ref().map_err(Clone::clone)?;
                let device = near::<B>(destination.memory, operation)?;
                // SAFETY: the object is borrowed by the source, and nothing is enqueued that uses its memory.
                let array = unsafe { foreign::described::<T, B>(device, descriptor, operation)? };
                let source = ArrayRef::new(&array.memory, &array.layout);
                CopyPlan::between(timeline, operation, source, destination)
            }
        }
    }

    /// As [`copy_to`](Self::copy_to), blocking, and told to `progress`: piece by piece from memory of the caller and from files, at
    /// the end from memory of the library.
    pub(crate) fn copy_with_progress(
        &self,
        timeline: &Arc<Timeline<B>>,
        operation: &'static str,
        destination: ArrayRef<'_, B>,
        progress: transfer::ProgressFn<'_>,
    ) -> Result<()> {
        let total = destination.layout.packed_bytes() as u64;
        match &self.0 {
            From::Host(view) => {
                transfer::upload(timeline, operation, view, destination, Upload::Blocking, Some(progress))?;
            }
            From::File(view) => {
                let side = view.side(view.layout().clone());
                let (upload, progress) = (Upload::Blocking, Some(progress));
                transfer::upload_file::<T, B>(timeline, operation, &side, destination, upload, progress)?;
            }
            From::Memory { .. } | From::Described(_) => {
                self.copy_to(timeline, operation, destination, Upload::Blocking)?;
                // It is done: there is nothing left to cancel.
                let _ = progress(transfer::Progress { done: total, total });
            }
        }
        Ok(())
    }

    /// As [`copy_to`](Self::copy_to), with the source broadcast to the shape of the destination.
    pub(crate) fn broadcast_to(
        &self,
        timeline: &Arc<Timeline<B>>,
        operation: &'static str,
        destination: ArrayRef<'_, B>,
        upload: Upload,
    ) -> Result<u64> {
        let shape = destination.layout.shape();
        let wide = self
            .layout(operation)
            .map_err(|error| timeline.context.place(error))?
            .broadcast(shape)
            .map_err(|error| timeline.context.error(operation, error))?;
        match &self.0 {
            From::Host(view) => match view.broadcast(ndarray::IxDyn(shape)) {
                Some(view) => transfer::upload(timeline, operation, &view, destination, upload, None),
                None => self.copy_to(timeline, operation, destination, upload),
            },
            From::File(view) => transfer::upload_file::<T, B>(
                timeline,
                operation,
                &view.side(wide),
                destination,
                upload,
                None,
            ),
            From::Memory { memory, .. } => {
                copy_memory::<T, B>(timeline, operation, ArrayRef::new(memory, &wide), destination, upload)
            }
            From::Described(descriptor) => {
                copy_described::<T, B>(timeline, operation, descriptor, Some(shape), destination)
            }
        }
    }
}

/// Copies from a borrowed object: reads of its memory are over on return, also for an asynchronous copy.
fn copy_described<T: Element, B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    descriptor: &Result<CudaArrayInterface>,
    wide: Option<&[usize]>,
    destination: ArrayRef<'_, B>,
) -> Result<u64> {
    let descriptor = descriptor.as_ref().map_err(Clone::clone)?;
    may_block(operation)?;
    // SAFETY: the object is borrowed by the source, and the copy is over when this returns.
    let array =
        unsafe { foreign::described::<T, B>(near(destination.memory, operation)?, descriptor, operation)? };
    let layout = match wide {
        Some(shape) => {
            array.layout.broadcast(shape).map_err(|error| timeline.context.error(operation, error))?
        }
        None => array.layout.clone(),
    };
    let from = ArrayRef::new(&array.memory, &layout);
    let copied = copy_memory::<T, B>(timeline, operation, from, destination, Upload::Blocking);
    array.give_back(operation, copied)
}

/// The device by which foreign memory is looked up: that of the destination.
fn near<'a, B: Backend>(memory: &'a Allocation<B>, operation: &'static str) -> Result<&'a Device<B>> {
    let why = "memory of the device itself";
    memory
        .device()
        .ok_or_else(|| memory.core().error(operation, gpumem_core::ErrorKind::InvalidArgument { why }))
}

fn copy_memory<T: Element, B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    source: ArrayRef<'_, B>,
    destination: ArrayRef<'_, B>,
    upload: Upload,
) -> Result<u64> {
    match upload {
        Upload::Blocking => transfer::copy_and_wait::<T, B>(timeline, operation, source, destination),
        Upload::Staged => transfer::copy::<T, B>(timeline, operation, source, destination),
    }
}

#[diagnostic::do_not_recommend]
impl<B: Backend, X: ToDevice<B> + ?Sized> ToDevice<B> for &X {
    type Elem = X::Elem;
    type Dim = X::Dim;

    fn source(&self) -> Source<'_, X::Elem, X::Dim, B> {
        (**self).source()
    }
}

#[diagnostic::do_not_recommend]
impl<B: Backend, X: ToDevice<B> + ?Sized> ToDevice<B> for &mut X {
    type Elem = X::Elem;
    type Dim = X::Dim;

    fn source(&self) -> Source<'_, X::Elem, X::Dim, B> {
        (**self).source()
    }
}

#[diagnostic::do_not_recommend]
impl<B: Backend, T: Element, S: ndarray::Data<Elem = T>, D: Dimension> ToDevice<B>
    for ndarray::ArrayBase<S, D>
{
    type Elem = T;
    type Dim = D;

    fn source(&self) -> Source<'_, T, D, B> {
        Source::host(self.view())
    }
}

#[diagnostic::do_not_recommend]
impl<B: Backend, T: Element> ToDevice<B> for Scalar<T> {
    type Elem = T;
    type Dim = Ix0;

    fn source(&self) -> Source<'_, T, Ix0, B> {
        Source::host(ndarray::aview0(&self.0))
    }
}

#[diagnostic::do_not_recommend]
impl<S: Storage, D: Dimension> ToDevice<S::Backend> for ArrayBase<S, D> {
    type Elem = S::Elem;
    type Dim = D;

    fn source(&self) -> Source<'_, S::Elem, D, S::Backend> {
        Source::memory(&self.memory, &self.layout)
    }
}

#[diagnostic::do_not_recommend]
impl<K: HostKind, T: Element, D: Dimension, B: Backend> ToDevice<B> for HostArray<K, T, D, B> {
    type Elem = T;
    type Dim = D;

    fn source(&self) -> Source<'_, T, D, B> {
        let ArrayRef { memory, layout } = self.place();
        Source::memory(memory, layout)
    }
}
