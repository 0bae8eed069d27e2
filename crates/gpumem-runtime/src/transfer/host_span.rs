//! Memory of the caller, as transfers see it.

use crate::layout::Layout;
use gpumem_core::{Element, Error, Result};
use ndarray::{ArrayViewD, ArrayViewMutD};

/// The caller's memory: the address of its lowest element, and its layout from there.
#[derive(Debug)]
pub(super) struct HostSpan {
    pub(super) base: *mut u8,
    pub(super) layout: Layout,
}

// SAFETY: the elements are `Send` and `Sync` (every `Element` is), and other threads use this only while the caller's
// borrow lasts: inside the caller's call (`WorkerPool::run`), or inside its scope (`CopyOutQueue`).
unsafe impl Send for HostSpan {}
// SAFETY: as above; threads write disjoint pieces.
unsafe impl Sync for HostSpan {}

impl HostSpan {
    fn new<T>(operation: &'static str, first: *mut T, shape: &[usize], strides: &[isize]) -> Result<Self> {
        let layout = Layout::of_ndarray(shape, strides, size_of::<T>())
            .map_err(|error| Error::new("", operation, error))?;
        Ok(Self { base: first.cast::<u8>().wrapping_sub(layout.offset()), layout })
    }

    pub(super) fn reading<T: Element>(operation: &'static str, view: &ArrayViewD<'_, T>) -> Result<Self> {
        Self::new(operation, view.as_ptr().cast_mut(), view.shape(), view.strides())
    }

    pub(super) fn writing<T: Element>(
        operation: &'static str,
        view: &mut ArrayViewMutD<'_, T>,
    ) -> Result<Self> {
        let first = view.as_mut_ptr();
        Self::new(operation, first, view.shape(), view.strides())
    }

    /// Memory that is not an array yet, and begins with the first element of a packed layout.
    pub(super) fn unwritten(first: *mut u8, layout: Layout) -> Self {
        Self { base: first, layout }
    }
}
