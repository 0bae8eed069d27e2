//! Other shapes for the same elements.

use super::{ArrayBase, DeviceArray, DeviceView, DeviceViewMut, Storage, StorageMut, UninitArray};
use crate::{ArraySpec, Layout, Order, transfer};
use gpumem_core::{Backend, Element, Result};
use ndarray::{Dimension, IntoDimension, Ix1, IxDyn};

impl<S: Storage, D: Dimension> ArrayBase<S, D> {
    /// Returns a view of another shape with the same elements in row-major order, where NumPy gives a view without a
    /// copy.
    /// ```
    /// # use ndarray::array; let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let array = device.to_device(&[1, 2, 3, 4, 5, 6])?;
    /// assert_eq!(array.reshape((2, 3))?.copy_to_host()?, array![[1, 2, 3], [4, 5, 6]]);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`CannotReshape`](gpumem_core::LayoutError::CannotReshape) if the number of elements differs. Returns
    /// [`NeedsCopy`](gpumem_core::LayoutError::NeedsCopy) if no strides give that view;
    /// [`reshape_copy`](Self::reshape_copy) works then.
    pub fn reshape<E: IntoDimension>(&self, shape: E) -> Result<DeviceView<'_, S::Elem, E::Dim, S::Backend>> {
        self.reshape_with_order(shape, Order::C)
    }

    /// As [`reshape`](Self::reshape), with the elements taken in the given order.
    ///
    /// # Errors
    /// As for [`reshape`](Self::reshape).
    pub fn reshape_with_order<E: IntoDimension>(
        &self,
        shape: E,
        order: Order,
    ) -> Result<DeviceView<'_, S::Elem, E::Dim, S::Backend>> {
        let layout = self.reshaped("reshape", &signed(shape.into_dimension().slice()), order)?;
        Ok(ArrayBase::over(self.memory.clone(), layout))
    }

    /// As [`reshape_with_order`](Self::reshape_with_order), with one length of -1 that is inferred.
    /// ```
    /// # use gpumem_runtime::Order; let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let array = device.device_array::<u8, _>((4, 6))?;
    /// assert_eq!(array.reshape_infer(&[-1, 8], Order::C)?.shape(), [3, 8]);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`CannotReshape`](gpumem_core::LayoutError::CannotReshape) if no length can be inferred. Otherwise as
    /// [`reshape`](Self::reshape).
    pub fn reshape_infer(
        &self,
        shape: &[isize],
        order: Order,
    ) -> Result<DeviceView<'_, S::Elem, IxDyn, S::Backend>> {
        let layout = self.reshaped("reshape", shape, order)?;
        Ok(ArrayBase::over(self.memory.clone(), layout))
    }

    /// Copies the elements in the given order into a new array of another shape, for any layout.
    /// ```
    /// # use {gpumem_runtime::Order, ndarray::array};
    /// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let array = device.to_device(&array![[1, 2, 3], [4, 5, 6]])?;
    /// let turned = array.t().reshape_copy(6, Order::C)?;
    /// assert_eq!(turned.copy_to_host()?.to_vec(), [1, 4, 2, 5, 3, 6]);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`CannotReshape`](gpumem_core::LayoutError::CannotReshape) if the number of elements differs. Returns
    /// [`OutOfMemory`](gpumem_core::ErrorKind::OutOfMemory) if the device has no room. Otherwise as
    /// [`copy_to_device`](Self::copy_to_device).
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
        gpumem_memory::may_block(operation)?;
        self.place().wait_before(operation, false)?;
        let submission = transfer::copy::<S::Elem, _>(&timeline, operation, self.place(), copy.place())?;
        timeline.wait_host(submission).result.map_err(|error| error.in_operation(operation))?;
        let layout = copy.reshaped(operation, &shape, order)?;
        Ok(ArrayBase::over(copy.memory, layout))
    }

    /// Returns a one-dimensional view in the given order, where NumPy gives one without a copy.
    ///
    /// # Errors
    /// Returns [`NeedsCopy`](gpumem_core::LayoutError::NeedsCopy) if no strides give that view;
    /// [`flatten`](Self::flatten) works then.
    pub fn ravel(&self, order: Order) -> Result<DeviceView<'_, S::Elem, Ix1, S::Backend>> {
        let layout = self.layout.ravel(order).map_err(|error| self.fail("ravel", error))?;
        Ok(ArrayBase::over(self.memory.clone(), layout))
    }

    /// Copies the elements in the given order into a new one-dimensional array.
    /// ```
    /// # use {gpumem_runtime::Order, ndarray::array};
    /// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let array = device.to_device(&array![[1, 2], [3, 4]])?;
    /// assert_eq!(array.flatten(Order::F)?.copy_to_host()?.to_vec(), [1, 3, 2, 4]);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`reshape_copy`](Self::reshape_copy).
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
    /// As for [`reshape`](Self::reshape).
    pub fn reshape_mut<E: IntoDimension>(
        &mut self,
        shape: E,
        order: Order,
    ) -> Result<DeviceViewMut<'_, S::Elem, E::Dim, S::Backend>> {
        let layout = self.reshaped("reshape_mut", &signed(shape.into_dimension().slice()), order)?;
        Ok(ArrayBase::over(self.memory.clone(), layout))
    }
}

impl<T: Element, D: Dimension, B: Backend> DeviceArray<T, D, B> {
    /// Returns the array with its bytes as elements of another type, in row-major order, and of that shape.
    /// ```
    /// # use ndarray::array; let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let bytes = device.to_device(&[0u8, 0, 128, 63, 0, 0, 0, 64])?;
    /// let array = bytes.into_elements::<f32, _>((1, 2))?;
    /// assert_eq!(array.copy_to_host()?, array![[1.0, 2.0]]); // on a little-endian machine
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`reinterpret`](Self::reinterpret) and [`reshape`](Self::reshape); the array is dropped then.
    pub fn into_elements<U: Element, E: IntoDimension>(self, shape: E) -> Result<DeviceArray<U, E::Dim, B>> {
        let elements = self.reinterpret::<U>()?;
        let layout = elements.reshape(shape)?.layout().clone();
        Ok(ArrayBase::over(self.memory, layout))
    }
}

/// Lengths above `isize::MAX` become numbers that no array has.
fn signed(shape: &[usize]) -> Vec<isize> {
    shape.iter().map(|len| isize::try_from(*len).unwrap_or(isize::MAX)).collect()
}

impl<S: Storage, D: Dimension> ArrayBase<S, D> {
    /// Copies the elements in the given order into a new packed array: NumPy's `ascontiguousarray` and
    /// `asfortranarray`, always as a copy.
    /// ```
    /// # use gpumem_runtime::Order; let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let array = device.device_array::<f32, _>((3, 4))?;
    /// assert!(array.to_order(Order::F)?.is_f_contiguous());
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`reshape_copy`](Self::reshape_copy).
    pub fn to_order(&self, order: Order) -> Result<DeviceArray<S::Elem, D, S::Backend>> {
        self.reshape_copy(self.raw_dim(), order).and_then(ArrayBase::into_dimensionality)
    }
}
