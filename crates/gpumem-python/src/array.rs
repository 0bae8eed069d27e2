//! Arrays in device memory.

use crate::dtype::each;
use crate::{
    device, dtype,
    dtype::{Elements, check_writable, hold},
    error::raise,
    host::Host,
    number,
    pinned::HostNDArray,
    stream::Stream,
};
use gpumem::{
    Any, ElementKind, ElementType, Loan, Order,
    ndarray::{IxDyn, SliceInfo, SliceInfoElem},
};
use pyo3::{
    exceptions::{PyIndexError, PyTypeError, PyValueError},
    prelude::*,
    types::{PyDict, PyEllipsis, PyFloat, PyInt, PySlice, PyTuple},
};
use std::sync::{Mutex, PoisonError};

/// An n-d array in memory of a device, or a view of one.
#[pyclass(frozen, module = "gpumem", name = "DeviceNDArray")]
pub(crate) struct DeviceNDArray {
    pub(crate) elements: Elements,
    pub(crate) read_only: bool,
    /// What the memory belongs to, where it is not ours alone.
    pub(crate) owner: Option<Py<PyAny>>,
    /// What `__cuda_array_interface__` has lent. The last descriptor's loan stands for the earlier ones.
    loan: Mutex<Option<Loan<Any>>>,
}

impl DeviceNDArray {
    pub(crate) fn new(elements: Elements) -> Self {
        Self { elements, read_only: false, owner: None, loan: Mutex::default() }
    }

    /// An array over memory of another object.
    pub(crate) fn adopted(elements: Elements, read_only: bool, owner: Py<PyAny>) -> Self {
        Self { owner: Some(owner), read_only, ..Self::new(elements) }
    }

    /// Keeps a loan until the next one.
    pub(crate) fn keep(&self, loan: Loan<Any>) {
        *self.loan.lock().unwrap_or_else(PoisonError::into_inner) = Some(loan);
    }

    /// A view of this array.
    fn view(&self, elements: Elements) -> Self {
        Self { elements, read_only: self.read_only, owner: None, loan: Mutex::default() }
    }

    pub(crate) fn element(&self) -> ElementType {
        each!(&self.elements, _array => ElementType::of::<T>())
    }

    /// Copies from whatever can be a source.
    pub(crate) fn fill_from(
        &self,
        py: Python<'_>,
        source: &Bound<'_, PyAny>,
        stream: Option<&Stream>,
        wide: bool,
    ) -> PyResult<()> {
        check_writable(self.read_only)?;
        if let Ok(host) = source.cast::<HostNDArray>()
            && !wide
            && let Some(stream) = stream
        {
            return host.get().write_to(py, &self.elements, &stream.0);
        }
        if let Some(source) = crate::interchange::device_source(source, None)? {
            let source = source.get();
            return each!(&self.elements, array => {
                // SAFETY: Python's arrays promise nothing about their elements.
                let mut to = unsafe { array.detach() };
                let Some(from) = source.elements_of::<T>() else {
                    return Err(PyTypeError::new_err("the elements are of another type"));
                };
                py.detach(move || match (stream, wide) {
                    (Some(stream), true) => stream.0.assign(&mut to, &from),
                    (Some(stream), false) => stream.0.copy_to_device(&mut to, &from),
                    (None, true) => to.assign(&from),
                    (None, false) => to.copy_to_device(&from).map(drop),
                })
                .map_err(raise)
            });
        }
        let mut host = Host::of(source)?;
        if host.element != self.element() {
            if !wide {
                let (found, wanted) = (host.element, self.element());
                return Err(PyTypeError::new_err(format!(
                    "the elements are {found}, and {wanted} is needed"
                )));
            }
            // Assignment converts, as NumPy's does.
            host = Host::of(&host.array.call_method1("astype", (dtype::numpy(py, self.element())?,))?)?;
        }
        each!(&self.elements, array => {
            // SAFETY: as above.
            let mut to = unsafe { array.detach() };
            let from = host.view::<T>()?;
            py.detach(move || match (stream, wide) {
                (Some(stream), true) => stream.0.assign(&mut to, &from),
                (Some(stream), false) => stream.0.copy_to_device(&mut to, &from),
                (None, true) => to.assign(&from),
                (None, false) => to.copy_to_device(&from).map(drop),
            })
            .map_err(raise)
        })
    }

