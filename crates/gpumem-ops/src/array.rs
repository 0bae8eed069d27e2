//! The operations as methods of arrays, which have finished on return.

use crate::{Bounded, CastTo, StreamOps, Summable, kernel::DeviceType};
use gpumem_core::{Element, Result};
use gpumem_kernel::{BinaryFunction, Numeric, UnaryFunction};
use gpumem_runtime::{ArrayBase, DeviceArray, Storage, Stream};
use ndarray::{Dimension, RemoveAxis};

mod sealed {
    pub trait SealedArray {}
    impl<S: gpumem_runtime::Storage, D: ndarray::Dimension> SealedArray for gpumem_runtime::ArrayBase<S, D> {}
}

/// The array, and the stream of calls that name none.
fn on_default<S: Storage, D: Dimension>(
    array: &ArrayBase<S, D>,
) -> Result<(&ArrayBase<S, D>, Stream<S::Backend>)> {
    Ok((array, array.device()?.default_stream()?))
}

/// Waits until the work on an array is done.
fn finished<T: Element, D: Dimension, B: gpumem_core::Backend>(
    array: DeviceArray<T, D, B>,
) -> Result<DeviceArray<T, D, B>> {
    array.synchronize()?;
    Ok(array)
}

/// Reductions, scans, casts and maps of arrays and views of any layout. They have finished on return; those of
/// [`StreamOps`](crate::StreamOps) return at once.
///
/// # Errors
/// Every operation returns [`OutOfMemory`](gpumem_core::ErrorKind::OutOfMemory) if the device has no room for results, and
/// the errors of [`load`](gpumem_kernel::KernelDef::load) and [`launch`](gpumem_kernel::Kernel::launch). Further
/// errors are listed at the operation that returns them.
pub trait ArrayOps<S: Storage, D: Dimension>: sealed::SealedArray {
    #[doc(hidden)]
    fn array(&self) -> &ArrayBase<S, D>;

    /// Returns the sum of all elements, 0 of none. Integers are added as 64 bits and wrap, `f16` and `bf16` as `f32`
    /// ([`Summable`]).
    /// ```
    /// # use gpumem_ops::ArrayOps; let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let x = device.to_device(&[200u8, 100])?;
    /// assert_eq!(x.sum()?, 300u64);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    fn sum(&self) -> Result<<S::Elem as Summable>::Sum>
    where
        S::Elem: Summable,
    {
        let (array, stream) = on_default(self.array())?;
        stream.sum(array)?.read()
    }

    /// Returns the sums along an axis, an array without that axis.
    /// ```
    /// # use gpumem_ops::ArrayOps; let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let x = device.to_device(&ndarray::array![[1.0f32, 2.0], [3.0, 4.0]])?;
    /// assert_eq!(x.sum_axis(0)?.copy_to_host()?, ndarray::array![4.0, 6.0]);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`NoSuchAxis`](gpumem_core::LayoutError::NoSuchAxis) if there is no such axis.
    fn sum_axis(&self, axis: usize) -> Result<DeviceArray<<S::Elem as Summable>::Sum, D::Smaller, S::Backend>>
    where
        S::Elem: Summable,
        D: RemoveAxis,
    {
        let (array, stream) = on_default(self.array())?;
        finished(stream.sum_axis(array, axis)?)
    }

    /// Returns the mean of all elements: the sum, divided by their number. That of integers is an `f64`; a sum beyond 64 bits wraps
    /// before.
    /// ```
    /// # use gpumem_ops::ArrayOps; let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let x = device.to_device(&[1i32, 2])?;
    /// assert_eq!(x.mean()?, 1.5);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`InvalidArgument`](gpumem_core::ErrorKind::InvalidArgument) if there are no elements.
    fn mean(&self) -> Result<<S::Elem as Summable>::Mean>
    where
        S::Elem: Summable,
    {
        let (array, stream) = on_default(self.array())?;
        stream.mean(array)?.read()
    }

