//! NumPy's arrays as views of ndarray.

use crate::{
    dtype::{Elements, Place},
    element::{DType, with_bytes},
    error::{raise_descriptor, raise_layout},
    in_use::{self, Use},
    pinned::HostNDArray,
};
use gpumem::{
    Element, ElementType, Layout,
    generic::{view_at, view_mut_at},
    ndarray::{ArrayViewD, ArrayViewMutD},
};
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    sync::PyOnceLock,
    types::{
        PyBool, PyBytes, PyComplex, PyDict, PyFloat, PyInt, PyList, PyMemoryView, PyString, PyTuple, PyType,
        PyWeakrefReference,
    },
};

/// A NumPy array with its description. Keeps the array alive.
pub(crate) struct Host<'py> {
    pub(crate) array: Bound<'py, PyAny>,
    pub(crate) dtype: DType,
    address: usize,
    read_only: bool,
    /// Whether it was [taken to be written](Self::to_write).
    is_destination: bool,
    shape: Vec<usize>,
    strides: Vec<isize>,
    /// Where the caller's elements lie: of a copy that NumPy had to make, those that it is of.
    place: Place,
    /// What [fixes](fix) the memory.
    fixed: Vec<Bound<'py, PyAny>>,
}

/// Most objects between an array and the owner of its memory: NumPy makes two or three, and others may have no end.
const MOST_BASES: usize = 1000;

/// What fixes the memory of an array for as long as it lives. Of the array and of those that it is a view of, also by way of a
/// `memoryview` or of `as_strided`, it has weak references: [`resize`] refuses arrays that have any. Of the other objects on the way it
/// has views of their buffers, for which `mmap.close`, `SharedMemory.close` and whatever moves a `bytearray` are refused. NumPy has none
/// where it is given a buffer: it gives that back as soon as it knows the address, and keeps the object alone.
///
/// [`resize`]: https://numpy.org/doc/stable/reference/generated/numpy.ndarray.resize.html
pub(crate) fn fix<'py>(array: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let (py, ndarray, scalar) = (array.py(), ndarray(array.py())?, scalar(array.py())?);
    // The property of NumPy's own class: a subclass may have another.
    let base = ndarray.getattr("base")?;
    let (mut fixed, mut next) = (Vec::new(), array.clone());
    for _ in 0..MOST_BASES {
        let found = if next.get_type().is_subclass(&ndarray)? {
            fixed.push(PyWeakrefReference::new(&next)?.into_any());
            Some(base.call_method1("__get__", (&next,))?)
        } else if next.is_instance_of::<PyMemoryView>() {
            // It may be released while its view lives.
            fixed.push(PyMemoryView::from(&next)?.into_any());
            Some(next.getattr("obj")?)
        } else {
            // The elements of a scalar are its own, or those of an array.
            if !next.get_type().is_subclass(&scalar)? {
                match PyMemoryView::from(&next) {
                    Ok(view) => fixed.push(view.into_any()),
                    // It has no buffer.
                    Err(error) if error.is_instance_of::<PyTypeError>(py) => {}
                    Err(error) => return Err(error),
                }
            }
            next.getattr_opt("base")?
        };
        match found {
            Some(found) if !found.is_none() && !found.is(&next) => next = found,
            _ => return Ok(fixed),
        }
    }
    let text = format!("more than {MOST_BASES} objects lie between the array and the owner of its memory");
    Err(PyValueError::new_err(text))
}

/// A view that keeps an array of NumPy [fixed](fix) as long as it lives, for borrowers that hold it; nothing for other objects.
pub(crate) fn fixed<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    if !is_of_numpy(object)? {
        return Ok(None);
    }
    let (py, ndarray) = (object.py(), ndarray(object.py())?);
    // Only a class of its own has room for the weak references.
    let class = CLASS.get_or_try_init(py, || {
        let made = py.get_type::<PyType>().call1(("FixedArray", (&ndarray,), PyDict::new(py)))?;
        Ok::<_, PyErr>(made.unbind())
    })?;
    let view = ndarray.call_method1("view", (object, class))?;
    view.setattr("fixed", fix(object)?)?;
    Ok(Some(view))
}

/// Whether an object is an array of NumPy.
pub(crate) fn is_of_numpy(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    object.get_type().is_subclass(&ndarray(object.py())?)
}

