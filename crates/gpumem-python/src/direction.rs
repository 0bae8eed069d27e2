//! What is copied of an array of the host that is given to a kernel: `In`, `Out`, `InOut`.

use crate::kept::{Kept, Traverse};
use pyo3::{PyTraverseError, PyVisit, prelude::*, types::PyString};

/// An array for one argument of a launch, and which way it is copied.
#[pyclass(frozen, module = "pygpumem")]
pub(crate) struct Direction {
    array: Kept,
    /// To the device before the launch.
    pub(crate) up: bool,
    /// Back after it.
    pub(crate) down: bool,
}

#[pymethods]
impl Direction {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.array.visit(&visit)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let name = match (self.up, self.down) {
            (true, false) => "In",
            (false, _) => "Out",
            (true, true) => "InOut",
        };
        let class: Bound<'_, PyString> = self.array.bind(py).get_type().name()?;
        Ok(format!("<pygpumem.{name} of {class}>"))
    }
}

impl Direction {
    pub(crate) fn array<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        self.array.bind(py).clone()
    }
}

fn of(array: &Bound<'_, PyAny>, up: bool, down: bool) -> Direction {
    Direction { array: array.clone().unbind().into(), up, down }
}

/// An array of the host for a launch, which is copied to the device and not back. What the kernel writes to it is lost.
#[pyfunction(name = "In")]
pub(crate) fn input(array: &Bound<'_, PyAny>) -> Direction {
    of(array, true, false)
}

/// An array of the host for a launch, which is copied back and not to the device. The kernel writes all elements: those that it does
/// not write are zeros afterwards.
#[pyfunction(name = "Out")]
pub(crate) fn output(array: &Bound<'_, PyAny>) -> Direction {
    of(array, false, true)
}

/// An array of the host for a launch, which is copied to the device and back.
#[pyfunction(name = "InOut")]
pub(crate) fn input_output(array: &Bound<'_, PyAny>) -> Direction {
    of(array, true, true)
}
