//! Where the operations of an array run, and when their results are there.

use gpumem_core::{Element, Result};
use gpumem_runtime::{ArrayBase, DeviceArray, DeviceRecord, Storage, Stream};
use ndarray::{Dimension, IxDyn};

/// An array on a stream, from [`on`](crate::ArrayOps::on): its operations are enqueued there and return at once.
#[derive(Debug)]
#[must_use]
pub struct OnStream<'a, S: Storage, D: Dimension> {
    pub(crate) array: &'a ArrayBase<S, D>,
    pub(crate) stream: &'a Stream<S::Backend>,
}

/// What the operations return: arrays wait for their results, arrays on streams leave them on the device.
pub trait Results<S: Storage> {
    /// A result of one element: `T` of an array, a [record](DeviceRecord) of an array on a stream.
    type Scalar<T: Element>;
    /// The position of an element: `usize` of an array, a record of a `u64` of an array on a stream.
    type Position;
}

impl<S: Storage, D: Dimension> Results<S> for ArrayBase<S, D> {
    type Scalar<T: Element> = T;
    type Position = usize;
}

impl<S: Storage, D: Dimension> Results<S> for OnStream<'_, S, D> {
    type Scalar<T: Element> = DeviceRecord<T, S::Backend>;
    type Position = DeviceRecord<u64, S::Backend>;
}

/// Runs operations. Other crates cannot name it, so that arrays and arrays on streams alone have the operations.
pub trait Run<S: Storage, D: Dimension>: Results<S> {
    fn array(&self) -> &ArrayBase<S, D>;

    /// Enqueues an operation.
    fn enqueue<R>(&self, work: impl FnOnce(&Stream<S::Backend>, &ArrayBase<S, D>) -> Result<R>) -> Result<R>;

    /// Waits for what writes an operand, where the operations wait: the device's own stream would wait, and with it what other threads
    /// do there.
    fn wait_before<X: Storage<Backend = S::Backend>>(&self, operand: &ArrayBase<X, D>) -> Result<()>;

    /// Waits for results, where the operations do.
    fn finished<T: Element, E: Dimension>(
        array: DeviceArray<T, E, S::Backend>,
    ) -> Result<DeviceArray<T, E, S::Backend>>;

    /// Reads the one result, where the operations wait.
    fn read<T: Element>(record: DeviceRecord<T, S::Backend>) -> Result<Self::Scalar<T>>;

    /// As [`read`](Self::read), for a position.
    fn read_position(record: DeviceRecord<u64, S::Backend>) -> Result<Self::Position>;

    fn all<T: Element, E: Dimension>(
        &self,
        work: impl FnOnce(&Stream<S::Backend>, &ArrayBase<S, D>) -> Result<DeviceArray<T, IxDyn, S::Backend>>,
    ) -> Result<DeviceArray<T, E, S::Backend>> {
        Self::finished(self.enqueue(work)?.into_dimensionality()?)
    }

    fn scalar<T: Element>(
        &self,
        work: impl FnOnce(&Stream<S::Backend>, &ArrayBase<S, D>) -> Result<DeviceArray<T, IxDyn, S::Backend>>,
    ) -> Result<Self::Scalar<T>> {
        Self::read(self.enqueue(work)?.into_dimensionality()?)
    }

    fn position(
        &self,
        work: impl FnOnce(&Stream<S::Backend>, &ArrayBase<S, D>) -> Result<DeviceArray<u64, IxDyn, S::Backend>>,
    ) -> Result<Self::Position> {
        Self::read_position(self.enqueue(work)?.into_dimensionality()?)
    }
}

impl<S: Storage, D: Dimension> Run<S, D> for ArrayBase<S, D> {
    fn array(&self) -> &ArrayBase<S, D> {
        self
    }

    fn enqueue<R>(&self, work: impl FnOnce(&Stream<S::Backend>, &ArrayBase<S, D>) -> Result<R>) -> Result<R> {
        self.wait_before(self)?;
        work(&self.device()?.default_stream()?, self)
    }

    fn wait_before<X: Storage<Backend = S::Backend>>(&self, operand: &ArrayBase<X, D>) -> Result<()> {
        operand.place_by(crate::KEY).wait_before("synchronize", false)
    }

    fn finished<T: Element, E: Dimension>(
        array: DeviceArray<T, E, S::Backend>,
    ) -> Result<DeviceArray<T, E, S::Backend>> {
        array.synchronize()?;
        Ok(array)
    }

    fn read<T: Element>(record: DeviceRecord<T, S::Backend>) -> Result<T> {
        record.read()
    }

    fn read_position(record: DeviceRecord<u64, S::Backend>) -> Result<usize> {
        Ok(record.read()? as usize)
    }
}

impl<S: Storage, D: Dimension> Run<S, D> for OnStream<'_, S, D> {
    fn array(&self) -> &ArrayBase<S, D> {
        self.array
    }

    fn enqueue<R>(&self, work: impl FnOnce(&Stream<S::Backend>, &ArrayBase<S, D>) -> Result<R>) -> Result<R> {
        work(self.stream, self.array)
    }

    fn wait_before<X: Storage<Backend = S::Backend>>(&self, _: &ArrayBase<X, D>) -> Result<()> {
        Ok(())
    }

    fn finished<T: Element, E: Dimension>(
        array: DeviceArray<T, E, S::Backend>,
    ) -> Result<DeviceArray<T, E, S::Backend>> {
        Ok(array)
    }

    fn read<T: Element>(record: DeviceRecord<T, S::Backend>) -> Result<DeviceRecord<T, S::Backend>> {
        Ok(record)
    }

    fn read_position(record: DeviceRecord<u64, S::Backend>) -> Result<DeviceRecord<u64, S::Backend>> {
        Ok(record)
    }
}
