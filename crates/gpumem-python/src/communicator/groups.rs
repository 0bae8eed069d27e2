//! Groups of several ranks that one thread drives.

use super::{Communicator, Group, operation::Operation, run::run};
use crate::kept::{Kept, Traverse};
use pyo3::{PyTraverseError, PyVisit, exceptions::PyRuntimeError, prelude::*};

/// A group for each of several ranks. All of their operations are enqueued together at the end of a `with` statement.
#[pyclass(frozen, module = "pygpumem")]
pub(crate) struct Groups(Vec<Kept<Group>>);

impl Groups {
    pub(super) fn new(py: Python<'_>, communicators: Vec<Bound<'_, Communicator>>) -> PyResult<Self> {
        let make = |communicator: Bound<'_, Communicator>| {
            let stream = communicator.get().stream(None)?;
            Py::new(py, Group::new(communicator.unbind(), stream)).map(Kept::from)
        };
        communicators.into_iter().map(make).collect::<PyResult<_>>().map(Self)
    }

    /// Ends all groups. Returns their operations.
    fn take(&self) -> Vec<Option<Vec<Operation>>> {
        self.0.iter().map(|group| group.get().take()).collect()
    }
}

#[pymethods]
impl Groups {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.0.visit(&visit)
    }

    fn __enter__(&self, py: Python<'_>) -> PyResult<Vec<Py<Group>>> {
        for (at, group) in self.0.iter().enumerate() {
            if let Err(error) = group.get().begin() {
                self.0[..at].iter().for_each(|begun| drop(begun.get().take()));
                return Err(error);
            }
        }
        Ok(self.0.iter().map(|group| group.clone_ref(py)).collect())
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
        let taken = self.take();
        if !kind.is_none() {
            return Ok(false);
        }
        let ended = || PyRuntimeError::new_err("a group has ended before the others");
        let lists = taken.into_iter().map(|list| list.ok_or_else(ended)).collect::<PyResult<Vec<_>>>()?;
        // Each group has compared its own operations.
        for (at, list) in lists.iter().enumerate() {
            for other in lists[..at].iter().flatten() {
                list.iter().try_for_each(|operation| operation.check_apart(other))?;
            }
        }
        let parts = self.0.iter().zip(lists).map(|(group, list)| group.get().part(list));
        run(py, parts.collect::<PyResult<_>>()?)?;
        Ok(false)
    }
}
