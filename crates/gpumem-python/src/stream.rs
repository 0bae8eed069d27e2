//! Streams.

use crate::dtype::each;
use crate::{
    attach::{Code, attach},
    device,
    device_array::DeviceNDArray,
    error::{raise, raise_descriptor},
    kept::Kept,
    pinned::{Held, HostNDArray, Memory},
    wait::may_wait,
};
use gpumem::{Error, ErrorKind, generic::InterchangeStream};
use pyo3::{
    Borrowed,
    exceptions::PyTypeError,
    prelude::*,
    types::{PyInt, PyTuple},
};

/// A stream as an argument: `None` and Numba's `0` mean that there is none. What it names is had by saying which devices
/// its stream may belong to.
pub(crate) struct GivenStream(Option<Stream>);

impl From<Stream> for GivenStream {
    fn from(stream: Stream) -> Self {
        Self(Some(stream))
    }
}

/// The stream of a call about something of a device, if it names one. A stream of another device is an error.
pub(crate) fn given(stream: Option<GivenStream>, device: &gpumem::Device) -> PyResult<Option<Stream>> {
    let stream = of_any_device(stream);
    match stream.as_ref().map(|stream| stream.0.device()).filter(|has| *has != device) {
        Some(has) => {
            let wrong = ErrorKind::WrongDevice { what: "stream", has: has.name(), wants: device.name() };
            Err(raise(Error::new("", "stream", wrong)))
        }
        None => Ok(stream),
    }
}

/// The stream and the device of a call that makes something: on the device of its stream, else on the one that is named,
/// else on the current one.
pub(crate) fn placed(
    stream: Option<GivenStream>,
    device: Option<device::GivenDevice>,
) -> PyResult<(Option<Stream>, gpumem::Device)> {
    let device = match (&stream, device) {
        (Some(GivenStream(Some(stream))), None) => stream.0.device().clone(),
        (_, device) => device::given(device)?,
    };
    Ok((given(stream, &device)?, device))
}

/// The stream of a call that takes one of any device.
pub(crate) fn of_any_device(stream: Option<GivenStream>) -> Option<Stream> {
    stream.and_then(|stream| stream.0)
}

impl<'py> FromPyObject<'_, 'py> for GivenStream {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(stream) = object.cast::<Stream>() {
            return Ok(Self(Some(stream.get().clone())));
        }
        match object.is_none() || object.extract::<i64>().is_ok_and(|number| number == 0) {
            true => Ok(Self(None)),
            false => Err(PyTypeError::new_err("a stream is a pygpumem.Stream, or 0 for none")),
        }
    }
}

/// A queue of work. If work on two streams uses one array, the library orders it.
#[pyclass(frozen, eq, hash, module = "pygpumem", skip_from_py_object)]
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Stream(pub(crate) gpumem::Stream);

#[pymethods]
impl Stream {
    /// Waits until everything enqueued so far is done.
    pub(crate) fn synchronize(&self, py: Python<'_>) -> PyResult<()> {
        may_wait("synchronize")?.for_stream(py, &self.0)
    }

    /// Whether everything enqueued so far is done.
    fn query(&self) -> PyResult<bool> {
        self.0.query().map_err(raise)
    }

    /// A context manager that synchronises at its end, also after an exception.
    fn auto_synchronize(&self) -> AutoSynchronize {
        AutoSynchronize(self.clone())
    }

    /// A page-locked copy of an array, which is enqueued. Looking at it waits for the copy.
    pub(crate) fn copy_to_host(&self, py: Python<'_>, ary: &Bound<'_, DeviceNDArray>) -> PyResult<HostNDArray> {
        let ary = ary.get();
        given(Some(GivenStream(Some(self.clone()))), &ary.device()?.0)?;
        if !ary.copies_keep_bytes() {
            return self.copy_to_host(py, &Bound::new(py, ary.copy_on(py, &self.0)?)?);
        }
        let dtype = ary.dtype.clone_ref(py).with_alignment(true);
        if ary.dtype.is_unaligned() {
            let bytes = ary.bytes_of_elements()?;
            let host = py.detach(|| self.0.copy_to_host(&bytes)).map_err(raise)?;
            let held = dtype.held_layout(&ary.dtype.layout(host.layout())?)?;
            return HostNDArray::over(&host, held, dtype);
        }
        each!(&ary.elements, array => {
            let host = py.detach(|| self.0.copy_to_host(array)).map_err(raise)?;
            HostNDArray::new(Memory::of(Held::pinned(host)), dtype)
        })
    }

    /// Calls `callback(stream, status, arg)` on a thread of the library's, once everything enqueued so far is done. The
    /// status is 0, or the error of the work. A callback must not wait for a device.
    #[pyo3(signature = (callback, arg=None))]
    fn add_callback(&self, py: Python<'_>, callback: Py<PyAny>, arg: Option<Py<PyAny>>) -> PyResult<()> {
        call_later(py, self, callback, arg)
    }

    /// Something to await: it is done, with the stream as its result, once everything enqueued so far is.
    fn async_done<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        future_done(py, self)
    }

    /// The number by which other libraries know the stream.
    #[getter]
    fn handle(&self, py: Python<'_>) -> PyResult<u64> {
        // Another thread may be inside the driver with the stream, for as long as that has no room.
        Ok(py.detach(|| self.0.raw_handle()).map_err(raise)?.0)
    }

    /// The device that it belongs to.
    #[getter]
    fn device(&self) -> device::Device {
        device::Device(self.0.device().clone())
    }

    /// CUDA's stream protocol: version 0 and the handle.
    fn __cuda_stream__(&self, py: Python<'_>) -> PyResult<(i32, u64)> {
        Ok((0, self.handle(py)?))
    }

    fn __repr__(&self) -> String {
        format!("<pygpumem.Stream on {}>", self.0.device().name())
    }
}

