//! Waiting, for the device or for other ranks.

use crate::error::raise;
use gpumem::{AnyBackend, Storage, generic::ArrayBase, ndarray::IxDyn};
use pyo3::{exceptions::PyRuntimeError, prelude::*};
use std::{
    sync::mpsc::{RecvTimeoutError, channel},
    thread,
    time::{Duration, Instant},
};

/// The permission to wait. Every wait of the extension is one of its methods: none can be had without [asking](may_wait).
#[derive(Clone, Copy)]
pub(crate) struct MayWait(());

/// Asks whether the calling thread may wait: not in a callback, nor in the body of a kernel. What must not be half done
/// asks before it begins.
pub(crate) fn may_wait(operation: &'static str) -> PyResult<MayWait> {
    ask(operation).map_err(raise)
}

/// As [`may_wait`], where the error is one of the library's.
pub(crate) fn ask(operation: &'static str) -> gpumem::Result<MayWait> {
    gpumem_memory::may_block(operation).map(MayWait)
}

/// Waits, when Python ends, for threads that run its code. Signals are left to be handled later. Returns whether they are out: a
/// thread may go on for ever.
pub(crate) fn at_end(py: Python<'_>, are_out: impl Fn() -> bool) -> bool {
    const NAP: Duration = Duration::from_millis(1);
    const LONGEST: Duration = Duration::from_secs(10);
    let begun = Instant::now();
    while !are_out() {
        if begun.elapsed() > LONGEST {
            return false;
        }
        py.detach(|| thread::sleep(NAP));
    }
    true
}

impl MayWait {
    /// Waits for a stream so that Python's signals are handled meanwhile. For calls that are about the stream: it tells all failures
    /// on it, and each once.
    pub(crate) fn for_stream(self, py: Python<'_>, stream: &gpumem::Stream) -> PyResult<()> {
        self.until(py, || stream.query())?;
        py.detach(|| stream.synchronize()).map_err(raise)
    }

    /// As [`for_stream`](Self::for_stream), for a recorded position.
    pub(crate) fn for_event(self, py: Python<'_>, event: &gpumem::Event) -> PyResult<()> {
        self.until(py, || event.query())?;
        py.detach(|| event.synchronize()).map_err(raise)
    }

    /// Waits until what is on a stream now is over, however it ends: the work of others may be among it, whose failures are theirs.
    /// The failure of the caller's own work is told by the arrays that it was to write.
    pub(crate) fn for_work(self, py: Python<'_>, stream: &gpumem::Stream) -> PyResult<()> {
        let event = py.detach(|| stream.record_event()).map_err(raise)?;
        self.until(py, || event.query())
    }

    /// Waits for everything on a device.
    pub(crate) fn for_device(self, py: Python<'_>, device: &gpumem::Device) -> PyResult<()> {
        py.detach(|| device.synchronize()).map_err(raise)
    }

    /// Waits for the uses of an array. Not interruptible: the caller is without Python's lock.
    pub(crate) fn for_array<S: Storage<Backend = AnyBackend>>(
        self,
        array: &ArrayBase<S, IxDyn>,
    ) -> gpumem::Result<()> {
        array.synchronize()
    }

    /// Looks until there is an answer, which may be an error: the wait that follows tells it.
    fn until(self, py: Python<'_>, is_done: impl Fn() -> gpumem::Result<bool> + Send + Sync) -> PyResult<()> {
        const EAGER: u32 = 200;
        const NAP: Duration = Duration::from_micros(200);
        let mut looks = 0;
        while let Ok(false) = py.detach(&is_done) {
            looks += 1;
            py.detach(|| if looks < EAGER { thread::yield_now() } else { thread::sleep(NAP) });
            py.check_signals()?;
        }
        Ok(())
    }

    /// Runs what may wait for long on a thread of its own, so that Python's signals are handled meanwhile. After a signal it
    /// goes on there, beside what the program calls next, and what it returns is dropped.
    pub(crate) fn while_interruptible<R: Send + 'static>(
        self,
        py: Python<'_>,
        run: impl FnOnce() -> R + Send + 'static,
    ) -> PyResult<R> {
        const NAP: Duration = Duration::from_millis(20);
        let (sender, receiver) = channel();
        let started = thread::Builder::new().name("gpumem:join".to_owned()).spawn(move || {
            let _ = sender.send(run());
        });
        started.map_err(|error| PyRuntimeError::new_err(format!("no thread could be started: {error}")))?;
        // A receiver is used by one thread at a time, and another one may hold Python's lock.
        let receiver = std::sync::Mutex::new(receiver);
        loop {
            let received = py.detach(|| match receiver.lock() {
                Ok(receiver) => receiver.recv_timeout(NAP),
                Err(_) => Err(RecvTimeoutError::Disconnected),
            });
            match received {
                Ok(value) => return Ok(value),
                Err(RecvTimeoutError::Timeout) => py.check_signals()?,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(PyRuntimeError::new_err("the thread that waited for other ranks has failed"));
                }
            }
        }
    }
}
