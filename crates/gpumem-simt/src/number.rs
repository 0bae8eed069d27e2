//! Numbers, with the arithmetic that GPUs have.

use gpumem_core::Element;
use half::{bf16, f16};

/// A number that waves reduce and atomics change. Integers wrap around, as they do in unsigned device arithmetic.
pub trait Number: Element {
    /// The sum; integers wrap.
    #[must_use]
    fn plus(self, other: Self) -> Self;
    /// The smaller; of a number and a NaN the number, of equal ones `self`, also of zeros of both signs.
    #[must_use]
    fn least(self, other: Self) -> Self;
    /// The larger; of a number and a NaN the number, of equal ones `self`, also of zeros of both signs.
    #[must_use]
    fn greatest(self, other: Self) -> Self;
}

macro_rules! integers {
    ($($type:ty)*) => {$(
        impl Number for $type {
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn least(self, other: Self) -> Self {
                self.min(other)
            }
            #[inline(always)]
            fn greatest(self, other: Self) -> Self {
                self.max(other)
            }
        }
    )*};
}
integers!(u8 i8 u16 i16 u32 i32 u64 i64);

macro_rules! floats {
    ($($type:ty)*) => {$(
        impl Number for $type {
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self + other
            }
            #[inline(always)]
            fn least(self, other: Self) -> Self {
                if other < self || self.is_nan() { other } else { self }
            }
            #[inline(always)]
            fn greatest(self, other: Self) -> Self {
                if other > self || self.is_nan() { other } else { self }
            }
        }
    )*};
}
floats!(f16 bf16 f32 f64);