/// The context of [`Stream::auto_synchronize`].
#[pyclass(frozen, module = "pygpumem")]
struct AutoSynchronize(Stream);

#[pymethods]
impl AutoSynchronize {
    fn __enter__(&self) -> Stream {
        self.0.clone()
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<bool> {
        self.0.synchronize(py)?;
        Ok(false)
    }
}

/// A stream that `make` makes, without Python's lock: before it does, frees that wait are carried out, and a driver's free may wait for
/// work that needs another thread of Python.
pub(crate) fn made(
    py: Python<'_>,
    make: impl FnOnce() -> gpumem::Result<gpumem::Stream> + Send,
) -> PyResult<gpumem::Stream> {
    py.detach(make).map_err(raise)
}

/// A new stream of a device, of the current one where none is named.
#[pyfunction]
#[pyo3(signature = (device=None))]
pub(crate) fn stream(py: Python<'_>, device: Option<device::GivenDevice>) -> PyResult<Stream> {
    let device = device::given(device)?;
    made(py, || device.stream()).map(Stream)
}

/// The stream that calls without a stream use, of a device.
#[pyfunction]
#[pyo3(signature = (device=None))]
pub(crate) fn default_stream(py: Python<'_>, device: Option<device::GivenDevice>) -> PyResult<Stream> {
    let device = device::given(device)?;
    made(py, || device.default_stream()).map(Stream)
}

/// CUDA's legacy default stream of a device. Its implicit waits are not relied on.
#[pyfunction]
#[pyo3(signature = (device=None))]
pub(crate) fn legacy_default_stream(py: Python<'_>, device: Option<device::GivenDevice>) -> PyResult<Stream> {
    let device = device::given(device)?;
    made(py, || device.legacy_stream()).map(Stream)
}

/// CUDA's default stream of the calling thread. On another thread it is an error.
#[pyfunction]
#[pyo3(signature = (device=None))]
pub(crate) fn per_thread_default_stream(py: Python<'_>, device: Option<device::GivenDevice>) -> PyResult<Stream> {
    let device = device::given(device)?;
    made(py, || device.per_thread_stream()).map(Stream)
}

/// A stream of another library by its handle; 1 is CUDA's legacy default stream, 2 the calling thread's. It must outlive
/// its use here; `owner` is kept until then.
#[pyfunction]
#[pyo3(signature = (handle, owner=None, device=None))]
pub(crate) fn external_stream(
    py: Python<'_>,
    handle: i64,
    owner: Option<Py<PyAny>>,
    device: Option<device::GivenDevice>,
) -> PyResult<Stream> {
    let device = device::given(device)?;
    let (handle, owner) = (InterchangeStream::from_number(handle).map_err(raise_descriptor)?, owner.map(Kept::from));
    let stream = made(py, || match handle {
        InterchangeStream::Legacy => device.legacy_stream(),
        InterchangeStream::PerThread => device.per_thread_stream(),
        // SAFETY: Python has no way to promise it; the function's name warns its caller.
        InterchangeStream::Handle(raw) => unsafe { device.external_stream(raw, owner) },
    });
    stream.map(Stream)
}

/// Calls `callback(stream, status, arg)` once everything enqueued so far is done.
fn call_later(py: Python<'_>, stream: &Stream, callback: Py<PyAny>, arg: Option<Py<PyAny>>) -> PyResult<()> {
    let (of, callback, arg) = (stream.clone(), Kept::from(callback), arg.map(Kept::from));
    let run = move |outcome: Result<(), gpumem::Error>| {
        let _ = attach(Code::Callback, |py| {
            let status = match outcome {
                Ok(()) => PyInt::new(py, 0).into_any().unbind(),
                Err(error) => raise(error).into_value(py).into_any(),
            };
            // Its return value is not used: an exception goes to `sys.unraisablehook`.
            if let Err(error) = callback.bind(py).call1((of, status, arg.map(|arg| arg.clone_ref(py)))) {
                error.write_unraisable(py, Some(callback.bind(py)));
            }
        });
    };
    py.detach(|| stream.0.add_callback(run)).map_err(raise)
}

/// A future of asyncio's running loop that is done, with the stream as its result, once everything enqueued so far is.
fn future_done<'py>(py: Python<'py>, stream: &Stream) -> PyResult<Bound<'py, PyAny>> {
    let running = py.import("asyncio")?.call_method0("get_running_loop")?;
    let future = running.call_method0("create_future")?;
    let tell = wrap_pyfunction!(settle, py)?.unbind();
    let (to, then, result) = (Kept::from(running.unbind()), Kept::from(future.clone().unbind()), stream.clone());
    let run = move |outcome: Result<(), gpumem::Error>| {
        let _ = attach(Code::Callback, |py| {
            let error = outcome.err().map(|error| raise(error).into_value(py));
            // A loop that has ended has no waiters left.
            let _ = to.call_method1(py, "call_soon_threadsafe", (tell, then.clone_ref(py), result, error));
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
    // The waiting code may have given up.
    if future.call_method0("done")?.is_truthy()? {
        return Ok(());
    }
    match error {
        Some(error) => future.call_method1("set_exception", (error,)),
        None => future.call_method1("set_result", (stream,)),
    }
    .map(drop)
}
