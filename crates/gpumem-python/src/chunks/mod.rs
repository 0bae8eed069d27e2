//! Arrays that are larger than a device, in pieces of rows.

pub(crate) mod map;

use crate::{
    device::{self, GivenDevice},
    device_array::DeviceNDArray,
    dtype::Elements,
    kept::{Kept, Traverse},
    make,
    stream::{self, Stream},
};
use pyo3::{
    PyTraverseError, PyVisit,
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::PySlice,
};
use std::{
    collections::VecDeque,
    ops::Range,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Pieces whose memory takes turns: one is uploaded while a second one is worked on and a third one is downloaded.
const KEPT: usize = 3;

/// How the rows of an array are cut.
struct Cut {
    /// Rows of a piece without its halo.
    step: usize,
    halo: usize,
    total: usize,
}

impl Cut {
    fn of(
        source: &Bound<'_, PyAny>,
        rows: Option<usize>,
        nbytes: Option<usize>,
        halo: usize,
    ) -> PyResult<Self> {
        let shape: Vec<usize> = source.getattr("shape")?.extract()?;
        let none = || PyValueError::new_err("an array without axes has no rows");
        let total = *shape.first().ok_or_else(none)?;
        let row_bytes = source.getattr("nbytes")?.extract::<usize>()?.checked_div(total).unwrap_or(0);
        let step = match (rows, nbytes) {
            (Some(0), None) => return Err(PyValueError::new_err("a piece has one row at least")),
            // Rows without bytes may be too many to count up.
            (Some(_), None) | (None, Some(_)) if row_bytes == 0 => total.max(1),
            (Some(rows), None) => rows,
            (None, Some(bytes)) => (bytes / row_bytes).saturating_sub(halo.saturating_mul(2)).max(1),
            _ => return Err(PyTypeError::new_err("a piece has so many `rows`, or at most so many `nbytes`")),
        };
        Ok(Self { step, halo, total })
    }

    /// The rows in the array of a piece.
    fn with_halo(&self, rows: &Range<usize>) -> Range<usize> {
        rows.start.saturating_sub(self.halo)..rows.end.saturating_add(self.halo).min(self.total)
    }
}

/// Rows as a key of NumPy's.
fn key<'py>(py: Python<'py>, rows: &Range<usize>) -> Bound<'py, PySlice> {
    PySlice::new(py, rows.start as isize, rows.end as isize, 1)
}

/// The pieces of an array, uploaded one after the other: what `chunks` returns.
#[pyclass(frozen, module = "pygpumem")]
pub(crate) struct ChunkIter {
    source: Kept,
    cut: Cut,
    /// The stream of the uploads.
    stream: Stream,
    /// Held for some instructions, in which nothing else is called.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The first row of the next piece.
    next: usize,
    /// The elements of the last pieces, the oldest first: their memory serves no other piece meanwhile, so that an upload does not wait
    /// for the work on the piece before it. The program may have them, too.
    kept: VecDeque<Elements>,
}

impl ChunkIter {
    fn new(source: &Bound<'_, PyAny>, cut: Cut, at: &gpumem::Device) -> PyResult<Self> {
        let stream = Stream(stream::made(source.py(), || at.stream())?);
        Ok(Self { source: source.clone().unbind().into(), cut, stream, state: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The rows of the next piece, and the piece whose memory is free for it, unless the program has kept its array.
    fn begin(&self) -> Option<(Range<usize>, Option<Elements>)> {
        let mut state = self.state();
        let start = state.next;
        if start >= self.cut.total {
            return None;
        }
        state.next = start.saturating_add(self.cut.step).min(self.cut.total);
        // The work on the oldest one has had the longest time.
        let oldest = if state.kept.len() >= KEPT { state.kept.pop_front() } else { None };
        Some((start..state.next, oldest))
    }

    /// Keeps a piece. After the last one, and after an error, no other piece needs the memory.
    fn end(&self, piece: Option<Elements>) {
        let (mut state, is_error) = (self.state(), piece.is_none());
        state.kept.extend(piece);
        if is_error {
            state.next = self.cut.total;
        }
        let kept =
            if state.next >= self.cut.total { std::mem::take(&mut state.kept) } else { VecDeque::new() };
        drop(state);
        drop(kept);
    }

    fn next(&self, py: Python<'_>) -> PyResult<Option<(Range<usize>, DeviceNDArray)>> {
        let Some((rows, oldest)) = self.begin() else { return Ok(None) };
        drop(oldest);
        let part = self.source.bind(py).get_item(key(py, &self.cut.with_halo(&rows)));
        let device = self.stream.0.device();
        let piece = part.and_then(|part| make::copied(py, &part, Some(&self.stream), device));
        self.end(piece.as_ref().ok().map(DeviceNDArray::again));
        Ok(Some((rows, piece?)))
    }
}

#[pymethods]
impl ChunkIter {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.source.visit(&visit)
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// The rows of the next piece, as a slice, and its array.
    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<(Bound<'py, PySlice>, DeviceNDArray)>> {
        Ok(self.next(py)?.map(|(rows, piece)| (key(py, &rows), piece)))
    }

    fn __repr__(&self) -> String {
        let (next, total) = (self.state().next, self.cut.total);
        format!("<pygpumem.ChunkIter at row {next} of {total} on {}>", self.stream.0.device().name())
    }
}

/// Iterates over an array of any size in pieces along its first axis: each is a slice of rows, and a new array of the device with
/// these rows, of which each upload goes on beside the work on the pieces before. A piece has `rows` rows, or as many as `nbytes`
/// bytes of the device hold; `halo` adds so many rows before and after to its array, where there are any.
#[pyfunction]
#[pyo3(signature = (source, rows=None, *, nbytes=None, halo=0, device=None))]
pub(crate) fn chunks(
    source: &Bound<'_, PyAny>,
    rows: Option<usize>,
    nbytes: Option<usize>,
    halo: usize,
    device: Option<GivenDevice>,
) -> PyResult<ChunkIter> {
    let source = make::source(source)?;
    ChunkIter::new(&source, Cut::of(&source, rows, nbytes, halo)?, &device::given(device)?)
}