/// Refuses objects that no elements can be written to.
pub(crate) fn check_destination(object: &Bound<'_, PyAny>) -> PyResult<()> {
    match object.is_instance_of::<HostNDArray>() || is_of_numpy(object)? {
        true => Ok(()),
        false => Err(PyTypeError::new_err("the destination must be a NumPy array")),
    }
}

/// NumPy's class of arrays.
pub(crate) fn ndarray(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let class =
        CLASS.get_or_try_init(py, || Ok::<_, PyErr>(py.import("numpy")?.getattr("ndarray")?.unbind()))?;
    Ok(class.bind(py).clone())
}

/// NumPy's class of scalars.
fn scalar(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let class =
        CLASS.get_or_try_init(py, || Ok::<_, PyErr>(py.import("numpy")?.getattr("generic")?.unbind()))?;
    Ok(class.bind(py).clone())
}

/// Whether an object is a scalar of NumPy.
pub(crate) fn is_scalar(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    object.is_instance(&scalar(object.py())?)
}

/// As deep as NumPy takes lists in each other.
const MOST_AXES: usize = 64;

/// Waits for the work that uses the memory that NumPy itself reads or writes with this object: by address where that is known, and else
/// for all page-locked memory. NumPy reads more than arrays: buffers, other sequences, and whatever says that it is an array.
pub(crate) fn wait_within(object: &Bound<'_, PyAny>, then: Use) -> PyResult<()> {
    wait_to_depth(object, then, MOST_AXES)
}

fn wait_to_depth(object: &Bound<'_, PyAny>, then: Use, depth: usize) -> PyResult<()> {
    if !in_use::are_any(object.py()) || is_apart(object) {
        return Ok(());
    }
    if is_of_numpy(object)?
        && let Ok(host) = Host::of(object)
    {
        return host.wait(then);
    }
    if depth > 0 {
        let wait = |part: Bound<'_, PyAny>| wait_to_depth(&part, then, depth - 1);
        // A subclass may be read in another way.
        if let Ok(list) = object.cast_exact::<PyList>() {
            return list.iter().try_for_each(wait);
        }
        if let Ok(tuple) = object.cast_exact::<PyTuple>() {
            return tuple.iter().try_for_each(wait);
        }
        if is_scalar(object)? {
            // A record may be a part of an array.
            return wait(object.getattr("base")?);
        }
    }
    in_use::wait(object.py(), &(0..u64::MAX), then)
}

/// Whether an object has its elements apart from all page-locked memory, or waits for that itself.
fn is_apart(object: &Bound<'_, PyAny>) -> bool {
    // Exactly these: a subclass may say that it is an array.
    object.is_none()
        || object.is_exact_instance_of::<PyFloat>()
        || object.is_exact_instance_of::<PyInt>()
        || object.is_exact_instance_of::<PyBool>()
        || object.is_exact_instance_of::<PyComplex>()
        || object.is_exact_instance_of::<PyString>()
        || object.is_exact_instance_of::<PyBytes>()
        || object.is_instance_of::<HostNDArray>()
}

impl<'py> Host<'py> {
    /// Takes any object that NumPy makes an array of, without a copy if it is one.
    pub(crate) fn of(object: &Bound<'py, PyAny>) -> PyResult<Self> {
        if !is_of_numpy(object)? {
            wait_within(object, Use::Read)?;
        }
        let array = object.py().import("numpy")?.getattr("asarray")?.call1((object,))?;
        let host = Self::read(array)?;
        if host.is_odd() {
            // A field of a record, say: ndarray counts in whole elements.
            host.wait(Use::Read)?;
            let array = object.py().import("numpy")?.getattr("array")?.call1((&host.array,))?;
            // What the caller may give a second time are its own elements, and not this copy of them.
            return Ok(Self { place: host.place, ..Self::read(array)? });
        }
        Ok(host)
    }