    /// Returns the means along an axis, an array without that axis.
    ///
    /// # Errors
    /// Returns [`NoSuchAxis`](gpumem_core::LayoutError::NoSuchAxis) if there is no such axis, and
    /// [`InvalidArgument`](gpumem_core::ErrorKind::InvalidArgument) if the axis has no elements.
    fn mean_axis(
        &self,
        axis: usize,
    ) -> Result<DeviceArray<<S::Elem as Summable>::Mean, D::Smaller, S::Backend>>
    where
        S::Elem: Summable,
        D: RemoveAxis,
    {
        let (array, stream) = on_default(self.array())?;
        finished(stream.mean_axis(array, axis)?)
    }

    /// Returns the least element; NaN if one is NaN.
    /// ```
    /// # use gpumem_ops::ArrayOps; let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let x = device.to_device(&[3.0, -2.0, 7.0])?;
    /// assert_eq!(x.min()?, -2.0);
    /// let x = device.to_device(&[3.0, f32::NAN])?;
    /// assert!(x.min()?.is_nan());
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`InvalidArgument`](gpumem_core::ErrorKind::InvalidArgument) if there are no elements.
    fn min(&self) -> Result<S::Elem>
    where
        S::Elem: Bounded + CastTo<S::Elem>,
    {
        let (array, stream) = on_default(self.array())?;
        stream.min(array)?.read()
    }

    /// Returns the least elements along an axis, an array without that axis; NaN where one is NaN.
    ///
    /// # Errors
    /// Returns [`NoSuchAxis`](gpumem_core::LayoutError::NoSuchAxis) if there is no such axis, and
    /// [`InvalidArgument`](gpumem_core::ErrorKind::InvalidArgument) if the axis has no elements.
    fn min_axis(&self, axis: usize) -> Result<DeviceArray<S::Elem, D::Smaller, S::Backend>>
    where
        S::Elem: Bounded + CastTo<S::Elem>,
        D: RemoveAxis,
    {
        let (array, stream) = on_default(self.array())?;
        finished(stream.min_axis(array, axis)?)
    }

    /// Returns the greatest element; NaN if one is NaN.
    ///
    /// # Errors
    /// Returns [`InvalidArgument`](gpumem_core::ErrorKind::InvalidArgument) if there are no elements.
    fn max(&self) -> Result<S::Elem>
    where
        S::Elem: Bounded + CastTo<S::Elem>,
    {
        let (array, stream) = on_default(self.array())?;
        stream.max(array)?.read()
    }

    /// Returns the greatest elements along an axis, an array without that axis; NaN where one is NaN.
    ///
    /// # Errors
    /// Returns [`NoSuchAxis`](gpumem_core::LayoutError::NoSuchAxis) if there is no such axis, and
    /// [`InvalidArgument`](gpumem_core::ErrorKind::InvalidArgument) if the axis has no elements.
    fn max_axis(&self, axis: usize) -> Result<DeviceArray<S::Elem, D::Smaller, S::Backend>>
    where
        S::Elem: Bounded + CastTo<S::Elem>,
        D: RemoveAxis,
    {
        let (array, stream) = on_default(self.array())?;
        finished(stream.max_axis(array, axis)?)
    }

    /// Returns the place of the least element in row-major order, the first of equal ones, and that of the first NaN if there is
    /// one.
    /// ```
    /// # use gpumem_ops::ArrayOps; let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let x = device.to_device(&ndarray::array![[3, -2], [-2, 3]])?;
    /// assert_eq!(x.argmin()?, 1);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`InvalidArgument`](gpumem_core::ErrorKind::InvalidArgument) if there are no elements.
    fn argmin(&self) -> Result<usize>
    where
        S::Elem: Numeric,
    {
        let (array, stream) = on_default(self.array())?;
        Ok(stream.argmin(array)?.read()? as usize)
    }

    /// Returns the places of the least elements along an axis, an array without that axis.
    ///
    /// # Errors
    /// Returns [`NoSuchAxis`](gpumem_core::LayoutError::NoSuchAxis) if there is no such axis, and
    /// [`InvalidArgument`](gpumem_core::ErrorKind::InvalidArgument) if the axis has no elements.
    fn argmin_axis(&self, axis: usize) -> Result<DeviceArray<u64, D::Smaller, S::Backend>>
    where
        S::Elem: Numeric,
        D: RemoveAxis,
    {
        let (array, stream) = on_default(self.array())?;
        finished(stream.argmin_axis(array, axis)?)
    }

    /// Returns the place of the greatest element in row-major order, the first of equal ones, and that of the first NaN if there is
    /// one.
    ///
    /// # Errors
    /// Returns [`InvalidArgument`](gpumem_core::ErrorKind::InvalidArgument) if there are no elements.
    fn argmax(&self) -> Result<usize>
    where
        S::Elem: Numeric,
    {
        let (array, stream) = on_default(self.array())?;
        Ok(stream.argmax(array)?.read()? as usize)
    }

    /// Returns the places of the greatest elements along an axis, an array without that axis.
    ///
    /// # Errors
    /// Returns [`NoSuchAxis`](gpumem_core::LayoutError::NoSuchAxis) if there is no such axis, and
    /// [`InvalidArgument`](gpumem_core::ErrorKind::InvalidArgument) if the axis has no elements.
    fn argmax_axis(&self, axis: usize) -> Result<DeviceArray<u64, D::Smaller, S::Backend>>
    where
        S::Elem: Numeric,
        D: RemoveAxis,
    {
        let (array, stream) = on_default(self.array())?;
        finished(stream.argmax_axis(array, axis)?)
    }

    /// Returns the prefix sums along an axis, each with its own element; NumPy's `cumsum`.
    /// Elements are added as in [`sum`](Self::sum).
    /// ```
    /// # use gpumem_ops::ArrayOps; let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let x = device.to_device(&[1i32, 2, 3])?;
    /// assert_eq!(x.inclusive_scan(0)?.copy_to_host()?, ndarray::array![1, 3, 6]);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`NoSuchAxis`](gpumem_core::LayoutError::NoSuchAxis) if there is no such axis.
    fn inclusive_scan(&self, axis: usize) -> Result<DeviceArray<<S::Elem as Summable>::Sum, D, S::Backend>>
    where
        S::Elem: Summable,
    {
        let (array, stream) = on_default(self.array())?;
        finished(stream.inclusive_scan(array, axis)?)
    }

    /// Returns the prefix sums along an axis, each without its own element.
    /// Elements are added as in [`sum`](Self::sum).
    /// ```
    /// # use gpumem_ops::ArrayOps; let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let x = device.to_device(&[1i32, 2, 3])?;
    /// assert_eq!(x.exclusive_scan(0)?.copy_to_host()?, ndarray::array![0, 1, 3]);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`NoSuchAxis`](gpumem_core::LayoutError::NoSuchAxis) if there is no such axis.
    fn exclusive_scan(&self, axis: usize) -> Result<DeviceArray<<S::Elem as Summable>::Sum, D, S::Backend>>
    where
        S::Elem: Summable,
    {
        let (array, stream) = on_default(self.array())?;
        finished(stream.exclusive_scan(array, axis)?)
    }

    /// Returns the elements as another type, as Rust's `as` converts them ([`CastTo`]).
    /// ```
    /// # use gpumem_ops::ArrayOps; let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let x = device.to_device(&[-1.5f32, 300.0, f32::NAN])?;
    /// assert_eq!(x.cast::<u8>()?.copy_to_host()?, ndarray::array![0, 255, 0]);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    fn cast<U: Numeric>(&self) -> Result<DeviceArray<U, D, S::Backend>>
    where
        S::Elem: CastTo<U>,
    {
        let (array, stream) = on_default(self.array())?;
        finished(stream.cast::<U, S, D>(array)?)
    }

    /// Returns a function of each element. The function has `#[gpumem::device]`, and is named without parentheses.
    /// ```
    /// use gpumem_ops::ArrayOps;
    /// # mod facade { pub use gpumem_kernel as kernel; }
    /// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// #[gpumem_macros::device(crate = facade)]
    /// fn squared(x: f32) -> f32 {
    ///     x * x
    /// }
    ///
    /// let x = device.to_device(&[1.0f32, 2.0, 3.0])?;
    /// assert_eq!(x.map::<squared>()?.copy_to_host()?, ndarray::array![1.0, 4.0, 9.0]);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    fn map<F>(&self) -> Result<DeviceArray<F::Output, D, S::Backend>>
    where
        S::Elem: DeviceType,
        F: UnaryFunction<S::Elem, Output: Element + DeviceType> + 'static,
    {
        let (array, stream) = on_default(self.array())?;
        finished(stream.map::<F, S, D>(array)?)
    }

    /// Returns a function of the elements of two arrays of equal shape. An array of another shape can be
    /// [broadcast](ArrayBase::broadcast).
    /// ```
    /// use gpumem_ops::ArrayOps;
    /// # mod facade { pub use gpumem_kernel as kernel; }
    /// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// #[gpumem_macros::device(crate = facade)]
    /// fn weighted(x: f32, weight: u8) -> f32 {
    ///     x * f32::from(weight)
    /// }
    ///
    /// let x = device.to_device(&[1.0f32, 2.0])?;
    /// let weights = device.to_device(&[3u8, 4])?;
    /// assert_eq!(x.zip_map::<weighted, _>(&weights)?.copy_to_host()?, ndarray::array![3.0, 8.0]);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`ShapeMismatch`](gpumem_core::LayoutError::ShapeMismatch) if the shapes differ.
    fn zip_map<F, X>(&self, other: &ArrayBase<X, D>) -> Result<DeviceArray<F::Output, D, S::Backend>>
    where
        S::Elem: DeviceType,
        X: Storage<Backend = S::Backend, Elem: DeviceType>,
        F: BinaryFunction<S::Elem, X::Elem, Output: Element + DeviceType> + 'static,
    {
        let (array, stream) = on_default(self.array())?;
        finished(stream.zip_map::<F, S, X, D>(array, other)?)
    }
}

