//! Shared arrays: memory of one work-group.

use crate::simt::{
    Atomic, Indices, Memory,
    checker::Checker,
    fault::AccessKind,
    index::{copied, outside, row_major},
};
use bytemuck::Pod;
use gpumem_core::Element;
use std::{marker::PhantomData, panic::Location};

type Place = &'static Location<'static>;

/// An array of `N` axes in the memory of a work-group. Row-major; every work-item of the group sees the same one.
///
/// Other work-items see a write after a [`barrier`](crate::simt::WorkItem::barrier). At first the array holds arbitrary
/// values, as on a GPU.
#[derive(Debug, Clone, Copy)]
pub struct Shared<'g, T, const N: usize> {
    first: *mut T,
    /// Indices below these need no second look. Half as long as `usize`, because every suspended body holds them. The last
    /// is 0 in check mode, which so costs nothing where it is off.
    bounds: [u32; N],
    /// Length of the last axis.
    last: u32,
    checker: Option<&'g Checker>,
    group: PhantomData<&'g [T]>,
}

impl<'g, T: Element, const N: usize> Shared<'g, T, N> {
    /// The memory lies in the arena, is aligned for `T` and holds initialised bytes for the whole array: guaranteed by
    /// every caller. Only the thread that runs the group touches it.
    #[inline(always)]
    pub(crate) fn over(first: *mut T, mut extents: [u32; N], checker: Option<&'g Checker>) -> Self {
        let last = extents.last().copied().unwrap_or(1);
        if let (Some(bound), true) = (extents.last_mut(), checker.is_some()) {
            *bound = 0;
        }
        Self { first, bounds: extents, last, checker, group: PhantomData }
    }

    fn lengths(&self) -> [u32; N] {
        let mut lengths = self.bounds;
        if let Some(last) = lengths.last_mut() {
            *last = self.last;
        }
        lengths
    }

    /// Lengths of the axes.
    pub fn extents(&self) -> [usize; N] {
        self.lengths().map(|extent| extent as usize)
    }

    /// Length of an axis; 1 beyond the last.
    pub fn extent(&self, axis: usize) -> usize {
        self.extents().get(axis).copied().unwrap_or(1)
    }

    /// The element at an index that needs no second look.
    #[inline(always)]
    fn plain(&self, at: [usize; N]) -> Option<*mut T> {
        // Without axes there is no bound to tell of check mode.
        row_major(at, &self.bounds).filter(|_| N > 0).map(|linear| self.first.wrapping_add(linear))
    }

    /// The element, in check mode or outside it; `None` if the index is past the end.
    fn element(self, at: [usize; N], kind: AccessKind, place: Place) -> Option<*mut T> {
        // SAFETY: the whole element is a part of it.
        unsafe { self.part(at, kind, place, |element| element) }
    }

    /// As [`element`](Self::element), of a part.
    ///
    /// # Safety
    /// `part` gives a place in the element that it is given.
    unsafe fn part<F: 'static>(
        self,
        at: [usize; N],
        kind: AccessKind,
        place: Place,
        part: impl FnOnce(*mut T) -> *mut F,
    ) -> Option<*mut F> {
        let lengths = self.lengths();
        let Some(linear) = row_major(at, &lengths) else {
            outside(&at, &self.extents(), place);
            return None;
        };
        let found = part(self.first.wrapping_add(linear));
        if let Some(checker) = self.checker {
            checker.touch(Memory::Shared, found, &at, kind, place);
        }
        Some(found)
    }

    /// Reads a part of an element.
    ///
    /// # Safety
    /// `part` gives a place in the element that it is given.
    #[track_caller]
    pub(crate) unsafe fn get_part<F: Pod>(
        &self,
        at: impl Indices<N>,
        part: impl FnOnce(*mut T) -> *mut F,
    ) -> F {
        // SAFETY: the caller's promise.
        let found = unsafe { self.part(at.positions(), AccessKind::Read, Location::caller(), part) };
        // SAFETY: as in `get_checked`.
        found.map_or_else(F::zeroed, |found| unsafe { found.read() })
    }

    /// Writes a part of an element.
    ///
    /// # Safety
    /// As for [`get_part`](Self::get_part).
    #[track_caller]
    pub(crate) unsafe fn set_part<F: Pod>(
        &self,
        at: impl Indices<N>,
        part: impl FnOnce(*mut T) -> *mut F,
        value: F,
    ) {
        // SAFETY: the caller's promise.
        let found = unsafe { self.part(at.positions(), AccessKind::Write, Location::caller(), part) };
        if let Some(found) = found {
            // SAFETY: as in `set_checked`.
            unsafe { found.write(value) }
        }
    }

    #[cold]
    #[inline(never)]
    fn get_checked(self, at: [usize; N], place: Place) -> T {
        // SAFETY: an element of the array, whose memory is alive for `'g`, initialised and of this thread only.
        self.element(at, AccessKind::Read, place).map_or_else(T::zeroed, |element| unsafe { element.read() })
    }

    #[cold]
    #[inline(never)]
    fn set_checked(self, at: [usize; N], value: T, place: Place) {
        if let Some(element) = self.element(at, AccessKind::Write, place) {
            // SAFETY: as in `get_checked`; no reference to it exists.
            unsafe { element.write(value) }
        }
    }

    /// Reads an element.
    #[inline(always)]
    #[track_caller]
    pub fn get(&self, at: impl Indices<N>) -> T {
        let at = at.positions();
        match self.plain(at) {
            // SAFETY: as in `get_checked`.
            Some(element) => unsafe { element.read() },
            // In a body that is split there is never a checker, as the compiler knows.
            None if self.checker.is_none() => {
                outside(&copied(at), &self.extents(), Location::caller());
                T::zeroed()
            }
            None => self.get_checked(copied(at), Location::caller()),
        }
    }

    /// Writes an element.
    #[inline(always)]
    #[track_caller]
    pub fn set(&self, at: impl Indices<N>, value: T) {
        let at = at.positions();
        match self.plain(at) {
            // SAFETY: as in `set_checked`.
            Some(element) => unsafe { element.write(value) },
            None if self.checker.is_none() => outside(&copied(at), &self.extents(), Location::caller()),
            None => self.set_checked(copied(at), value, Location::caller()),
        }
    }
}

impl<T: Atomic, const N: usize> Shared<'_, T, N> {
    /// Replaces an element by `change` of it, atomically within the group, and gives the old value.
    #[track_caller]
    pub fn atomic_update(&self, at: impl Indices<N>, change: impl FnOnce(T) -> T) -> T {
        match self.element(at.positions(), AccessKind::Atomic, Location::caller()) {
            Some(element) => {
                // SAFETY: as in `get_checked`. A group runs on one thread, so nothing comes between the two.
                let old = unsafe { element.read() };
                let new = change(old);
                // SAFETY: as above.
                unsafe { element.write(new) };
                old
            }
            None => T::zeroed(),
        }
    }
}
