//! Lists that Python gives, and tuples that it gets.

use pyo3::{
    Borrowed,
    conversion::FromPyObjectOwned,
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    sync::PyOnceLock,
    types::{PyDict, PyString},
};

/// Most entries of a list: as many as a communicator of one process has ranks.
pub(crate) const MOST: usize = 1 << 16;

/// A tuple, a list or another sequence as an argument. An object may say any length of itself, and may have no end: a `Vec` would
/// ask for the memory first, and the process ends where there is none.
pub(crate) struct Listed<T>(pub(crate) Vec<T>);

impl<'py, T: FromPyObjectOwned<'py>> FromPyObject<'_, 'py> for Listed<T> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let is_other = object.is_instance_of::<PyString>() || object.is_instance_of::<PyDict>();
        if is_other || object.getattr_opt("__getitem__")?.is_none() {
            return Err(PyTypeError::new_err("the argument is no sequence"));
        }
        let mut entries = Vec::new();
        for entry in object.try_iter()? {
            if entries.len() == MOST {
                return Err(PyValueError::new_err(format!("a list has at most {MOST} entries here")));
            }
            entries.push(entry?.extract::<T>().map_err(Into::into)?);
        }
        Ok(Self(entries))
    }
}

/// A class of tuples with names, made once.
pub(crate) fn named<'py>(
    py: Python<'py>,
    class: &'static PyOnceLock<Py<PyAny>>,
    name: &str,
    names: &[&str],
) -> PyResult<&'py Bound<'py, PyAny>> {
    let made = class.get_or_try_init(py, || {
        let make = py.import("collections")?.getattr("namedtuple")?;
        Ok::<_, PyErr>(make.call1((name, names.to_vec()))?.unbind())
    })?;
    Ok(made.bind(py))
}
