//! Elements in memory of the library, as transfers see them.

use crate::{Device, device::AllocationRef, layout::Layout};
use gpumem_core::{Backend, ErrorKind, Result};
use gpumem_memory::track::Access;

/// Elements somewhere in memory of the library.
#[derive(Debug)]
pub struct ArrayRef<'a, B: Backend> {
    /// The memory.
    pub memory: &'a AllocationRef<B>,
    /// The elements in it.
    pub layout: &'a Layout,
}

impl<B: Backend> Clone for ArrayRef<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B: Backend> Copy for ArrayRef<'_, B> {}

impl<'a, B: Backend> ArrayRef<'a, B> {
    /// Refers to the elements of a layout.
    pub fn new(memory: &'a AllocationRef<B>, layout: &'a Layout) -> Self {
        Self { memory, layout }
    }

    /// The use of the elements by a piece of work.
    #[inline]
    pub fn access(self, write: bool) -> Access<'a, B> {
        Access::new(self.memory, self.layout.extent(), write).of_elements(self.layout)
    }

    /// Returns the device of the memory.
    ///
    /// # Errors
    /// Returns [`ErrorKind::InvalidArgument`] if it has none.
    pub(super) fn device(self, operation: &'static str) -> Result<&'a Device<B>> {
        let why = "the memory has no device";
        let fail = || self.memory.context().error(operation, ErrorKind::InvalidArgument { why });
        self.memory.device().ok_or_else(fail)
    }
}
