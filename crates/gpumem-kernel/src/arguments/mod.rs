//! The arguments of a launch, one for each parameter.

mod constants;
mod host_arrays;

pub use host_arrays::{In, InOut, Out};

pub(crate) use constants::Constants;
pub(crate) use host_arrays::HostArrays;

use crate::simt::{Parameter, Parameters};
use crate::{Constant, Own, OwnView, Slice, SliceMut, Value, View, ViewMut};
use bytemuck::{Pod, Zeroable};
use constants::ConstantUpload;
use gpumem_core::{Backend, Element, Error, ErrorKind, KernelArguments, LayoutError, Result};
use gpumem_runtime::{
    ArrayBase, Layout, Storage, StorageMut, Varying,
    internal::{Access, ArrayRef},
};
use half::{bf16, f16};
use ndarray::Dimension;
use smallvec::SmallVec;

/// The arguments of a launch while they are collected.
#[derive(Debug)]
pub struct ArgumentCollector<'a, B: Backend> {
    pub(crate) arguments: KernelArguments,
    pub(crate) accesses: SmallVec<[Access<'a, B>; 8]>,
    pub(crate) host: HostArrays<'a, B>,
    pub(crate) constants: ConstantUpload<'a, B>,
}

/// An array as a kernel gets a slice.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct SliceWords {
    address: u64,
    len: u64,
}

pub(crate) mod sealed {
    pub trait SealedArgument {}
}

/// An argument for a parameter `Q`: `&array` for a [`Slice`] or [`View`], `&mut array` for a [`SliceMut`], [`ViewMut`],
/// [`Own`] or [`OwnView`], a number for itself, a [`Value`] or a [`Constant`] for itself. Arrays of the host state
/// their direction: [`In`] for those that are read, [`Out`] or [`InOut`] for those that are written.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be given for a kernel's parameter `{Q}`",
    note = "an array of the host is `In(&a)`, `Out(&mut a)` or `InOut(&mut a)`; one of the device `&a` or `&mut a`"
)]
pub trait Argument<Q: Parameter, B: Backend>: sealed::SealedArgument {
    #[doc(hidden)]
    fn collect<'a>(&'a mut self, to: &mut ArgumentCollector<'a, B>) -> Result<()>;
}

/// A number, which is an argument for itself: [`Numeric`](crate::codegen::Numeric) implies it, so that generic functions launch
/// generic kernels with numbers.
pub trait NumberArgument: Parameter + Copy + sealed::SealedArgument + for<'env> ScopedArgument<'env> {
    #[doc(hidden)]
    fn push<B: Backend>(self, to: &mut ArgumentCollector<'_, B>);
}

// The compiler proposes what a user can write.
#[diagnostic::do_not_recommend]
impl<T: NumberArgument, B: Backend> Argument<T, B> for T {
    #[inline]
    fn collect<'a>(&'a mut self, to: &mut ArgumentCollector<'a, B>) -> Result<()> {
        (*self).push(to);
        Ok(())
    }
}

/// Arguments for all parameters `P` of a kernel: a tuple of [`Argument`]s.
#[diagnostic::on_unimplemented(
    message = "the arguments `{Self}` do not fit the kernel's parameters `{P}`",
    note = "a tuple has one for each parameter: of the host `In(&a)`, `Out(&mut a)` or `InOut(&mut a)`, \
            of the device `&a`, or `&mut a` where it is written; `(a,)` is a tuple of one"
)]
pub trait Arguments<P: Parameters, B: Backend>: sealed::SealedArgument {
    #[doc(hidden)]
    fn collect<'a>(&'a mut self, to: &mut ArgumentCollector<'a, B>) -> Result<()>;
}

/// An argument of a launch in a scope: it borrows host memory for `'env`.
pub trait ScopedArgument<'env>: sealed::SealedArgument {}

impl<'a, B: Backend> ArgumentCollector<'a, B> {
    #[inline(always)]
    pub(crate) fn new(host: HostArrays<'a, B>, constants: Option<&'a Constants<B>>) -> Self {
        let constants = ConstantUpload::new(constants);
        Self { arguments: KernelArguments::new(), accesses: SmallVec::new(), host, constants }
    }

    /// Whether all is on the device already.
    #[inline]
    pub(crate) fn is_of_device(&self) -> bool {
        self.host.is_empty() && self.constants.is_empty()
    }

