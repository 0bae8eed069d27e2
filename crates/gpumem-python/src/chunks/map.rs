//! Arrays of the host to arrays of the host: up, work, down.

use super::{ChunkIter, Cut, KEPT, key};
use crate::{
    device::{self, GivenDevice},
    device_array::DeviceNDArray,
    dtype::Place,
    element::DType,
    error::raise,
    file_view::FileView,
    host::Host,
    in_use::Use,
    make,
    pinned::HostNDArray,
    recording::is_recorded,
    stream::{self, Stream},
    wait::{MayWait, may_wait},
};
use gpumem::{Error, ErrorKind, NotRecorded};
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::PyTuple,
};
use std::{collections::VecDeque, ops::Range};

/// Calls `function(stream, rows, piece)` for each piece of an array of any size, as `chunks` makes them, and collects the arrays of
/// the device that it returns, each with a row for each of `rows`, in an array of NumPy: in `out`, or in a new one, which is
/// returned. Uploads, the work that the function enqueues on the stream, and downloads go on beside each other. All is done on return.
#[pyfunction]
#[pyo3(signature = (function, source, rows=None, *, nbytes=None, halo=0, out=None, device=None))]
#[allow(clippy::too_many_arguments)] // each has a name
pub(crate) fn map_chunks<'py>(
    py: Python<'py>,
    function: &Bound<'py, PyAny>,
    source: &Bound<'py, PyAny>,
    rows: Option<usize>,
    nbytes: Option<usize>,
    halo: usize,
    out: Option<&Bound<'py, PyAny>>,
    device: Option<GivenDevice>,
) -> PyResult<Bound<'py, PyAny>> {
    let wait = may_wait("map_chunks")?;
    let (source, at) = (make::source(source)?, device::given(device)?);
    let pieces = ChunkIter::new(&source, Cut::of(&source, rows, nbytes, halo)?, &at)?;
    if is_recorded(&pieces.stream.0) {
        let what = NotRecorded::Wait;
        return Err(raise(Error::new("", "map_chunks", ErrorKind::NotRecordable { what })));
    }
    let given = out.map(|out| Collected::over(out, &source, pieces.cut.total)).transpose()?;
    let own_stream = || stream::made(py, || at.stream()).map(Stream);
    let work = own_stream()?;
    let mut downloads =
        Downloads { wait, stream: own_stream()?, waiting: VecDeque::new(), to: given };
    let worked: PyResult<()> = (|| {
        while let Some((rows, piece)) = pieces.next(py)? {
            let made = function.call1((work.clone(), key(py, &rows), piece))?;
            downloads.begin(&made, rows, pieces.cut.total)?;
            if downloads.waiting.len() >= KEPT {
                downloads.take(py)?;
            }
        }
        Ok(())
    })();
    // What came before an error arrives. Its own error is the earlier one.
    while downloads.take(py)? {}
    worked?;
    for stream in [&downloads.stream, &work, &pieces.stream] {
        wait.for_stream(py, &stream.0)?;
    }
    let none = || {
        PyValueError::new_err(
            "an array without rows has no results, and no `out` says of which type they are",
        )
    };
    match (out, downloads.to) {
        (Some(out), _) => Ok(out.clone()),
        (None, to) => Ok(to.ok_or_else(none)?.array),
    }
}

/// The array of NumPy that results are collected in.
struct Collected<'py> {
    array: Bound<'py, PyAny>,
    dtype: DType,
    shape: Vec<usize>,
    /// The array as it was given, whose memory it fixes.
    given: Option<Host<'py>>,
}

impl<'py> Collected<'py> {
    /// A new array for results like the first one.
    fn like(py: Python<'py>, first: &DeviceNDArray, total: usize) -> PyResult<Self> {
        let mut shape = first.layout()?.shape().to_vec();
        let none = || PyValueError::new_err("an array without axes has no rows");
        *shape.first_mut().ok_or_else(none)? = total;
        let dtype = first.dtype.clone_ref(py);
        let array =
            py.import("numpy")?.call_method1("empty", (PyTuple::new(py, &shape)?, dtype.numpy(py)?))?;
        Ok(Self { array, dtype, shape, given: None })
    }

    fn over(out: &Bound<'py, PyAny>, source: &Bound<'py, PyAny>, total: usize) -> PyResult<Self> {
        let host = Host::to_write(out)?;
        let shape = host.layout()?.shape().to_vec();
        if shape.first() != Some(&total) {
            return Err(PyValueError::new_err(format!("`out` of shape {shape:?} has not {total} rows")));
        }
        let place = match source.cast::<DeviceNDArray>() {
            Ok(array) => Some(Place::of(&array.get().elements)),
            Err(_) if source.is_instance_of::<FileView>() => None,
            Err(_) => Some(Host::of(source)?.place()),
        };
        if place.is_some_and(|place| place.shares(&host.place())) {
            // Rows would be written that a later piece has yet to read.
            return Err(PyValueError::new_err("`out` and the array share memory"));
        }
        // Its shape is its own, whatever the function does to the array.
        let array = host.array.call_method0("view")?;
        Ok(Self { array, dtype: host.dtype.clone_ref(out.py()), shape, given: Some(host) })
    }

    /// Refuses a result of another type, or that is not of the rows.
    fn check(&self, py: Python<'_>, made: &DeviceNDArray, rows: &Range<usize>) -> PyResult<()> {
        self.dtype.expect(py, &made.dtype)?;
        let (found, mut wanted) = (made.layout()?.shape().to_vec(), self.shape.clone());
        wanted.splice(..1, [rows.len()]);
        match found == wanted {
            true => Ok(()),
            false => Err(PyValueError::new_err(format!(
                "the function returns the shape {found:?}, not {wanted:?}"
            ))),
        }
    }
}

/// Results on their way to the host.
struct Downloads<'py> {
    wait: MayWait,
    stream: Stream,
    waiting: VecDeque<(Range<usize>, HostNDArray, gpumem::Event)>,
    to: Option<Collected<'py>>,
}

impl<'py> Downloads<'py> {
    /// Enqueues the copy of a result to page-locked memory.
    fn begin(&mut self, made: &Bound<'py, PyAny>, rows: Range<usize>, total: usize) -> PyResult<()> {
        let py = made.py();
        let wrong = |_| PyTypeError::new_err("the function returns an array of the device");
        let made = made.cast::<DeviceNDArray>().map_err(wrong)?;
        let to = match self.to.take() {
            Some(to) => to,
            None => Collected::like(py, made.get(), total)?,
        };
        self.to.insert(to).check(py, made.get(), &rows)?;
        let host = self.stream.copy_to_host(py, made)?;
        self.waiting.push_back((rows, host, self.stream.0.record_event().map_err(raise)?));
        Ok(())
    }

    /// Waits for the oldest one, and puts it where it belongs. Returns whether there was one.
    fn take(&mut self, py: Python<'py>) -> PyResult<bool> {
        let (Some((rows, host, event)), Some(to)) = (self.waiting.pop_front(), &self.to) else {
            return Ok(false);
        };
        self.wait.for_event(py, &event)?;
        let host = py.import("numpy")?.call_method1("asarray", (Bound::new(py, host)?,))?;
        if let Some(given) = &to.given {
            given.wait(Use::Write)?;
        }
        to.array.set_item(key(py, &rows), host)?;
        Ok(true)
    }
}
