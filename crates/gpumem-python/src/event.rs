//! Events: recorded positions in streams, with times.

use crate::{device, error::raise, stream, wait::may_wait};
use pyo3::{exceptions::PyValueError, prelude::*};
use std::sync::{Mutex, PoisonError};

/// A recorded position in a stream, which other streams and the host can wait for.
#[pyclass(frozen, module = "pygpumem")]
pub(crate) struct Event {
    timing: bool,
    device: gpumem::Device,
    /// The last recording.
    recorded: Mutex<Option<gpumem::Event>>,
}

impl Event {
    fn mark(&self) -> Option<gpumem::Event> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The stream of a call: the one that it names, or the default stream of the event's device.
    fn on(&self, stream: Option<stream::Stream>) -> PyResult<gpumem::Stream> {
        match stream {
            Some(stream) => Ok(stream.0),
            None => self.device.default_stream().map_err(raise),
        }
    }
}

#[pymethods]
impl Event {
    /// Records the position after all work enqueued on the stream so far: by default, on the device's default stream.
    #[pyo3(signature = (stream=None))]
    fn record(&self, py: Python<'_>, stream: Option<stream::GivenStream>) -> PyResult<()> {
        let stream = self.on(stream::given(stream, &self.device)?)?;
        let mark =
            py.detach(|| if self.timing { stream.record_timed_event() } else { stream.record_event() });
        *self.recorded.lock().unwrap_or_else(PoisonError::into_inner) = Some(mark.map_err(raise)?);
        Ok(())
    }

    /// Makes all later work of the stream wait for the recorded position. Does nothing if none was recorded. The stream may
    /// be one of another device.
    #[pyo3(signature = (stream=None))]
    fn wait(&self, py: Python<'_>, stream: Option<stream::GivenStream>) -> PyResult<()> {
        let stream = self.on(stream::of_any_device(stream))?;
        let Some(mark) = self.mark() else { return Ok(()) };
        py.detach(|| stream.wait(&mark)).map_err(raise)
    }

    /// Waits until the work before the recording is done.
    fn synchronize(&self, py: Python<'_>) -> PyResult<()> {
        let wait = may_wait("synchronize")?;
        self.mark().map_or(Ok(()), |mark| wait.for_event(py, &mark))
    }

    /// Tells whether the work before the recording is done.
    fn query(&self) -> PyResult<bool> {
        self.mark().map_or(Ok(true), |mark| mark.query().map_err(raise))
    }

    /// Milliseconds from this event to another. Both have been recorded with times, and are done.
    fn elapsed_time(&self, evtend: &Bound<'_, Self>) -> PyResult<f32> {
        let (Some(start), Some(end)) = (self.mark(), evtend.get().mark()) else {
            return Err(PyValueError::new_err("an event that was never recorded has no time"));
        };
        end.elapsed_since(&start).map_err(raise)
    }

    fn __repr__(&self) -> String {
        let state = if self.mark().is_some() { "recorded" } else { "not recorded" };
        format!("<pygpumem.Event on {}, {state}>", self.device.name())
    }
}

/// A new event, which is not recorded yet. Without `timing` it has no time.
#[pyfunction]
#[pyo3(signature = (timing=true, device=None))]
pub(crate) fn event(timing: bool, device: Option<device::GivenDevice>) -> PyResult<Event> {
    Ok(Event { timing, device: device::given(device)?, recorded: Mutex::default() })
}

/// Milliseconds between two events that have been recorded with times, and are done.
#[pyfunction]
pub(crate) fn event_elapsed_time(evtstart: &Bound<'_, Event>, evtend: &Bound<'_, Event>) -> PyResult<f32> {
    evtstart.get().elapsed_time(evtend)
}
