//! The arguments as bodies see them: global memory, constants, plain values.

use crate::simt::{
    Atomic, FaultKind, Indices, Memory,
    checker::Checker,
    fault::{AccessKind, raise},
    fits_a_work_item,
    index::{copied, outside},
};
use bytemuck::Pod;
use gpumem_core::Element;
use std::{cell::Cell, marker::PhantomData, panic::Location, ptr::NonNull};

/// The memory of a launch, seen element by element.
#[derive(Debug)]
pub(crate) struct Cells<T> {
    first: *mut T,
    /// Alive as long as the launch, in check mode.
    pub(crate) checker: Option<NonNull<Checker>>,
    element: PhantomData<T>,
}

// SAFETY: elements are plain data, and the caller of `Parameter::bind` promises which work-item uses which. A checker
// is `Sync`.
unsafe impl<T: Element> Send for Cells<T> {}
// SAFETY: as above.
unsafe impl<T: Element> Sync for Cells<T> {}

impl<T: Element> Cells<T> {
    pub(crate) fn new(address: u64, checker: Option<&Checker>) -> Self {
        Self { first: address as usize as *mut T, checker: checker.map(NonNull::from), element: PhantomData }
    }

    #[inline(always)]
    #[track_caller]
    fn note<F: 'static, const N: usize>(&self, place: *mut F, index: [usize; N], kind: AccessKind) {
        if let Some(checker) = self.checker {
            // SAFETY: it lives as long as the launch, and so does the argument, which cannot be copied out of it.
            let checker = unsafe { checker.as_ref() };
            // The index is put into memory here, and not where nothing is checked.
            checker.touch(Memory::Global, place, &copied(index), kind, Location::caller());
        }
    }

    /// # Safety
    /// The address of an element of the argument or of a part of one, as are those below.
    #[inline(always)]
    #[track_caller]
    unsafe fn read<F: Pod, const N: usize>(&self, element: *mut F, index: [usize; N]) -> F {
        fits_a_work_item::<F>();
        self.note(element, index, AccessKind::Read);
        // SAFETY: the caller promises that the element is valid; nothing else writes it (`Parameter::bind`).
        unsafe { element.read() }
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn write<F: Pod, const N: usize>(&self, element: *mut F, index: [usize; N], value: F) {
        fits_a_work_item::<F>();
        self.note(element, index, AccessKind::Write);
        // SAFETY: the caller promises that the element is valid; nothing else uses it (`Parameter::bind`).
        unsafe { element.write(value) }
    }
}

/// A packed array in global memory as one row of elements, for reading: `gpumem::slice<const T>` on a device.
#[derive(Debug)]
pub struct Slice<T> {
    pub(crate) cells: Cells<T>,
    pub(crate) len: usize,
}

/// A packed array in global memory as one row of elements: `gpumem::slice<T>` on a device.
#[derive(Debug)]
pub struct SliceMut<T>(pub(crate) Slice<T>);

/// An array of `N` axes in global memory, of any strides, for reading: `gpumem::view<const T, N>` on a device.
#[derive(Debug)]
pub struct View<T, const N: usize> {
    pub(crate) cells: Cells<T>,
    pub(crate) extents: [usize; N],
    /// In bytes, as everywhere.
    pub(crate) strides: [isize; N],
}

/// An array of `N` axes in global memory, of any strides: `gpumem::view<T, N>` on a device.
#[derive(Debug)]
pub struct ViewMut<T, const N: usize>(pub(crate) View<T, N>);

impl<T: Element> Slice<T> {
    /// Number of elements.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline(always)]
    #[track_caller]
    fn element(&self, index: usize) -> Option<*mut T> {
        if index < self.len {
            return Some(self.cells.first.wrapping_add(index));
        }
        outside(&[index], &[self.len], Location::caller());
        None
    }

    /// Reads a part of an element.
    ///
    /// # Safety
    /// `part` gives a place in the element that it is given.
    #[inline(always)]
    #[track_caller]
    pub(crate) unsafe fn get_part<F: Pod>(&self, at: usize, part: impl FnOnce(*mut T) -> *mut F) -> F {
        match self.element(at) {
            // SAFETY: a part of an element of the argument.
            Some(element) => unsafe { self.cells.read(part(element), [at]) },
            None => F::zeroed(),
        }
    }

