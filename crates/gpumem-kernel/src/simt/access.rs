//! Elements by index, as kernels written in Rust use them: `a[i]` reads or writes one element by value.
//!
//! Global and shared memory are never borrowed. So `#[kernel]` turns `a[i]` into calls of these traits, and rustc says which
//! array takes which index, and which can be written. Its errors list no implementations: the notes of the traits say which
//! arrays there are.

use crate::simt::{
    Constant, ConstantArray, Indices, LocalArray, Shared, Slice, SliceMut, View, ViewMut, index::outside,
};
use bytemuck::{Pod, allocation::try_zeroed_box};
use gpumem_core::Element;
use std::panic::Location;

pub(crate) mod sealed {
    /// The types that index arrays of kernels.
    pub trait SealedPosition {}
}

/// A type of indices. None is a user's: an index means the same on the host and in a GPU's source, and only gpumem says which
/// elements an array has for it. Numbers that index nothing are among them, of which [`Load`] tells more.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no index in kernels",
    note = "arrays take a `usize`, `[usize; N]` or `own()`: an enum is cast, as `mode as usize`"
)]
pub trait Position: sealed::SealedPosition {}
impl<I: sealed::SealedPosition> Position for I {}

macro_rules! positions {
    ($($type:ty)*) => {$( impl sealed::SealedPosition for $type {} )*};
}
positions! { () bool u8 i8 u16 i16 u32 i32 u64 i64 usize isize f32 f64 }
impl<I, const N: usize> sealed::SealedPosition for [I; N] {}

/// An array whose elements a kernel reads with the index `I`.
#[diagnostic::on_unimplemented(
    message = "a kernel cannot read `{Self}` with an index of type `{I}`",
    label = "`{Self}` has no element for the index `{I}`",
    note = "`Slice`, `SliceMut`, `Constant` and arrays of one axis take a `usize`; arrays of `N` axes take `[usize; N]`; `Own` and `OwnView` take `own()`"
)]
pub trait Load<I: Position> {
    type Elem;

    fn load(&self, at: I) -> Self::Elem;

    /// Reads a part of an element, and of memory that work-items share nothing but that part.
    #[inline(always)]
    #[track_caller]
    fn load_part<F: Pod>(&self, at: I, part: impl FnOnce(&mut Self::Elem) -> &mut F) -> F
    where
        Self: Sized,
    {
        *part(&mut self.load(at))
    }
}

/// An array whose elements work-items write with the index `I`.
#[diagnostic::on_unimplemented(
    message = "a kernel cannot write to `{Self}` with an index of type `{I}`",
    label = "`{Self}` is read only, or has no element for the index `{I}`",
    note = "kernels write to `SliceMut`, `ViewMut`, shared arrays, local arrays that are declared with `let mut`, and to `Own` and `OwnView` at `own()`"
)]
pub trait Store<I: Position>: Load<I> {
    fn store(&self, at: I, value: Self::Elem);

    /// Writes a part of an element, and leaves the rest unchanged.
    fn store_part<F: Pod>(&self, at: I, part: impl FnOnce(&mut Self::Elem) -> &mut F, value: F)
    where
        Self: Sized;
}

/// An array of one work-item, whose elements it writes with the index `I`.
#[diagnostic::on_unimplemented(
    message = "a kernel cannot write to `{Self}` with an index of type `{I}`",
    label = "`{Self}` has no element for the index `{I}`",
    note = "arrays of one axis take a `usize`; arrays of `N` axes take `[usize; N]`"
)]
pub trait StoreLocal<I: Position>: Load<I> {
    fn store_local(&mut self, at: I, value: Self::Elem);

    /// Writes a part of an element.
    #[inline(always)]
    #[track_caller]
    fn store_local_part<F>(&mut self, at: I, part: impl FnOnce(&mut Self::Elem) -> &mut F, value: F)
    where
        Self: Sized,
        I: Copy,
    {
        let mut element = self.load(at);
        *part(&mut element) = value;
        self.store_local(at, element);
    }
}

