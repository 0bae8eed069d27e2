//! Functions that the macro calls for parameter types whose names it does not know: aliases, records.

use super::Language;
use crate::simt::{Constant, ConstantArray, Own, OwnView, Slice, SliceMut, Value, View, ViewMut};
use half::{bf16, f16};

/// A parameter as the body of a kernel sees it: arrays by reference, other values as they are.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no parameter of kernels",
    label = "a kernel cannot take a `{Self}`",
    note = "kernels take `Slice`, `SliceMut`, `View`, `ViewMut`, `Own`, `OwnView`, `Constant`, `ConstantArray`, numbers, and types with `#[derive(DeviceRecord)]`"
)]
pub trait Unpack {
    /// The value that the body gets.
    type Seen<'p>
    where
        Self: 'p;

    fn unpack(&self) -> Self::Seen<'_>;
}

impl Language {
    /// Returns the value that a body gets for a parameter.
    #[inline(always)]
    pub fn unpack<T: Unpack>(parameter: &T) -> T::Seen<'_> {
        parameter.unpack()
    }

    /// Compiles only for parameters for which work-items cannot race.
    pub const fn race_free<T: RaceFree>() {}
}

macro_rules! by_reference {
    ($([$($generics:tt)*] $type:ty;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<T, $($generics)*> Unpack for $type {
            type Seen<'p> = &'p Self where Self: 'p;

            #[inline(always)]
            fn unpack(&self) -> &Self {
                self
            }
        }
    )*};
}
by_reference! {
    [] Slice<T>; [] SliceMut<T>; [const N: usize] View<T, N>; [const N: usize] ViewMut<T, N>;
    [] Own<T>; [const N: usize] OwnView<T, N>;
    [const LEN: usize] Constant<T, LEN>; [const N: usize] ConstantArray<T, N>;
}

macro_rules! by_value {
    ($($type:ty)*) => {$(
        #[diagnostic::do_not_recommend]
        impl Unpack for $type {
            type Seen<'p> = Self;

            #[inline(always)]
            fn unpack(&self) -> Self {
                *self
            }
        }
    )*};
}
by_value!(u8 i8 u16 i16 u32 i32 u64 i64 f16 bf16 f32 f64 bool);

#[diagnostic::do_not_recommend]
impl<T: Copy + 'static> Unpack for Value<T> {
    type Seen<'p> = T;

    #[inline(always)]
    fn unpack(&self) -> T {
        self.0
    }
}

/// A parameter for which work-items cannot race, whatever the kernel does with it.
///
/// # Safety
/// Work-items only read it, or each has its own element and uses no other.
#[diagnostic::on_unimplemented(
    message = "work-items may race for the elements of `{Self}`",
    label = "any work-item can write any element of it",
    note = "with `Own` and `OwnView` each work-item writes its own element; `#[gpumem::kernel(unsafe)]` is the promise that none race"
)]
pub unsafe trait RaceFree {}

macro_rules! race_free {
    ($([$($generics:tt)*] $type:ty;)*) => {$(
        // SAFETY: it is a value, is only read, or has an index of each work-item's own.
        #[diagnostic::do_not_recommend]
        unsafe impl<$($generics)*> RaceFree for $type {}
    )*};
}
race_free! {
    [T] Slice<T>; [T, const N: usize] View<T, N>; [T] Own<T>; [T, const N: usize] OwnView<T, N>;
    [T, const LEN: usize] Constant<T, LEN>; [T, const N: usize] ConstantArray<T, N>; [T] Value<T>;
    [] u8; [] i8; [] u16; [] i16; [] u32; [] i32; [] u64; [] i64; [] f16; [] bf16; [] f32; [] f64; [] bool;
}
