//! The lengths of arrays. Kernels ask for them here, whatever traits with methods of these names are in the user's scope.

use crate::simt::{
    Constant, ConstantArray, LocalArray, Own, OwnView, Shared, Slice, SliceMut, View, ViewMut,
};
use gpumem_core::Element;

mod sealed {
    /// Arrays whose lengths the C++ knows, too.
    pub trait IsArray {}
}
use sealed::IsArray;

/// An array as one row of elements.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no `len` and `is_empty` in kernels",
    label = "arrays of one axis have: `Slice`, `SliceMut`, `Own`, `Constant`, `[T; N]`, and local arrays",
    note = "an array of several axes has `extent(axis)`"
)]
pub trait Row: IsArray {
    /// Number of elements.
    fn len_of(&self) -> usize;

    /// Whether there are no elements.
    #[inline(always)]
    fn is_empty_of(&self) -> bool {
        self.len_of() == 0
    }
}

/// An array of several axes.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no `extent` in kernels",
    label = "arrays of several axes have: `View`, `ViewMut`, `OwnView`, `ConstantArray`, shared and local arrays",
    note = "an array of one axis has `len()`"
)]
pub trait Grid: IsArray {
    /// Length of an axis; 1 beyond the last.
    fn extent_of(&self, axis: usize) -> usize;
}

macro_rules! arrays {
    ($([$($generics:tt)*] $type:ty: $trait:ident { $($method:tt)* })*) => {$(
        impl<$($generics)*> IsArray for $type {}
        #[diagnostic::do_not_recommend]
        impl<$($generics)*> $trait for $type {
            #[inline(always)]
            $($method)*
        }
    )*};
}
arrays! {
    [T: Element] Slice<T>: Row { fn len_of(&self) -> usize { self.len() } }
    [T: Element] SliceMut<T>: Row { fn len_of(&self) -> usize { self.len() } }
    [T: Element] Own<T>: Row { fn len_of(&self) -> usize { self.len() } }
    [T, const N: usize] Constant<T, N>: Row { fn len_of(&self) -> usize { N } }
    [T, const N: usize] [T; N]: Row { fn len_of(&self) -> usize { N } }
    [T: Element, const N: usize] View<T, N>: Grid { fn extent_of(&self, axis: usize) -> usize { self.extent(axis) } }
    [T: Element, const N: usize] ViewMut<T, N>: Grid { fn extent_of(&self, axis: usize) -> usize { self.extent(axis) } }
    [T: Element, const N: usize] OwnView<T, N>: Grid { fn extent_of(&self, axis: usize) -> usize { self.extent(axis) } }
    [T: Element, const N: usize] ConstantArray<T, N>: Grid { fn extent_of(&self, axis: usize) -> usize { self.extent(axis) } }
    [T: Element, const N: usize] Shared<'_, T, N>: Grid { fn extent_of(&self, axis: usize) -> usize { self.extent(axis) } }
    [T, const X: usize] LocalArray<[T; X], 1>: Row { fn len_of(&self) -> usize { X } }
    [T, const X: usize, const Y: usize] LocalArray<[[T; X]; Y], 2>: Grid {
        fn extent_of(&self, axis: usize) -> usize { along([Y, X], axis) }
    }
    [T, const X: usize, const Y: usize, const Z: usize] LocalArray<[[[T; X]; Y]; Z], 3>: Grid {
        fn extent_of(&self, axis: usize) -> usize { along([Z, Y, X], axis) }
    }
    [T, const X: usize, const Y: usize, const Z: usize, const W: usize] LocalArray<[[[[T; X]; Y]; Z]; W], 4>: Grid {
        fn extent_of(&self, axis: usize) -> usize { along([W, Z, Y, X], axis) }
    }
    [T, const X: usize, const Y: usize, const Z: usize, const W: usize, const V: usize]
        LocalArray<[[[[[T; X]; Y]; Z]; W]; V], 5>: Grid {
        fn extent_of(&self, axis: usize) -> usize { along([V, W, Z, Y, X], axis) }
    }
    [T, const X: usize, const Y: usize, const Z: usize, const W: usize, const V: usize, const U: usize]
        LocalArray<[[[[[[T; X]; Y]; Z]; W]; V]; U], 6>: Grid {
        fn extent_of(&self, axis: usize) -> usize { along([U, V, W, Z, Y, X], axis) }
    }
}

fn along<const N: usize>(extents: [usize; N], axis: usize) -> usize {
    extents.get(axis).copied().unwrap_or(1)
}

impl<A: IsArray + ?Sized> IsArray for &A {}
#[diagnostic::do_not_recommend]
impl<A: Row + ?Sized> Row for &A {
    #[inline(always)]
    fn len_of(&self) -> usize {
        A::len_of(self)
    }
}
#[diagnostic::do_not_recommend]
impl<A: Grid + ?Sized> Grid for &A {
    #[inline(always)]
    fn extent_of(&self, axis: usize) -> usize {
        A::extent_of(self, axis)
    }
}