    /// Takes the elements that an assignment of `value` gives to an array of type `dtype`, as NumPy converts them.
    pub(crate) fn to_assign(value: &Bound<'py, PyAny>, dtype: &DType) -> PyResult<Self> {
        let (py, numpy) = (value.py(), value.py().import("numpy")?);
        let is_array = value.get_type().is_subclass(&ndarray(py)?)? || value.is_instance_of::<HostNDArray>();
        if is_array {
            let host = Self::of(value)?;
            if dtype.same(py, &host.dtype)? {
                return Ok(host);
            }
            host.wait(Use::Read)?;
            return Self::of(&host.array.call_method1("astype", (dtype.numpy(py)?,))?);
        }
        wait_within(value, Use::Read)?;
        // An object that is no array is converted element by element; NumPy raises its errors for elements that do not
        // fit.
        if !dtype.numpy(py)?.getattr("fields")?.is_none() {
            // A tuple is one record.
            return Self::of(&numpy.getattr("array")?.call1((value, dtype.numpy(py)?))?);
        }
        let shape = numpy.getattr("shape")?.call1((value,))?;
        let array = numpy.getattr("empty")?.call1((shape, dtype.numpy(py)?))?;
        array.set_item(py.Ellipsis(), value)?;
        Self::of(&array)
    }

    /// Takes the one element that an assignment of `value` to an element gives, as NumPy converts it.
    pub(crate) fn to_assign_to_one(value: &Bound<'py, PyAny>, dtype: &DType) -> PyResult<Self> {
        let (py, numpy) = (value.py(), value.py().import("numpy")?);
        wait_within(value, Use::Read)?;
        let array = numpy.getattr("empty")?.call1((1, dtype.numpy(py)?))?;
        match value.is_instance_of::<HostNDArray>() {
            true => array.set_item(0, numpy.call_method1("asarray", (value,))?)?,
            false => array.set_item(0, value)?,
        }
        Self::of(&array.call_method1("reshape", (PyTuple::empty(py),))?)
    }

    /// Takes the caller's own array, to be written.
    pub(crate) fn to_write(object: &Bound<'py, PyAny>) -> PyResult<Self> {
        let asarray = object.py().import("numpy")?.getattr("asarray")?;
        check_destination(object)?;
        // A subclass may say anything of itself. This is the array of NumPy's own class over the same memory.
        let host = Self::read(asarray.call1((object,))?)?;
        if host.read_only {
            return Err(PyValueError::new_err("the destination array is read-only"));
        }
        if host.layout()?.has_self_overlap() {
            return Err(PyValueError::new_err("elements of the destination share memory"));
        }
        Ok(Self { is_destination: true, ..host })
    }

    /// Takes the caller's own array, to be read now and to be written later, when it is too late to refuse it.
    pub(crate) fn to_update(object: &Bound<'py, PyAny>) -> PyResult<Self> {
        Self::to_write(object)?;
        Self::of(object)
    }

    fn read(array: Bound<'py, PyAny>) -> PyResult<Self> {
        let (py, class) = (array.py(), ndarray(array.py())?);
        if !array.get_type().is(&class) {
            return Err(PyTypeError::new_err("NumPy has made no array of it"));
        }
        // Code of Python may run between two answers: another thread, or NumPy's own. Before the first one the memory is fixed,
        // and they are all those of one array that no other code has.
        let fixed = fix(&array)?;
        let own = class.call_method1("view", (&array,))?;
        let dtype = DType::parse(py, Some(&own.getattr("dtype")?))?;
        let says = own.getattr("__array_interface__")?;
        let (address, read_only): (usize, bool) =
            says.cast::<PyDict>()?.as_any().get_item("data")?.extract()?;
        let shape: Vec<usize> = own.getattr("shape")?.extract()?;
        let strides: Vec<isize> = own.getattr("strides")?.extract()?;
        let layout = Layout::strided(&shape, &strides, dtype.size()).map_err(raise_layout)?;
        let place = Place::new(address.wrapping_sub(layout.offset()) as u64, layout);
        Ok(Self { array, dtype, address, read_only, is_destination: false, shape, strides, place, fixed })
    }

    /// Whether the elements are not aligned, or no whole number of elements apart: they can only be counted in bytes.
    pub(crate) fn is_odd(&self) -> bool {
        let size = self.dtype.size().max(1) as isize;
        let apart = self.strides.iter().zip(&self.shape).any(|(stride, len)| *len > 1 && stride % size != 0);
        // An array without elements is not checked.
        let is_empty = self.shape.contains(&0);
        !self.dtype.is_bytes() && !is_empty && (apart || !self.address.is_multiple_of(self.dtype.alignment()))
    }

