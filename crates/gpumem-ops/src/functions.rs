//! The functions that the kernels are generic over.

use crate::kernel::{
    BinaryFunction, DeviceType, Numeric, UnaryFunction,
    codegen::{Calls, DeviceFunction, E, PrintedParameter, PrintedProgram, S},
};
use gpumem_core::Element;
use gpumem_macros::device;
use half::{bf16, f16};
use std::marker::PhantomData;

/// The sum; integers wrap.
#[device(crate = crate)]
pub(crate) fn plus<T: Numeric>(a: T, b: T) -> T {
    a.plus(b)
}

/// The product; integers wrap.
#[device(crate = crate)]
pub(crate) fn times<T: Numeric>(a: T, b: T) -> T {
    a.times(b)
}

/// The smaller one; a NaN before numbers, and `a` if both are equal.
#[allow(clippy::eq_op)] // a NaN differs from itself
#[device(crate = crate)]
pub(crate) fn smaller<T: Numeric>(a: T, b: T) -> T {
    if b < a || (b != b && a == a) { b } else { a }
}

/// The larger one; a NaN before numbers, and `a` if both are equal.
#[allow(clippy::eq_op)]
#[device(crate = crate)]
pub(crate) fn larger<T: Numeric>(a: T, b: T) -> T {
    if b > a || (b != b && a == a) { b } else { a }
}

/// Whether `a` is smaller, or the only NaN.
#[allow(clippy::eq_op)]
#[device(crate = crate)]
pub(crate) fn is_smaller<T: Numeric>(a: T, b: T) -> bool {
    a < b || (a != a && b == b)
}

/// Whether `a` is larger, or the only NaN.
#[allow(clippy::eq_op)]
#[device(crate = crate)]
pub(crate) fn is_larger<T: Numeric>(a: T, b: T) -> bool {
    a > b || (a != a && b == b)
}

/// A function of the first of two values. That the second is never used costs a GPU nothing: its compiler drops the reading.
#[device(crate = crate)]
pub(crate) fn of_first<T, R, F>(x: T, _y: T) -> R
where
    T: Element + DeviceType,
    R: Element + DeviceType,
    F: UnaryFunction<T, Output = R> + 'static,
{
    F(x)
}

/// A function of another's result.
#[device(crate = crate)]
pub(crate) fn after<T, R, A, F, G>(x: T) -> A
where
    T: Element + DeviceType,
    R: Numeric,
    A: Numeric,
    F: UnaryFunction<T, Output = R> + 'static,
    G: UnaryFunction<R, Output = A> + 'static,
{
    G(F(x))
}

/// As [`after`], of two values.
#[device(crate = crate)]
pub(crate) fn after_both<T, U, R, A, F, G>(x: T, y: U) -> A
where
    T: Element + DeviceType,
    U: Element + DeviceType,
    R: Numeric,
    A: Numeric,
    F: BinaryFunction<T, U, Output = R> + 'static,
    G: UnaryFunction<R, Output = A> + 'static,
{
    G(F(x, y))
}

/// Whether a kernel that is compiled without checks has to be compiled with those of functions where it calls this one: checks are those
/// of the whole text.
pub(crate) trait Checks {
    const NEEDED: bool;
}

impl<T, U> Checks for Cast<T, U> {
    const NEEDED: bool = false;
}

impl<T, A, F: Checks> Checks for of_first<T, A, F> {
    const NEEDED: bool = F::NEEDED;
}

// What they call first is the caller's.
impl<T, R, A, F, G> Checks for after<T, R, A, F, G> {
    const NEEDED: bool = true;
}

impl<T, U, R, A, F, G> Checks for after_both<T, U, R, A, F, G> {
    const NEEDED: bool = true;
}

/// A number, converted, of which a reduction has no second one.
pub(crate) type First<T, A> = of_first<T, A, Cast<T, A>>;

/// A number that can be converted to another type as Rust's `as` does it: integers wrap, floats become integers towards zero,
/// saturate, and NaN becomes 0. `f16` and `bf16` convert by way of `f32`.
pub trait CastTo<U>: Numeric + sealed::Conversion<U> {
    /// Returns the converted number.
    fn cast_to(self) -> U;
}

mod sealed {
    /// A conversion that Rust and C++ have.
    pub trait Conversion<U> {}
}

/// The function `x as U`: written by hand, because Rust has no `as` between generic types.
pub(crate) enum Cast<T, U> {
    #[allow(dead_code)] // the type alone is used
    Never(PhantomData<fn(T) -> U>),
}

// SAFETY: both are `x as U`: all implementations of `CastTo` are below.
unsafe impl<T: CastTo<U>, U: Numeric> DeviceFunction for Cast<T, U> {
    type Pointer = fn(T) -> U;

    #[inline(always)]
    fn pointer() -> fn(T) -> U {
        T::cast_to
    }

    fn program(_: &Calls<'_>) -> PrintedProgram {
        static BODY: &[S] = &[S::Give(&E::Cast(0, 1, &E::Var("x")))];
        let (from, to) = (<T as DeviceType>::device_type(), <U as DeviceType>::device_type());
        PrintedProgram {
            name: "cast_to",
            file: file!(),
            parameters: vec![PrintedParameter { name: "x", info: from.clone() }],
            result: to.clone(),
            types: vec![from, to],
            variables: vec![size_of::<T>()],
            constants: Vec::new(),
            functions: Vec::new(),
            body: BODY,
        }
    }
}

macro_rules! casts {
    ($($from:ident)*; $to:tt) => {$( casts!(@from $from $to); )*};
    (@from $from:ident [$($to:ident)*]) => {$(
        impl sealed::Conversion<$to> for $from {}

        impl CastTo<$to> for $from {
            #[inline(always)]
            fn cast_to(self) -> $to {
                casts!(@value self $from $to)
            }
        }
    )*};
    (@value $x:ident f16 f16) => { $x };
    (@value $x:ident bf16 bf16) => { $x };
    (@value $x:ident $from:ident f16) => { f16::from_f32(casts!(@value $x $from f32)) };
    (@value $x:ident $from:ident bf16) => { bf16::from_f32(casts!(@value $x $from f32)) };
    (@value $x:ident f16 $to:ident) => { f32::from($x) as $to };
    (@value $x:ident bf16 $to:ident) => { f32::from($x) as $to };
    (@value $x:ident $from:ident $to:ident) => { $x as $to };
}
casts!(u8 i8 u16 i16 u32 i32 u64 i64 f16 bf16 f32 f64; [u8 i8 u16 i16 u32 i32 u64 i64 f16 bf16 f32 f64]);
