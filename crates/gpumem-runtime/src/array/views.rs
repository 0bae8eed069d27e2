//! Views: slices, axes, broadcasting. Each costs O(number of axes) and no driver call.

use super::{ArrayBase, DeviceView, DeviceViewMut, Storage, StorageMut};
use gpumem_core::{Element, LayoutError, Result};
use ndarray::{Dimension, IntoDimension, IxDyn, RemoveAxis, SliceArg};

impl<S: Storage, D: Dimension> ArrayBase<S, D> {
    /// A shared view of the whole array.
    pub fn view(&self) -> DeviceView<'_, S::Elem, D, S::Backend> {
        ArrayBase::over(self.memory.clone(), self.layout.clone())
    }

    /// A shared view of a part, in ndarray's notation: `array.slice(s![1..5, ..;-1, NewAxis, 0])`.
    ///
    /// # Errors
    /// What is out of range, or too many or too few indices: nothing is clipped.
    pub fn slice<I: SliceArg<D>>(&self, info: I) -> Result<DeviceView<'_, S::Elem, I::OutDim, S::Backend>> {
        let layout = self.layout.slice(info.as_ref()).map_err(|error| self.fail("slice", error))?;
        Ok(ArrayBase::over(self.memory.clone(), layout))
    }

    /// A shared view of what lies at `index` of `axis`.
    ///
    /// # Errors
    /// An axis or an index that does not exist.
    pub fn index_axis(
        &self,
        axis: usize,
        index: usize,
    ) -> Result<DeviceView<'_, S::Elem, D::Smaller, S::Backend>>
    where
        D: RemoveAxis,
    {
        let layout = self.layout.index_axis(axis, index).map_err(|error| self.fail("index_axis", error))?;
        Ok(ArrayBase::over(self.memory.clone(), layout))
    }

    /// A shared view with the axes in reversed order. Numba's `T`, for any rank and without a copy.
    pub fn t(&self) -> DeviceView<'_, S::Elem, D, S::Backend> {
        self.view().reversed_axes()
    }

    /// A shared view that repeats the elements to fill a larger shape.
    ///
    /// # Errors
    /// [`CannotBroadcast`](LayoutError::CannotBroadcast).
    pub fn broadcast<E: IntoDimension>(
        &self,
        shape: E,
    ) -> Result<DeviceView<'_, S::Elem, E::Dim, S::Backend>> {
        let shape = shape.into_dimension();
        let layout = self.layout.broadcast(shape.slice()).map_err(|error| self.fail("broadcast", error))?;
        Ok(ArrayBase::over(self.memory.clone(), layout))
    }

    /// A shared view without the axes of length 1.
    pub fn squeeze(&self) -> DeviceView<'_, S::Elem, IxDyn, S::Backend> {
        ArrayBase::over(self.memory.clone(), self.layout.squeeze())
    }

    /// A shared view of the same bytes as elements of another type. Of equal size: any layout; otherwise the last axis
    /// is contiguous and its bytes divide evenly.
    ///
    /// # Errors
    /// [`CannotReinterpret`](LayoutError::CannotReinterpret), [`CannotCut`](LayoutError::CannotCut), [`NeedsCopy`](LayoutError::NeedsCopy), misalignment.
    pub fn reinterpret<U: Element>(&self) -> Result<DeviceView<'_, U, D, S::Backend>> {
        let layout = self.layout.reinterpret(size_of::<U>()).and_then(|layout| {
            layout.check_alignment(align_of::<U>())?;
            Ok(layout)
        });
        let layout = layout.map_err(|error| self.fail("reinterpret", error))?;
        let align = align_of::<U>();
        if !self.memory.address().is_multiple_of(align as u64) {
            let bytes = self.memory.address() as isize;
            return Err(self.fail("reinterpret", LayoutError::Misaligned { bytes, align }));
        }
        Ok(ArrayBase::over(self.memory.clone(), layout))
    }

    // ---- what takes the array or view itself ----------------------------------------------------------------------

    /// The array with its axes in reversed order.
    pub fn reversed_axes(self) -> Self {
        Self::over(self.memory, self.layout.reversed_axes())
    }

    /// The array with its axes in the given order, for any rank: NumPy's `transpose`.
    ///
    /// # Errors
    /// [`NotAPermutation`](LayoutError::NotAPermutation).
    pub fn permuted_axes(self, axes: &[usize]) -> Result<Self> {
        let layout = self.layout.transpose(axes).map_err(|error| self.fail("permuted_axes", error))?;
        Ok(Self::over(self.memory, layout))
    }

    /// The array with one axis walked backwards.
    ///
    /// # Errors
    /// An axis that does not exist.
    pub fn inverted_axis(self, axis: usize) -> Result<Self> {
        let layout = self.layout.invert_axis(axis).map_err(|error| self.fail("inverted_axis", error))?;
        Ok(Self::over(self.memory, layout))
    }

    /// The array with a new axis of length 1.
    ///
    /// # Errors
    /// An axis beyond the rank.
    pub fn insert_axis(self, axis: usize) -> Result<ArrayBase<S, D::Larger>> {
        let layout = self.layout.insert_axis(axis).map_err(|error| self.fail("insert_axis", error))?;
        Ok(ArrayBase::over(self.memory, layout))
    }

    /// The array without an axis of length 1; negative axes count from the end.
    ///
    /// # Errors
    /// An axis that does not exist, [`CannotSqueeze`](LayoutError::CannotSqueeze) for a longer one.
    pub fn squeeze_axis(self, axis: isize) -> Result<ArrayBase<S, D::Smaller>>
    where
        D: RemoveAxis,
    {
        let layout = self.layout.squeeze_axis(axis).map_err(|error| self.fail("squeeze_axis", error))?;
        Ok(ArrayBase::over(self.memory, layout))
    }

    /// The array with its rank as a value.
    pub fn into_dyn(self) -> ArrayBase<S, IxDyn> {
        ArrayBase::over(self.memory, self.layout)
    }

    /// The array with its rank as a type.
    ///
    /// # Errors
    /// [`RankMismatch`](LayoutError::RankMismatch).
    pub fn into_dimensionality<E: Dimension>(self) -> Result<ArrayBase<S, E>> {
        match E::NDIM {
            Some(expected) if expected != self.ndim() => {
                let error = LayoutError::RankMismatch { found: self.ndim(), expected };
                Err(self.fail("into_dimensionality", error))
            }
            _ => Ok(ArrayBase::over(self.memory, self.layout)),
        }
    }
}

