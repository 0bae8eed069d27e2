//! The methods of numbers that kernels know. The host calls them here, whatever traits with methods of these names are in the
//! user's scope: they are words of the language, as `global_id` is, and the C++ has one meaning for each.

use super::{Language, Witness};
use crate::simt::Number;
use half::{bf16, f16};
use num_complex::Complex;
use num_traits::{Float, PrimInt, Unsigned};

mod sealed {
    /// Types whose methods the C++ has, too.
    pub trait HasMethods {}
}

/// A float, for methods that only floats have.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no such method in kernels",
    label = "`f32` and `f64` have it, and so has `T` with `T: Numeric + num_traits::Float`"
)]
pub trait Real: Float {}
impl<T: Float> Real for T {}

/// An integer, for methods that only integers have.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no such method in kernels",
    label = "integers have it, and so has `T` with `T: Numeric + num_traits::PrimInt`"
)]
pub trait Whole: PrimInt {}
impl<T: PrimInt> Whole for T {}

/// An integer without a sign.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no such method in kernels",
    label = "integers without a sign have it"
)]
pub trait Natural: PrimInt {}
impl<T: PrimInt + Unsigned> Natural for T {}

/// A type with `==` and `!=`.
///
/// # Safety
/// They are those of its type in device code.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no `==` and `!=` in kernels",
    note = "numbers have, complex numbers, `bool`, and enums with `#[derive(DeviceRecord)]`"
)]
pub unsafe trait Comparable {}
// SAFETY: the C++ compares numbers.
unsafe impl<T: Methods> Comparable for T {}
// SAFETY: both are one byte, which is compared.
unsafe impl Comparable for gpumem_runtime::Bool {}

/// Types whose values `==` compares as device code does: numbers with numbers, between which no user can write a `PartialEq`, and any
/// other type with itself.
///
/// # Safety
/// `==` of the two compares the numbers that device code has.
#[diagnostic::on_unimplemented(
    message = "kernels do not compare `{Self}` with `{U}`",
    label = "an enum is cast: `mode as u32`"
)]
pub unsafe trait Alike<U> {}
// SAFETY: both are numbers.
#[diagnostic::do_not_recommend]
unsafe impl<T: Methods, U: Methods> Alike<U> for T {}
// SAFETY: both are one byte.
#[diagnostic::do_not_recommend]
unsafe impl Alike<gpumem_runtime::Bool> for gpumem_runtime::Bool {}

/// A type with named fields.
///
/// # Safety
/// Its type in device code is a structure of all its fields, in their order.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no record in kernels",
    note = "a structure with `#[derive(DeviceRecord)]` is, and a complex number; a variant of an enum is written without braces"
)]
pub unsafe trait NamedFields {}
// SAFETY: `re` and `im`.
#[diagnostic::do_not_recommend]
unsafe impl<T> NamedFields for Complex<T> {}

/// A type that `T::from` makes, and of which it makes others.
///
/// # Safety
/// Its conversions are those of its type in device code.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not converted in kernels",
    note = "numbers are, `bool` and `Bool`: an enum is cast, as `mode as u32`"
)]
pub unsafe trait Convertible {}
// SAFETY: the C++ converts numbers.
unsafe impl<T: Methods> Convertible for T {}
// SAFETY: it is made of a `bool`, and the other way round.
unsafe impl Convertible for gpumem_runtime::Bool {}

impl Language {
    /// Takes a value that is converted, and gives it back.
    pub fn convertible<T: Convertible>(value: T) -> T {
        value
    }

    /// Takes a value that stands beside an operator, and gives it back.
    pub fn operand<T: Methods>(value: T) -> T {
        value
    }

    /// Takes a value that is cast, and gives it back: the cast gives no literal in it a type.
    #[inline(always)]
    pub fn cast_operand<T>(value: T) -> T {
        value
    }

    /// Takes a value that was written with its fields, and gives it back.
    pub fn record<T: NamedFields>(value: T) -> T {
        value
    }

    /// Compiles where a pattern with fields stands for a record.
    pub fn is_record<T: NamedFields>(_: &T) {}

    /// Makes a number of another.
    #[inline(always)]
    pub fn from<T: From<U>, U>(value: U) -> T {
        T::from(value)
    }

    /// Compiles where the values that two witnesses have seen are compared as in device code.
    pub fn alike<T: Alike<U>, U>(_: &Witness<T>, _: &Witness<U>) {}

    /// The same beside `==` and `!=`.
    pub fn comparable<T: Comparable>(value: T) -> T {
        value
    }
}

