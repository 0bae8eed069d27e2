//! The operations as methods, of arrays and of arrays on a stream.

use crate::{
    Bounded, CastTo, Sortable, Summable,
    functions::Cast,
    kernel::DeviceType,
    maps, reductions, scans, sorts,
    stream::{OnStream, Run},
};
use gpumem_core::{Element, Result};
use gpumem_kernel::{BinaryFunction, Numeric, UnaryFunction};
use gpumem_runtime::{ArrayBase, DeviceArray, Storage, Stream};
use ndarray::{Dimension, RemoveAxis};

/// Reductions, scans, sorts, casts and maps of arrays and views of any layout.
///
/// Those of an array have finished on return. Those of an array [on a stream](Self::on) return at once, and their results stay on
/// the device.
///
/// # Errors
/// * [`NoSuchAxis`](gpumem_core::LayoutError::NoSuchAxis) if there is no such axis;
/// * [`InvalidArgument`](gpumem_core::ErrorKind::InvalidArgument) for a mean, least or greatest element of none;
/// * [`OutOfMemory`](gpumem_core::ErrorKind::OutOfMemory) if the device has no room for results;
/// * [`WrongDevice`](gpumem_core::ErrorKind::WrongDevice) on a stream of another device;
/// * those of [`load`](gpumem_kernel::KernelDef::load) and [`launch`](gpumem_kernel::Kernel::launch). On a stream, failures of the
///   work itself are errors of the next wait.
pub trait ArrayOps<S: Storage, D: Dimension>: Run<S, D> {
    /// Returns the array on a stream: the operations of the result are enqueued there.
    /// ```
    /// # use gpumem_ops::ArrayOps; let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let stream = device.stream()?;
    /// let x = stream.to_device(&ndarray::array![[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]])?;
    /// let rows = x.on(&stream).sum_axis(1)?;
    /// let least = rows.on(&stream).min()?; // one element, on the device
    /// assert_eq!(least.read()?, 6.0); // waits
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    fn on<'a>(&'a self, stream: &'a Stream<S::Backend>) -> OnStream<'a, S, D> {
        OnStream { array: self.array(), stream }
    }

    /// Returns the sum of all elements, 0 of none. Integers are added as 64 bits and wrap, `f16` and `bf16` as `f32`
    /// ([`Summable`]).
    /// ```
    /// # use gpumem_ops::ArrayOps; let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let x = device.to_device(&[200u8, 100])?;
    /// assert_eq!(x.sum()?, 300u64);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    fn sum(&self) -> Result<Self::Scalar<<S::Elem as Summable>::Sum>>
    where
        S::Elem: Summable,
    {
        self.scalar(|stream, array| reductions::total("sum", stream, array, None, false))
    }

    /// Returns the sums along an axis, an array without that axis.
    /// ```
    /// # use gpumem_ops::ArrayOps; let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let x = device.to_device(&ndarray::array![[1.0f32, 2.0], [3.0, 4.0]])?;
    /// assert_eq!(x.sum_axis(0)?.copy_to_host()?, ndarray::array![4.0, 6.0]);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    fn sum_axis(&self, axis: usize) -> Result<DeviceArray<<S::Elem as Summable>::Sum, D::Smaller, S::Backend>>
    where
        S::Elem: Summable,
        D: RemoveAxis,
    {
        self.all(|stream, array| reductions::total("sum_axis", stream, array, Some(axis), false))
    }

    /// Returns the product of all elements, 1 of none. Integers are multiplied as 64 bits and wrap, `f16` and `bf16` as `f32`
    /// ([`Summable`]).
    /// ```
    /// # use gpumem_ops::ArrayOps; let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let x = device.to_device(&[200u8, 100])?;
    /// assert_eq!(x.prod()?, 20_000u64);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    fn prod(&self) -> Result<Self::Scalar<<S::Elem as Summable>::Sum>>
    where
        S::Elem: Summable,
    {
        self.scalar(|stream, array| reductions::total("prod", stream, array, None, true))
    }

    /// Returns the products along an axis, an array without that axis.
    fn prod_axis(
        &self,
        axis: usize,
    ) -> Result<DeviceArray<<S::Elem as Summable>::Sum, D::Smaller, S::Backend>>
    where
        S::Elem: Summable,
        D: RemoveAxis,
    {
        self.all(|stream, array| reductions::total("prod_axis", stream, array, Some(axis), true))
    }

    /// Returns the mean of all elements: the sum, divided by their number. That of integers is an `f64`; a sum beyond 64 bits wraps
    /// before.
    /// ```
    /// # use gpumem_ops::ArrayOps; let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let x = device.to_device(&[1i32, 2])?;
    /// assert_eq!(x.mean()?, 1.5);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    fn mean(&self) -> Result<Self::Scalar<<S::Elem as Summable>::Mean>>
    where
        S::Elem: Summable,
    {
        self.scalar(|stream, array| reductions::mean("mean", stream, array, None))
    }