    #[inline]
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.arguments.push_bytes(bytes).map_err(|_| too_long())
    }

    /// A number of each launch of the graph that is being recorded.
    pub(crate) fn varying<T>(&mut self, number: &'a Varying<T, B>) -> Result<()> {
        let (memory, bytes) = number.place_by(crate::KEY);
        if !bytes.is_empty() {
            self.accesses.push(Access::read(memory, 0..bytes.len()).at_argument(self.arguments.len()));
        }
        self.bytes(bytes)
    }

    fn access(&mut self, array: ArrayRef<'a, B>, write: bool) {
        if !array.layout.is_empty() {
            self.accesses.push(array.access(write).at_argument(self.arguments.len()));
        }
    }

    #[inline(always)]
    pub(crate) fn slice<S: Storage<Backend = B>, D: Dimension>(
        &mut self,
        array: &'a ArrayBase<S, D>,
        write: bool,
    ) -> Result<()> {
        let ArrayRef { memory, layout } = array.place_by(crate::KEY);
        let Some(len) = layout.packed_len() else { return Err(needs_copy(layout)) };
        if len > 0 {
            let start = layout.offset();
            let extent = start..start + len * layout.item();
            let access = Access::new(memory, extent, write).of_elements(layout);
            self.accesses.push(access.at_argument(self.arguments.len()));
        }
        self.slice_words(array.address(), len);
        Ok(())
    }

    #[inline]
    pub(crate) fn slice_words(&mut self, address: u64, len: usize) {
        self.arguments.push(SliceWords { address, len: len as u64 });
    }

    pub(crate) fn view<S: Storage<Backend = B>, D: Dimension>(
        &mut self,
        array: &'a ArrayBase<S, D>,
        rank: usize,
        write: bool,
    ) -> Result<()> {
        if array.ndim() != rank {
            let error = LayoutError::RankMismatch { found: array.ndim(), expected: rank };
            return Err(Error::new("", "launch", error));
        }
        let place = array.place_by(crate::KEY);
        self.access(place, write);
        self.view_bytes(array.address(), place.layout)
    }

    pub(crate) fn view_bytes(&mut self, address: u64, layout: &Layout) -> Result<()> {
        let mut words: SmallVec<[u64; 16]> = SmallVec::new();
        words.push(address);
        words.extend(layout.shape().iter().map(|extent| *extent as u64));
        words.extend(layout.strides().iter().map(|stride| *stride as u64));
        self.bytes(bytemuck::cast_slice(&words))
    }
}

#[cold]
fn too_long() -> Error {
    let why = "it is longer than 4096 bytes";
    Error::new("", "launch", ErrorKind::InvalidArgument { why })
}

#[cold]
fn needs_copy(layout: &Layout) -> Error {
    let (shape, strides) = (layout.shape().to_vec(), layout.strides().to_vec());
    Error::new("", "launch", LayoutError::NeedsCopy { shape, strides })
        .with_hint("the kernel takes a packed array here: give it a copy, or declare a `View`")
}

/// Adds which argument it was. Each of those before it has left its bytes.
#[cold]
fn of_argument<B: Backend>(error: Error, collected: &ArgumentCollector<'_, B>) -> Error {
    error.at_argument(collected.arguments.len() + 1)
}

impl<S: Storage, D: Dimension> sealed::SealedArgument for &ArrayBase<S, D> {}
impl<S: Storage, D: Dimension> sealed::SealedArgument for &mut ArrayBase<S, D> {}
// Memory of the library is kept by its access log.
impl<S: Storage, D: Dimension> ScopedArgument<'_> for &ArrayBase<S, D> {}
impl<S: Storage, D: Dimension> ScopedArgument<'_> for &mut ArrayBase<S, D> {}

impl<S: Storage, D: Dimension> Argument<Slice<S::Elem>, S::Backend> for &ArrayBase<S, D> {
    #[inline]
    fn collect<'a>(&'a mut self, to: &mut ArgumentCollector<'a, S::Backend>) -> Result<()> {
        to.slice(self, false)
    }
}

macro_rules! written {
    ($($slice:ident $view:ident)*) => {$(
        impl<S: StorageMut, D: Dimension> Argument<$slice<S::Elem>, S::Backend> for &mut ArrayBase<S, D> {
            #[inline]
            fn collect<'a>(&'a mut self, to: &mut ArgumentCollector<'a, S::Backend>) -> Result<()> {
                to.slice(self, true)
            }
        }

        impl<S: StorageMut, D: Dimension, const N: usize> Argument<$view<S::Elem, N>, S::Backend>
            for &mut ArrayBase<S, D>
        {
            fn collect<'a>(&'a mut self, to: &mut ArgumentCollector<'a, S::Backend>) -> Result<()> {
                to.view(self, N, true)
            }
        }
    )*};
}
// No two elements of an array that can be written share bytes: such a layout is refused where the array is made.
written!(SliceMut ViewMut Own OwnView);

impl<S: Storage, D: Dimension, const N: usize> Argument<View<S::Elem, N>, S::Backend> for &ArrayBase<S, D> {
    fn collect<'a>(&'a mut self, to: &mut ArgumentCollector<'a, S::Backend>) -> Result<()> {
        to.view(self, N, false)
    }
}

impl<T: Element> sealed::SealedArgument for Value<T> {}
impl<T: Element> ScopedArgument<'_> for Value<T> {}
impl<T: Element, B: Backend> Argument<Value<T>, B> for Value<T> {
    fn collect<'a>(&'a mut self, to: &mut ArgumentCollector<'a, B>) -> Result<()> {
        to.bytes(bytemuck::bytes_of(&self.0))
    }
}

