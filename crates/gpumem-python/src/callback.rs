//! Functions of Python that run when a stream has come so far.

use crate::{error::raise, stream::Stream};
use pyo3::{prelude::*, types::PyInt};

/// Calls `callback(stream, status, arg)` once everything enqueued so far is done.
pub(crate) fn add(
    py: Python<'_>,
    stream: &Stream,
    callback: Py<PyAny>,
    arg: Option<Py<PyAny>>,
) -> PyResult<()> {
    let of = stream.clone();
    let run = move |outcome: Result<(), gpumem::Error>| {
        let _ = Python::try_attach(|py| {
            let status = match outcome {
                Ok(()) => PyInt::new(py, 0).into_any().unbind(),
                Err(error) => raise(error).into_value(py).into_any(),
            };
            // Its return value is not used: an exception goes to `sys.unraisablehook`.
            if let Err(error) = callback.bind(py).call1((of, status, arg)) {
                error.write_unraisable(py, Some(callback.bind(py)));
            }
        });
    };
    py.detach(|| stream.0.add_callback(run)).map_err(raise)
}

/// A future of asyncio's running loop that is done, with the stream as its result, once everything enqueued so far is.
pub(crate) fn done<'py>(py: Python<'py>, stream: &Stream) -> PyResult<Bound<'py, PyAny>> {
    let running = py.import("asyncio")?.call_method0("get_running_loop")?;
    let future = running.call_method0("create_future")?;
    let tell = wrap_pyfunction!(settle, py)?.unbind();
    let (to, then, result) = (running.unbind(), future.clone().unbind(), stream.clone());
    let run = move |outcome: Result<(), gpumem::Error>| {
        let _ = Python::try_attach(|py| {
            let error = outcome.err().map(|error| raise(error).into_value(py));
            // A loop that has ended has no waiters left.
            let _ = to.call_method1(py, "call_soon_threadsafe", (tell, then, result, error));
        });
    };
    py.detach(|| stream.0.add_callback(run)).map_err(raise)?;
    Ok(future)
}

/// Gives a future its result, in the thread of its loop.
#[pyfunction]
#[pyo3(signature = (future, stream, error))]
fn settle(
    future: &Bound<'_, PyAny>,
    stream: Bound<'_, Stream>,
    error: Option<Bound<'_, PyAny>>,
) -> PyResult<()> {
    // Who waited may have given up.
    if future.call_method0("done")?.is_truthy()? {
        return Ok(());
    }
    match error {
        Some(error) => future.call_method1("set_exception", (error,)),
        None => future.call_method1("set_result", (stream,)),
    }
    .map(drop)
}
