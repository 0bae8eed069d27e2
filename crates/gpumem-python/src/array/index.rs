//! Parts of arrays, by keys as NumPy understands them.

use crate::{
    device_array::{DeviceNDArray, Way},
    error::raise_layout,
    key::{WHOLE, basic_key, index},
    stream::Stream,
};
use gpumem::{ElementKind, Layout, ndarray::SliceInfoElem};
use pyo3::{
    exceptions::PyValueError,
    prelude::*,
    types::{PyFloat, PyInt, PyString, PyTuple},
};

impl DeviceNDArray {
    /// A part by any key that NumPy calls basic.
    fn slice(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<Self> {
        if key.is_instance_of::<PyString>() && self.dtype.is_bytes() {
            return self.field(py, key);
        }
        let layout = self.layout()?;
        self.sliced(py, &layout, &basic_key(key, layout.shape())?)
    }

    fn sliced(&self, py: Python<'_>, layout: &Layout, key: &[SliceInfoElem]) -> PyResult<Self> {
        self.relayout(py, &layout.slice(key).map_err(raise_layout)?)
    }

    /// One field of every record.
    fn field(&self, py: Python<'_>, name: &Bound<'_, PyAny>) -> PyResult<Self> {
        let field = self.dtype.field(py, name)?;
        self.at(&field.layout(&self.layout()?)?, field.dtype)
    }

    /// A part, as a view. A single number is a NumPy scalar, a single record a view without axes.
    pub(super) fn item<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let part = self.slice(py, key)?;
        let is_one = self.is_of_one(key)? || (key.is_instance_of::<PyString>() && part.ndim()? == 0);

        if is_one && part.dtype.numpy(py)?.getattr("fields")?.is_none() {
            return part.scalar(py);
        }
        Ok(Bound::new(py, part)?.into_any())
    }

    /// Whether a key names one element by all of its indices.
    fn is_of_one(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let is_index = |part: &Bound<'_, PyAny>| index(part).is_ok();
        let (parts, all) = match key.cast::<PyTuple>() {
            Ok(tuple) => (tuple.len(), tuple.iter().all(|part| is_index(&part))),
            Err(_) => (1, is_index(key)),
        };
        Ok(all && parts == self.ndim()?)
    }

    /// The only element, as a NumPy scalar.
    pub(super) fn scalar<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let host = self.copy_to_host(py, None, None)?;
        host.call_method1("reshape", (PyTuple::empty(py),))?.get_item(PyTuple::empty(py))
    }

    /// Assigns to a part, broadcast and converted as NumPy does.
    pub(super) fn set_item(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        stream: Option<&Stream>,
    ) -> PyResult<()> {
        let part = self.slice(py, key)?;
        if let Some(element) = self.dtype.number() {
            let whole = !matches!(
                element.kind,
                ElementKind::Float | ElementKind::BFloat | ElementKind::Complex
            );
            if value.is_instance_of::<PyInt>() || (value.is_instance_of::<PyFloat>() && !whole) {
                return part.fill(py, element, value, stream);
            }
        }
        let way = if self.is_of_one(key)? { Way::AssignOne } else { Way::Assign };
        part.fill_from(py, value, stream, way)
    }

    /// Parts of `section` elements along the first axis; the last may be smaller.
    pub(super) fn parts(&self, py: Python<'_>, section: isize) -> PyResult<Vec<Self>> {
        let layout = self.layout()?;
        let section = usize::try_from(section).ok().filter(|section| *section > 0);
        let (Some(&length), Some(section)) = (layout.shape().first(), section) else {
            return Err(PyValueError::new_err("split needs an axis, and parts of at least one element"));
        };
        if length.div_ceil(section) > crate::list::MOST {
            return Err(PyValueError::new_err(format!("an array is split into at most {} parts", crate::list::MOST)));
        }
        let part = |start: usize| {
            let end = Some(start.saturating_add(section).min(length) as isize);
            let mut key = vec![SliceInfoElem::Slice { start: start as isize, end, step: 1 }];
            key.resize(layout.ndim(), WHOLE);
            self.sliced(py, &layout, &key)
        };
        (0..length).step_by(section).map(part).collect()
    }
}
