//! Arrays in device memory.

mod assign;
mod index;

use crate::dtype::each;
use crate::{
    device, dtype,
    dtype::{Elements, hold},
    error::raise,
    host::Host,
    pinned::HostNDArray,
    stream::Stream,
};
use gpumem::{Any, ElementType, Loan, Order, ndarray::IxDyn};
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::{PyDict, PyTuple},
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

    /// The array as one of `T`, if it is one.
    pub(crate) fn elements_of<T: gpumem::Element>(&self) -> Option<gpumem::DeviceViewMut<'static, T, IxDyn>> {
        dtype::elements_of(&self.elements)
    }

    /// The same elements once more.
    pub(crate) fn again(&self) -> Elements {
        dtype::again(&self.elements)
    }
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
    /// Lengths of the axes.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, each!(&self.elements, array => array.shape().to_vec()))
    }

    /// Bytes from one element to the next along each axis.
    #[getter]
    fn strides<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, each!(&self.elements, array => array.strides().to_vec()))
    }

    /// Type of the elements, as NumPy's.
    #[getter]
    pub(crate) fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        dtype::numpy(py, self.element())
    }

    /// Number of axes.
    #[getter]
    fn ndim(&self) -> usize {
        each!(&self.elements, array => array.ndim())
    }

    /// Number of elements.
    #[getter]
    fn size(&self) -> usize {
        each!(&self.elements, array => array.len())
    }

    /// Bytes of all elements.
    #[getter]
    fn nbytes(&self) -> usize {
        each!(&self.elements, array => array.byte_len())
    }

    /// The device that the memory belongs to.
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

    /// Whether the elements lie side by side with the last axis first, as NumPy defines it.
    fn is_c_contiguous(&self) -> bool {
        each!(&self.elements, array => array.is_c_contiguous())
    }

    /// Whether the elements lie side by side with the first axis first.
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

    /// Parts of `section` elements along the first axis, as a list of views; the last may be smaller.
    fn split(&self, section: isize) -> PyResult<Vec<Self>> {
        self.parts(section)
    }

    /// The elements without axes of length one: all of them, or those that `axis` names, one or a tuple. A view.
    #[pyo3(signature = (axis=None))]
    fn squeeze(&self, axis: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        self.without_axes(axis)
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

    /// The axes in reversed order; a view.
    #[getter]
    #[pyo3(name = "T")]
    fn transposed(&self) -> Self {
        self.view(each!(&self.elements, array => hold(&array.t())))
    }

    /// A part, as a view; a single element as a NumPy scalar.
    fn __getitem__<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.item(py, key)
    }

    /// Assigns to a part, broadcast and converted as NumPy does.
    fn __setitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.set_item(py, key, value)
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

    /// The CUDA Array Interface, version 3, after waiting for what is pending: not every reader looks at its stream. The memory is
    /// lent while the array lives.
    #[getter]
    fn __cuda_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        crate::interchange::describe(py, self)
    }

    /// The place of the memory, by DLPack's numbers.
    fn __dlpack_device__(&self) -> PyResult<(i32, i32)> {
        crate::interchange::dlpack_device(self)
    }

    /// A DLPack capsule, by the array API's rules. `stream` is the consumer's, and waits for what is pending.
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
