//! Objects with a CUDA array interface as sources of copies.

use super::HasCudaArrayInterface;
use crate::{Destination, FromDevice, Source, ToDevice};
use gpumem_core::{Backend, Element};
use ndarray::Dimension;
use std::{fmt, marker::PhantomData};

/// An object with a CUDA array interface as a source: made by [`cuda_array`].
pub struct CudaArraySource<'a, T, D> {
    object: &'a dyn HasCudaArrayInterface,
    marker: PhantomData<fn() -> (T, D)>,
}

/// The elements of an object with a CUDA array interface, as something to copy from: `device.to_device(&cuda_array(&x))`,
/// `array.copy_to_device(&cuda_array(&x))`. They are copied on the device, or from another device; the object is only
/// borrowed, so that the copy is over when the call returns, on a stream too. To go on in stream order, import the object
/// ([`Device::as_cuda_array`](crate::Device::as_cuda_array)) and copy from the array.
pub fn cuda_array<T: Element, D: Dimension>(object: &dyn HasCudaArrayInterface) -> CudaArraySource<'_, T, D> {
    CudaArraySource { object, marker: PhantomData }
}

#[diagnostic::do_not_recommend]
impl<B: Backend, T: Element, D: Dimension> ToDevice<B> for CudaArraySource<'_, T, D> {
    type Elem = T;
    type Dim = D;

    fn source(&self) -> Source<'_, T, D, B> {
        Source::described(self.object.cuda_array_interface())
    }
}

impl<T, D> fmt::Debug for CudaArraySource<'_, T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CudaArraySource").finish_non_exhaustive()
    }
}

/// An object with a CUDA array interface as a destination: made by [`cuda_array_mut`].
pub struct CudaArrayDestination<'a, T, D> {
    object: &'a mut dyn HasCudaArrayInterface,
    marker: PhantomData<fn() -> (T, D)>,
}

/// The elements of an object with a CUDA array interface, as something that a kernel writes:
/// `kernel.launch(&stream, &dims, (Out(cuda_array_mut(&mut x)),))`. An object that says that it may only be read is an
/// error.
pub fn cuda_array_mut<T: Element, D: Dimension>(
    object: &mut dyn HasCudaArrayInterface,
) -> CudaArrayDestination<'_, T, D> {
    CudaArrayDestination { object, marker: PhantomData }
}

#[diagnostic::do_not_recommend]
impl<B: Backend, T: Element, D: Dimension> ToDevice<B> for CudaArrayDestination<'_, T, D> {
    type Elem = T;
    type Dim = D;

    fn source(&self) -> Source<'_, T, D, B> {
        Source::described(self.object.cuda_array_interface())
    }
}

impl<B: Backend, T: Element, D: Dimension> FromDevice<B> for CudaArrayDestination<'_, T, D> {
    fn destination(&mut self) -> Destination<'_, T, D, B> {
        Destination::described(self.object.cuda_array_interface())
    }
}

impl<T, D> fmt::Debug for CudaArrayDestination<'_, T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CudaArrayDestination").finish_non_exhaustive()
    }
}
