//! The operations in stream order.

use crate::{Bounded, CastTo, Summable, functions::Cast, kernel::DeviceType, maps, reductions, scans};
use gpumem_core::{Backend, Element, Result};
use gpumem_kernel::{BinaryFunction, Numeric, UnaryFunction};
use gpumem_runtime::{ArrayBase, DeviceArray, DeviceRecord, Storage, Stream};
use ndarray::{Dimension, RemoveAxis};

mod sealed {
    pub trait SealedStream {}
    impl<B: gpumem_core::Backend> SealedStream for gpumem_runtime::Stream<B> {}
}

/// The operations of [`ArrayOps`](crate::ArrayOps) in stream order: they return at once, and their results stay on the device.
/// ```
/// use gpumem_ops::StreamOps;
/// # type Device = gpumem_runtime::Device<gpumem_host::Host>;
/// let device = Device::open("host")?;
/// let stream = device.stream()?;
/// let x = stream.to_device(&ndarray::array![[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]])?;
/// let rows = stream.sum_axis(&x, 1)?;
/// let least = stream.min(&rows)?; // one element, on the device
/// assert_eq!(least.read()?, 6.0); // waits
/// # Ok::<(), gpumem_core::Error>(())
/// ```
///
/// # Errors
/// Those of the method of the same name of [`ArrayOps`](crate::ArrayOps), but for failures of the work itself: these are errors of
/// the next wait. [`WrongDevice`](gpumem_core::ErrorKind::WrongDevice) for an array of another device.
pub trait StreamOps<B: Backend>: sealed::SealedStream {
    #[doc(hidden)]
    fn stream(&self) -> &Stream<B>;

    /// Returns the sum of all elements.
    fn sum<S, D>(&self, array: &ArrayBase<S, D>) -> Result<DeviceRecord<<S::Elem as Summable>::Sum, B>>
    where
        S: Storage<Backend = B, Elem: Summable>,
        D: Dimension,
    {
        reductions::sum("sum", self.stream(), array, None)?.into_dimensionality()
    }

    /// Returns the sums along an axis.
    fn sum_axis<S, D>(
        &self,
        array: &ArrayBase<S, D>,
        axis: usize,
    ) -> Result<DeviceArray<<S::Elem as Summable>::Sum, D::Smaller, B>>
    where
        S: Storage<Backend = B, Elem: Summable>,
        D: RemoveAxis,
    {
        reductions::sum("sum_axis", self.stream(), array, Some(axis))?.into_dimensionality()
    }

    /// Returns the mean of all elements.
    fn mean<S, D>(&self, array: &ArrayBase<S, D>) -> Result<DeviceRecord<<S::Elem as Summable>::Mean, B>>
    where
        S: Storage<Backend = B, Elem: Summable>,
        D: Dimension,
    {
        reductions::mean("mean", self.stream(), array, None)?.into_dimensionality()
    }

    /// Returns the means along an axis.
    fn mean_axis<S, D>(
        &self,
        array: &ArrayBase<S, D>,
        axis: usize,
    ) -> Result<DeviceArray<<S::Elem as Summable>::Mean, D::Smaller, B>>
    where
        S: Storage<Backend = B, Elem: Summable>,
        D: RemoveAxis,
    {
        reductions::mean("mean_axis", self.stream(), array, Some(axis))?.into_dimensionality()
    }

    /// Returns the least element.
    fn min<S, D>(&self, array: &ArrayBase<S, D>) -> Result<DeviceRecord<S::Elem, B>>
    where
        S: Storage<Backend = B, Elem: Bounded + CastTo<S::Elem>>,
        D: Dimension,
    {
        reductions::extreme("min", self.stream(), array, None, false)?.into_dimensionality()
    }

    /// Returns the least elements along an axis.
    fn min_axis<S, D>(
        &self,
        array: &ArrayBase<S, D>,
        axis: usize,
    ) -> Result<DeviceArray<S::Elem, D::Smaller, B>>
    where
        S: Storage<Backend = B, Elem: Bounded + CastTo<S::Elem>>,
        D: RemoveAxis,
    {
        reductions::extreme("min_axis", self.stream(), array, Some(axis), false)?.into_dimensionality()
    }

    /// Returns the greatest element.
    fn max<S, D>(&self, array: &ArrayBase<S, D>) -> Result<DeviceRecord<S::Elem, B>>
    where
        S: Storage<Backend = B, Elem: Bounded + CastTo<S::Elem>>,
        D: Dimension,
    {
        reductions::extreme("max", self.stream(), array, None, true)?.into_dimensionality()
    }

    /// Returns the greatest elements along an axis.
    fn max_axis<S, D>(
        &self,
        array: &ArrayBase<S, D>,
        axis: usize,
    ) -> Result<DeviceArray<S::Elem, D::Smaller, B>>
    where
        S: Storage<Backend = B, Elem: Bounded + CastTo<S::Elem>>,
        D: RemoveAxis,
    {
        reductions::extreme("max_axis", self.stream(), array, Some(axis), true)?.into_dimensionality()
    }

