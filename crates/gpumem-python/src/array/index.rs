//! Parts of arrays, by keys as NumPy understands them.

use super::DeviceNDArray;
use crate::{
    dtype::{Elements, each, hold},
    error::raise,
};
use gpumem::{
    ElementKind,
    ndarray::{IxDyn, SliceInfo, SliceInfoElem},
};
use pyo3::{
    exceptions::{PyIndexError, PyValueError},
    prelude::*,
    types::{PyBool, PyEllipsis, PyFloat, PyInt, PySlice, PyTuple},
};

/// A whole axis.
const WHOLE: SliceInfoElem = SliceInfoElem::Slice { start: 0, end: None, step: 1 };

impl DeviceNDArray {
    /// A part by any key that NumPy calls basic.
    fn slice(&self, key: &Bound<'_, PyAny>) -> PyResult<Elements> {
        let lengths = each!(&self.elements, array => array.shape().to_vec());
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
        self.sliced(info)
    }

    fn sliced(&self, info: Vec<SliceInfoElem>) -> PyResult<Elements> {
        let info = SliceInfo::<_, IxDyn, IxDyn>::try_from(info)
            .map_err(|error| PyIndexError::new_err(error.to_string()))?;
        each!(&self.elements, array => array.slice(&info).map(|view| hold(&view))).map_err(raise)
    }

    /// A part, as a view; a single element as a NumPy scalar.
    pub(super) fn item<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let part = self.view(self.slice(key)?);
        let parts = key.cast::<PyTuple>().map_or(1, |tuple| tuple.len());
        let is_index = |part: &Bound<'_, PyAny>| index(part).is_ok();
        let all = key
            .cast::<PyTuple>()
            .map_or_else(|_| is_index(key), |tuple| tuple.iter().all(|part| is_index(&part)));
        if all && parts == self.ndim() {
            let host = part.copy_to_host(py, None, None)?;
            return host.get_item(PyTuple::empty(py));
        }
        Ok(Bound::new(py, part)?.into_any())
    }

    /// Assigns to a part, broadcast and converted as NumPy does.
    pub(super) fn set_item(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let part = self.view(self.slice(key)?);
        let whole = !matches!(self.element().kind, ElementKind::Float | ElementKind::Complex);
        if value.is_instance_of::<PyInt>() || (value.is_instance_of::<PyFloat>() && !whole) {
            return part.fill(py, value);
        }
        part.fill_from(py, value, None, true)
    }

    /// Parts of `section` elements along the first axis; the last may be smaller.
    pub(super) fn parts(&self, section: isize) -> PyResult<Vec<Self>> {
        let length = each!(&self.elements, array => array.shape().first().copied());
        let section = usize::try_from(section).ok().filter(|section| *section > 0);
        let (Some(length), Some(section)) = (length, section) else {
            return Err(PyValueError::new_err("split needs an axis, and parts of at least one element"));
        };
        let part = |start: usize| {
            let end = Some(start.saturating_add(section).min(length) as isize);
            let mut info = vec![SliceInfoElem::Slice { start: start as isize, end, step: 1 }];
            info.resize(self.ndim(), WHOLE);
            Ok(self.view(self.sliced(info)?))
        };
        (0..length).step_by(section).map(part).collect()
    }

    /// The elements without axes of length one.
    pub(super) fn without_axes(&self, axis: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let Some(axis) = axis else {
            return Ok(self.view(each!(&self.elements, array => hold(&array.squeeze()))));
        };
        let named: Vec<isize> = match axis.cast::<PyTuple>() {
            Ok(axes) => axes.extract()?,
            Err(_) => vec![axis.extract()?],
        };
        let lengths = each!(&self.elements, array => array.shape().to_vec());
        let mut info = vec![WHOLE; lengths.len()];
        for axis in named {
            let from_start = if axis < 0 { axis + lengths.len() as isize } else { axis };
            let place = usize::try_from(from_start).ok().filter(|place| *place < lengths.len());
            match place.map(|place| (place, lengths[place])) {
                Some((place, 1)) => info[place] = SliceInfoElem::Index(0),
                Some((_, length)) => {
                    let text = format!("axis {axis} has {length} elements and cannot be squeezed");
                    return Err(PyValueError::new_err(text));
                }
                None => {
                    let text = format!("axis {axis} is none of an array with {} axes", lengths.len());
                    return Err(PyValueError::new_err(text));
                }
            }
        }
        Ok(self.view(self.sliced(info)?))
    }
}

/// A single index. NumPy takes lists, arrays and truth values as well, of which no view can be made.
fn index(part: &Bound<'_, PyAny>) -> PyResult<isize> {
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