/// Refuses a method that a type does not have, when the program is built.
#[allow(clippy::empty_loop)]
fn unknown<T, R>() -> R {
    const {
        assert!(
            size_of::<T>() > usize::MAX / 2,
            "a kernel calls a method that this type of numbers does not have"
        );
    }
    loop {}
}

macro_rules! methods {
    ($($(#[$bound:ident])? fn $name:ident($($argument:ident: $ty:ty),*) -> $output:ty;)*) => {
        /// The methods of a number, under names of their own: generic kernels have those of other traits, too.
        #[diagnostic::on_unimplemented(
            message = "`{Self}` has no methods and operators in kernels",
            label = "this is no number",
            note = "numbers and complex numbers have, and so has `T` with `T: Numeric`; an enum has `==` and `!=`"
        )]
        #[allow(clippy::wrong_self_convention)] // numbers are `Copy`
        pub trait Methods: sealed::HasMethods {
            /// Its bits, as a number.
            type Bits;
            /// The number without a sign.
            type Magnitude;
            /// A part of a complex number.
            type Part;

            $(
                #[doc = "The method of this name before `_of`."]
                #[must_use]
                #[inline(always)]
                #[allow(unused_variables)]
                fn $name(self $(, $argument: $ty)*) -> $output
                where
                    Self: Sized $(+ $bound)?,
                {
                    unknown::<Self, $output>()
                }
            )*

            /// The number of these bits.
            #[must_use]
            #[inline(always)]
            #[allow(unused_variables)]
            fn from_bits_of(bits: Self::Bits) -> Self
            where
                Self: Sized,
            {
                unknown::<Self, Self>()
            }

            /// The number of half precision nearest to this one.
            #[must_use]
            #[inline(always)]
            #[allow(unused_variables)]
            fn from_f32_of(value: f32) -> Self
            where
                Self: Sized,
            {
                unknown::<Self, Self>()
            }

            /// The number of half precision nearest to this one.
            #[must_use]
            #[inline(always)]
            #[allow(unused_variables)]
            fn from_f64_of(value: f64) -> Self
            where
                Self: Sized,
            {
                unknown::<Self, Self>()
            }
        }
    };
}

methods! {
    fn sqrt_of() -> Self; fn cbrt_of() -> Self; fn sin_of() -> Self; fn cos_of() -> Self; fn tan_of() -> Self; fn asin_of() -> Self;
    fn acos_of() -> Self; fn atan_of() -> Self; fn sinh_of() -> Self; fn cosh_of() -> Self; fn tanh_of() -> Self; fn asinh_of() -> Self;
    fn acosh_of() -> Self; fn atanh_of() -> Self; fn exp_of() -> Self; fn exp2_of() -> Self; fn exp_m1_of() -> Self; fn ln_of() -> Self;
    fn ln_1p_of() -> Self; fn log2_of() -> Self; fn log10_of() -> Self; fn floor_of() -> Self; fn ceil_of() -> Self; fn trunc_of() -> Self;
    fn round_of() -> Self; fn recip_of() -> Self; fn fract_of() -> Self;
    #[Real] fn powf_of(to: Self) -> Self;
    #[Real] fn powi_of(to: i32) -> Self;
    #[Real] fn atan2_of(other: Self) -> Self;
    #[Real] fn hypot_of(other: Self) -> Self;
    #[Real] fn copysign_of(sign: Self) -> Self;
    #[Real] fn mul_add_of(a: Self, b: Self) -> Self;
    fn is_nan_of() -> bool; fn is_finite_of() -> bool; fn is_infinite_of() -> bool;
    fn is_sign_positive_of() -> bool; fn is_sign_negative_of() -> bool;
    fn to_bits_of() -> Self::Bits; fn to_f32_of() -> f32; fn to_f64_of() -> f64;
    fn abs_of() -> Self; fn signum_of() -> Self; fn plus_of(other: Self) -> Self; fn times_of(other: Self) -> Self; fn clamp_of(least: Self, most: Self) -> Self;
    fn rem_euclid_of(by: Self) -> Self; fn div_euclid_of(by: Self) -> Self;
    #[Whole] fn wrapping_add_of(other: Self) -> Self;
    #[Whole] fn wrapping_sub_of(other: Self) -> Self;
    #[Whole] fn wrapping_mul_of(other: Self) -> Self;
    #[Whole] fn saturating_add_of(other: Self) -> Self;
    #[Whole] fn saturating_sub_of(other: Self) -> Self;
    #[Whole] fn abs_diff_of(other: Self) -> Self::Magnitude;
    #[Whole] fn rotate_left_of(by: u32) -> Self;
    #[Whole] fn rotate_right_of(by: u32) -> Self;
    #[Whole] fn wrapping_shl_of(by: u32) -> Self;
    #[Whole] fn wrapping_shr_of(by: u32) -> Self;
    #[Natural] fn is_multiple_of_of(other: Self) -> bool;
    fn wrapping_neg_of() -> Self; fn wrapping_abs_of() -> Self; fn unsigned_abs_of() -> Self::Magnitude;
    fn is_positive_of() -> bool; fn is_negative_of() -> bool; fn swap_bytes_of() -> Self; fn reverse_bits_of() -> Self;
    fn count_ones_of() -> u32; fn count_zeros_of() -> u32; fn leading_zeros_of() -> u32; fn leading_ones_of() -> u32;
    fn trailing_zeros_of() -> u32; fn trailing_ones_of() -> u32;
    fn conj_of() -> Self; fn norm_sqr_of() -> Self::Part;
}

