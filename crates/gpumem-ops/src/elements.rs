//! The elements that are summed and compared.

use crate::{
    functions::{Cast, CastTo},
    kernel::Numeric,
};
use gpumem_core::{Backend, Result};
use gpumem_runtime::{DeviceArray, Stream};
use half::{bf16, f16};
use ndarray::IxDyn;

/// A number whose sums, products and means the operations compute.
///
/// | elements | added and multiplied as | sum, product | mean |
/// |---|---|---|---|
/// | `u8` to `u64` | `u64`, which wraps | `u64` | `f64` |
/// | `i8` to `i64` | `i64`, which wraps | `i64` | `f64` |
/// | `f16`, `bf16` | `f32` | rounded once, at the end | rounded once, at the end |
/// | `f32`, `f64` | themselves | themselves | themselves |
pub trait Summable: CastTo<Self::Accumulator> {
    /// The type in which the elements are added and multiplied.
    type Accumulator: CastTo<Self::Accumulator> + CastTo<Self::Sum> + CastTo<Self::Divided>;
    /// The type of a sum or a product.
    type Sum: Numeric;
    /// The type in which a sum is divided by the number of elements.
    type Divided: CastTo<Self::Mean>;
    /// The type of a mean.
    type Mean: Numeric;

    #[doc(hidden)]
    fn divisor(count: usize) -> Self::Divided;

    #[doc(hidden)]
    fn sums<B: Backend>(
        stream: &Stream<B>,
        sums: DeviceArray<Self::Accumulator, IxDyn, B>,
    ) -> Result<DeviceArray<Self::Sum, IxDyn, B>>;
}

macro_rules! summable {
    ($($types:ident)*: $accumulator:ident, $divided:ident) => {$(
        impl Summable for $types {
            type Accumulator = $accumulator;
            type Sum = $accumulator;
            type Divided = $divided;
            type Mean = $divided;

            fn divisor(count: usize) -> $divided {
                count as $divided
            }

            fn sums<B: Backend>(
                _: &Stream<B>,
                sums: DeviceArray<$accumulator, IxDyn, B>,
            ) -> Result<DeviceArray<$accumulator, IxDyn, B>> {
                Ok(sums)
            }
        }
    )*};
    (half $($types:ident)*) => {$(
        impl Summable for $types {
            type Accumulator = f32;
            type Sum = $types;
            type Divided = f32;
            type Mean = $types;

            fn divisor(count: usize) -> f32 {
                count as f32
            }

            fn sums<B: Backend>(
                stream: &Stream<B>,
                sums: DeviceArray<f32, IxDyn, B>,
            ) -> Result<DeviceArray<$types, IxDyn, B>> {
                crate::maps::converted::<f32, $types, Cast<f32, $types>, B>(stream, &sums)
            }
        }
    )*};
}
summable!(u8 u16 u32 u64: u64, f64);
summable!(i8 i16 i32 i64: i64, f64);
summable!(f32: f32, f32);
summable!(f64: f64, f64);
summable!(half f16 bf16);

/// A number with a smallest and a largest value, from which searches for others start.
pub trait Bounded: Numeric {
    /// The smallest value: for floats the negative infinity.
    const SMALLEST: Self;
    /// The largest value: for floats the infinity.
    const LARGEST: Self;
}

macro_rules! bounded {
    ($($types:ident)*: $smallest:ident, $largest:ident) => {$(
        impl Bounded for $types {
            const SMALLEST: Self = $types::$smallest;
            const LARGEST: Self = $types::$largest;
        }
    )*};
}
bounded!(u8 i8 u16 i16 u32 i32 u64 i64: MIN, MAX);
bounded!(f16 bf16 f32 f64: NEG_INFINITY, INFINITY);
