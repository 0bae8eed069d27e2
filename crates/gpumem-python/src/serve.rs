//! Memory for the allocators of other libraries.

use crate::{device, error::raise, kept::Kept, recording::outside};
use gpumem::{AnyBackend, Error, ErrorKind, Result, memory::named};
use gpumem_core::process::PerProcess;
use gpumem_runtime::internal::{FoundStream, ServedMemory as Memory, ServedStreams};
use pyo3::prelude::*;
use std::sync::{Mutex, PoisonError};

/// With the door's name, the name of its allocations in reports and recordings.
pub(crate) const PREFIX: &str = "for ";

/// Never dropped: memory may be given back until the process ends.
static STREAMS: PerProcess<ServedStreams<AnyBackend>> = PerProcess::new(ServedStreams::default);

fn find(device: &gpumem::Device, handle: Option<u64>) -> Result<FoundStream<AnyBackend>> {
    match handle {
        // SAFETY: Python has no way to promise it; the functions below warn their callers.
        Some(handle) => unsafe { STREAMS.get().find(device, handle) },
        None => Ok(FoundStream::AnyStream),
    }
}

/// Memory of a device that another library uses by its address. It goes back to the pool when this is dropped.
#[pyclass(frozen, module = "pygpumem")]
pub(crate) struct ServedMemory {
    /// The address of the first byte; 0 where there is none.
    #[pyo3(get)]
    address: u64,
    /// Bytes that were asked for.
    #[pyo3(get)]
    nbytes: usize,
    device: gpumem::Device,
    /// `None` after it was given back.
    held: Mutex<Option<Held>>,
    /// The stream of the allocation, if its owner keeps it alive.
    stream: Option<u64>,
}

/// What the memory holds until it is given back. Python's collector is not told of the owner of the stream: it would end a stream
/// that only garbage refers to before the memory, whose end is noted on it.
struct Held {
    memory: Memory<AnyBackend>,
    owner: Option<Kept>,
}

impl ServedMemory {
    /// Gives the memory back. Without Python's lock: a queue may have no room for an event until another thread of Python's goes on.
    fn give_back(&self, py: Python<'_>, stream: Option<u64>) {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Held { memory, owner }) = held else { return };
        // A stream that cannot be asked is one of the device's.
        py.detach(|| memory.free(&find(&self.device, stream).unwrap_or(FoundStream::AnyStream)));
        drop(owner);
    }
}

#[pymethods]
impl ServedMemory {
    /// Gives the memory back after the work that is on a stream now, by the handle of the driver's stream, which must be alive. Without
    /// one that is the stream of the allocation if its owner is known, else every stream of the device. Once more does nothing.
    #[pyo3(signature = (stream=None))]
    fn free(&self, py: Python<'_>, stream: Option<u64>) {
        self.give_back(py, stream.or(self.stream));
    }
}

impl Drop for ServedMemory {
    fn drop(&mut self) {
        Python::try_attach(|py| self.give_back(py, self.stream));
    }
}

/// Allocates memory for another library, under whose name reports and recordings have it. Work on a stream, by the handle of the driver's
/// stream, may use it from now on; the stream must be alive. Without a stream, work on any stream may, and the call waits until the
/// memory is idle. What keeps the stream alive may be given as `owner`: then the end of the memory is in the order of that stream.
#[pyfunction]
#[pyo3(signature = (nbytes, library, stream=None, owner=None, device=None))]
pub(crate) fn serve_memory(
    py: Python<'_>,
    nbytes: usize,
    library: &str,
    stream: Option<u64>,
    owner: Option<Py<PyAny>>,
    device: Option<device::GivenDevice>,
) -> PyResult<ServedMemory> {
    let device = outside(&device::given(device)?);
    let name = format!("{PREFIX}{library}");
    let allocate = || Memory::allocate(&device, nbytes, &find(&device, stream)?);
    let try_to = || py.detach(|| named(&name, allocate));
    let is_exhausted = |error: &Error| matches!(error.kind(), ErrorKind::OutOfMemory { .. });
    let memory = match try_to() {
        Err(error) if is_exhausted(&error) => {
            // Objects of Python whose imports have ended are dropped when the thread has the lock again, and with them memory like this;
            // so is what lies in cycles. Where the flush is refused, the second failure tells why.
            py.import("gc")?.call_method0("collect")?;
            let _ = py.detach(|| device.flush());
            try_to()
        }
        memory => memory,
    };
    let memory = memory.map_err(raise)?;
    let (address, owner) = (memory.address(), owner.map(Kept::from));
    let stream = stream.filter(|_| owner.is_some());
    Ok(ServedMemory { address, nbytes, device, held: Mutex::new(Some(Held { memory, owner })), stream })
}
