//! Parts of an array.

use super::{ArrayBase, DeviceView, DeviceViewMut, Storage, StorageMut};
use gpumem_core::Result;
use ndarray::Dimension;

/// A shared and a mutable half.
type Halves<'a, T, D, B> = (DeviceView<'a, T, D, B>, DeviceView<'a, T, D, B>);
type HalvesMut<'a, T, D, B> = (DeviceViewMut<'a, T, D, B>, DeviceViewMut<'a, T, D, B>);

impl<S: Storage, D: Dimension> ArrayBase<S, D> {
    /// Returns views of `section` steps each along the first axis; the last may be shorter. Numba's `split`.
    /// ```
    /// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let array = device.to_device(&[1, 2, 3, 4, 5])?;
    /// let sums = array.split(2)?.map(|part| Ok(part.copy_to_host()?.sum()));
    /// assert_eq!(sums.collect::<gpumem_core::Result<Vec<_>>>()?, [3, 7, 5]);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`ZeroSection`](gpumem_core::LayoutError::ZeroSection) if `section` is 0, and
    /// [`NoSuchAxis`](gpumem_core::LayoutError::NoSuchAxis) if the array has no axis.
    pub fn split(
        &self,
        section: usize,
    ) -> Result<impl ExactSizeIterator<Item = DeviceView<'_, S::Elem, D, S::Backend>>> {
        let parts = self.layout.split(section).map_err(|error| self.fail("split", error))?;
        Ok(parts.map(|part| ArrayBase::over(self.memory.clone(), part)))
    }

    /// Returns views of the parts before and from `index` along `axis`.
    ///
    /// # Errors
    /// Returns [`NoSuchAxis`](gpumem_core::LayoutError::NoSuchAxis) if there is no such axis, and
    /// [`IndexOutOfBounds`](gpumem_core::LayoutError::IndexOutOfBounds) if `index` exceeds its length.
    pub fn split_at(&self, axis: usize, index: usize) -> Result<Halves<'_, S::Elem, D, S::Backend>> {
        let (left, right) =
            self.layout.split_at(axis, index).map_err(|error| self.fail("split_at", error))?;
        Ok((ArrayBase::over(self.memory.clone(), left), ArrayBase::over(self.memory.clone(), right)))
    }
}

impl<S: StorageMut, D: Dimension> ArrayBase<S, D> {
    /// Returns mutable views of `section` steps each along the first axis. They are disjoint: each may be used on a
    /// different stream, and none waits for another.
    ///
    /// # Errors
    /// As for [`split`](Self::split).
    pub fn split_mut(
        &mut self,
        section: usize,
    ) -> Result<impl ExactSizeIterator<Item = DeviceViewMut<'_, S::Elem, D, S::Backend>>> {
        let parts = self.layout.split(section).map_err(|error| self.fail("split_mut", error))?;
        Ok(parts.map(|part| ArrayBase::over(self.memory.clone(), part)))
    }

    /// Returns mutable views of the parts before and from `index` along `axis`.
    /// ```
    /// # use ndarray::array; let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let mut array = device.device_array::<i32, _>((2, 4))?;
    /// let (mut left, mut right) = array.split_at_mut(1, 1)?;
    /// left.fill(1)?;
    /// right.fill(2)?;
    /// assert_eq!(array.copy_to_host()?, array![[1, 2, 2, 2], [1, 2, 2, 2]]);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`split_at`](Self::split_at).
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
