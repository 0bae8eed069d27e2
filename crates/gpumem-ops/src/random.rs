//! Random numbers: each is a function of a seed, a sequence and its position there.

use crate::{
    kernel::{KernelDef, SliceMut, config_for_items},
    kernels::{self, GROUP},
    operand::unwritten,
};
use gpumem_core::{Backend, Element, Result};
use gpumem_runtime::{ArrayBase, DeviceArray, StorageMut, Stream};
use ndarray::{Dimension, IntoDimension};
use std::any::TypeId;

/// A source of random numbers: Philox4x32-10, the generator of Random123, cuRAND, and PyTorch on GPUs.
///
/// It is a value and has no state: a number depends on the seed, the sequence and its position alone, and has the same bits on every
/// device. An array has the numbers from [`at`](Self::at) on, in row-major order of its indices, whatever its layout. So its parts
/// can be made apart, and one seed gives the same numbers on one device and on many. For further numbers, take another position or
/// another [`sequence`](Self::sequence): the same call gives the same numbers again, and so does each launch of a graph.
///
/// ```
/// use gpumem_ops::Philox;
/// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
/// let stream = device.stream()?;
/// let random = Philox::new(7);
/// let x = random.uniform::<f32, _, _>(&stream, (2, 3))?.copy_to_host()?;
/// assert!(x.iter().all(|x| (0.0..1.0).contains(x)));
/// let row = random.at(3).uniform::<f32, _, _>(&stream, 3)?.copy_to_host()?;
/// assert_eq!(row, x.row(1));
/// # Ok::<(), gpumem_core::Error>(())
/// ```
///
/// # Errors
/// * [`OutOfMemory`](gpumem_core::ErrorKind::OutOfMemory) if the device has no room for results, or for a packed copy of an array
///   that is not in row-major order without gaps;
/// * [`WrongDevice`](gpumem_core::ErrorKind::WrongDevice) for an array of another device;
/// * those of [`load`](gpumem_kernel::KernelDef::load) and [`launch`](gpumem_kernel::Kernel::launch).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Philox {
    seed: u64,
    sequence: u64,
    position: u64,
}

