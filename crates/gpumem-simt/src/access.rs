//! Elements by index, as kernels written in Rust use them: `a[i]` reads or writes one element by value.
//!
//! Global and shared memory are never borrowed. So `#[kernel]` turns `a[i]` into calls of these traits, and rustc says which
//! array takes which index, and which can be written.

use crate::{
    Constant, ConstantArray, FaultKind, Indices, LocalArray, Shared, Slice, SliceMut, View, ViewMut,
    fault::raise,
};
use gpumem_core::Element;
use std::panic::Location;

/// An array whose elements a kernel reads with the index `I`.
#[diagnostic::on_unimplemented(
    message = "a kernel cannot read `{Self}` with an index of type `{I}`",
    label = "`{Self}` has no element for the index `{I}`",
    note = "`Slice`, `SliceMut`, `Constant` and arrays of one axis take a `usize`; arrays of `N` axes take `[usize; N]`"
)]
pub trait Load<I> {
    /// The element.
    type Elem;

    /// Reads an element.
    fn load(&self, at: I) -> Self::Elem;
}

/// An array whose elements work-items write with the index `I`.
#[diagnostic::on_unimplemented(
    message = "a kernel cannot write to `{Self}` with an index of type `{I}`",
    label = "`{Self}` is read only, or has no element for the index `{I}`",
    note = "kernels write to `SliceMut`, `ViewMut`, shared arrays, and local arrays that are declared with `let mut`"
)]
pub trait Store<I>: Load<I> {
    /// Writes an element.
    fn store(&self, at: I, value: Self::Elem);
}

/// An array of one work-item, whose elements it writes with the index `I`.
#[diagnostic::on_unimplemented(
    message = "a kernel cannot write to `{Self}` with an index of type `{I}`",
    label = "`{Self}` has no element for the index `{I}`",
    note = "arrays of one axis take a `usize`; arrays of `N` axes take `[usize; N]`"
)]
pub trait StoreLocal<I>: Load<I> {
    /// Writes an element.
    fn store_local(&mut self, at: I, value: Self::Elem);
}

macro_rules! loads {
    ($([$($generics:tt)*] $type:ty, $index:ty;)*) => {$(
        impl<T: Element, $($generics)*> Load<$index> for $type {
            type Elem = T;

            #[inline(always)]
            #[track_caller]
            fn load(&self, at: $index) -> T {
                self.get(at)
            }
        }
    )*};
}
loads! {
    [] Slice<T>, usize;
    [] SliceMut<T>, usize;
    [const LEN: usize] Constant<T, LEN>, usize;
    [I: Indices<N>, const N: usize] View<T, N>, I;
    [I: Indices<N>, const N: usize] ViewMut<T, N>, I;
    [I: Indices<N>, const N: usize] ConstantArray<T, N>, I;
    [I: Indices<N>, const N: usize] Shared<'_, T, N>, I;
}

macro_rules! stores {
    ($([$($generics:tt)*] $type:ty, $index:ty;)*) => {$(
        impl<T: Element, $($generics)*> Store<$index> for $type {
            #[inline(always)]
            #[track_caller]
            fn store(&self, at: $index, value: T) {
                self.set(at, value);
            }
        }
    )*};
}
stores! {
    [] SliceMut<T>, usize;
    [I: Indices<N>, const N: usize] ViewMut<T, N>, I;
    [I: Indices<N>, const N: usize] Shared<'_, T, N>, I;
}

/// The position, where it is below the length; else the fault that names it.
#[inline(always)]
#[track_caller]
fn inside(at: usize, len: usize) -> usize {
    if at >= len {
        outside(at, len, Location::caller());
    }
    at
}

#[cold]
#[inline(never)]
fn outside(at: usize, len: usize, place: &'static Location<'static>) {
    raise(FaultKind::OutOfBounds { index: vec![at], extents: vec![len], at: place });
}

impl<T: Copy, const N: usize> Load<usize> for [T; N] {
    type Elem = T;

    #[inline(always)]
    #[track_caller]
    fn load(&self, at: usize) -> T {
        self[inside(at, N)]
    }
}

impl<T: Copy, const N: usize> StoreLocal<usize> for [T; N] {
    #[inline(always)]
    #[track_caller]
    fn store_local(&mut self, at: usize, value: T) {
        self[inside(at, N)] = value;
    }
}

macro_rules! local_arrays {
    ($([$($extent:ident $at:ident)*] $array:ty, $rank:literal, $index:ty => $pattern:pat,)*) => {$(
        impl<T: Copy, $(const $extent: usize),*> Load<$index> for LocalArray<$array, $rank> {
            type Elem = T;

            #[inline(always)]
            #[track_caller]
            fn load(&self, $pattern: $index) -> T {
                self.0 $([inside($at, $extent)])*
            }
        }

        impl<T: Copy, $(const $extent: usize),*> StoreLocal<$index> for LocalArray<$array, $rank> {
            #[inline(always)]
            #[track_caller]
            fn store_local(&mut self, $pattern: $index, value: T) {
                self.0 $([inside($at, $extent)])* = value;
            }
        }
    )*};
}
local_arrays! {
    [X x] [T; X], 1, usize => x,
    [Y y X x] [[T; X]; Y], 2, [usize; 2] => [y, x],
    [Z z Y y X x] [[[T; X]; Y]; Z], 3, [usize; 3] => [z, y, x],
}
