//! Arrays of which each work-item writes one element, its own.
//!
//! An [`OwnId`] is the place of a work-item in the launch, and nothing makes one but [`WorkItemIds::own`]. A launch has no
//! more axes than an [`Own`] or [`OwnView`] among its parameters ([`Parameter::OWN_AXES`]), so no two work-items have the
//! same. A kernel that writes only through them has no race.
//!
//! A body may run any code of the user's: operators, conversions, methods of its traits. None of it can keep an [`OwnId`] for
//! another work-item: its lifetime is one that a body is given for its call, so no static and no other call can hold it, and it
//! stays on its thread.

use crate::simt::{
    Indices, Inside, Load, MemoryReach, Parameter, SliceMut, Store, ViewMut, WorkItemIds,
    abi::wrappers,
    access::{place_of, sealed::SealedPosition},
    checker::Checker,
    phases::PhaseItem,
};
use bytemuck::Pod;
use gpumem_core::Element;
use std::marker::PhantomData;

/// The index of a work-item's own element in an array of `N` axes: its global ids, that along x last.
///
/// It cannot be kept beyond the call of the body that asked for it:
///
/// ```compile_fail
/// # use {gpumem_kernel::{OwnId, WorkItemIds}, std::cell::RefCell};
/// fn keep(ids: &WorkItemIds<'_>, kept: &RefCell<Option<OwnId<'static, 1>>>) {
///     *kept.borrow_mut() = Some(ids.own());
/// }
/// ```
///
/// nor given to another thread:
///
/// ```compile_fail
/// # use gpumem_kernel::OwnId;
/// fn is_send<T: Send>(_: T) {}
/// fn send(own: OwnId<'_, 1>) {
///     is_send(own);
/// }
/// ```
///
/// Within the call it is a value as others:
///
/// ```
/// # use {gpumem_kernel::{OwnId, WorkItemIds}, std::cell::RefCell};
/// fn keep<'g>(ids: &WorkItemIds<'g>, kept: &RefCell<Option<OwnId<'g, 1>>>) {
///     *kept.borrow_mut() = Some(ids.own());
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnId<'g, const N: usize>([usize; N], Bound<'g>);

/// Neither a shorter nor a longer lifetime will do, nor another thread.
type Bound<'g> = PhantomData<*mut &'g ()>;

/// A packed array in global memory, of which each work-item reads and writes the element with the number of its global id:
/// `gpumem::slice<T>` on a device. A launch has one axis.
#[derive(Debug)]
pub struct Own<T>(SliceMut<T>);

/// An array of `N` axes in global memory, of any strides, of which each work-item reads and writes the element at its global
/// ids, that along x last: `gpumem::view<T, N>` on a device. `N` is at most 3, and a launch has no more axes.
#[derive(Debug)]
pub struct OwnView<T, const N: usize>(ViewMut<T, N>);

/// Refuses, while the program is compiled, arrays without axes, and with more than a launch has.
#[allow(clippy::panic)] // in a constant
const fn check_rank(rank: usize) {
    assert!(rank >= 1 && rank <= 3, "a launch has three axes: an own element has an index of one to three");
}

impl<'g> WorkItemIds<'g> {
    /// The index of the work-item's own element in an [`Own`] or [`OwnView`].
    #[inline(always)]
    pub fn own<const N: usize>(&self) -> OwnId<'g, N> {
        own_of(self)
    }
}

impl<'g> PhaseItem<'_, 'g> {
    /// As [`WorkItemIds::own`]; it may be kept across the barriers of the call.
    #[inline(always)]
    pub fn own<const N: usize>(&self) -> OwnId<'g, N> {
        own_of(self)
    }
}

#[inline(always)]
fn own_of<'g, const N: usize>(ids: &WorkItemIds<'_>) -> OwnId<'g, N> {
    const { check_rank(N) };
    OwnId(std::array::from_fn(|axis| ids.global_id(N - 1 - axis)), PhantomData)
}

impl<const N: usize> Indices<N> for OwnId<'_, N> {
    #[inline(always)]
    fn positions(self) -> [usize; N] {
        self.0
    }
}

