//! The holders of memory, and when it is freed.

use crate::{device, error::raise, serve::PREFIX};
use gpumem::{AnyBackend, memory::DeferCleanup};
use pyo3::{
    prelude::*,
    types::{IntoPyDict, PyTuple},
};
use std::sync::{Mutex, PoisonError};

/// A context manager inside which nothing is freed and nothing waits for it. May be nested.
#[pyclass(frozen, module = "pygpumem")]
pub(crate) struct Deferring {
    device: gpumem::Device,
    held: Mutex<Vec<DeferCleanup<AnyBackend>>>,
}

#[pymethods]
impl Deferring {
    fn __enter__(&self) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).push(self.device.defer_cleanup());
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) -> bool {
        drop(self.held.lock().unwrap_or_else(PoisonError::into_inner).pop());
        false
    }
}

/// Defers the cleanup of a device while the context lasts: no free, and no wait for one, comes in between.
#[pyfunction]
#[pyo3(signature = (device=None))]
pub(crate) fn defer_cleanup(device: Option<device::GivenDevice>) -> PyResult<Deferring> {
    Ok(Deferring { device: device::given(device)?, held: Mutex::default() })
}

/// The holders of a device's memory: text by `str`, numbers by `as_dict`.
#[pyclass(frozen, module = "pygpumem")]
pub(crate) struct MemoryReport(gpumem::memory::MemoryReport);

#[pymethods]
impl MemoryReport {
    /// The report as JSON.
    fn json<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let options = [("indent", 2)].into_py_dict(py)?;
        py.import("json")?.call_method("dumps", (self.as_dict(py)?,), Some(&options))
    }

    /// The report as a dictionary; `served` has the bytes of each other library whose memory it is.
    fn as_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let report = py.import("json")?.call_method1("loads", (self.0.to_json(),))?;
        let named = self.0.holders.iter();
        let served = named.filter_map(|holder| Some((holder.name.strip_prefix(PREFIX)?, holder.bytes)));
        report.set_item("served", served.into_py_dict(py)?)?;
        Ok(report)
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }
}

/// Returns the holders of a device's memory.
#[pyfunction]
#[pyo3(signature = (device=None))]
pub(crate) fn memory_report(py: Python<'_>, device: Option<device::GivenDevice>) -> PyResult<MemoryReport> {
    let device = device::given(device)?;
    py.detach(|| device.memory_report()).map(MemoryReport).map_err(raise)
}