impl Philox {
    /// The numbers of a seed, from the first one of sequence 0 on.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { seed, sequence: 0, position: 0 }
    }

    /// Another sequence of the same seed, independent of all others: one for each rank, or for each use.
    #[must_use]
    pub const fn sequence(self, sequence: u64) -> Self {
        Self { sequence, ..self }
    }

    /// The numbers from a position of the sequence on, counted in numbers of the type that is made. After 2^64 they repeat.
    #[must_use]
    pub const fn at(self, position: u64) -> Self {
        Self { position, ..self }
    }

    /// Makes an array of numbers of equal probability from 0 up to, but not including, 1: multiples of 2^-24 in `f32`, of 2^-53 in
    /// `f64`.
    pub fn uniform<T, Sh, B>(&self, stream: &Stream<B>, shape: Sh) -> Result<DeviceArray<T, Sh::Dim, B>>
    where
        T: RandomFloat,
        Sh: IntoDimension,
        B: Backend,
    {
        self.array(stream, shape, false)
    }

    /// Makes an array of numbers of the normal distribution of mean 0 and variance 1.
    ///
    /// Each is the inverse of the distribution's function at one uniform number, of 32 bits in `f32` and of 64 in `f64`, with a
    /// relative error of at most 1e-6 and 1e-15. None lies further out than 6.34 and 9.16.
    /// ```
    /// use gpumem_ops::{ArrayOps, Philox};
    /// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let x = Philox::new(7).normal::<f64, _, _>(&device.stream()?, 10_000)?;
    /// assert!(x.mean()?.abs() < 0.03);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    pub fn normal<T, Sh, B>(&self, stream: &Stream<B>, shape: Sh) -> Result<DeviceArray<T, Sh::Dim, B>>
    where
        T: RandomFloat,
        Sh: IntoDimension,
        B: Backend,
    {
        self.array(stream, shape, true)
    }

    /// Fills an array or a view with [uniform](Self::uniform) numbers, in stream order.
    pub fn fill_uniform<M, D>(
        &self,
        stream: &Stream<M::Backend>,
        destination: &mut ArrayBase<M, D>,
    ) -> Result<()>
    where
        M: StorageMut<Elem: RandomFloat>,
        D: Dimension,
    {
        self.fill(stream, destination, false)
    }

    /// Fills an array or a view with [normal](Self::normal) numbers, in stream order.
    pub fn fill_normal<M, D>(
        &self,
        stream: &Stream<M::Backend>,
        destination: &mut ArrayBase<M, D>,
    ) -> Result<()>
    where
        M: StorageMut<Elem: RandomFloat>,
        D: Dimension,
    {
        self.fill(stream, destination, true)
    }

    fn array<T, Sh, B>(
        &self,
        stream: &Stream<B>,
        shape: Sh,
        is_normal: bool,
    ) -> Result<DeviceArray<T, Sh::Dim, B>>
    where
        T: RandomFloat,
        Sh: IntoDimension,
        B: Backend,
    {
        let mut array = unwritten::<T, B>(stream, shape.into_dimension().slice())?;
        self.fill(stream, &mut array, is_normal)?;
        array.into_dimensionality()
    }

    fn fill<M, D>(
        &self,
        stream: &Stream<M::Backend>,
        destination: &mut ArrayBase<M, D>,
        is_normal: bool,
    ) -> Result<()>
    where
        M: StorageMut<Elem: RandomFloat>,
        D: Dimension,
    {
        if destination.is_empty() {
            return Ok(());
        }
        if !destination.is_c_contiguous() {
            // A copy may go to another device; a launch refuses it.
            let (core, of) = (stream.device().core_by(crate::KEY), destination.device()?.core_by(crate::KEY));
            core.check_same(if is_normal { "fill_normal" } else { "fill_uniform" }, "array", of)?;
            let mut packed = unwritten::<M::Elem, M::Backend>(stream, destination.shape())?;
            self.fill(stream, &mut packed, is_normal)?;
            return stream.copy_to_device(destination, &packed.into_dimensionality::<D>()?);
        }
        let block = <M::Elem as sealed::Words>::BLOCK;
        let key = if is_normal { TypeId::of::<(M::Elem, Self)>() } else { TypeId::of::<(Self, M::Elem)>() };
        let declare = || <M::Elem as sealed::Words>::kernel(is_normal);
        let kernel = KernelDef::load_once_by(crate::KEY, stream.device(), key, declare)?;
        // The array begins within a block.
        let before = (self.position % block as u64) as usize;
        let blocks = (destination.len() + before).div_ceil(block);
        let dims = config_for_items(blocks, GROUP);
        kernel.launch(stream, &dims, (destination, self.seed, self.sequence, self.position))
    }
}

/// A float of which [`Philox`] makes random numbers: `f32` and `f64`.
pub trait RandomFloat: Element + sealed::Words {}

mod sealed {
    use super::*;

    /// Numbers that are made of the words of one block.
    pub trait Words: Sized {
        /// How many there are.
        const BLOCK: usize;

        fn kernel(is_normal: bool) -> KernelDef<(SliceMut<Self>, u64, u64, u64)>;
    }
}

macro_rules! random_floats {
    ($($float:ident: $block:literal, $uniform:ident, $normal:ident;)*) => {$(
        impl RandomFloat for $float {}

        impl sealed::Words for $float {
            const BLOCK: usize = $block;

            fn kernel(is_normal: bool) -> KernelDef<(SliceMut<Self>, u64, u64, u64)> {
                match is_normal {
                    false => kernels::random::<Self, $block, kernels::$uniform>(),
                    true => kernels::random::<Self, $block, kernels::$normal>(),
                }
            }
        }
    )*};
}
random_floats! {
    f32: 4, uniform_f32, normal_f32;
    f64: 2, uniform_f64, normal_f64;
}
