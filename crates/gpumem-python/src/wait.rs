//! Waiting, for a stream or for other ranks.

use crate::error::raise;
use pyo3::{exceptions::PyRuntimeError, prelude::*};
use std::{
    sync::mpsc::{RecvTimeoutError, channel},
    thread,
    time::Duration,
};

/// Waits for a stream so that Python's signals are handled meanwhile.
pub(crate) fn wait(py: Python<'_>, stream: &gpumem::Stream) -> PyResult<()> {
    const EAGER: u32 = 200;
    const NAP: Duration = Duration::from_micros(200);
    let mut looks = 0;
    while let Ok(false) = py.detach(|| stream.query()) {
        looks += 1;
        py.detach(|| if looks < EAGER { std::thread::yield_now() } else { std::thread::sleep(NAP) });
        py.check_signals()?;
    }
    py.detach(|| stream.synchronize()).map_err(raise)
}

/// Runs what may wait for long on a thread of its own, so that Python's signals are handled meanwhile. After a signal it goes
/// on there, and what it returns is dropped.
pub(crate) fn while_interruptible<R: Send + 'static>(
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