/// From an element in shared memory to the part that `part` names.
///
/// `part` is made of the author's steps, and those may run the author's code: a `DerefMut`, an `IndexMut`. So it never sees
/// the shared element. It names the part of a blank element of its own, and only the distance counts.
///
/// The result gives a place in the element that it is given, aligned as that is.
#[inline(always)]
pub(crate) fn place_of<T: Element, F: Pod>(
    part: impl FnOnce(&mut T) -> &mut F,
) -> impl FnOnce(*mut T) -> *mut F {
    let distance = if const { size_of::<T>() <= MOST_WITHIN } {
        distance_within(part)
    } else if const { size_of::<T>() <= MOST_ON_STACK } {
        distance_on_stack(part)
    } else {
        distance_on_heap(part)
    };
    let last = size_of::<T>().checked_sub(size_of::<F>());
    assert!(
        align_of::<F>() <= align_of::<T>() && last.is_some_and(|last| distance <= last),
        "the part of an element does not lie in the element"
    );
    move |element| element.cast::<u8>().wrapping_add(distance).cast()
}

/// Bytes of a value in a kernel, as a GPU has for the variables of a work-item. On the host a larger one would overflow the stack,
/// which ends the process.
pub(crate) const MOST_VALUE_BYTES: usize = 512 << 10;

/// Does not compile for a value that a work-item has no room for. Where elements are read and written, as not every one is a variable.
#[inline(always)]
pub(crate) fn fits_a_work_item<T>() {
    const {
        assert!(size_of::<T>() <= MOST_VALUE_BYTES, "a value in a kernel has at most 512 KiB, as on a GPU");
    }
}

/// Bytes of an element that each part in a kernel has room for: a build without optimisation keeps all of them.
const MOST_WITHIN: usize = 256;

/// Bytes of an element that [`place_of`] has room for on the stack. The optimiser leaves out one that lies there.
const MOST_ON_STACK: usize = 64 << 10;

/// The distance of a part from the beginning of a blank element. In a function of its own, so that no other has room for `T`.
#[inline(always)]
fn distance_within<T: Element, F>(part: impl FnOnce(&mut T) -> &mut F) -> usize {
    distance(&mut T::zeroed(), part)
}

/// As [`distance_within`]. Without optimisation it is not inlined, and the parts of a kernel take turns in its room.
#[inline]
fn distance_on_stack<T: Element, F>(part: impl FnOnce(&mut T) -> &mut F) -> usize {
    distance(&mut T::zeroed(), part)
}

#[cold]
#[inline(never)]
#[allow(clippy::panic)] // the work-item's fault
fn distance_on_heap<T: Element, F>(part: impl FnOnce(&mut T) -> &mut F) -> usize {
    match try_zeroed_box::<T>() {
        Ok(mut blank) => distance(&mut *blank, part),
        Err(()) => panic!("the host has no room for an element of {} bytes", size_of::<T>()),
    }
}

#[inline(always)]
fn distance<T, F>(blank: &mut T, part: impl FnOnce(&mut T) -> &mut F) -> usize {
    let first = (&raw const *blank).addr();
    std::ptr::from_mut(part(blank)).addr().wrapping_sub(first)
}

macro_rules! loads {
    ($([$($generics:tt)*] $type:ty, $index:ty $(, $part:ident)?;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<T: Element, $($generics)*> Load<$index> for $type {
            type Elem = T;

            #[inline(always)]
            #[track_caller]
            fn load(&self, at: $index) -> T {
                self.get(at)
            }

            $(
                #[inline(always)]
                #[track_caller]
                fn load_part<F: Pod>(&self, at: $index, part: impl FnOnce(&mut T) -> &mut F) -> F {
                    // SAFETY: `place_of` has made it.
                    unsafe { self.$part(at, place_of(part)) }
                }
            )?
        }
    )*};
}
loads! {
    [] Slice<T>, usize, get_part;
    [] SliceMut<T>, usize, get_part;
    [const LEN: usize] Constant<T, LEN>, usize;
    [I: Indices<N> + Position, const N: usize] View<T, N>, I, get_part;
    [I: Indices<N> + Position, const N: usize] ViewMut<T, N>, I, get_part;
    [I: Indices<N> + Position, const N: usize] ConstantArray<T, N>, I;
    [I: Indices<N> + Position, const N: usize] Shared<'_, T, N>, I, get_part;
}