/// The methods that a type has by the same name.
macro_rules! own {
    ($type:ident: $(fn $name:ident = $own:ident($($argument:ident: $ty:ty),*) -> $output:ty;)*) => {$(
        #[inline(always)]
        #[track_caller]
        fn $name(self $(, $argument: $ty)*) -> $output {
            <$type>::$own(self $(, $argument)*)
        }
    )*};
}

macro_rules! floats {
    ($($type:ident $bits:ty;)*) => {$(
        impl sealed::HasMethods for $type {}
        impl Methods for $type {
            type Bits = $bits;
            type Magnitude = Self;
            type Part = Self;
            own! { $type:
                fn sqrt_of = sqrt() -> Self; fn cbrt_of = cbrt() -> Self; fn sin_of = sin() -> Self; fn cos_of = cos() -> Self; fn tan_of = tan() -> Self; fn asin_of = asin() -> Self;
                fn acos_of = acos() -> Self; fn atan_of = atan() -> Self; fn sinh_of = sinh() -> Self; fn cosh_of = cosh() -> Self; fn tanh_of = tanh() -> Self;
                fn asinh_of = asinh() -> Self; fn acosh_of = acosh() -> Self; fn atanh_of = atanh() -> Self; fn exp_of = exp() -> Self; fn exp2_of = exp2() -> Self;
                fn exp_m1_of = exp_m1() -> Self; fn ln_of = ln() -> Self; fn ln_1p_of = ln_1p() -> Self; fn log2_of = log2() -> Self; fn log10_of = log10() -> Self;
                fn floor_of = floor() -> Self; fn ceil_of = ceil() -> Self; fn trunc_of = trunc() -> Self; fn round_of = round() -> Self; fn recip_of = recip() -> Self;
                fn fract_of = fract() -> Self; fn powf_of = powf(to: Self) -> Self; fn powi_of = powi(to: i32) -> Self; fn atan2_of = atan2(other: Self) -> Self;
                fn hypot_of = hypot(other: Self) -> Self; fn copysign_of = copysign(sign: Self) -> Self; fn mul_add_of = mul_add(a: Self, b: Self) -> Self;
                fn is_nan_of = is_nan() -> bool; fn is_finite_of = is_finite() -> bool; fn is_infinite_of = is_infinite() -> bool; fn is_sign_positive_of = is_sign_positive() -> bool;
                fn is_sign_negative_of = is_sign_negative() -> bool; fn to_bits_of = to_bits() -> $bits; fn abs_of = abs() -> Self; fn signum_of = signum() -> Self;
                fn clamp_of = clamp(least: Self, most: Self) -> Self; fn rem_euclid_of = rem_euclid(by: Self) -> Self; fn div_euclid_of = div_euclid(by: Self) -> Self;
            }
            #[inline(always)]
            fn plus_of(self, other: Self) -> Self {
                Number::plus(self, other)
            }
            #[inline(always)]
            fn times_of(self, other: Self) -> Self {
                self * other
            }
            #[inline(always)]
            fn from_bits_of(bits: $bits) -> Self {
                <$type>::from_bits(bits)
            }
        }
    )*};
}
floats! { f32 u32; f64 u64; }

