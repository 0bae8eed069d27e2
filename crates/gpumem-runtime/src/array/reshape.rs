//! Other shapes for the same elements.

use super::{ArrayBase, DeviceArray, DeviceView, DeviceViewMut, Storage, StorageMut, UninitArray};
use crate::{ArraySpec, Layout, Order, transfer};
use gpumem_core::Result;
use ndarray::{Dimension, IntoDimension, Ix1, IxDyn};

impl<S: Storage, D: Dimension> ArrayBase<S, D> {
    /// A view of another shape with the same elements in row-major order, where NumPy gives a view without a copy.
    ///
    /// # Errors
    /// [`CannotReshape`](gpumem_core::LayoutError::CannotReshape) for another number of elements,
    /// [`NeedsCopy`](gpumem_core::LayoutError::NeedsCopy) where no strides give that view: then
    /// [`reshape_copy`](Self::reshape_copy) does.
    pub fn reshape<E: IntoDimension>(&self, shape: E) -> Result<DeviceView<'_, S::Elem, E::Dim, S::Backend>> {
        self.reshape_with_order(shape, Order::C)
    }

    /// As [`reshape`](Self::reshape), with the elements taken in the given order.
    ///
    /// # Errors
    /// As [`reshape`](Self::reshape).
    pub fn reshape_with_order<E: IntoDimension>(
        &self,
        shape: E,
        order: Order,
    ) -> Result<DeviceView<'_, S::Elem, E::Dim, S::Backend>> {
        let layout = self.reshaped("reshape", &signed(shape.into_dimension().slice()), order)?;
        Ok(ArrayBase::over(self.memory.clone(), layout))
    }

    /// As [`reshape_with_order`](Self::reshape_with_order), with one length of -1 that is inferred.
    ///
    /// # Errors
    /// As [`reshape`](Self::reshape); also where nothing can be inferred.
    pub fn reshape_infer(
        &self,
        shape: &[isize],
        order: Order,
    ) -> Result<DeviceView<'_, S::Elem, IxDyn, S::Backend>> {
        let layout = self.reshaped("reshape", shape, order)?;
        Ok(ArrayBase::over(self.memory.clone(), layout))
    }

    /// A new array of another shape with the same elements in the given order, whatever the layout.
    ///
    /// # Errors
    /// [`CannotReshape`](gpumem_core::LayoutError::CannotReshape); out of memory; of the driver.
    pub fn reshape_copy<E: IntoDimension>(
        &self,
        shape: E,
        order: Order,
    ) -> Result<DeviceArray<S::Elem, E::Dim, S::Backend>> {
        let operation = "reshape_copy";
        let shape = signed(shape.into_dimension().slice());
        let spec = ArraySpec::new(self.raw_dim()).order(order);
        let copy = UninitArray::<S::Elem, D, S::Backend>::allocate(self.device()?, operation, spec)?;
        // SAFETY: every element is written by the copy below, which is ordered before every later use.
        let copy = unsafe { copy.assume_init() };
        let timeline = self.device()?.default_timeline()?;
        crate::completion::may_block(operation)?;
        let submission = transfer::copy::<S::Elem, _>(&timeline, operation, self.place(), copy.place())?;
        timeline.wait_host(submission).result.map_err(|error| error.in_operation(operation))?;
        let layout = copy.reshaped(operation, &shape, order)?;
        Ok(ArrayBase::over(copy.memory, layout))
    }

    /// A one-dimensional view in the given order, where NumPy gives one without a copy.
    ///
    /// # Errors
    /// [`NeedsCopy`](gpumem_core::LayoutError::NeedsCopy): then [`flatten`](Self::flatten) does.
    pub fn ravel(&self, order: Order) -> Result<DeviceView<'_, S::Elem, Ix1, S::Backend>> {
        let layout = self.layout.ravel(order).map_err(|error| self.fail("ravel", error))?;
        Ok(ArrayBase::over(self.memory.clone(), layout))
    }

    /// A new one-dimensional array with the elements in the given order.
    ///
    /// # Errors
    /// Out of memory; of the driver.
    pub fn flatten(&self, order: Order) -> Result<DeviceArray<S::Elem, Ix1, S::Backend>> {
        self.reshape_copy(self.len(), order)
    }

    fn reshaped(&self, operation: &'static str, shape: &[isize], order: Order) -> Result<Layout> {
        self.layout.reshape(shape, order).map_err(|error| self.fail(operation, error))
    }
}

impl<S: StorageMut, D: Dimension> ArrayBase<S, D> {
    /// As [`reshape_with_order`](Self::reshape_with_order), for writing.
    ///
    /// # Errors
    /// As [`reshape`](Self::reshape).
    pub fn reshape_mut<E: IntoDimension>(
        &mut self,
        shape: E,
        order: Order,
    ) -> Result<DeviceViewMut<'_, S::Elem, E::Dim, S::Backend>> {
        let layout = self.reshaped("reshape_mut", &signed(shape.into_dimension().slice()), order)?;
        Ok(ArrayBase::over(self.memory.clone(), layout))
    }
}

/// Lengths above `isize::MAX` become numbers that no array has.
fn signed(shape: &[usize]) -> Vec<isize> {
    shape.iter().map(|len| isize::try_from(*len).unwrap_or(isize::MAX)).collect()
}

impl<S: Storage, D: Dimension> ArrayBase<S, D> {
    /// A new array with the elements in the given order, packed: NumPy's `ascontiguousarray` and `asfortranarray`,
    /// always as a copy.
    ///
    /// # Errors
    /// Out of memory; of the driver.
    pub fn to_order(&self, order: Order) -> Result<DeviceArray<S::Elem, D, S::Backend>> {
        self.reshape_copy(self.raw_dim(), order).and_then(ArrayBase::into_dimensionality)
    }
}