    /// Reads an element.
    #[inline(always)]
    #[track_caller]
    pub fn get(&self, index: usize) -> T {
        match self.element(index) {
            // SAFETY: an element of the argument.
            Some(element) => unsafe { self.cells.read(element, [index]) },
            None => T::zeroed(),
        }
    }

    /// Returns neighbours, for bodies that take a group at once. Check mode does not see them.
    #[doc(hidden)]
    #[inline(always)]
    #[track_caller]
    pub fn run(&self, from: usize, len: usize) -> impl ExactSizeIterator<Item = T> + '_ {
        self.cells_of(from, len).iter().map(Cell::get)
    }

    /// Elements as cells, of which those of a `Slice` are only read.
    #[inline(always)]
    #[track_caller]
    fn cells_of(&self, from: usize, len: usize) -> &[Cell<T>] {
        fits_a_work_item::<T>();
        if len == 0 {
            return &[];
        }
        if from < self.len && len <= self.len - from {
            // SAFETY: elements of the argument, which is alive as long as the launch. Cells, as all that a body sees.
            return unsafe { std::slice::from_raw_parts(self.cells.first.wrapping_add(from).cast(), len) };
        }
        outside(&[from.saturating_add(len - 1)], &[self.len], Location::caller());
        &[]
    }
}

impl<T: Element> SliceMut<T> {
    /// Writes neighbours, for bodies that take a group at once. Check mode does not see it.
    #[doc(hidden)]
    #[inline(always)]
    #[track_caller]
    pub fn set_run(&self, from: usize, values: impl ExactSizeIterator<Item = T>) {
        let cells = self.0.cells_of(from, values.len());
        cells.iter().zip(values).for_each(|(cell, value)| cell.set(value));
    }
}

impl<T: Element> std::ops::Deref for SliceMut<T> {
    type Target = Slice<T>;

    #[inline(always)]
    fn deref(&self) -> &Slice<T> {
        &self.0
    }
}

impl<T: Element> SliceMut<T> {
    /// Writes a part of an element.
    ///
    /// # Safety
    /// As for `Slice::get_part`.
    #[inline(always)]
    #[track_caller]
    pub(crate) unsafe fn set_part<F: Pod>(&self, at: usize, part: impl FnOnce(*mut T) -> *mut F, value: F) {
        if let Some(element) = self.0.element(at) {
            // SAFETY: a part of an element of the argument, which may be written.
            unsafe { self.0.cells.write(part(element), [at], value) }
        }
    }

    /// Writes an element.
    #[inline(always)]
    #[track_caller]
    pub fn set(&self, index: usize, value: T) {
        if let Some(element) = self.0.element(index) {
            // SAFETY: an element of the argument, which may be written.
            unsafe { self.0.cells.write(element, [index], value) }
        }
    }
}

impl<T: Element, const N: usize> View<T, N> {
    /// Lengths of the axes.
    #[inline(always)]
    pub fn extents(&self) -> [usize; N] {
        self.extents
    }

    /// Length of an axis; 1 beyond the last.
    #[inline(always)]
    pub fn extent(&self, axis: usize) -> usize {
        self.extents.get(axis).copied().unwrap_or(1)
    }

    /// Bytes from one element to the next along each axis.
    pub fn strides(&self) -> [isize; N] {
        self.strides
    }

    #[inline(always)]
    #[track_caller]
    fn element(&self, at: [usize; N]) -> Option<*mut T> {
        let mut bytes = 0isize;
        for axis in 0..N {
            if at[axis] >= self.extents[axis] {
                // The index is put into memory here, and not where it is inside.
                outside(&copied(at), &self.extents, Location::caller());
                return None;
            }
            // Inside the array the sum is at most its extent, so nothing wraps.
            bytes = bytes.wrapping_add((at[axis] as isize).wrapping_mul(self.strides[axis]));
        }
        Some(self.cells.first.wrapping_byte_offset(bytes))
    }

    /// Reads a part of an element.
    ///
    /// # Safety
    /// As for `Slice::get_part`.
    #[inline(always)]
    #[track_caller]
    pub(crate) unsafe fn get_part<F: Pod>(
        &self,
        at: impl Indices<N>,
        part: impl FnOnce(*mut T) -> *mut F,
    ) -> F {
        let at = at.positions();
        match self.element(at) {
            // SAFETY: a part of an element of the argument.
            Some(element) => unsafe { self.cells.read(part(element), at) },
            None => F::zeroed(),
        }
    }

