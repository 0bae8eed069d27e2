//! The sides of a transfer: elements in memory of the library, memory of the caller, and which way the elements go.

use crate::{Device, device::AllocationRef, layout::Layout};
use gpumem_core::{Backend, DriverDevice, Element, Error, ErrorKind, NotRecorded, Result};
use gpumem_memory::track::{Access, DeviceContext, Timeline};
use ndarray::{ArrayView, ArrayViewMut, Dimension};
use smallvec::SmallVec;
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

    /// Waits on the host for what a call that blocks would wait for on the stream, where streams may wait for other ranks: copies of
    /// other threads, which those ranks wait for, would come after it there.
    pub fn wait_before(self, operation: &'static str, write: bool) -> Result<()> {
        if self.memory.is_placeholder() {
            return Err(waits(self.memory.context(), operation));
        }
        match self.memory.context().raw.capabilities().futures {
            true => self.memory.wait_for_uses(operation, &self.layout.extent(), write),
            false => Ok(()),
        }
    }

    /// Returns the device of the memory.
    /// Returns [`ErrorKind::InvalidArgument`] if it has none.
    pub(crate) fn device(self, operation: &'static str) -> Result<&'a Device<B>> {
        let why = "the memory has no device";
        let fail = || self.memory.context().error(operation, ErrorKind::InvalidArgument { why });
        self.memory.device().ok_or_else(fail)
    }
}

/// Refuses a call that blocks in the recording of a graph.
#[cold]
pub(super) fn waits<B: Backend>(context: &DeviceContext<B>, operation: &'static str) -> Error {
    context.not_recordable(operation, NotRecorded::Wait)
}

/// The caller's memory: the address of its lowest element, and its layout from there.
#[derive(Debug, Clone)]
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

    pub(super) fn reading<T: Element, D: Dimension>(
        operation: &'static str,
        view: &ArrayView<'_, T, D>,
    ) -> Result<Self> {
        Self::new(operation, view.as_ptr().cast_mut(), view.shape(), view.strides())
    }

    pub(super) fn writing<T: Element, D: Dimension>(
        operation: &'static str,
        view: &mut ArrayViewMut<'_, T, D>,
    ) -> Result<Self> {
        let first = view.as_mut_ptr();
        Self::new(operation, first, view.shape(), view.strides())
    }

    /// Memory that is not an array yet, and begins with the first element of a packed layout.
    pub(super) fn unwritten(first: *mut u8, layout: Layout) -> Self {
        Self { base: first, layout }
    }
}

/// The work on other streams that writes what a blocking copy reads. The device orders the copy after it, which does not tell
/// whether it succeeded.
pub(super) struct Producers<B: Backend>(SmallVec<[(Arc<Timeline<B>>, u64); 4]>);

impl<B: Backend> Producers<B> {
    pub(super) fn of(source: ArrayRef<'_, B>, timeline: &Timeline<B>) -> Self {
        Self(source.memory.writers(&source.layout.extent(), timeline))
    }

    /// Waits for the work.
    /// Returns its first failure.
    pub(super) fn check(&self, operation: &'static str) -> Result<()> {
        self.0.iter().try_for_each(|(writer, submission)| {
            writer.wait_for_use(*submission).result.map_err(|error| error.in_operation(operation))
        })
    }
}
