//! The devices that are GPUs, as Numba counts them.

use crate::device::{self, gpu, gpu_names};
use pyo3::{ffi, prelude::*};

/// The GPUs of every backend, by number. The host is none of them: `Device("host")` opens it.
#[pyclass(frozen, module = "pygpumem", name = "Gpus")]
pub(crate) struct Gpus;

#[pymethods]
impl Gpus {
    /// All of them.
    #[getter]
    fn lst(&self, py: Python<'_>) -> PyResult<Vec<device::Device>> {
        (0..self.__len__(py)? as isize).map(|at| gpu(py, at)).collect()
    }

    /// The current device.
    #[getter]
    fn current(&self) -> PyResult<device::Device> {
        device::current().map(device::Device)
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(py.detach(gpu_names)?.len())
    }

    fn __getitem__(&self, py: Python<'_>, index: isize) -> PyResult<device::Device> {
        gpu(py, index)
    }

    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        // SAFETY: the object is a sequence; the call returns a new reference or an error.
        unsafe { Bound::from_owned_ptr_or_err(slf.py(), ffi::PySeqIter_New(slf.as_ptr())) }
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("<pygpumem.gpus: {}>", py.detach(gpu_names)?.join(", ")))
    }
}

/// Whether there is a GPU that can be used.
#[pyfunction]
pub(crate) fn is_available(py: Python<'_>) -> bool {
    py.detach(gpu_names).is_ok_and(|names| !names.is_empty())
}

/// Returns the current device, or the GPU with a number. It serves as Numba's context: devices have no other here.
#[pyfunction]
#[pyo3(signature = (devnum=None))]
pub(crate) fn current_context(py: Python<'_>, devnum: Option<isize>) -> PyResult<device::Device> {
    match devnum {
        Some(at) => gpu(py, at),
        None => device::current().map(device::Device),
    }
}