    /// Reads an element.
    #[inline(always)]
    #[track_caller]
    pub fn get(&self, at: impl Indices<N>) -> T {
        let at = at.positions();
        match self.element(at) {
            // SAFETY: an element of the argument.
            Some(element) => unsafe { self.cells.read(element, at) },
            None => T::zeroed(),
        }
    }
}

impl<T: Element, const N: usize> std::ops::Deref for ViewMut<T, N> {
    type Target = View<T, N>;

    #[inline(always)]
    fn deref(&self) -> &View<T, N> {
        &self.0
    }
}

impl<T: Element, const N: usize> ViewMut<T, N> {
    /// Writes a part of an element.
    ///
    /// # Safety
    /// As for `Slice::get_part`.
    #[inline(always)]
    #[track_caller]
    pub(crate) unsafe fn set_part<F: Pod>(
        &self,
        at: impl Indices<N>,
        part: impl FnOnce(*mut T) -> *mut F,
        value: F,
    ) {
        let at = at.positions();
        if let Some(element) = self.0.element(at) {
            // SAFETY: a part of an element of the argument, which may be written.
            unsafe { self.0.cells.write(part(element), at, value) }
        }
    }

    /// Writes an element.
    #[inline(always)]
    #[track_caller]
    pub fn set(&self, at: impl Indices<N>, value: T) {
        let at = at.positions();
        if let Some(element) = self.0.element(at) {
            // SAFETY: an element of the argument, which may be written.
            unsafe { self.0.cells.write(element, at, value) }
        }
    }
}

macro_rules! atomics {
    ($([$($generics:tt)*] $type:ty, $index:ty, $positions:ident, $index_of:ident;)*) => {$(
        impl<T: Atomic, $($generics)*> $type {
            /// Replaces an element by `change` of it, atomically for all work-items of the launch, and gives the old
            /// value. `change` may run several times.
            #[track_caller]
            pub fn atomic_update(&self, at: $index, change: impl Fn(T) -> T) -> T {
                let at = $positions(at);
                let Some(element) = self.0.element(at) else { return T::zeroed() };
                self.0.cells.note(element, $index_of(at), AccessKind::Atomic);
                if !element.addr().is_multiple_of(size_of::<T>()) {
                    // Eight bytes in a record of fours: no device changes such an element atomically.
                    raise(FaultKind::Panicked { message: "an atomic element is not aligned to its size".into() });
                    return T::zeroed();
                }
                // SAFETY: an aligned element of the argument, which may be written; others use it atomically, too.
                unsafe { T::update(element, change) }
            }
        }
    )*};
}
atomics! {
    [] SliceMut<T>, usize, itself, alone;
    [const N: usize] ViewMut<T, N>, impl Indices<N>, positions, copied;
}

fn itself(index: usize) -> usize {
    index
}

fn alone(index: usize) -> [usize; 1] {
    [index]
}

fn positions<const N: usize>(at: impl Indices<N>) -> [usize; N] {
    at.positions()
}

/// A constant array of `N` axes: `gpumem::constant_array<T, N>` on a device, where it lies in the constant memory of the
/// module and every work-item reads it through the cache for constants. Written in stream order before the launch.
#[derive(Debug)]
pub struct ConstantArray<T, const N: usize>(pub(crate) View<T, N>);

impl<T: Element, const N: usize> ConstantArray<T, N> {
    /// Lengths of the axes.
    #[inline(always)]
    pub fn extents(&self) -> [usize; N] {
        self.0.extents
    }

    /// Length of an axis; 1 beyond the last.
    #[inline(always)]
    pub fn extent(&self, axis: usize) -> usize {
        self.0.extent(axis)
    }

    /// Reads an element.
    #[inline(always)]
    #[track_caller]
    pub fn get(&self, at: impl Indices<N>) -> T {
        self.0.get(at)
    }
}

/// A constant array of `LEN` elements, given by value with each launch, in stream order: `gpumem::constant<T, LEN>` on a
/// device, where it lies in constant memory.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(transparent)]
pub struct Constant<T, const LEN: usize>(pub [T; LEN]);

impl<T: Element, const LEN: usize> Constant<T, LEN> {
    /// Reads an element.
    #[inline(always)]
    #[track_caller]
    pub fn get(&self, index: usize) -> T {
        self.0.get(index).copied().unwrap_or_else(|| {
            outside(&[index], &[LEN], Location::caller());
            T::zeroed()
        })
    }
}
