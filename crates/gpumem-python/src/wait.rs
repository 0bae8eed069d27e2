//! Waiting for a stream.

use crate::error::raise;
use pyo3::prelude::*;
use std::time::Duration;

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