    /// The array as one of `T`, if it is one.
    pub(crate) fn elements_of<T: gpumem::Element>(&self) -> Option<gpumem::DeviceViewMut<'static, T, IxDyn>> {
        dtype::elements_of(&self.elements)
    }

    /// The same elements once more.
    pub(crate) fn again(&self) -> Elements {
        each!(&self.elements, array => hold(&array.view()))
    }

    /// Sets every element to a number of Python's: without an array of NumPy on the way.
    fn fill(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        check_writable(self.read_only)?;
        let bytes = number::bytes(self.element(), value)?;
        each!(&self.elements, array => {
            let wrong = |_| PyTypeError::new_err("the number is not of the elements' type");
            let value: T = bytemuck::try_pod_read_unaligned(&bytes).map_err(wrong)?;
            // SAFETY: Python's arrays promise nothing about their elements.
            let mut to = unsafe { array.detach() };
            py.detach(move || {
                let device = to.device()?.clone();
                // Code of the host that has borrowed the memory knows no streams.
                match device.capabilities().pageable_direct {
                    true => to.fill(value),
                    false => device.default_stream()?.fill(&mut to, value),
                }
            })
            .map_err(raise)
        })
    }

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
                for _ in 0..lengths.len() - used {
                    info.push(SliceInfoElem::Slice { start: 0, end: None, step: 1 });
                    axis += 1;
                }
            } else if let Ok(slice) = part.cast::<PySlice>() {
                info.push(python_slice(slice, lengths[axis])?);
                axis += 1;
            } else {
                info.push(SliceInfoElem::Index(part.extract()?));
                axis += 1;
            }
        }
        for _ in axis..lengths.len() {
            info.push(SliceInfoElem::Slice { start: 0, end: None, step: 1 });
        }
        let info = SliceInfo::<_, IxDyn, IxDyn>::try_from(info)
            .map_err(|error| PyIndexError::new_err(error.to_string()))?;
        each!(&self.elements, array => array.slice(&info).map(|view| hold(&view))).map_err(raise)
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

fn order(text: &str) -> PyResult<Order> {
    match text {
        "C" => Ok(Order::C),
        "F" => Ok(Order::F),
        _ => Err(PyValueError::new_err("the order is 'C' or 'F'")),
    }
}

