//! What is computed over the ranks, and for which numbers.

use crate::span::Span;
use gpumem_core::Element;
use half::{bf16, f16};
use num_complex::Complex;
use std::any::TypeId;

/// A type of numbers that can be reduced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Number {
    I8,
    U8,
    I32,
    U32,
    I64,
    U64,
    F16,
    Bf16,
    F32,
    F64,
    Complex32,
    Complex64,
}

impl Number {
    /// The number that an element is, with a name that is the same in every build.
    pub(crate) fn of<T: Element>() -> Option<(Self, &'static str)> {
        type Row = (fn() -> TypeId, Number, &'static str);
        const ALL: [Row; 12] = [
            (TypeId::of::<i8>, Number::I8, "i8"),
            (TypeId::of::<u8>, Number::U8, "u8"),
            (TypeId::of::<i32>, Number::I32, "i32"),
            (TypeId::of::<u32>, Number::U32, "u32"),
            (TypeId::of::<i64>, Number::I64, "i64"),
            (TypeId::of::<u64>, Number::U64, "u64"),
            (TypeId::of::<f16>, Number::F16, "f16"),
            (TypeId::of::<bf16>, Number::Bf16, "bf16"),
            (TypeId::of::<f32>, Number::F32, "f32"),
            (TypeId::of::<f64>, Number::F64, "f64"),
            (TypeId::of::<Complex<f32>>, Number::Complex32, "Complex<f32>"),
            (TypeId::of::<Complex<f64>>, Number::Complex64, "Complex<f64>"),
        ];
        let own = TypeId::of::<T>();
        ALL.iter().find(|(id, ..)| id() == own).map(|(_, number, name)| (*number, *name))
    }
}

mod sealed {
    pub trait Sealed<T> {}
}

/// A reduction over the elements of all ranks: [`Sum`], [`Product`], [`Min`], [`Max`], [`Average`].
///
/// Implemented for `i8`, `u8`, `i32`, `u32`, `i64`, `u64`, `f16`, `bf16`, `f32` and `f64`; [`Average`] for the floating-point
/// ones. [`Sum`] and [`Average`] also take `Complex<f32>` and `Complex<f64>`.
///
/// Ranks are combined in a fixed order for a given number of ranks. Integers wrap. `f16` and `bf16` are computed in
/// `f32` and rounded after each step. [`Min`] and [`Max`] leave out a NaN where the other value is a number.
#[diagnostic::on_unimplemented(
    message = "`{Self}` over the ranks is not defined for `{T}`",
    note = "i8, u8, i32, u32, i64, u64, f16, bf16, f32 and f64 can be reduced; `Average` takes floating-point numbers, \
            and complex numbers only have `Sum` and `Average`"
)]
pub trait Reduction<T: Element>: sealed::Sealed<T> + Copy {
    /// The name in errors.
    #[doc(hidden)]
    const NAME: &'static str;

    /// Combines two values.
    #[doc(hidden)]
    fn combine(left: T, right: T) -> T;

    /// The result for so many ranks, from their combined values.
    #[doc(hidden)]
    fn finish(value: T, ranks: usize) -> T {
        let _ = ranks;
        value
    }
}

/// The sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sum;
/// The product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Product;
/// The smallest value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Min;
/// The largest value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Max;
/// The sum, divided by the number of ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Average;

/// The names of all.
pub(crate) const REDUCTIONS: [&str; 5] = [
    <Sum as Reduction<f32>>::NAME,
    <Product as Reduction<f32>>::NAME,
    <Min as Reduction<f32>>::NAME,
    <Max as Reduction<f32>>::NAME,
    <Average as Reduction<f32>>::NAME,
];