impl<S: StorageMut, D: Dimension> ArrayBase<S, D> {
    /// A mutable view of the whole array.
    pub fn view_mut(&mut self) -> DeviceViewMut<'_, S::Elem, D, S::Backend> {
        ArrayBase::over(self.memory.clone(), self.layout.clone())
    }

    /// A mutable view of a part; see [`slice`](Self::slice).
    ///
    /// # Errors
    /// As [`slice`](Self::slice).
    pub fn slice_mut<I: SliceArg<D>>(
        &mut self,
        info: I,
    ) -> Result<DeviceViewMut<'_, S::Elem, I::OutDim, S::Backend>> {
        let layout = self.layout.slice(info.as_ref()).map_err(|error| self.fail("slice_mut", error))?;
        Ok(ArrayBase::over(self.memory.clone(), layout))
    }

    /// A mutable view of what lies at `index` of `axis`.
    ///
    /// # Errors
    /// An axis or an index that does not exist.
    pub fn index_axis_mut(
        &mut self,
        axis: usize,
        index: usize,
    ) -> Result<DeviceViewMut<'_, S::Elem, D::Smaller, S::Backend>>
    where
        D: RemoveAxis,
    {
        let layout =
            self.layout.index_axis(axis, index).map_err(|error| self.fail("index_axis_mut", error))?;
        Ok(ArrayBase::over(self.memory.clone(), layout))
    }
}

impl<'a, S: Storage, D: Dimension> From<&'a ArrayBase<S, D>> for DeviceView<'a, S::Elem, D, S::Backend> {
    fn from(array: &'a ArrayBase<S, D>) -> Self {
        array.view()
    }
}

impl<'a, S: StorageMut, D: Dimension> From<&'a mut ArrayBase<S, D>>
    for DeviceViewMut<'a, S::Elem, D, S::Backend>
{
    fn from(array: &'a mut ArrayBase<S, D>) -> Self {
        array.view_mut()
    }
}