impl<S: Storage, D: Dimension> ArrayOps<S, D> for ArrayBase<S, D> {
    fn array(&self) -> &ArrayBase<S, D> {
        self
    }
}

/// Copies arrays into a new one, one behind the other along an axis. It has finished on return;
/// [`StreamOps::concatenate`](crate::StreamOps::concatenate) returns at once.
/// ```
/// use gpumem_ops::concatenate;
/// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
/// let (x, y) = (device.to_device(&[1, 2])?, device.to_device(&[3])?);
/// assert_eq!(concatenate(0, &[&x, &y])?.copy_to_host()?, ndarray::array![1, 2, 3]);
/// # Ok::<(), gpumem_core::Error>(())
/// ```
///
/// # Errors
/// Returns [`InvalidArgument`](gpumem_core::ErrorKind::InvalidArgument) without arrays,
/// [`NoSuchAxis`](gpumem_core::LayoutError::NoSuchAxis) if there is no such axis,
/// [`ShapeMismatch`](gpumem_core::LayoutError::ShapeMismatch) if other axes differ in length, and
/// [`OutOfMemory`](gpumem_core::ErrorKind::OutOfMemory) if the device has no room.
pub fn concatenate<S: Storage, D: Dimension>(
    axis: usize,
    arrays: &[&ArrayBase<S, D>],
) -> Result<DeviceArray<S::Elem, D, S::Backend>> {
    let Some(first) = arrays.first() else {
        let why = "there are no arrays, so no shape is known";
        let kind = gpumem_core::ErrorKind::InvalidArgument { why };
        return Err(gpumem_core::Error::new("", "concatenate", kind));
    };
    finished(first.device()?.default_stream()?.concatenate(axis, arrays)?)
}
