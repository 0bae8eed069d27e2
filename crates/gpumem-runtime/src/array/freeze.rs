//! Arrays that nothing writes any more, which graphs may keep.

use super::{ArrayBase, DeviceArray, Frozen, FrozenArray};
use crate::{device::FrozenMemory, foreign::own};
use gpumem_core::{Backend, Element, Error, ErrorKind, Result};
use ndarray::Dimension;
use std::sync::Arc;

impl<T: Element, D: Dimension, B: Backend> DeviceArray<T, D, B> {
    /// Makes the array one that is never written again, and that the bodies of graphs may use without naming it as an argument: the
    /// weights of a model. Its clones share the memory.
    ///
    /// ```
    /// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let weights = device.to_device(&[1.0f32, 2.0, 3.0])?.freeze().map_err(|(_, error)| error)?;
    /// let graph = device.record((), |stream, ()| stream.copy_to_host(&weights))?;
    /// drop(weights); // the graph keeps them
    /// assert_eq!(graph.launch(&device.stream()?, ())?.view()?.to_vec(), [1.0, 2.0, 3.0]);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the array with the error: [`InvalidArgument`](ErrorKind::InvalidArgument) if others may write the memory, because
    /// another library or another process owns it or was given it, [`OfRecording`](ErrorKind::OfRecording) for an array of a
    /// recording, and [`Stale`](ErrorKind::Stale) after a reset.
    #[allow(clippy::result_large_err)] // the array itself comes back
    pub fn freeze(self) -> std::result::Result<FrozenArray<T, D, B>, (Self, Error)> {
        match self.check_freeze() {
            Ok(()) => Ok(ArrayBase::frozen(FrozenMemory::new(self.memory), self.layout)),
            Err(error) => Err((self, error)),
        }
    }

    fn check_freeze(&self) -> Result<()> {
        const OPERATION: &str = "freeze";
        let memory = &self.memory;
        memory.check(OPERATION)?;
        // Who uses memory on no stream has it by a loan alone: the host.
        let may_others_write =
            || !memory.is_owned() || memory.may_get_other_handles() || own::is_lent(memory);
        if memory.len() > 0 && may_others_write() {
            let why = "others may write its memory; freeze a copy";
            return Err(memory.core().error(OPERATION, ErrorKind::InvalidArgument { why }));
        }
        Ok(())
    }
}

impl<T: Element, D: Dimension, B: Backend> ArrayBase<Frozen<T, B>, D> {
    /// Makes the array one that can be written again.
    ///
    /// # Errors
    /// Returns the array if there are clones of it, or graphs that use it.
    #[allow(clippy::result_large_err)] // the array itself comes back
    pub fn try_into_array(self) -> std::result::Result<DeviceArray<T, D, B>, Self> {
        let Self { memory, layout, owner, .. } = self;
        match Arc::try_unwrap(owner) {
            Ok(_) => Ok(ArrayBase::over(memory, layout)),
            Err(owner) => Err(ArrayBase::frozen(owner, layout)),
        }
    }
}

impl<T: Element, D: Dimension, B: Backend> Clone for ArrayBase<Frozen<T, B>, D> {
    fn clone(&self) -> Self {
        Self::frozen(self.owner.clone(), self.layout.clone())
    }
}
