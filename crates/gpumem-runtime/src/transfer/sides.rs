//! The sides of a transfer: elements in memory of the library, memory of the caller, and which way the elements go.

use crate::{
    Device,
    device::AllocationRef,
    layout::{CopyNest, Layout},
};
use gpumem_core::{Backend, Element, Error, ErrorKind, Result};
use gpumem_memory::{
    may_block,
    track::{Access, Timeline},
};
use ndarray::{ArrayViewD, ArrayViewMutD};
use std::sync::Arc;

/// Which way the elements go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    HostToDevice,
    DeviceToHost,
}

/// Elements somewhere in memory of the library.
#[derive(Debug)]
pub struct ArrayRef<'a, B: Backend> {
    pub memory: &'a AllocationRef<B>,
    pub layout: &'a Layout,
}

impl<B: Backend> Clone for ArrayRef<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B: Backend> Copy for ArrayRef<'_, B> {}

impl<'a, B: Backend> ArrayRef<'a, B> {
    pub fn new(memory: &'a AllocationRef<B>, layout: &'a Layout) -> Self {
        Self { memory, layout }
    }

    /// The use of the elements by a piece of work.
    #[inline]
    pub fn access(self, write: bool) -> Access<'a, B> {
        Access::new(self.memory, self.layout.extent(), write).of_elements(self.layout)
    }

    /// Returns the device of the memory.
    /// Returns [`ErrorKind::InvalidArgument`] if it has none.
    pub(super) fn device(self, operation: &'static str) -> Result<&'a Device<B>> {
        let why = "the memory has no device";
        let fail = || self.memory.context().error(operation, ErrorKind::InvalidArgument { why });
        self.memory.device().ok_or_else(fail)
    }
}

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

/// The pair of caller and device as seen from the device: its strides are positive and decide the order.
pub(super) fn nest_of<B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    host_span: &HostSpan,
    array_ref: ArrayRef<'_, B>,
    what: &'static str,
    blocks: bool,
) -> Result<CopyNest> {
    if blocks {
        may_block(operation)?;
    }
    timeline.check(operation)?;
    array_ref.memory.check(operation)?;
    timeline.check_owns(operation, array_ref.memory)?;
    if what == "destination" && host_span.layout.has_self_overlap() {
        let error = gpumem_core::LayoutError::SelfOverlap {
            shape: host_span.layout.shape().to_vec(),
            strides: host_span.layout.strides().to_vec(),
        };
        return Err(timeline.context.error(operation, error));
    }
    CopyNest::new(&host_span.layout, array_ref.layout)
        .map_err(|error| timeline.context.error(operation, error))
}
