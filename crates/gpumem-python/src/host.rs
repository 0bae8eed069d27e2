//! NumPy's arrays as views of ndarray.

use crate::{dtype, error::raise_descriptor};
use gpumem::{
    Element, ElementType, Layout,
    generic::{view_at, view_mut_at},
    ndarray::{ArrayViewD, ArrayViewMutD},
};
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    sync::PyOnceLock,
    types::{PyDict, PyWeakrefReference},
};

/// A NumPy array with what it says about itself. The array is alive as long as this.
pub(crate) struct Host<'py> {
    pub(crate) array: Bound<'py, PyAny>,
    pub(crate) element: ElementType,
    address: usize,
    read_only: bool,
    shape: Vec<usize>,
    strides: Vec<isize>,
    /// While they live, NumPy refuses to move or to shorten the memory, even where it is told not to count references.
    _fixed: Vec<Bound<'py, PyWeakrefReference>>,
}

/// Weak references to an array and to those that it is a view of: [`resize`] refuses arrays that have any.
///
/// [`resize`]: https://numpy.org/doc/stable/reference/generated/numpy.ndarray.resize.html
pub(crate) fn fix<'py>(array: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyWeakrefReference>>> {
    let ndarray = ndarray(array.py())?;
    // The property of NumPy's own class: a subclass may have another.
    let base = ndarray.getattr("base")?;
    let (mut fixed, mut array) = (Vec::new(), array.clone());
    while array.get_type().is_subclass(&ndarray)? {
        fixed.push(PyWeakrefReference::new(&array)?);
        array = base.call_method1("__get__", (array,))?;
    }
    Ok(fixed)
}

/// NumPy's class of arrays.
fn ndarray(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let class =
        CLASS.get_or_try_init(py, || Ok::<_, PyErr>(py.import("numpy")?.getattr("ndarray")?.unbind()))?;
    Ok(class.bind(py).clone())
}

impl<'py> Host<'py> {
    /// Takes whatever NumPy makes an array of, without a copy where it is one.
    pub(crate) fn of(object: &Bound<'py, PyAny>) -> PyResult<Self> {
        let array = object.py().import("numpy")?.getattr("asarray")?.call1((object,))?;
        let host = Self::read(array)?;
        let size = host.element.bytes.max(1) as isize;
        let odd = host.strides.iter().zip(&host.shape).any(|(stride, len)| *len > 1 && stride % size != 0);
        if odd || !host.address.is_multiple_of(align(host.element)) {
            // A field of a record, say: ndarray counts in whole elements.
            let array = object.py().import("numpy")?.getattr("array")?.call1((&host.array,))?;
            return Self::read(array);
        }
        Ok(host)
    }

    /// Takes the caller's own array, to be written.
    pub(crate) fn to_write(object: &Bound<'py, PyAny>) -> PyResult<Self> {
        if object.is_instance_of::<crate::pinned::HostNDArray>() {
            return Self::read(object.py().import("numpy")?.getattr("asarray")?.call1((object,))?);
        }
        if !object.get_type().is_subclass(&ndarray(object.py())?)? {
            return Err(PyTypeError::new_err("the destination must be a NumPy array"));
        }
        // A subclass may say anything of itself. This is the array of NumPy's own class over the same memory.
        let host = Self::read(object.py().import("numpy")?.getattr("asarray")?.call1((object,))?)?;
        if host.read_only {
            return Err(PyValueError::new_err("the destination array is read-only"));
        }
        Ok(host)
    }

    fn read(array: Bound<'py, PyAny>) -> PyResult<Self> {
        let py = array.py();
        if !array.get_type().is(&ndarray(py)?) {
            return Err(PyTypeError::new_err("NumPy has made no array of it"));
        }
        let element = dtype::parse(py, Some(&array.getattr("dtype")?))?;
        let says = array.getattr("__array_interface__")?;
        let (address, read_only): (usize, bool) =
            says.cast::<PyDict>()?.as_any().get_item("data")?.extract()?;
        let (shape, strides) = (array.getattr("shape")?.extract()?, array.getattr("strides")?.extract()?);
        let _fixed = fix(&array)?;
        Ok(Self { array, element, address, read_only, shape, strides, _fixed })
    }

    /// The first element, if this is an array of `T` that ndarray can count through.
    fn first<T: Element>(&self) -> PyResult<*mut u8> {
        ElementType::check::<T>(self.element).map_err(raise_descriptor)?;
        // Of an array without elements nothing is looked at.
        if !self.shape.contains(&0) {
            let size = size_of::<T>() as isize;
            if self.shape.iter().zip(&self.strides).any(|(len, stride)| *len > 1 && stride % size != 0) {
                return Err(PyValueError::new_err("the strides are no multiple of the element"));
            }
            if !self.address.is_multiple_of(align_of::<T>()) {
                return Err(PyValueError::new_err("the array is not aligned"));
            }
        }
        Ok(std::ptr::with_exposed_provenance_mut(self.address))
    }

    /// The lowest address and the layout, of an array that a device is to use by itself.
    pub(crate) fn memory(&self) -> PyResult<(usize, Layout)> {
        let size = self.element.bytes.max(1);
        let layout = Layout::strided(&self.shape, &self.strides, size);
        let layout = layout.map_err(|error| PyValueError::new_err(error.to_string()))?;
        let odd = self.strides.iter().any(|stride| !stride.unsigned_abs().is_multiple_of(size));
        if layout.has_self_overlap() || (odd && !layout.is_empty()) {
            return Err(PyValueError::new_err("elements of the array share memory, or lie between others"));
        }
        Ok((self.address.wrapping_sub(layout.offset()), layout))
    }

    /// The elements, to be read during one call.
    pub(crate) fn view<T: Element>(&self) -> PyResult<ArrayViewD<'_, T>> {
        let first = self.first::<T>()?.cast_const();
        // SAFETY: NumPy's own array, which is alive, with elements that it has. As in every extension, whoever writes it
        // meanwhile from another thread races.
        Ok(unsafe { view_at(first, &self.shape, &self.strides) })
    }

    /// The elements, to be written during one call.
    pub(crate) fn view_mut<T: Element>(&mut self) -> PyResult<ArrayViewMutD<'_, T>> {
        let layout = Layout::strided(&self.shape, &self.strides, size_of::<T>());
        if layout.map_or(true, |layout| layout.has_self_overlap()) {
            return Err(PyValueError::new_err("elements of the destination share memory"));
        }
        let first = self.first::<T>()?;
        // SAFETY: as above; NumPy has said that it may be written, and no two elements overlap.
        Ok(unsafe { view_mut_at(first, &self.shape, &self.strides) })
    }
}

fn align(element: ElementType) -> usize {
    let part = if element.kind == gpumem::ElementKind::Complex { element.bytes / 2 } else { element.bytes };
    part.clamp(1, 8)
}
