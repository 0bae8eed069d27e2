//! Views: slices, axes, broadcasting. Each costs O(number of axes) and no driver call.

use super::{ArrayBase, DeviceView, DeviceViewMut, Storage, StorageMut};
use gpumem_core::{Element, LayoutError, Result};
use ndarray::{Dimension, IntoDimension, IxDyn, RemoveAxis, SliceArg};

impl<S: Storage, D: Dimension> ArrayBase<S, D> {
    /// Returns a shared view of the whole array.
    /// ```
    /// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let array = device.to_device(&[1, 2, 3])?;
    /// let view = array.view(); // a borrow; nothing is copied
    /// assert_eq!(view.copy_to_host()?.to_vec(), [1, 2, 3]);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    pub fn view(&self) -> DeviceView<'_, S::Elem, D, S::Backend> {
        ArrayBase::over(self.memory.clone(), self.layout.clone())
    }

    /// Returns a shared view of a part, in ndarray's notation: `array.slice(s![1..5, ..;-1, NewAxis, 0])`.
    /// ```
    /// # use ndarray::{array, s}; let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let array = device.to_device(&array![[1, 2, 3], [4, 5, 6]])?;
    /// assert_eq!(array.slice(s![1, ..])?.copy_to_host()?, array![4, 5, 6]);
    /// assert_eq!(array.slice(s![.., ..;-2])?.copy_to_host()?, array![[3, 1], [6, 4]]);
    /// assert!(array.slice(s![.., ..4]).is_err());
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`RankMismatch`](gpumem_core::LayoutError::RankMismatch) unless there is one index or range for each
    /// axis. Returns [`IndexOutOfBounds`](gpumem_core::LayoutError::IndexOutOfBounds) if an index or a range leaves
    /// its axis, because nothing is clipped, and [`ZeroStep`](gpumem_core::LayoutError::ZeroStep) for a step of 0.
    pub fn slice<I: SliceArg<D>>(&self, info: I) -> Result<DeviceView<'_, S::Elem, I::OutDim, S::Backend>> {
        let layout = self.layout.slice(info.as_ref()).map_err(|error| self.fail("slice", error))?;
        Ok(ArrayBase::over(self.memory.clone(), layout))
    }

    /// Returns a shared view of the elements at `index` of `axis`.
    /// ```
    /// # use ndarray::array; let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let array = device.to_device(&array![[1, 2], [3, 4]])?;
    /// assert_eq!(array.index_axis(1, 0)?.copy_to_host()?, array![1, 3]);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`NoSuchAxis`](gpumem_core::LayoutError::NoSuchAxis) if there is no such axis, and
    /// [`IndexOutOfBounds`](gpumem_core::LayoutError::IndexOutOfBounds) if there is no such index.
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

    /// Returns a shared view with the axes in reversed order. Numba's `T`, for any rank and without a copy.
    /// ```
    /// # use ndarray::array; let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let array = device.to_device(&array![[1, 2, 3], [4, 5, 6]])?;
    /// assert_eq!(array.t().copy_to_host()?, array![[1, 4], [2, 5], [3, 6]]);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    pub fn t(&self) -> DeviceView<'_, S::Elem, D, S::Backend> {
        self.view().reversed_axes()
    }

    /// Returns a shared view that repeats the elements to fill a larger shape.
    /// ```
    /// # use ndarray::array; let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let row = device.to_device(&[1, 2, 3])?;
    /// assert_eq!(row.broadcast((2, 3))?.copy_to_host()?, array![[1, 2, 3], [1, 2, 3]]);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`CannotBroadcast`](gpumem_core::LayoutError::CannotBroadcast) if the shapes do not fit by NumPy's
    /// rules.
    pub fn broadcast<E: IntoDimension>(
        &self,
        shape: E,
    ) -> Result<DeviceView<'_, S::Elem, E::Dim, S::Backend>> {
        let shape = shape.into_dimension();
        let layout = self.layout.broadcast(shape.slice()).map_err(|error| self.fail("broadcast", error))?;
        Ok(ArrayBase::over(self.memory.clone(), layout))
    }

    /// Returns a shared view without the axes of length 1.
    pub fn squeeze(&self) -> DeviceView<'_, S::Elem, IxDyn, S::Backend> {
        ArrayBase::over(self.memory.clone(), self.layout.squeeze())
    }

    /// Returns a shared view of the same bytes as elements of another type. Of equal size: any layout. Otherwise the
    /// last axis is contiguous and its bytes divide evenly.
    /// ```
    /// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let array = device.to_device(&[1.0f32, -2.0])?;
    /// let bits = array.reinterpret::<u32>()?;
    /// assert_eq!(bits.get(0)?, 1.0f32.to_bits());
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`CannotReinterpret`](gpumem_core::LayoutError::CannotReinterpret) or
    /// [`CannotCut`](gpumem_core::LayoutError::CannotCut) if the bytes do not divide evenly. Returns
    /// [`NeedsCopy`](gpumem_core::LayoutError::NeedsCopy) if the last axis is not contiguous, and
    /// [`Misaligned`](gpumem_core::LayoutError::Misaligned) if elements would not be aligned.
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

    // ---- methods that take the array or view by value -------------------------------------------------------------

    /// Reverses the order of the axes.
    pub fn reversed_axes(self) -> Self {
        let layout = self.layout.reversed_axes();
        self.laid_out(layout)
    }

    /// Puts the axes in the given order, for any rank: axis `i` becomes what axis `axes[i]` was, as NumPy's `transpose` does.
    ///
    /// # Errors
    /// Returns [`NotAPermutation`](gpumem_core::LayoutError::NotAPermutation) unless `axes` names every axis once.
    pub fn permuted_axes(self, axes: &[usize]) -> Result<Self> {
        let layout = self.layout.transpose(axes).map_err(|error| self.fail("permuted_axes", error))?;
        Ok(self.laid_out(layout))
    }

    /// Reverses the direction of one axis.
    ///
    /// # Errors
    /// Returns [`NoSuchAxis`](gpumem_core::LayoutError::NoSuchAxis) if there is no such axis.
    pub fn inverted_axis(self, axis: usize) -> Result<Self> {
        let layout = self.layout.invert_axis(axis).map_err(|error| self.fail("inverted_axis", error))?;
        Ok(self.laid_out(layout))
    }

    /// Inserts an axis of length 1.
    ///
    /// # Errors
    /// Returns [`NoSuchAxis`](gpumem_core::LayoutError::NoSuchAxis) if `axis` exceeds the rank.
    pub fn insert_axis(self, axis: usize) -> Result<ArrayBase<S, D::Larger>> {
        let layout = self.layout.insert_axis(axis).map_err(|error| self.fail("insert_axis", error))?;
        Ok(self.laid_out(layout))
    }

    /// Removes an axis of length 1; negative axes count from the end.
    ///
    /// # Errors
    /// Returns [`NoSuchAxis`](gpumem_core::LayoutError::NoSuchAxis) if there is no such axis, and
    /// [`CannotSqueeze`](gpumem_core::LayoutError::CannotSqueeze) if it is longer.
    pub fn squeeze_axis(self, axis: isize) -> Result<ArrayBase<S, D::Smaller>>
    where
        D: RemoveAxis,
    {
        let layout = self.layout.squeeze_axis(axis).map_err(|error| self.fail("squeeze_axis", error))?;
        Ok(self.laid_out(layout))
    }

    /// Makes the rank a value instead of a type.
    pub fn into_dyn(self) -> ArrayBase<S, IxDyn> {
        self.into_dimension()
    }

    /// Makes the rank a type instead of a value.
    ///
    /// # Errors
    /// Returns [`RankMismatch`](gpumem_core::LayoutError::RankMismatch) if the array has another rank.
    pub fn into_dimensionality<E: Dimension>(self) -> Result<ArrayBase<S, E>> {
        match E::NDIM {
            Some(expected) if expected != self.ndim() => {
                let error = LayoutError::RankMismatch { found: self.ndim(), expected };
                Err(self.fail("into_dimensionality", error))
            }
            _ => Ok(self.into_dimension()),
        }
    }
}

