//! Kernels that are declared with a source in C++ and a body for the host, for devices on which their Rust functions
//! are tested: this compares the two ways of declaring a kernel.

pub mod convolution;
pub mod transpose;

use crate::{Convolution, ShippedKernel, Transpose};
use gpumem_core::{Backend, Result};
use gpumem_kernel::{Kernel, KernelDef};
use gpumem_runtime::{PinnedArray, Stream};

macro_rules! from_source {
    ($($(#[$doc:meta])* $name:ident as $of:ident in $module:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name;

        impl ShippedKernel for $name {
            type Parameters = <$of as ShippedKernel>::Parameters;
            type Problem = <$of as ShippedKernel>::Problem;
            type Elem = <$of as ShippedKernel>::Elem;
            type Shape = <$of as ShippedKernel>::Shape;

            fn declaration() -> KernelDef<Self::Parameters> {
                $module::declaration()
            }

            fn problems() -> Vec<Self::Problem> {
                $of::problems()
            }

            fn reference(problem: &Self::Problem) -> Vec<Self::Elem> {
                $of::reference(problem)
            }

            fn enqueue<B: Backend>(
                kernel: &Kernel<Self::Parameters, B>,
                stream: &Stream<B>,
                problem: &Self::Problem,
            ) -> Result<PinnedArray<Self::Elem, Self::Shape, B>> {
                $of::enqueue(kernel, stream, problem)
            }
        }
    )*};
}
from_source! {
    /// [`transpose`] from source.
    TransposeFromSource as Transpose in transpose;
    /// [`convolution`] from source.
    ConvolutionFromSource as Convolution in convolution;
}