    /// Returns the means along an axis, an array without that axis.
    fn mean_axis(
        &self,
        axis: usize,
    ) -> Result<DeviceArray<<S::Elem as Summable>::Mean, D::Smaller, S::Backend>>
    where
        S::Elem: Summable,
        D: RemoveAxis,
    {
        self.all(|stream, array| reductions::mean("mean_axis", stream, array, Some(axis)))
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
    fn min(&self) -> Result<Self::Scalar<S::Elem>>
    where
        S::Elem: Bounded + CastTo<S::Elem>,
    {
        self.scalar(|stream, array| reductions::extreme("min", stream, array, None, false))
    }

    /// Returns the least elements along an axis, an array without that axis; NaN where one is NaN.
    fn min_axis(&self, axis: usize) -> Result<DeviceArray<S::Elem, D::Smaller, S::Backend>>
    where
        S::Elem: Bounded + CastTo<S::Elem>,
        D: RemoveAxis,
    {
        self.all(|stream, array| reductions::extreme("min_axis", stream, array, Some(axis), false))
    }

    /// Returns the greatest element; NaN if one is NaN.
    fn max(&self) -> Result<Self::Scalar<S::Elem>>
    where
        S::Elem: Bounded + CastTo<S::Elem>,
    {
        self.scalar(|stream, array| reductions::extreme("max", stream, array, None, true))
    }

    /// Returns the greatest elements along an axis, an array without that axis; NaN where one is NaN.
    fn max_axis(&self, axis: usize) -> Result<DeviceArray<S::Elem, D::Smaller, S::Backend>>
    where
        S::Elem: Bounded + CastTo<S::Elem>,
        D: RemoveAxis,
    {
        self.all(|stream, array| reductions::extreme("max_axis", stream, array, Some(axis), true))
    }

    /// Returns the position of the least element in row-major order, the first of equal ones, and that of the first NaN if there
    /// is one.
    /// ```
    /// # use gpumem_ops::ArrayOps; let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let x = device.to_device(&ndarray::array![[3, -2], [-2, 3]])?;
    /// assert_eq!(x.argmin()?, 1);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    fn argmin(&self) -> Result<Self::Position>
    where
        S::Elem: Numeric,
    {
        self.position(|stream, array| reductions::arg_extreme("argmin", stream, array, None, false))
    }

    /// Returns the positions of the least elements along an axis, an array without that axis.
    fn argmin_axis(&self, axis: usize) -> Result<DeviceArray<u64, D::Smaller, S::Backend>>
    where
        S::Elem: Numeric,
        D: RemoveAxis,
    {
        self.all(|stream, array| reductions::arg_extreme("argmin_axis", stream, array, Some(axis), false))
    }

    /// Returns the position of the greatest element in row-major order, the first of equal ones, and that of the first NaN if there
    /// is one.
    fn argmax(&self) -> Result<Self::Position>
    where
        S::Elem: Numeric,
    {
        self.position(|stream, array| reductions::arg_extreme("argmax", stream, array, None, true))
    }

    /// Returns the positions of the greatest elements along an axis, an array without that axis.
    fn argmax_axis(&self, axis: usize) -> Result<DeviceArray<u64, D::Smaller, S::Backend>>
    where
        S::Elem: Numeric,
        D: RemoveAxis,
    {
        self.all(|stream, array| reductions::arg_extreme("argmax_axis", stream, array, Some(axis), true))
    }

    /// Returns the prefix sums along an axis, each with its own element; NumPy's `cumsum`.
    /// Elements are added as in [`sum`](Self::sum).
    /// ```
    /// # use gpumem_ops::ArrayOps; let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let x = device.to_device(&[1i32, 2, 3])?;
    /// assert_eq!(x.inclusive_scan(0)?.copy_to_host()?, ndarray::array![1, 3, 6]);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    fn inclusive_scan(&self, axis: usize) -> Result<DeviceArray<<S::Elem as Summable>::Sum, D, S::Backend>>
    where
        S::Elem: Summable,
    {
        self.all(|stream, array| scans::scan("inclusive_scan", stream, array, axis, false))
    }

    /// Returns the prefix sums along an axis, each without its own element.
    /// Elements are added as in [`sum`](Self::sum).
    /// ```
    /// # use gpumem_ops::ArrayOps; let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let x = device.to_device(&[1i32, 2, 3])?;
    /// assert_eq!(x.exclusive_scan(0)?.copy_to_host()?, ndarray::array![0, 1, 3]);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    fn exclusive_scan(&self, axis: usize) -> Result<DeviceArray<<S::Elem as Summable>::Sum, D, S::Backend>>
    where
        S::Elem: Summable,
    {
        self.all(|stream, array| scans::scan("exclusive_scan", stream, array, axis, true))
    }

    /// Returns the elements in ascending order along an axis. Equal ones stay in their order, and floats are in a total order
    /// ([`Sortable`]).
    /// ```
    /// # use gpumem_ops::ArrayOps; let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let x = device.to_device(&[2.0, f32::NAN, -1.0, 0.0])?;
    /// let sorted = x.sort(0)?;
    /// assert_eq!(sorted.slice(ndarray::s![..3])?.copy_to_host()?, ndarray::array![-1.0, 0.0, 2.0]);
    /// assert!(sorted.get(3)?.is_nan());
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    fn sort(&self, axis: usize) -> Result<DeviceArray<S::Elem, D, S::Backend>>
    where
        S::Elem: Sortable,
    {
        self.all(|stream, array| sorts::sort(stream, array, axis))
    }

    /// Returns the positions along an axis that would [sort](Self::sort) the elements.
    /// ```
    /// # use gpumem_ops::ArrayOps; let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let x = device.to_device(&ndarray::array![[3, 1, 2], [5, 5, 4]])?;
    /// assert_eq!(x.argsort(1)?.copy_to_host()?, ndarray::array![[1, 2, 0], [2, 0, 1]]);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    fn argsort(&self, axis: usize) -> Result<DeviceArray<u64, D, S::Backend>>
    where
        S::Elem: Sortable,
    {
        self.all(|stream, array| sorts::argsort(stream, array, axis))
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
        self.all(maps::map::<_, _, Cast<S::Elem, U>, _, _, _>)
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
        self.all(maps::map::<_, _, F, _, _, _>)
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
        self.wait_before(other)?;
        self.all(|stream, array| maps::zip_map::<_, F, _, _, _, _>(stream, array, other))
    }

    /// Returns the sum of a function of each element, in one pass over memory: the square of a norm, say. The bits are those of
    /// [`map`](Self::map) and [`sum`](Self::sum).
    /// ```
    /// use gpumem_ops::ArrayOps;
    /// # mod facade { pub use gpumem_kernel as kernel; }
    /// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// #[gpumem_macros::device(crate = facade)]
    /// fn squared(x: f32) -> f32 {
    ///     x * x
    /// }
    ///
    /// let x = device.to_device(&[3.0f32, 4.0])?;
    /// assert_eq!(x.map_sum::<squared>()?.sqrt(), 5.0);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    fn map_sum<F>(&self) -> Result<Self::Scalar<<F::Output as Summable>::Sum>>
    where
        S::Elem: DeviceType,
        F: UnaryFunction<S::Elem, Output: Summable> + 'static,
    {
        self.scalar(|stream, array| reductions::map_sum::<_, F, _, _, _>("map_sum", stream, array, None))
    }

    /// Returns the sums of a function of each element along an axis, an array without that axis.
    fn map_sum_axis<F>(
        &self,
        axis: usize,
    ) -> Result<DeviceArray<<F::Output as Summable>::Sum, D::Smaller, S::Backend>>
    where
        S::Elem: DeviceType,
        F: UnaryFunction<S::Elem, Output: Summable> + 'static,
        D: RemoveAxis,
    {
        self.all(|stream, array| {
            reductions::map_sum::<_, F, _, _, _>("map_sum_axis", stream, array, Some(axis))
        })
    }

    /// Returns the sum of a function of the elements of two arrays of equal shape, in one pass over memory: a dot product, say.
    /// The bits are those of [`zip_map`](Self::zip_map) and [`sum`](Self::sum).
    /// ```
    /// use gpumem_ops::ArrayOps;
    /// # mod facade { pub use gpumem_kernel as kernel; }
    /// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// #[gpumem_macros::device(crate = facade)]
    /// fn product(x: f32, y: f32) -> f32 {
    ///     x * y
    /// }
    ///
    /// let (x, y) = (device.to_device(&[1.0f32, 2.0, 3.0])?, device.to_device(&[4.0f32, 5.0, 6.0])?);
    /// assert_eq!(x.zip_map_sum::<product, _>(&y)?, 32.0);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`ShapeMismatch`](gpumem_core::LayoutError::ShapeMismatch) if the shapes differ.
    fn zip_map_sum<F, X>(&self, other: &ArrayBase<X, D>) -> Result<Self::Scalar<<F::Output as Summable>::Sum>>
    where
        S::Elem: DeviceType,
        X: Storage<Backend = S::Backend, Elem: DeviceType>,
        F: BinaryFunction<S::Elem, X::Elem, Output: Summable> + 'static,
    {
        self.wait_before(other)?;
        self.scalar(|stream, array| {
            reductions::zip_map_sum::<_, F, _, _, _, _>("zip_map_sum", stream, array, other, None)
        })
    }

    /// Returns the sums of a function of the elements of two arrays along an axis, an array without that axis.
    fn zip_map_sum_axis<F, X>(
        &self,
        other: &ArrayBase<X, D>,
        axis: usize,
    ) -> Result<DeviceArray<<F::Output as Summable>::Sum, D::Smaller, S::Backend>>
    where
        S::Elem: DeviceType,
        X: Storage<Backend = S::Backend, Elem: DeviceType>,
        F: BinaryFunction<S::Elem, X::Elem, Output: Summable> + 'static,
        D: RemoveAxis,
    {
        self.wait_before(other)?;
        self.all(|stream, array| {
            reductions::zip_map_sum::<_, F, _, _, _, _>("zip_map_sum_axis", stream, array, other, Some(axis))
        })
    }
}

impl<S: Storage, D: Dimension> ArrayOps<S, D> for ArrayBase<S, D> {}
impl<S: Storage, D: Dimension> ArrayOps<S, D> for OnStream<'_, S, D> {}