    /// Returns the place of the first least element in row-major order.
    fn argmin<S, D>(&self, array: &ArrayBase<S, D>) -> Result<DeviceRecord<u64, B>>
    where
        S: Storage<Backend = B, Elem: Numeric>,
        D: Dimension,
    {
        reductions::place("argmin", self.stream(), array, None, false)?.into_dimensionality()
    }

    /// Returns the places of the first least elements along an axis.
    fn argmin_axis<S, D>(
        &self,
        array: &ArrayBase<S, D>,
        axis: usize,
    ) -> Result<DeviceArray<u64, D::Smaller, B>>
    where
        S: Storage<Backend = B, Elem: Numeric>,
        D: RemoveAxis,
    {
        reductions::place("argmin_axis", self.stream(), array, Some(axis), false)?.into_dimensionality()
    }

    /// Returns the place of the first greatest element in row-major order.
    fn argmax<S, D>(&self, array: &ArrayBase<S, D>) -> Result<DeviceRecord<u64, B>>
    where
        S: Storage<Backend = B, Elem: Numeric>,
        D: Dimension,
    {
        reductions::place("argmax", self.stream(), array, None, true)?.into_dimensionality()
    }

    /// Returns the places of the first greatest elements along an axis.
    fn argmax_axis<S, D>(
        &self,
        array: &ArrayBase<S, D>,
        axis: usize,
    ) -> Result<DeviceArray<u64, D::Smaller, B>>
    where
        S: Storage<Backend = B, Elem: Numeric>,
        D: RemoveAxis,
    {
        reductions::place("argmax_axis", self.stream(), array, Some(axis), true)?.into_dimensionality()
    }

    /// Returns the prefix sums along an axis, each with its own element.
    fn inclusive_scan<S, D>(
        &self,
        array: &ArrayBase<S, D>,
        axis: usize,
    ) -> Result<DeviceArray<<S::Elem as Summable>::Sum, D, B>>
    where
        S: Storage<Backend = B, Elem: Summable>,
        D: Dimension,
    {
        scans::scan("inclusive_scan", self.stream(), array, axis, false)?.into_dimensionality()
    }

    /// Returns the prefix sums along an axis, each without its own element.
    fn exclusive_scan<S, D>(
        &self,
        array: &ArrayBase<S, D>,
        axis: usize,
    ) -> Result<DeviceArray<<S::Elem as Summable>::Sum, D, B>>
    where
        S: Storage<Backend = B, Elem: Summable>,
        D: Dimension,
    {
        scans::scan("exclusive_scan", self.stream(), array, axis, true)?.into_dimensionality()
    }

    /// Returns the elements as another type: `stream.cast::<f64, _, _>(&array)`.
    fn cast<U, S, D>(&self, array: &ArrayBase<S, D>) -> Result<DeviceArray<U, D, B>>
    where
        U: Numeric,
        S: Storage<Backend = B, Elem: CastTo<U>>,
        D: Dimension,
    {
        maps::map::<S::Elem, U, Cast<S::Elem, U>, B, S, D>(self.stream(), array)
    }

    /// Returns a function of each element: `stream.map::<square, _, _>(&array)`.
    fn map<F, S, D>(&self, array: &ArrayBase<S, D>) -> Result<DeviceArray<F::Output, D, B>>
    where
        S: Storage<Backend = B, Elem: DeviceType>,
        F: UnaryFunction<S::Elem, Output: Element + DeviceType> + 'static,
        D: Dimension,
    {
        maps::map::<S::Elem, F::Output, F, B, S, D>(self.stream(), array)
    }

    /// Returns a function of the elements of two arrays: `stream.zip_map::<weighted, _, _, _>(&x, &y)`.
    fn zip_map<F, S, X, D>(
        &self,
        array: &ArrayBase<S, D>,
        other: &ArrayBase<X, D>,
    ) -> Result<DeviceArray<F::Output, D, B>>
    where
        S: Storage<Backend = B, Elem: DeviceType>,
        X: Storage<Backend = B, Elem: DeviceType>,
        F: BinaryFunction<S::Elem, X::Elem, Output: Element + DeviceType> + 'static,
        D: Dimension,
    {
        maps::zip_map::<F::Output, F, B, S, X, D>(self.stream(), array, other)
    }

    /// Copies arrays into a new one, one behind the other along an axis.
    ///
    /// # Errors
    /// As for [`concatenate`](crate::concatenate).
    fn concatenate<S, D>(
        &self,
        axis: usize,
        arrays: &[&ArrayBase<S, D>],
    ) -> Result<DeviceArray<S::Elem, D, B>>
    where
        S: Storage<Backend = B>,
        D: Dimension,
    {
        maps::concatenate(self.stream(), axis, arrays)
    }
}

impl<B: Backend> StreamOps<B> for Stream<B> {
    fn stream(&self) -> &Stream<B> {
        self
    }
}