#[pymethods]
impl DeviceNDArray {
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, each!(&self.elements, array => array.shape().to_vec()))
    }

    #[getter]
    fn strides<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, each!(&self.elements, array => array.strides().to_vec()))
    }

    #[getter]
    pub(crate) fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        dtype::numpy(py, self.element())
    }

    #[getter]
    fn ndim(&self) -> usize {
        each!(&self.elements, array => array.ndim())
    }

    #[getter]
    fn size(&self) -> usize {
        each!(&self.elements, array => array.len())
    }

    #[getter]
    fn nbytes(&self) -> usize {
        each!(&self.elements, array => array.byte_len())
    }

    #[getter]
    fn device(&self) -> PyResult<device::Device> {
        let device = each!(&self.elements, array => array.device().cloned()).map_err(raise)?;
        Ok(device::Device(device))
    }

    /// Whether the array may be written, and how its elements lie.
    #[getter]
    fn flags<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let flags = PyDict::new(py);
        flags.set_item("C_CONTIGUOUS", self.is_c_contiguous())?;
        flags.set_item("F_CONTIGUOUS", self.is_f_contiguous())?;
        flags.set_item("WRITEABLE", !self.read_only)?;
        Ok(flags)
    }

    /// The object that the memory was taken from, if it was.
    #[getter]
    fn owner(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.owner.as_ref().map(|owner| owner.clone_ref(py))
    }

    fn is_c_contiguous(&self) -> bool {
        each!(&self.elements, array => array.is_c_contiguous())
    }

    fn is_f_contiguous(&self) -> bool {
        each!(&self.elements, array => array.is_f_contiguous())
    }

    /// The elements in a NumPy array: a new one, or `ary`, which is returned. They are there on return; with a stream,
    /// after everything that was enqueued on it. With a stream and a page-locked array the copy is only enqueued.
    #[pyo3(signature = (ary=None, stream=None))]
    pub(crate) fn copy_to_host<'py>(
        &self,
        py: Python<'py>,
        ary: Option<&Bound<'py, PyAny>>,
        stream: Option<&Bound<'py, Stream>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let ary = match ary.filter(|ary| !ary.is_none()) {
            Some(ary) => ary.clone(),
            None => {
                let order = if self.is_f_contiguous() && !self.is_c_contiguous() { "F" } else { "C" };
                let options = PyDict::new(py);
                options.set_item("order", order)?;
                py.import("numpy")?
                    .getattr("empty")?
                    .call((self.shape(py)?, self.dtype(py)?), Some(&options))?
            }
        };
        if let (Ok(host), Some(stream)) = (ary.cast::<HostNDArray>(), stream) {
            host.get().read_from(py, &self.elements, &stream.get().0)?;
            return Ok(ary);
        }
        let mut host = Host::to_write(&ary)?;
        let stream = stream.map(|stream| stream.get().clone());
        if host.element != self.element() {
            let (found, wanted) = (host.element, self.element());
            return Err(PyTypeError::new_err(format!("the elements are {found}, and {wanted} is needed")));
        }
        each!(&self.elements, array => {
            let to = host.view_mut::<T>()?;
            py.detach(|| {
                if let Some(stream) = stream {
                    stream.0.synchronize()?;
                }
                array.copy_to_host_into(to).map(drop)
            })
            .map_err(raise)?
        });
        Ok(ary)
    }

    /// Copies a source of equal shape and type here, from the host or from a device.
    #[pyo3(signature = (ary, stream=None))]
    fn copy_to_device(
        &self,
        py: Python<'_>,
        ary: &Bound<'_, PyAny>,
        stream: Option<&Bound<'_, Stream>>,
    ) -> PyResult<()> {
        self.fill_from(py, ary, stream.map(|stream| stream.get()), false)
    }

    /// The elements in another shape, as a view; one length may be -1.
    #[pyo3(signature = (*shape, order="C"))]
    fn reshape(&self, shape: &Bound<'_, PyTuple>, order: &str) -> PyResult<Self> {
        let shape: Vec<isize> = match shape.len() {
            1 if shape.get_item(0)?.extract::<isize>().is_err() => shape.get_item(0)?.extract()?,
            _ => shape.extract()?,
        };
        let order = self::order(order)?;
        let elements =
            each!(&self.elements, array => array.reshape_infer(&shape, order).map(|view| hold(&view)));
        Ok(self.view(elements.map_err(raise)?))
    }

    /// The elements in one axis, as a view.
    #[pyo3(signature = (order="C"))]
    fn ravel(&self, order: &str) -> PyResult<Self> {
        let order = self::order(order)?;
        let elements = each!(&self.elements, array => array.ravel(order).map(|view| hold(&view.into_dyn())));
        Ok(self.view(elements.map_err(raise)?))
    }

    /// The elements repeated along new and short axes, as a view that can only be read.
    fn broadcast_to(&self, shape: &Bound<'_, PyAny>) -> PyResult<Self> {
        let shape = IxDyn(&crate::make::shape(shape)?);
        let elements =
            each!(&self.elements, array => array.broadcast(shape).map(|view| hold(&view))).map_err(raise)?;
        Ok(Self { read_only: true, ..self.view(elements) })
    }

    /// Parts of `section` elements along the first axis; the last may be smaller.
    fn split(&self, section: usize) -> PyResult<Vec<Self>> {
        let length = each!(&self.elements, array => array.shape().first().copied());
        let (Some(length), true) = (length, section > 0) else {
            return Err(PyValueError::new_err("split needs an axis, and parts of at least one element"));
        };
        let part = |start: usize| {
            let end = (start + section).min(length) as isize;
            let mut info = vec![SliceInfoElem::Slice { start: start as isize, end: Some(end), step: 1 }];
            let rest = SliceInfoElem::Slice { start: 0, end: None, step: 1 };
            info.resize(each!(&self.elements, array => array.ndim()), rest);
            let info = SliceInfo::<_, IxDyn, IxDyn>::try_from(info)
                .map_err(|error| PyIndexError::new_err(error.to_string()))?;
            let elements = each!(&self.elements, array => array.slice(&info).map(|view| hold(&view)));
            Ok(self.view(elements.map_err(raise)?))
        };
        (0..length).step_by(section).map(part).collect()
    }

    /// The axes in reversed order, or in the given one; a view.
    #[pyo3(signature = (*axes))]
    fn transpose(&self, axes: &Bound<'_, PyTuple>) -> PyResult<Self> {
        let axes: Vec<usize> = match axes.len() {
            0 => (0..self.ndim()).rev().collect(),
            1 if axes.get_item(0)?.extract::<usize>().is_err() => axes.get_item(0)?.extract()?,
            _ => axes.extract()?,
        };
        let elements =
            each!(&self.elements, array => array.view().permuted_axes(&axes).map(|view| hold(&view)));
        Ok(self.view(elements.map_err(raise)?))
    }

    #[getter]
    #[pyo3(name = "T")]
    fn transposed(&self) -> Self {
        self.view(each!(&self.elements, array => hold(&array.t())))
    }

    /// A part, as a view; a single element as a NumPy scalar.
    fn __getitem__<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let part = self.view(self.slice(key)?);
        let parts = key.cast::<PyTuple>().map_or(1, |tuple| tuple.len());
        let is_index = |part: &Bound<'_, PyAny>| part.extract::<isize>().is_ok();
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
    fn __setitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let part = self.view(self.slice(key)?);
        let whole = !matches!(self.element().kind, ElementKind::Float | ElementKind::Complex);
        if value.is_instance_of::<PyInt>() || (value.is_instance_of::<PyFloat>() && !whole) {
            return part.fill(py, value);
        }
        part.fill_from(py, value, None, true)
    }

    fn __len__(&self) -> PyResult<usize> {
        let length = each!(&self.elements, array => array.shape().first().copied());
        length.ok_or_else(|| PyTypeError::new_err("len() of an array without axes"))
    }

    /// The elements for NumPy: a copy, always.
    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if copy == Some(false) {
            return Err(PyValueError::new_err("the elements of a device array cannot be had without a copy"));
        }
        let host = self.copy_to_host(py, None, None)?;
        match dtype {
            Some(dtype) => host.call_method1("astype", (dtype,)),
            None => Ok(host),
        }
    }

    #[getter]
    fn __cuda_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        crate::interchange::describe(py, self)
    }

    fn __dlpack_device__(&self) -> PyResult<(i32, i32)> {
        crate::interchange::dlpack_device(self)
    }

    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<i64>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        crate::interchange::dlpack(py, self, stream, max_version, dl_device, copy)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let (shape, dtype) = (self.shape(py)?, self.dtype(py)?);
        Ok(format!(
            "<gpumem.DeviceNDArray shape={} dtype={} on {}>",
            shape.repr()?,
            dtype.str()?,
            self.device()?.0.name()
        ))
    }
}
