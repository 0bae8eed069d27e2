//! Shared arrays: memory of one work-group.

use crate::{
    Atomic, FaultKind, Indices, Memory,
    checker::{AccessKind, Checker},
    fault::raise,
    index::row_major,
};
use gpumem_core::Element;
use std::{marker::PhantomData, panic::Location};

/// An array of `N` axes in the memory of a work-group. Row-major; every work-item of the group sees the same one.
///
/// What one work-item writes is there for the others after a [`barrier`](crate::WorkItem::barrier). At first it holds
/// whatever was there before, as on a GPU.
#[derive(Debug, Clone, Copy)]
pub struct Shared<'g, T, const N: usize> {
    first: *mut T,
    offset: usize,
    extents: [usize; N],
    checker: Option<&'g Checker>,
    group: PhantomData<&'g [T]>,
}

impl<'g, T: Element, const N: usize> Shared<'g, T, N> {
    /// The memory lies in the arena, is aligned for `T` and holds initialised bytes for the whole array: guaranteed by
    /// every caller. Only the thread that runs the group touches it.
    pub(crate) fn over(
        first: *mut T,
        offset: usize,
        extents: [usize; N],
        checker: Option<&'g Checker>,
    ) -> Self {
        Self { first, offset, extents, checker, group: PhantomData }
    }

    /// Lengths of the axes.
    pub fn extents(&self) -> [usize; N] {
        self.extents
    }

    /// Length of an axis; 1 beyond the last.
    pub fn extent(&self, axis: usize) -> usize {
        self.extents.get(axis).copied().unwrap_or(1)
    }

    #[inline(always)]
    #[track_caller]
    fn element(&self, at: [usize; N], kind: AccessKind) -> Option<*mut T> {
        let Some(linear) = row_major(at, &self.extents) else {
            let at = (at.to_vec(), self.extents.to_vec(), Location::caller());
            raise(FaultKind::OutOfBounds { index: at.0, extents: at.1, at: at.2 });
            return None;
        };
        if let Some(checker) = self.checker {
            let address = self.offset + linear * size_of::<T>();
            checker.access(Memory::Shared, address as u64, kind, Location::caller());
        }
        Some(self.first.wrapping_add(linear))
    }

    /// Reads an element.
    #[inline(always)]
    #[track_caller]
    pub fn get(&self, at: impl Indices<N>) -> T {
        match self.element(at.positions(), AccessKind::Read) {
            // SAFETY: an element of the array, whose memory is alive for `'g`, initialised and of this thread only.
            Some(element) => unsafe { element.read() },
            None => T::zeroed(),
        }
    }

    /// Writes an element.
    #[inline(always)]
    #[track_caller]
    pub fn set(&self, at: impl Indices<N>, value: T) {
        if let Some(element) = self.element(at.positions(), AccessKind::Write) {
            // SAFETY: as in `get`; nobody holds a reference to it.
            unsafe { element.write(value) }
        }
    }
}

impl<T: Atomic, const N: usize> Shared<'_, T, N> {
    /// Replaces an element by `change` of it, atomically within the group, and gives the old value.
    #[track_caller]
    pub fn atomic_update(&self, at: impl Indices<N>, change: impl FnOnce(T) -> T) -> T {
        match self.element(at.positions(), AccessKind::Atomic) {
            Some(element) => {
                // SAFETY: as in `get`. A group runs on one thread, so nothing comes between the two.
                let old = unsafe { element.read() };
                let new = change(old);
                // SAFETY: as above.
                unsafe { element.write(new) };
                old
            }
            None => T::zeroed(),
        }
    }

    /// Adds to an element, and gives the old value.
    #[track_caller]
    pub fn atomic_add(&self, at: impl Indices<N>, value: T) -> T {
        self.atomic_update(at, |old| old.plus(value))
    }

    /// Lowers an element to at most `value`, and gives the old value.
    #[track_caller]
    pub fn atomic_min(&self, at: impl Indices<N>, value: T) -> T {
        self.atomic_update(at, |old| old.least(value))
    }

    /// Raises an element to at least `value`, and gives the old value.
    #[track_caller]
    pub fn atomic_max(&self, at: impl Indices<N>, value: T) -> T {
        self.atomic_update(at, |old| old.greatest(value))
    }
}
