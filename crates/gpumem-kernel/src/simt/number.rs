//! Numbers, with the arithmetic that GPUs have.

use gpumem_core::Element;
use half::{bf16, f16};
use std::any::TypeId;

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

/// The name of an element type in the prelude.
pub(crate) fn device_name<T: 'static>() -> Option<&'static str> {
    let id = TypeId::of::<T>();
    macro_rules! names {
        ($($type:ty => $name:literal)*) => {
            $(if id == TypeId::of::<$type>() { return Some($name); })*
        };
    }
    names! {
        f16 => "gpumem::f16" bf16 => "gpumem::bf16" f32 => "float" f64 => "double" u8 => "gpumem::u8" i8 => "gpumem::i8" u16 => "gpumem::u16" i16 => "gpumem::i16"
        u32 => "gpumem::u32" i32 => "gpumem::i32" u64 => "gpumem::u64" i64 => "gpumem::i64"
    }
    None
}

/// Whether a type is a number of the prelude, which has no parts.
pub(crate) fn is_number<T: 'static>() -> bool {
    device_name::<T>().is_some()
}