impl<S: StorageMut, D: Dimension> ArrayBase<S, D> {
    /// Returns a mutable view of the whole array.
    pub fn view_mut(&mut self) -> DeviceViewMut<'_, S::Elem, D, S::Backend> {
        ArrayBase::over(self.memory.clone(), self.layout.clone())
    }

    /// Returns a mutable view of a part; see [`slice`](Self::slice).
    /// ```
    /// # use ndarray::{array, s}; let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let mut array = device.device_array::<i32, _>((2, 3))?;
    /// array.slice_mut(s![.., 1])?.copy_to_device(&[7, 8])?;
    /// assert_eq!(array.copy_to_host()?, array![[0, 7, 0], [0, 8, 0]]);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`slice`](Self::slice).
    pub fn slice_mut<I: SliceArg<D>>(
        &mut self,
        info: I,
    ) -> Result<DeviceViewMut<'_, S::Elem, I::OutDim, S::Backend>> {
        let layout = self.layout.slice(info.as_ref()).map_err(|error| self.fail("slice_mut", error))?;
        Ok(ArrayBase::over(self.memory.clone(), layout))
    }

    /// Returns a mutable view of the elements at `index` of `axis`.
    ///
    /// # Errors
    /// As for [`index_axis`](Self::index_axis).
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