macro_rules! halves {
    ($($type:ident)*) => {$(
        impl sealed::HasMethods for $type {}
        impl Methods for $type {
            type Bits = u16;
            type Magnitude = Self;
            type Part = Self;
            own! { $type:
                fn is_nan_of = is_nan() -> bool; fn is_finite_of = is_finite() -> bool; fn is_infinite_of = is_infinite() -> bool; fn is_sign_positive_of = is_sign_positive() -> bool;
                fn is_sign_negative_of = is_sign_negative() -> bool; fn to_bits_of = to_bits() -> u16; fn to_f32_of = to_f32() -> f32; fn to_f64_of = to_f64() -> f64;
                fn signum_of = signum() -> Self; fn clamp_of = clamp(least: Self, most: Self) -> Self;
            }
            #[inline(always)]
            fn plus_of(self, other: Self) -> Self {
                Number::plus(self, other)
            }
            #[inline(always)]
            fn times_of(self, other: Self) -> Self {
                self * other
            }
            #[inline(always)]
            fn from_bits_of(bits: u16) -> Self {
                <$type>::from_bits(bits)
            }
            #[inline(always)]
            fn from_f32_of(value: f32) -> Self {
                <$type>::from_f32(value)
            }
            #[inline(always)]
            fn from_f64_of(value: f64) -> Self {
                // By way of `f32`, as device code: the crate rounds once on some processors and twice on others.
                <$type>::from_f32(value as f32)
            }
        }
    )*};
}
halves! { f16 bf16 }

macro_rules! integers {
    ($($type:ident $magnitude:ident { $($rest:tt)* })*) => {$(
        impl sealed::HasMethods for $type {}
        impl Methods for $type {
            type Bits = Self;
            type Magnitude = $magnitude;
            type Part = Self;
            own! { $type:
                fn wrapping_add_of = wrapping_add(other: Self) -> Self; fn wrapping_sub_of = wrapping_sub(other: Self) -> Self;
                fn wrapping_mul_of = wrapping_mul(other: Self) -> Self; fn saturating_add_of = saturating_add(other: Self) -> Self;
                fn saturating_sub_of = saturating_sub(other: Self) -> Self; fn abs_diff_of = abs_diff(other: Self) -> $magnitude;
                fn rotate_left_of = rotate_left(by: u32) -> Self; fn rotate_right_of = rotate_right(by: u32) -> Self; fn wrapping_shl_of = wrapping_shl(by: u32) -> Self;
                fn wrapping_shr_of = wrapping_shr(by: u32) -> Self; fn wrapping_neg_of = wrapping_neg() -> Self; fn swap_bytes_of = swap_bytes() -> Self;
                fn reverse_bits_of = reverse_bits() -> Self; fn count_ones_of = count_ones() -> u32; fn count_zeros_of = count_zeros() -> u32; fn leading_zeros_of = leading_zeros() -> u32;
                fn leading_ones_of = leading_ones() -> u32; fn trailing_zeros_of = trailing_zeros() -> u32; fn trailing_ones_of = trailing_ones() -> u32;
                fn rem_euclid_of = rem_euclid(by: Self) -> Self; fn div_euclid_of = div_euclid(by: Self) -> Self;
            }
            #[inline(always)]
            #[track_caller]
            fn clamp_of(self, least: Self, most: Self) -> Self {
                Ord::clamp(self, least, most)
            }
            #[inline(always)]
            fn plus_of(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn times_of(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
            integers! { @$type $magnitude $($rest)* }
        }
    )*};
    (@$type:ident $magnitude:ident signed) => {
        own! { $type:
            fn abs_of = abs() -> Self; fn signum_of = signum() -> Self; fn wrapping_abs_of = wrapping_abs() -> Self; fn unsigned_abs_of = unsigned_abs() -> $magnitude;
            fn is_positive_of = is_positive() -> bool; fn is_negative_of = is_negative() -> bool;
        }
    };
    (@$type:ident $magnitude:ident unsigned) => {
        #[inline(always)]
        fn is_multiple_of_of(self, other: Self) -> bool {
            match other {
                0 => self == 0,
                other => self % other == 0,
            }
        }
    };
}
integers! {
    u8 u8 { unsigned } u16 u16 { unsigned } u32 u32 { unsigned } u64 u64 { unsigned } usize usize { unsigned }
    i8 u8 { signed } i16 u16 { signed } i32 u32 { signed } i64 u64 { signed } isize usize { signed }
}

/// It has operators.
impl sealed::HasMethods for bool {}
impl Methods for bool {
    type Bits = Self;
    type Magnitude = Self;
    type Part = Self;
}

impl<T> sealed::HasMethods for Complex<T> {}

macro_rules! complex {
    ($($part:ty)*) => {$(
        impl Methods for Complex<$part> {
            type Bits = Self;
            type Magnitude = Self;
            type Part = $part;

            #[inline(always)]
            fn conj_of(self) -> Self {
                Complex::conj(&self)
            }

            #[inline(always)]
            fn norm_sqr_of(self) -> $part {
                Complex::norm_sqr(&self)
            }
        }
    )*};
}
complex! { f32 f64 }
