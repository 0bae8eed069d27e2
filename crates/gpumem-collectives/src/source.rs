//! What an operation reads: an array, or what its destination has.

use crate::{call::Place, pack};
use gpumem_core::{Backend, Element, Result};
use gpumem_runtime::{ArrayBase, Storage, Stream};
use ndarray::Dimension;

/// The source of an operation whose result replaces the elements of its destination, as `MPI_IN_PLACE` is in MPI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InPlace;

/// The source of an operation: a reference to an array, or [`InPlace`].
pub trait Source<'g, T: Element, B: Backend>: sealed::Pack<'g, T, B> {}

impl<'g, T: Element, B: Backend, A: sealed::Pack<'g, T, B>> Source<'g, T, B> for A {}

/// A source for a destination of the dimension `D`: an array of that dimension, or [`InPlace`].
pub trait OfDimension<D>: sealed::Given {}

impl<S: Storage, D: Dimension> OfDimension<D> for &ArrayBase<S, D> {}
impl<D: Dimension> OfDimension<D> for InPlace {}

mod sealed {
    use super::*;

    pub trait Given {}

    impl<S: Storage, D: Dimension> Given for &ArrayBase<S, D> {}
    impl Given for InPlace {}

    pub trait Pack<'g, T: Element, B: Backend>: Given {
        /// The shape; none in place.
        fn shape(&self) -> Option<&[usize]>;

        /// The packed elements; none in place.
        fn pack(self, stream: &Stream<B>, operation: &'static str) -> Result<Option<Place<'g, B>>>;
    }

    impl<'g, S: Storage, D: Dimension> Pack<'g, S::Elem, S::Backend> for &'g ArrayBase<S, D> {
        fn shape(&self) -> Option<&[usize]> {
            Some((**self).shape())
        }

        fn pack(
            self,
            stream: &Stream<S::Backend>,
            operation: &'static str,
        ) -> Result<Option<Place<'g, S::Backend>>> {
            pack::source(stream, operation, self).map(Some)
        }
    }

    impl<'g, T: Element, B: Backend> Pack<'g, T, B> for InPlace {
        fn shape(&self) -> Option<&[usize]> {
            None
        }

        fn pack(self, _: &Stream<B>, _: &'static str) -> Result<Option<Place<'g, B>>> {
            Ok(None)
        }
    }
}
