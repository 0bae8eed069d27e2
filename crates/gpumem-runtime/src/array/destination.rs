//! Arrays of the host that elements can come back to.

use crate::{
    ArrayBase, CudaArrayInterface, Device, HostArray, HostKind, Scalar, Source, StorageMut, ToDevice,
    array::rows,
    device::{Allocation, AllocationRef},
    foreign,
    layout::Layout,
    transfer::{self, ArrayRef},
};
use gpumem_core::{Backend, DescriptorError, Element, ErrorKind, LayoutError, Result};
use gpumem_memory::track::DeviceContext;
use gpumem_memory::track::Timeline;
use ndarray::{ArrayView, ArrayViewMut, Axis, Dimension, Ix0, Ix1};
use std::{borrow::Cow, ops::Range, sync::Arc};

/// Destinations of a copy from a device of backend `B`: arrays and mutable views of ndarray of any layout, slices,
/// arrays and vectors of Rust, a [`Scalar`], device arrays and mutable views, the host arrays of the library, and
/// objects with a CUDA array interface (through [`cuda_array_mut`](crate::cuda_array_mut)).
pub trait FromDevice<B: Backend>: ToDevice<B> {
    /// The elements, borrowed for writing. Called once for each use; earlier reads of them also use this, and not
    /// [`source`](ToDevice::source).
    fn destination(&mut self) -> Destination<'_, Self::Elem, Self::Dim, B>;
}

/// Borrowed elements that are written from a device; made by [`FromDevice::destination`].
#[derive(Debug)]
pub struct Destination<'a, T: Element, D: Dimension, B: Backend>(To<'a, T, D, B>);

#[derive(Debug)]
enum To<'a, T: Element, D: Dimension, B: Backend> {
    Host(ArrayViewMut<'a, T, D>),
    Memory {
        memory: &'a AllocationRef<B>,
        layout: Cow<'a, Layout>,
    },
    /// Memory of an object that is borrowed for `'a`, or why it did not say where.
    Described(Result<CudaArrayInterface>),
}

/// How elements come into memory of the caller.
#[derive(Debug, Clone, Copy)]
pub enum WriteBack {
    /// Before the call returns.
    Now,
    /// When the scope of that number waits.
    InScope(u64),
}

impl<'a, T: Element, D: Dimension, B: Backend> Destination<'a, T, D, B> {
    /// A destination in ordinary memory, for implementations of [`FromDevice`] outside this crate.
    pub fn host(view: ArrayViewMut<'a, T, D>) -> Self {
        Self(To::Host(view))
    }

    /// A destination that an object with a CUDA array interface has described.
    pub(crate) fn described(descriptor: Result<CudaArrayInterface>) -> Self {
        Self(To::Described(descriptor))
    }

    /// The same elements, to be read: queries about them use the destination.
    #[doc(hidden)]
    pub fn as_source(&self) -> Source<'_, T, D, B> {
        match &self.0 {
            To::Host(view) => Source::host(view.view()),
            To::Memory { memory, layout } => Source::memory(memory, layout),
            To::Described(descriptor) => Source::described(descriptor.clone()),
        }
    }

    /// The elements of some rows: positions of the first axis.
    pub(crate) fn rows(&mut self, rows: Range<usize>) -> Result<Destination<'_, T, D, B>, ErrorKind> {
        Ok(Destination(match &mut self.0 {
            To::Host(view) => {
                let mut view = view.view_mut();
                rows::narrow(&mut view, rows)?;
                To::Host(view)
            }
            To::Memory { memory, layout } => {
                To::Memory { memory, layout: Cow::Owned(rows::of_layout(layout, rows)?) }
            }
            To::Described(Ok(all)) => To::Described(Ok(rows::of_descriptor::<T>(all, rows)?)),
            To::Described(Err(error)) => To::Described(Err(error.clone())),
        }))
    }

    /// Whether elements may be written here, before anything is.
    #[doc(hidden)]
    pub fn check(&self, device: &Device<B>, operation: &'static str) -> Result<()> {
        match &self.0 {
            To::Host(view) => {
                let layout = Layout::of_ndarray(view.shape(), view.strides(), size_of::<T>())
                    .map_err(|error| device.core().error(operation, error))?;
                check_writable(device.core(), operation, &layout, false)
            }
            To::Memory { memory, layout } => {
                check_writable(device.core(), operation, layout, memory.is_read_only())
            }
            To::Described(descriptor) => {
                let descriptor = descriptor.as_ref().map_err(Clone::clone)?;
                // SAFETY: the object is borrowed, and nothing is enqueued that uses its memory.
                let array = unsafe { foreign::described::<T, B>(device, descriptor, operation)? };
                check_writable(
                    device.core(),
                    operation,
                    &array.layout,
                    Allocation::is_import_read_only(&array.memory),
                )
            }
        }
    }

    /// Copies the elements of `source` here, after the work that writes them. Returns the submission index of a copy
    /// that is still under way (0 for none), and the memory of a borrowed object that this copy writes.
    ///
    /// # Safety
    /// With [`WriteBack::InScope`], the destination is valid for writes, and not used by anything else, until the
    /// copy-outs of the scope are run or leaked. The borrowed memory is waited for before the borrow ends.
    #[doc(hidden)]
    pub unsafe fn copy_from(
        self,
        timeline: &Arc<Timeline<B>>,
        operation: &'static str,
        source: ArrayRef<'_, B>,
        device: &Device<B>,
        write_back: WriteBack,
    ) -> Result<(u64, Option<AllocationRef<B>>)> {
        match (self.0, write_back) {
            (To::Host(mut view), WriteBack::Now) => {
                transfer::download(timeline, operation, source, &mut view, None)?;
                Ok((0, None))
            }
            (To::Host(view), WriteBack::InScope(scope)) => {
                // SAFETY: the caller's promise.
                unsafe {
                    transfer::download_in_scope(timeline, operation, scope, source, view.into_dyn())?;
                }
                Ok((0, None))
            }
            (To::Memory { memory, layout }, _) => {
                let to = ArrayRef::new(memory, &layout);
                Ok((transfer::copy::<T, B>(timeline, operation, source, to)?, None))
            }
            (To::Described(descriptor), _) => {
                // SAFETY: the object is borrowed, and the caller waits for its memory before that ends.
                let array = unsafe { foreign::described::<T, B>(device, &descriptor?, operation)? };
                let read_only = Allocation::is_import_read_only(&array.memory);
                check_writable(device.core(), operation, &array.layout, read_only)?;
                let to = ArrayRef::new(&array.memory, &array.layout);
                let copied = transfer::copy::<T, B>(timeline, operation, source, to);
                Ok((array.give_back(operation, copied)?, Some(array.memory.clone())))
            }
        }
    }
}