    /// A copy of an array whose elements are held as bytes and repeat along an axis: the library would lay out its own with the bytes of
    /// an element apart.
    pub(crate) fn without_repeats(&self) -> PyResult<Option<Self>> {
        let in_bytes = self.dtype.is_bytes() || self.is_odd();
        let repeats = self.strides.iter().zip(&self.shape).any(|(stride, len)| *stride == 0 && *len > 1);
        if !(in_bytes && repeats) {
            return Ok(None);
        }
        self.wait(Use::Read)?;
        Self::of(&self.array.call_method1("copy", ("C",))?).map(Some)
    }

    /// Waits for the work that uses the elements by page-locked arrays.
    pub(crate) fn wait(&self, then: Use) -> PyResult<()> {
        in_use::wait(self.array.py(), &self.place.bytes(), then)
    }

    /// Shape and strides of the library's elements: of numbers, or of bytes.
    fn held<T: Element>(&self) -> PyResult<(Vec<usize>, Vec<isize>)> {
        // Where the other side is held as bytes, so is this.
        let asked = ElementType::of::<T>() == ElementType::of::<u8>() && self.dtype.size() != 1;
        let in_bytes = asked || self.dtype.is_bytes() || self.is_odd();
        let held = if in_bytes { ElementType::of::<u8>() } else { self.dtype.held() };
        ElementType::check::<T>(held).map_err(raise_descriptor)?;
        Ok(match in_bytes {
            true => with_bytes(&self.shape, &self.strides, self.dtype.size()),
            false => (self.shape.clone(), self.strides.clone()),
        })
    }

    fn first(&self) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.address)
    }

    /// Where the elements lie to each other.
    pub(crate) fn layout(&self) -> PyResult<Layout> {
        Layout::strided(&self.shape, &self.strides, self.dtype.size()).map_err(raise_layout)
    }

    /// The lowest address and the layout of the library's elements, for an array that a device uses directly.
    pub(crate) fn memory(&self) -> PyResult<(usize, Layout)> {
        let layout = self.layout()?;
        if layout.has_self_overlap() || self.is_odd() {
            return Err(PyValueError::new_err("elements of the array share memory, or lie between others"));
        }
        let layout = self.dtype.held_layout(&layout)?;
        Ok((self.address.wrapping_sub(layout.offset()), layout))
    }

    /// Refuses a copy between these elements and an array of a device that share memory: one side would be read while it is
    /// written.
    pub(crate) fn check_apart(&self, elements: &Elements) -> PyResult<()> {
        match self.place.shares(&Place::of(elements)) {
            true => Err(PyValueError::new_err("the two arrays share memory; copy one of them first")),
            false => Ok(()),
        }
    }

    /// What [fixes](fix) the memory, for those that use it again later.
    pub(crate) fn into_fixed(self) -> Vec<Bound<'py, PyAny>> {
        self.fixed
    }

    /// Where the caller's elements lie, which an operation compares with those of its other arrays.
    pub(crate) fn place(&self) -> Place {
        self.place.clone()
    }

    /// The elements, to be read during one call, after waiting for work that writes them.
    pub(crate) fn view<T: Element>(&self) -> PyResult<ArrayViewD<'_, T>> {
        self.wait(Use::Read)?;
        let (shape, strides) = self.held::<T>()?;
        // SAFETY: NumPy's own array, which is alive, with elements that it has; aligned and whole elements apart, else
        // they are bytes. As in every extension, a write from another thread meanwhile is a race.
        Ok(unsafe { view_at(self.first().cast_const(), &shape, &strides) })
    }

    /// The elements, to be written during one call, after waiting for work that uses them. Where they [are odd](Self::is_odd), their bytes.
    pub(crate) fn view_mut<T: Element>(&mut self) -> PyResult<ArrayViewMutD<'_, T>> {
        if !self.is_destination {
            return Err(PyValueError::new_err("the array is only read"));
        }
        self.wait(Use::Write)?;
        let (shape, strides) = self.held::<T>()?;
        // SAFETY: as above; NumPy has said that it may be written, and no two elements overlap.
        Ok(unsafe { view_mut_at(self.first(), &shape, &strides) })
    }
}