macro_rules! reduction {
    ($name:ident, $text:literal, $($number:ty)* => |$left:ident, $right:ident| $combine:expr) => {$(
        impl sealed::Sealed<$number> for $name {}
        impl Reduction<$number> for $name {
            const NAME: &'static str = $text;

            #[inline]
            fn combine($left: $number, $right: $number) -> $number {
                $combine
            }
        }
    )*};
}
reduction!(Sum, "sum", i8 u8 i32 u32 i64 u64 => |left, right| left.wrapping_add(right));
reduction!(Sum, "sum", f16 bf16 f32 f64 Complex<f32> Complex<f64> => |left, right| left + right);
reduction!(Product, "product", i8 u8 i32 u32 i64 u64 => |left, right| left.wrapping_mul(right));
reduction!(Product, "product", f16 bf16 f32 f64 => |left, right| left * right);
reduction!(Min, "min", i8 u8 i32 u32 i64 u64 => |left, right| Ord::min(left, right));
reduction!(Min, "min", f16 bf16 f32 f64 => |left, right| left.min(right));
reduction!(Max, "max", i8 u8 i32 u32 i64 u64 => |left, right| Ord::max(left, right));
reduction!(Max, "max", f16 bf16 f32 f64 => |left, right| left.max(right));

macro_rules! average {
    ($($number:ty: |$sum:ident, $ranks:ident| $divide:expr;)*) => {$(
        impl sealed::Sealed<$number> for Average {}
        impl Reduction<$number> for Average {
            const NAME: &'static str = "average";

            #[inline]
            fn combine(left: $number, right: $number) -> $number {
                left + right
            }

            #[inline]
            fn finish($sum: $number, $ranks: usize) -> $number {
                $divide
            }
        }
    )*};
}
average! {
    f16: |sum, ranks| f16::from_f32(sum.to_f32() / ranks as f32);
    bf16: |sum, ranks| bf16::from_f32(sum.to_f32() / ranks as f32);
    f32: |sum, ranks| sum / ranks as f32;
    f64: |sum, ranks| sum / ranks as f64;
    Complex<f32>: |sum, ranks| sum / ranks as f32;
    Complex<f64>: |sum, ranks| sum / ranks as f64;
}

/// Elements that are combined at a time. The values in between stay in the processor's cache.
const CHUNK: usize = 1024;

/// A reduction of elements whose type is known only here: reads `count` elements at each source, and writes the result
/// to each destination. A destination may be a source too.
pub(crate) type Reduce = unsafe fn(sources: &[Span], destinations: &[Span]);

/// # Safety
/// The spans are valid and aligned for `T`; no other code uses them meanwhile. A destination is equal to a source or shares
/// no bytes with it.
pub(crate) unsafe fn reduce<T: Element, R: Reduction<T>>(sources: &[Span], destinations: &[Span]) {
    let Some((first, others)) = sources.split_first() else { return };
    let count = first.len() / size_of::<T>().max(1);
    let is_short = |span: &Span| span.len() < count * size_of::<T>();
    // Checked once, so that the loop below needs no check of bounds of the caller.
    if others.iter().chain(destinations).any(is_short) {
        return;
    }
    // Apart from all arrays: a destination may be a source of the same elements.
    let mut values = vec![T::zeroed(); CHUNK.min(count)];
    for start in (0..count).step_by(CHUNK) {
        let values = &mut values[..CHUNK.min(count - start)];
        let chunk = |span: &Span| {
            // SAFETY: valid for reads and not written while the chunk is combined (the caller's promise). The chunk is within
            // the first span, and no other one is shorter.
            unsafe { &span.as_slice::<T>()[start..start + values.len()] }
        };
        let first = chunk(first);
        let others: Vec<&[T]> = others.iter().map(chunk).collect();
        values.copy_from_slice(first);
        for other in others {
            for (value, other) in values.iter_mut().zip(other) {
                *value = R::combine(*value, *other);
            }
        }
        for value in &mut *values {
            *value = R::finish(*value, sources.len());
        }
        for destination in destinations {
            // SAFETY: valid for writes (the caller's promise), and no reference to it is left.
            unsafe { destination.copy_from_slice(start, values) };
        }
    }
}