impl<T: Element, const LEN: usize> sealed::SealedArgument for Constant<T, LEN> {}
impl<T: Element, const LEN: usize> ScopedArgument<'_> for Constant<T, LEN> {}
impl<T: Element, const LEN: usize, B: Backend> Argument<Constant<T, LEN>, B> for Constant<T, LEN> {
    fn collect<'a>(&'a mut self, to: &mut ArgumentCollector<'a, B>) -> Result<()> {
        // A class without elements has one byte in C++.
        if LEN == 0 { to.bytes(&[0]) } else { to.bytes(bytemuck::cast_slice(&self.0)) }
    }
}

impl sealed::SealedArgument for bool {}
impl ScopedArgument<'_> for bool {}
impl<B: Backend> Argument<bool, B> for bool {
    #[inline]
    fn collect<'a>(&'a mut self, to: &mut ArgumentCollector<'a, B>) -> Result<()> {
        to.bytes(&[u8::from(*self)])
    }
}

macro_rules! varying {
    ($([$($generic:tt)*] $type:ty;)*) => {$(
        impl<$($generic)* B: Backend> Argument<$type, B> for Varying<$type, B> {
            fn collect<'a>(&'a mut self, to: &mut ArgumentCollector<'a, B>) -> Result<()> {
                to.varying(self)
            }
        }
        impl<$($generic)* B: Backend> Argument<$type, B> for &Varying<$type, B> {
            fn collect<'a>(&'a mut self, to: &mut ArgumentCollector<'a, B>) -> Result<()> {
                to.varying(self)
            }
        }
    )*};
}
varying! { [T: NumberArgument,] T; [] bool; [T: Element,] Value<T>; }
impl<T, B: Backend> sealed::SealedArgument for Varying<T, B> {}
impl<T, B: Backend> sealed::SealedArgument for &Varying<T, B> {}
impl<T, B: Backend> ScopedArgument<'_> for Varying<T, B> {}
impl<T, B: Backend> ScopedArgument<'_> for &Varying<T, B> {}

macro_rules! numbers {
    ($($type:ty)*) => {$(
        impl sealed::SealedArgument for $type {}
        impl ScopedArgument<'_> for $type {}
        impl NumberArgument for $type {
            #[inline]
            fn push<B: Backend>(self, to: &mut ArgumentCollector<'_, B>) {
                to.arguments.push(self);
            }
        }
    )*};
}
numbers!(u8 i8 u16 i16 u32 i32 u64 i64 f16 bf16 f32 f64);

macro_rules! tuples {
    ($(($($parameter:ident $argument:ident)*))*) => {$(
        impl<$($argument: sealed::SealedArgument),*> sealed::SealedArgument for ($($argument,)*) {}
        impl<'env, $($argument: ScopedArgument<'env>),*> ScopedArgument<'env> for ($($argument,)*) {}
        // The compiler shows the arguments beside the parameters, and not a list of tuples.
        #[diagnostic::do_not_recommend]
        impl<BE: Backend, $($parameter: Parameter, $argument: Argument<$parameter, BE>),*>
            Arguments<($($parameter,)*), BE> for ($($argument,)*)
        {
            #[allow(non_snake_case, unused_variables)]
            #[inline]
            fn collect<'a>(&'a mut self, to: &mut ArgumentCollector<'a, BE>) -> Result<()> {
                let ($($argument,)*) = self;
                $($argument.collect(to).map_err(|error| of_argument(error, to))?;)*
                Ok(())
            }
        }
    )*};
}
tuples! {
    () (A1 A2) (A1 A2 B1 B2) (A1 A2 B1 B2 C1 C2) (A1 A2 B1 B2 C1 C2 D1 D2) (A1 A2 B1 B2 C1 C2 D1 D2 E1 E2)
    (A1 A2 B1 B2 C1 C2 D1 D2 E1 E2 F1 F2) (A1 A2 B1 B2 C1 C2 D1 D2 E1 E2 F1 F2 G1 G2)
    (A1 A2 B1 B2 C1 C2 D1 D2 E1 E2 F1 F2 G1 G2 H1 H2) (A1 A2 B1 B2 C1 C2 D1 D2 E1 E2 F1 F2 G1 G2 H1 H2 I1 I2)
    (A1 A2 B1 B2 C1 C2 D1 D2 E1 E2 F1 F2 G1 G2 H1 H2 I1 I2 J1 J2)
    (A1 A2 B1 B2 C1 C2 D1 D2 E1 E2 F1 F2 G1 G2 H1 H2 I1 I2 J1 J2 K1 K2)
    (A1 A2 B1 B2 C1 C2 D1 D2 E1 E2 F1 F2 G1 G2 H1 H2 I1 I2 J1 J2 K1 K2 L1 L2)
}