impl<const N: usize> SealedPosition for OwnId<'_, N> {}

/// The position along an axis.
#[diagnostic::do_not_recommend]
impl<const N: usize> Load<usize> for OwnId<'_, N> {
    type Elem = usize;

    #[inline(always)]
    #[track_caller]
    fn load(&self, at: usize) -> usize {
        self.0.load(at)
    }
}

impl<T: Element> Own<T> {
    /// Number of elements.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no elements.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T: Element, const N: usize> OwnView<T, N> {
    /// Lengths of the axes.
    #[inline(always)]
    pub fn extents(&self) -> [usize; N] {
        self.0.extents()
    }

    /// Length of an axis; 1 beyond the last.
    #[inline(always)]
    pub fn extent(&self, axis: usize) -> usize {
        self.0.extent(axis)
    }
}

macro_rules! own {
    ($([$($generics:tt)*] $type:ty, $index:ty, $at:ident => $position:expr;)*) => {$(
        impl<T: Element, $($generics)*> $type {
            /// Reads the work-item's own element.
            #[inline(always)]
            #[track_caller]
            pub fn get(&self, $at: $index) -> T {
                self.0.get($position)
            }

            /// Writes the work-item's own element.
            #[inline(always)]
            #[track_caller]
            pub fn set(&self, $at: $index, value: T) {
                self.0.set($position, value);
            }
        }

        #[diagnostic::do_not_recommend]
        impl<T: Element, $($generics)*> Load<$index> for $type {
            type Elem = T;

            #[inline(always)]
            #[track_caller]
            fn load(&self, at: $index) -> T {
                self.get(at)
            }

            #[inline(always)]
            #[track_caller]
            fn load_part<F: Pod>(&self, $at: $index, part: impl FnOnce(&mut T) -> &mut F) -> F {
                // SAFETY: `place_of` has made it.
                unsafe { self.0.get_part($position, place_of(part)) }
            }
        }

        #[diagnostic::do_not_recommend]
        impl<T: Element, $($generics)*> Store<$index> for $type {
            #[inline(always)]
            #[track_caller]
            fn store(&self, at: $index, value: T) {
                self.set(at, value);
            }

            #[inline(always)]
            #[track_caller]
            fn store_part<F: Pod>(&self, $at: $index, part: impl FnOnce(&mut T) -> &mut F, value: F) {
                // SAFETY: `place_of` has made it.
                unsafe { self.0.set_part($position, place_of(part), value) }
            }
        }
    )*};
}
/// An index that no value is. With a second type of indices rustc tells what [`Load`] and [`Store`] say of a wrong one, instead of
/// that it is no `OwnId`.
enum NoIndex {}

impl SealedPosition for NoIndex {}

macro_rules! no_index {
    ($([$($generics:tt)*] $type:ty;)*) => {$(
        #[doc(hidden)]
        #[diagnostic::do_not_recommend]
        impl<T: Element, $($generics)*> Load<NoIndex> for $type {
            type Elem = T;

            fn load(&self, at: NoIndex) -> T {
                match at {}
            }
        }

        #[doc(hidden)]
        #[diagnostic::do_not_recommend]
        impl<T: Element, $($generics)*> Store<NoIndex> for $type {
            fn store(&self, at: NoIndex, _: T) {
                match at {}
            }

            fn store_part<F: Pod>(&self, at: NoIndex, _: impl FnOnce(&mut T) -> &mut F, _: F) {
                match at {}
            }
        }
    )*};
}
no_index! {
    [] Own<T>;
    [const N: usize] OwnView<T, N>;
}

own! {
    [] Own<T>, OwnId<'_, 1>, at => at.0[0];
    [const N: usize] OwnView<T, N>, OwnId<'_, N>, at => at;
}

wrappers! {
    [] Own<T> as SliceMut<T>, 1, SliceMut::<T>::device_type();
    [const N: usize] OwnView<T, N> as ViewMut<T, N>, { check_rank(N); N }, ViewMut::<T, N>::device_type();
}
