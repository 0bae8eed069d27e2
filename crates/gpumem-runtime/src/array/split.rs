//! Parts of an array.

use super::{ArrayBase, DeviceView, DeviceViewMut, Storage, StorageMut};
use gpumem_core::Result;
use ndarray::Dimension;

/// A shared and a mutable half.
type Halves<'a, T, D, B> = (DeviceView<'a, T, D, B>, DeviceView<'a, T, D, B>);
type HalvesMut<'a, T, D, B> = (DeviceViewMut<'a, T, D, B>, DeviceViewMut<'a, T, D, B>);

impl<S: Storage, D: Dimension> ArrayBase<S, D> {
    /// Views of parts of `section` steps along the first axis; the last may be shorter. Numba's `split`.
    ///
    /// # Errors
    /// [`ZeroSection`](gpumem_core::LayoutError::ZeroSection) for 0, [`NoSuchAxis`](gpumem_core::LayoutError::NoSuchAxis) for rank 0.
    pub fn split(
        &self,
        section: usize,
    ) -> Result<impl ExactSizeIterator<Item = DeviceView<'_, S::Elem, D, S::Backend>>> {
        let parts = self.layout.split(section).map_err(|error| self.fail("split", error))?;
        Ok(parts.map(|part| ArrayBase::over(self.memory.clone(), part)))
    }

    /// Views of what lies before and from `index` along `axis`.
    ///
    /// # Errors
    /// An axis or an index that does not exist.
    pub fn split_at(&self, axis: usize, index: usize) -> Result<Halves<'_, S::Elem, D, S::Backend>> {
        let (left, right) =
            self.layout.split_at(axis, index).map_err(|error| self.fail("split_at", error))?;
        Ok((ArrayBase::over(self.memory.clone(), left), ArrayBase::over(self.memory.clone(), right)))
    }
}

impl<S: StorageMut, D: Dimension> ArrayBase<S, D> {
    /// Mutable views of parts of `section` steps along the first axis. They are disjoint: each may be used on a stream
    /// of its own, and none waits for another.
    ///
    /// # Errors
    /// As [`split`](Self::split).
    pub fn split_mut(
        &mut self,
        section: usize,
    ) -> Result<impl ExactSizeIterator<Item = DeviceViewMut<'_, S::Elem, D, S::Backend>>> {
        let parts = self.layout.split(section).map_err(|error| self.fail("split_mut", error))?;
        Ok(parts.map(|part| ArrayBase::over(self.memory.clone(), part)))
    }

    /// Mutable views of what lies before and from `index` along `axis`.
    ///
    /// # Errors
    /// As [`split_at`](Self::split_at).
    pub fn split_at_mut(
        &mut self,
        axis: usize,
        index: usize,
    ) -> Result<HalvesMut<'_, S::Elem, D, S::Backend>> {
        let (left, right) =
            self.layout.split_at(axis, index).map_err(|error| self.fail("split_at_mut", error))?;
        Ok((ArrayBase::over(self.memory.clone(), left), ArrayBase::over(self.memory.clone(), right)))
    }
}