/// Whether every element of a layout may be written by itself.
pub fn check_writable<B: Backend>(
    context: &DeviceContext<B>,
    operation: &'static str,
    layout: &Layout,
    read_only: bool,
) -> Result<()> {
    if read_only {
        return Err(context.error(operation, ErrorKind::from(DescriptorError::ReadOnly)));
    }
    if layout.has_self_overlap() {
        let (shape, strides) = (layout.shape().to_vec(), layout.strides().to_vec());
        return Err(context.error(operation, LayoutError::SelfOverlap { shape, strides }));
    }
    Ok(())
}

impl<B: Backend, X: FromDevice<B> + ?Sized> FromDevice<B> for &mut X {
    fn destination(&mut self) -> Destination<'_, X::Elem, X::Dim, B> {
        (**self).destination()
    }
}

impl<B: Backend, T: Element, S: ndarray::DataMut<Elem = T>, D: Dimension> FromDevice<B>
    for ndarray::ArrayBase<S, D>
{
    fn destination(&mut self) -> Destination<'_, T, D, B> {
        Destination::host(self.view_mut())
    }
}

// Sources and destinations alike.
macro_rules! lists {
    ($([$($length:tt)*] $list:ty;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<B: Backend, T: Element, $($length)*> ToDevice<B> for $list {
            type Elem = T;
            type Dim = Ix1;

            fn source(&self) -> Source<'_, T, Ix1, B> {
                Source::host(ArrayView::from(self))
            }
        }

        impl<B: Backend, T: Element, $($length)*> FromDevice<B> for $list {
            fn destination(&mut self) -> Destination<'_, T, Ix1, B> {
                Destination::host(ArrayViewMut::from(self))
            }
        }
    )*};
}
lists! { [] [T]; [const N: usize] [T; N]; [] Vec<T>; }

impl<B: Backend, T: Element> FromDevice<B> for Scalar<T> {
    fn destination(&mut self) -> Destination<'_, T, Ix0, B> {
        let one = ArrayViewMut::from(std::slice::from_mut(&mut self.0));
        Destination::host(one.index_axis_move(Axis(0), 0))
    }
}

impl<S: StorageMut, D: Dimension> FromDevice<S::Backend> for ArrayBase<S, D> {
    fn destination(&mut self) -> Destination<'_, S::Elem, D, S::Backend> {
        Destination(To::Memory { memory: &self.memory, layout: Cow::Borrowed(&self.layout) })
    }
}

impl<K: HostKind, T: Element, D: Dimension, B: Backend> FromDevice<B> for HostArray<K, T, D, B> {
    fn destination(&mut self) -> Destination<'_, T, D, B> {
        let ArrayRef { memory, layout } = self.place();
        Destination(To::Memory { memory, layout: Cow::Borrowed(layout) })
    }
}
