//! Recordings of the use of memory, and whether what they hold fits into a limit.

use crate::{
    device::{self, GivenDevice},
    error::raise,
    wait::may_wait,
};
use gpumem::{
    AnyBackend,
    generic::Device,
    host::{Host, HostOptions},
    memory::PoolOptions,
    trace::{RecorderOptions, Recording, Trace, Verdict},
};
use gpumem_core::process::ProcessGuard;
use pyo3::{
    exceptions::{PyOSError, PyRuntimeError, PyValueError},
    prelude::*,
    types::PyTuple,
};
use std::{
    io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

/// The context of [`record_memory`].
#[pyclass(frozen, module = "pygpumem")]
pub(crate) struct MemoryRecording {
    /// The process that made it: in a forked child nothing is recorded, and the file is its parent's.
    origin: ProcessGuard,
    device: gpumem::Device,
    path: PathBuf,
    limit_bytes: usize,
    /// Taken out by the end of the context.
    running: Mutex<Option<Recording<AnyBackend>>>,
}

impl MemoryRecording {
    /// Puts a recording in the place of the one that is there.
    fn replace(&self, recording: Option<Recording<AnyBackend>>) -> Option<Recording<AnyBackend>> {
        std::mem::replace(&mut *self.running.lock().unwrap_or_else(PoisonError::into_inner), recording)
    }
}

#[pymethods]
impl MemoryRecording {
    fn __enter__(&self) -> PyResult<()> {
        let options = RecorderOptions { limit_bytes: self.limit_bytes, ..RecorderOptions::default() };
        // While one is running, this is an error.
        let recording = self.device.record_memory(options).map_err(raise)?;
        drop(self.replace(Some(recording)));
        Ok(())
    }

    /// Ends the recording and writes the file, also after an exception.
    #[pyo3(signature = (*exception))]
    fn __exit__(&self, py: Python<'_>, exception: &Bound<'_, PyTuple>) -> PyResult<bool> {
        if let Err(error) = self.origin.check("", "record_memory") {
            // An exception that ends the child goes on.
            let is_raised = exception.iter().any(|part| !part.is_none());
            return if is_raised { Ok(false) } else { Err(raise(error)) };
        }
        let none = || PyRuntimeError::new_err("the recording is not running");
        let recording = self.replace(None).ok_or_else(none)?;
        py.detach(|| recording.finish().write(&self.path)).map_err(|error| of_file(error, &self.path))?;
        Ok(false)
    }
}

/// The exception of a file, with its path. From its number Python chooses the class.
fn of_file(error: io::Error, path: &Path) -> PyErr {
    match error.raw_os_error() {
        Some(code) => PyOSError::new_err((code, error.to_string(), path.as_os_str().to_owned())),
        None => PyValueError::new_err(error.to_string()),
    }
}

/// Records every allocation, free, use and wait of a device while the context lasts, and then writes a file: for ui.perfetto.dev if its
/// name ends in `.perfetto.json`, else for `simulate_memory`. Events take `limit_bytes` at most; then the oldest ones go.
#[pyfunction]
#[pyo3(signature = (path, device=None, *, limit_bytes=64 << 20))]
pub(crate) fn record_memory(
    path: PathBuf,
    device: Option<GivenDevice>,
    limit_bytes: usize,
) -> PyResult<MemoryRecording> {
    let (origin, device) = (ProcessGuard::current(), device::given(device)?);
    Ok(MemoryRecording { origin, device, path, limit_bytes, running: Mutex::default() })
}

/// Whether a recording fits into a pool with a limit: a sentence by `str`.
#[pyclass(frozen, module = "pygpumem")]
pub(crate) struct MemoryVerdict(Verdict);

#[pymethods]
impl MemoryVerdict {
    /// Whether there was memory for every request.
    #[getter]
    fn fits(&self) -> bool {
        self.0.fits()
    }

    /// Most bytes that the pool could reserve.
    #[getter]
    fn limit(&self) -> usize {
        self.0.limit.unwrap_or(usize::MAX)
    }

    /// Requests that found no memory.
    #[getter]
    fn failures(&self) -> u64 {
        self.0.report.failures
    }

    /// Most bytes that were in use.
    #[getter]
    fn peak_used(&self) -> u64 {
        self.0.report.peak_used
    }

    /// Most bytes that the pool has reserved.
    #[getter]
    fn peak_reserved(&self) -> u64 {
        self.0.report.peak_reserved
    }

    fn __bool__(&self) -> bool {
        self.0.fits()
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<pygpumem.MemoryVerdict: {}>", self.0)
    }
}

/// Says whether the allocations and frees of a file that `record_memory` has written fit into a pool of at most `limit` bytes, as a
/// GPU has one. No GPU takes part, and the memory itself is not touched.
#[pyfunction]
pub(crate) fn simulate_memory(py: Python<'_>, path: PathBuf, limit: usize) -> PyResult<MemoryVerdict> {
    may_wait("simulate_memory")?;
    let verdict = py.detach(|| {
        let text = std::fs::read_to_string(&path).map_err(|error| of_file(error, &path))?;
        let trace = Trace::from_json(&text).map_err(|error| PyValueError::new_err(error.to_string()))?;
        // A device of its own, which no other code uses meanwhile.
        let host = Host::open_with(&HostOptions::new().memory(limit).workers(1)).map_err(raise)?;
        let device: Device<Host> = Device::from_raw(host);
        device.simulate_memory(&trace, PoolOptions::device(256).max_size(limit)).map_err(raise)
    });
    verdict.map(MemoryVerdict)
}