macro_rules! stores {
    ($([$($generics:tt)*] $type:ty, $index:ty;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<T: Element, $($generics)*> Store<$index> for $type {
            #[inline(always)]
            #[track_caller]
            fn store(&self, at: $index, value: T) {
                self.set(at, value);
            }

            #[inline(always)]
            #[track_caller]
            fn store_part<F: Pod>(&self, at: $index, part: impl FnOnce(&mut T) -> &mut F, value: F) {
                // SAFETY: `place_of` has made it.
                unsafe { self.set_part(at, place_of(part), value) }
            }
        }
    )*};
}
stores! {
    [] SliceMut<T>, usize;
    [I: Indices<N> + Position, const N: usize] ViewMut<T, N>, I;
    [I: Indices<N> + Position, const N: usize] Shared<'_, T, N>, I;
}

// References that a kernel passes on, as the parameters of a kernel.
#[diagnostic::do_not_recommend]
impl<I: Position, A: Load<I>> Load<I> for &A {
    type Elem = A::Elem;

    #[inline(always)]
    #[track_caller]
    fn load(&self, at: I) -> A::Elem {
        (**self).load(at)
    }

    #[inline(always)]
    #[track_caller]
    fn load_part<F: Pod>(&self, at: I, part: impl FnOnce(&mut A::Elem) -> &mut F) -> F {
        (**self).load_part(at, part)
    }
}

#[diagnostic::do_not_recommend]
impl<I: Position, A: Store<I>> Store<I> for &A {
    #[inline(always)]
    #[track_caller]
    fn store(&self, at: I, value: A::Elem) {
        (**self).store(at, value);
    }

    #[inline(always)]
    #[track_caller]
    fn store_part<F: Pod>(&self, at: I, part: impl FnOnce(&mut A::Elem) -> &mut F, value: F) {
        (**self).store_part(at, part, value);
    }
}

/// The position, where it is below the length; else the fault that names it.
#[inline(always)]
#[track_caller]
fn inside(at: usize, len: usize) -> usize {
    if at >= len {
        outside(&[at], &[len], Location::caller());
    }
    at
}

#[diagnostic::do_not_recommend]
impl<T: Copy, const N: usize> Load<usize> for [T; N] {
    type Elem = T;

    #[inline(always)]
    #[track_caller]
    fn load(&self, at: usize) -> T {
        self[inside(at, N)]
    }
}

#[diagnostic::do_not_recommend]
impl<T: Copy, const N: usize> StoreLocal<usize> for [T; N] {
    #[inline(always)]
    #[track_caller]
    fn store_local(&mut self, at: usize, value: T) {
        self[inside(at, N)] = value;
    }
}

macro_rules! local_arrays {
    ($([$($extent:ident $at:ident)*] $array:ty, $rank:literal, $index:ty => $pattern:pat,)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<T: Copy, $(const $extent: usize),*> Load<$index> for LocalArray<$array, $rank> {
            type Elem = T;

            #[inline(always)]
            #[track_caller]
            fn load(&self, $pattern: $index) -> T {
                self.0 $([inside($at, $extent)])*
            }
        }

        #[diagnostic::do_not_recommend]
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
    [W w Z z Y y X x] [[[[T; X]; Y]; Z]; W], 4, [usize; 4] => [w, z, y, x],
    [V v W w Z z Y y X x] [[[[[T; X]; Y]; Z]; W]; V], 5, [usize; 5] => [v, w, z, y, x],
    [U u V v W w Z z Y y X x] [[[[[[T; X]; Y]; Z]; W]; V]; U], 6, [usize; 6] => [u, v, w, z, y, x],
}
