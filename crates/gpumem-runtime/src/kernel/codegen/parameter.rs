//! What a body sees of a parameter whose type has a name that the macro does not know: an alias, a record.

use gpumem_simt::{Constant, ConstantArray, Slice, SliceMut, Value, View, ViewMut};

/// A parameter as the body of a kernel sees it: arrays by reference, other values as they are.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no parameter of kernels",
    label = "a kernel cannot take a `{Self}`",
    note = "kernels take `Slice`, `SliceMut`, `View`, `ViewMut`, `Constant`, `ConstantArray`, numbers, and types with `#[derive(DeviceRecord)]`"
)]
pub trait Unpack {
    /// What the body sees.
    type Seen<'p>
    where
        Self: 'p;

    /// Gives what the body sees.
    fn unpack(&self) -> Self::Seen<'_>;
}

/// Gives what a body sees of a parameter.
#[inline(always)]
pub fn unpack<T: Unpack>(parameter: &T) -> T::Seen<'_> {
    parameter.unpack()
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
by_value!(u8 i8 u16 i16 u32 i32 u64 i64 f32 f64 bool);

#[diagnostic::do_not_recommend]
impl<T: Copy + 'static> Unpack for Value<T> {
    type Seen<'p> = T;

    #[inline(always)]
    fn unpack(&self) -> T {
        self.0
    }
}
