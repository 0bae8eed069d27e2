//! Several operations as one piece of work.

use super::{
    Communicator,
    given::computed,
    in_place_or,
    operation::{GivenArray, Kind, Operation},
    run::{Part, run},
};
use crate::{kept::{Kept, Traverse}, list::Listed};
use pyo3::{PyTraverseError, PyVisit, exceptions::PyRuntimeError, prelude::*};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Operations that are enqueued together at the end of a `with` statement. An exchange with neighbours needs that, because a
/// send alone may wait for its receive. Arrays of the host hold the result after the end.
#[pyclass(frozen, module = "pygpumem")]
pub(crate) struct Group {
    communicator: Kept<Communicator>,
    stream: gpumem::Stream,
    /// `None` before the group begins, and after its end.
    operations: Mutex<Option<Vec<Operation>>>,
}

impl Group {
    pub(super) fn new(communicator: Py<Communicator>, stream: gpumem::Stream) -> Self {
        Self { communicator: communicator.into(), stream, operations: Mutex::new(None) }
    }

    /// Begins to collect operations.
    pub(super) fn begin(&self) -> PyResult<()> {
        let mut operations = self.lock();
        if operations.is_some() {
            return Err(PyRuntimeError::new_err("the group has begun already"));
        }
        *operations = Some(Vec::new());
        Ok(())
    }

    /// Ends the group. Returns its operations.
    pub(super) fn take(&self) -> Option<Vec<Operation>> {
        self.lock().take()
    }

    /// Operations of this rank on the group's stream.
    pub(super) fn part(&self, operations: Vec<Operation>) -> PyResult<Part> {
        self.communicator.get().part(self.stream.clone(), operations)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Vec<Operation>>> {
        self.operations.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, kind: Kind, arrays: (GivenArray<'_, '_>, GivenArray<'_, '_>)) -> PyResult<()> {
        let over =
            || PyRuntimeError::new_err("operations are added between the begin and the end of the group");
        if self.lock().is_none() {
            return Err(over());
        }
        let operation = Operation::new(kind, arrays, (self.communicator.get().rank, &self.stream))?;
        let mut operations = self.lock();
        let operations = operations.as_mut().ok_or_else(over)?;
        operations.iter().try_for_each(|other| operation.check_apart(other))?;
        operations.push(operation);
        Ok(())
    }
}

#[pymethods]
impl Group {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.communicator.visit(&visit)?;
        self.operations.visit(&visit)
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyResult<PyRef<'_, Self>> {
        slf.begin()?;
        Ok(slf)
    }

    #[pyo3(signature = (kind, value, traceback, /))]
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        traceback: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let _ = (value, traceback);
        let operations = self.take();
        if let (true, Some(operations)) = (kind.is_none(), operations) {
            run(py, vec![self.part(operations)?])?;
        }
        Ok(false)
    }

    /// Reduces over all ranks, into `destination` or in place. `op` is 'sum', 'prod', 'min', 'max' or 'avg'.
    #[pyo3(signature = (source, destination=None, op="sum"))]
    fn all_reduce(
        &self,
        source: &Bound<'_, PyAny>,
        destination: Option<&Bound<'_, PyAny>>,
        op: &str,
    ) -> PyResult<()> {
        self.add(Kind::AllReduce(computed(op)?), in_place_or(source, destination))
    }

    /// Reduces over all ranks, to `destination` of the root, which only the root gives.
    #[pyo3(signature = (source, destination=None, op="sum", root=0))]
    fn reduce(
        &self,
        source: &Bound<'_, PyAny>,
        destination: Option<&Bound<'_, PyAny>>,
        op: &str,
        root: usize,
    ) -> PyResult<()> {
        self.add(Kind::Reduce(computed(op)?, root), (Some(source), destination))
    }

    /// Copies the array of the root to those of all ranks.
    #[pyo3(signature = (array, root=0))]
    fn broadcast(&self, array: &Bound<'_, PyAny>, root: usize) -> PyResult<()> {
        self.add(Kind::Broadcast(root), (None, Some(array)))
    }

    /// Puts the arrays of all ranks one after the other, or one above the other, into `destination` of every rank.
    #[pyo3(signature = (source, destination))]
    fn all_gather(&self, source: &Bound<'_, PyAny>, destination: &Bound<'_, PyAny>) -> PyResult<()> {
        self.add(Kind::AllGather, (Some(source), Some(destination)))
    }

    /// Sends block `i` of `source` to rank `i`, whose block `j` of `destination` comes from rank `j`.
    #[pyo3(signature = (source, destination))]
    fn all_to_all(&self, source: &Bound<'_, PyAny>, destination: &Bound<'_, PyAny>) -> PyResult<()> {
        self.add(Kind::AllToAll, (Some(source), Some(destination)))
    }

    /// As `all_to_all`, with blocks of `sent[i]` and `received[j]` rows.
    #[pyo3(signature = (source, sent, destination, received))]
    fn all_to_all_v(
        &self,
        source: &Bound<'_, PyAny>,
        sent: Listed<usize>,
        destination: &Bound<'_, PyAny>,
        received: Listed<usize>,
    ) -> PyResult<()> {
        self.add(Kind::AllToAllV(sent.0, received.0), (Some(source), Some(destination)))
    }

    /// Reduces over all ranks, and gives each rank its block.
    #[pyo3(signature = (source, destination, op="sum"))]
    fn reduce_scatter(
        &self,
        source: &Bound<'_, PyAny>,
        destination: &Bound<'_, PyAny>,
        op: &str,
    ) -> PyResult<()> {
        self.add(Kind::ReduceScatter(computed(op)?), (Some(source), Some(destination)))
    }

    /// Puts the arrays of all ranks into `destination` of the root, which only the root gives.
    #[pyo3(signature = (source, destination=None, root=0))]
    fn gather(
        &self,
        source: &Bound<'_, PyAny>,
        destination: Option<&Bound<'_, PyAny>>,
        root: usize,
    ) -> PyResult<()> {
        self.add(Kind::Gather(root), (Some(source), destination))
    }

    /// Gives each rank its block of `source` of the root, which only the root gives.
    #[pyo3(signature = (source, destination, root=0))]
    fn scatter(
        &self,
        source: Option<&Bound<'_, PyAny>>,
        destination: &Bound<'_, PyAny>,
        root: usize,
    ) -> PyResult<()> {
        self.add(Kind::Scatter(root), (source, Some(destination)))
    }

    /// Sends an array to another rank, which receives it.
    #[pyo3(signature = (array, to))]
    fn send(&self, array: &Bound<'_, PyAny>, to: usize) -> PyResult<()> {
        self.add(Kind::Send(to), (Some(array), None))
    }

    /// Receives what another rank sends.
    #[pyo3(signature = (array, source))]
    fn receive(&self, array: &Bound<'_, PyAny>, source: usize) -> PyResult<()> {
        self.add(Kind::Receive(source), (None, Some(array)))
    }

    /// Waits, in the order of the stream, until the streams of all ranks have come so far.
    #[pyo3(signature = ())]
    fn barrier(&self) -> PyResult<()> {
        self.add(Kind::Barrier, (None, None))
    }
}
