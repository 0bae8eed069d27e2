//! `min` and `max` of kernels. Rust leaves open which of two zeros a float's own methods return, and processors differ.

use crate::simt::Number;
use half::{bf16, f16};

mod sealed {
    /// Types whose `min` and `max` the C++ has, too.
    pub trait Sealed {}
}

/// A number with `min` and `max`, which give the same bits on every device.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no `min` and `max` in kernels",
    note = "integers and floats have, and so has `T` with `T: Numeric`"
)]
pub trait Ordered: sealed::Sealed {
    /// The smaller; of a number and a NaN the number, of equal ones `self`.
    #[must_use]
    fn min_of(self, other: Self) -> Self
    where
        Self: Sized;
    /// The larger; of a number and a NaN the number, of equal ones `self`.
    #[must_use]
    fn max_of(self, other: Self) -> Self
    where
        Self: Sized;
}

macro_rules! ordered {
    ($($type:ty: $min:path, $max:path;)*) => {$(
        impl sealed::Sealed for $type {}
        impl Ordered for $type {
            #[inline(always)]
            fn min_of(self, other: Self) -> Self {
                $min(self, other)
            }
            #[inline(always)]
            fn max_of(self, other: Self) -> Self {
                $max(self, other)
            }
        }
    )*};
}
ordered! {
    u8: Ord::min, Ord::max; i8: Ord::min, Ord::max; u16: Ord::min, Ord::max; i16: Ord::min, Ord::max;
    u32: Ord::min, Ord::max; i32: Ord::min, Ord::max; u64: Ord::min, Ord::max; i64: Ord::min, Ord::max;
    usize: Ord::min, Ord::max; isize: Ord::min, Ord::max; bool: Ord::min, Ord::max;
    f16: Number::least, Number::greatest; bf16: Number::least, Number::greatest;
    f32: Number::least, Number::greatest; f64: Number::least, Number::greatest;
}
