//! Keys of arrays, as NumPy understands them.

use gpumem::ndarray::SliceInfoElem;
use pyo3::{
    exceptions::PyIndexError,
    prelude::*,
    types::{PyBool, PyEllipsis, PySlice, PyTuple},
};

/// A whole axis.
pub(crate) const WHOLE: SliceInfoElem = SliceInfoElem::Slice { start: 0, end: None, step: 1 };

/// What a key that NumPy calls basic chooses of an array with axes of these lengths.
pub(crate) fn basic_key(key: &Bound<'_, PyAny>, lengths: &[usize]) -> PyResult<Vec<SliceInfoElem>> {
    let key = match key.cast::<PyTuple>() {
        Ok(tuple) => tuple.clone(),
        Err(_) => PyTuple::new(key.py(), [key])?,
    };
    let used = key.iter().filter(|part| !part.is_none() && !part.is_instance_of::<PyEllipsis>()).count();
    if used > lengths.len() {
        return Err(PyIndexError::new_err("too many indices"));
    }
    let (mut axis, mut info, mut dots) = (0, Vec::new(), false);
    for part in key.iter() {
        if part.is_none() {
            info.push(SliceInfoElem::NewAxis);
        } else if part.is_instance_of::<PyEllipsis>() {
            if std::mem::replace(&mut dots, true) {
                return Err(PyIndexError::new_err("only one ellipsis"));
            }
            let left = lengths.len() - used;
            info.resize(info.len() + left, WHOLE);
            axis += left;
        } else if let Ok(slice) = part.cast::<PySlice>() {
            info.push(python_slice(slice, lengths[axis])?);
            axis += 1;
        } else {
            info.push(SliceInfoElem::Index(index(&part)?));
            axis += 1;
        }
    }
    info.resize(info.len() + lengths.len() - axis, WHOLE);
    Ok(info)
}

/// A single index. NumPy takes lists, arrays and truth values as well, of which no view can be made.
pub(crate) fn index(part: &Bound<'_, PyAny>) -> PyResult<isize> {
    let text = "only integers, slices, ... and None index a device array; copy_to_host() gives an array that takes more";
    match part.extract() {
        Ok(index) if !part.is_instance_of::<PyBool>() => Ok(index),
        _ => Err(PyIndexError::new_err(text)),
    }
}

/// A slice as Python means it: clipped, and with the end counted backwards for a negative step.
fn python_slice(slice: &Bound<'_, PySlice>, length: usize) -> PyResult<SliceInfoElem> {
    let found = slice.indices(length as isize)?;
    let (count, step) = (found.slicelength as isize, found.step);
    // ndarray takes the same elements from the other end where the step is negative.
    let (start, end) = match step > 0 {
        _ if count == 0 => (0, 0),
        true => (found.start, found.start + (count - 1) * step + 1),
        false => (found.start + (count - 1) * step, found.start + 1),
    };
    Ok(SliceInfoElem::Slice { start, end: Some(end), step })
}
