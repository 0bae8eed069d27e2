//! Arrays in device memory.

pub(crate) mod assign;
mod convert;
mod index;
mod operators;
mod shape;

use crate::dtype::{each, with_type};
use crate::{
    device, dtype,
    dtype::{Elements, hold},
    element::DType,
    error::{raise, raise_layout},
    host::Host,
    pinned::HostNDArray,
    stream,
};
use assign::Way;
use gpumem::{AnyBackend, Layout, Loan, Order, ndarray::IxDyn};
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    ffi,
    prelude::*,
    types::{PyDict, PyTuple},
};
use std::sync::{Mutex, PoisonError};

/// An n-d array in memory of a device, or a view of one.
#[pyclass(frozen, module = "gpumem", name = "DeviceNDArray")]
pub(crate) struct DeviceNDArray {
    pub(crate) elements: Elements,
    pub(crate) dtype: DType,
    pub(crate) read_only: bool,
    /// What the memory belongs to, where it is not ours alone.
    pub(crate) owner: Option<Py<PyAny>>,
    /// What `__cuda_array_interface__` has lent. The last descriptor's loan stands for the earlier ones.
    loan: Mutex<Option<Loan<AnyBackend>>>,
}

impl DeviceNDArray {
    /// An array of what is held for elements of that type.
    pub(crate) fn new(elements: Elements, dtype: DType) -> Self {
        Self { elements, dtype, read_only: false, owner: None, loan: Mutex::default() }
    }

    /// An array over memory of another object.
    pub(crate) fn adopted(elements: Elements, dtype: DType, read_only: bool, owner: Py<PyAny>) -> Self {
        Self { owner: Some(owner), read_only, ..Self::new(elements, dtype) }
    }

    /// Keeps a loan until the next one.
    pub(crate) fn keep(&self, loan: Loan<AnyBackend>) {
        *self.loan.lock().unwrap_or_else(PoisonError::into_inner) = Some(loan);
    }

    /// Where the elements lie.
    pub(crate) fn layout(&self) -> PyResult<Layout> {
        each!(&self.elements, array => self.dtype.layout(array.layout()))
    }

    /// A view of elements of any type, by a layout that lies within this array's.
    pub(crate) fn at(&self, layout: &Layout, dtype: DType) -> PyResult<Self> {
        let own =
            each!(&self.elements, array => array.address().wrapping_sub(array.layout().offset() as u64));
        let align = dtype.alignment();
        let aligned =
            layout.is_empty() || (own.is_multiple_of(align as u64) && layout.check_alignment(align).is_ok());
        let dtype = dtype.with_alignment(aligned);
        let held = dtype.held_layout(layout)?;
        let same = each!(&self.elements, _array => gpumem::ElementType::of::<T>() == dtype.held());
        let elements = match same {
            // SAFETY: Python's arrays promise nothing about their elements, and check `read_only` before they write.
            true => each!(&self.elements, array => unsafe { array.detach_as::<T>(held) }.map(Elements::from)),
            false => self.of_another_type(dtype.held(), held)?,
        };
        let elements = elements.map_err(raise)?;
        Ok(Self { read_only: self.read_only, ..Self::new(elements, dtype) })
    }

    /// As [`at`](Self::at), of what is held for the elements.
    fn of_another_type(
        &self,
        element: gpumem::ElementType,
        held: Layout,
    ) -> PyResult<Result<Elements, gpumem::Error>> {
        let extent = each!(&self.elements, array => array.layout().extent());
        let bytes =
            Layout::packed(&[extent.len()], 1, Order::C).and_then(|bytes| bytes.with_offset(extent.start));
        let bytes = bytes.map_err(raise_layout)?;
        // SAFETY: as in `at`.
        let bytes = each!(&self.elements, array => unsafe { array.detach_as::<u8>(bytes) }).map_err(raise)?;
        // SAFETY: as in `at`.
        with_type!(element, unsafe { bytes.detach_as::<T>(held) }.map(Elements::from))
    }

    /// A copy on the device of a stream.
    pub(crate) fn copy_on(&self, py: Python<'_>, stream: &gpumem::Stream) -> PyResult<Self> {
        let elements = each!(&self.elements, array => {
            py.detach(|| stream.to_device(array)).map(|array| hold(&array))
        });
        Self::copied(py, elements.map_err(raise)?, self.dtype.clone_ref(py))
    }

    /// A new array: what was not aligned is so now.
    pub(crate) fn copied(py: Python<'_>, elements: Elements, dtype: DType) -> PyResult<Self> {
        let array = Self::new(elements, dtype);
        match array.dtype.is_unaligned() {
            true => array.at(&array.layout()?, array.dtype.clone_ref(py)),
            false => Ok(array),
        }
    }

    /// The array with its elements held as bytes.
    pub(crate) fn in_bytes(&self) -> PyResult<Self> {
        self.at(&self.layout()?, DType::bytes(self.dtype.size()))
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

#[pymethods]
impl DeviceNDArray {
    /// Lengths of the axes.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.layout()?.shape())
    }

    /// Bytes from one element to the next along each axis.
    #[getter]
    fn strides<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.layout()?.strides())
    }

    /// Type of the elements, as NumPy's.
    #[getter]
    #[pyo3(name = "dtype")]
    fn numpy_dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.dtype.numpy(py)
    }

    /// Number of axes.
    #[getter]
    fn ndim(&self) -> PyResult<usize> {
        Ok(self.layout()?.ndim())
    }

    /// Number of elements.
    #[getter]
    fn size(&self) -> PyResult<usize> {
        Ok(self.layout()?.len())
    }

    /// Bytes of all elements.
    #[getter]
    fn nbytes(&self) -> usize {
        each!(&self.elements, array => array.byte_len())
    }

    /// The device that the memory belongs to.
    #[getter]
    pub(crate) fn device(&self) -> PyResult<device::Device> {
        let device = each!(&self.elements, array => array.device().cloned()).map_err(raise)?;
        Ok(device::Device(device))
    }

    /// Whether the array may be written, and how its elements lie.
    #[getter]
    fn flags<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let flags = PyDict::new(py);
        flags.set_item("C_CONTIGUOUS", self.is_c_contiguous()?)?;
        flags.set_item("F_CONTIGUOUS", self.is_f_contiguous()?)?;
        flags.set_item("WRITEABLE", !self.read_only)?;
        Ok(flags)
    }

    /// The object that the memory was taken from, if it was.
    #[getter]
    fn owner(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.owner.as_ref().map(|owner| owner.clone_ref(py))
    }

    /// Whether the elements lie side by side with the last axis first, as NumPy defines it.
    fn is_c_contiguous(&self) -> PyResult<bool> {
        Ok(self.layout()?.is_c_contiguous())
    }

    /// Whether the elements lie side by side with the first axis first.
    fn is_f_contiguous(&self) -> PyResult<bool> {
        Ok(self.layout()?.is_f_contiguous())
    }

    /// The elements in a NumPy array: a new one, or `ary`, which is returned. They are there on return; with a stream,
    /// after everything that was enqueued on it. With a stream and a page-locked array the copy is only enqueued.
    #[pyo3(signature = (ary=None, stream=None))]
    pub(crate) fn copy_to_host<'py>(
        &self,
        py: Python<'py>,
        ary: Option<&Bound<'py, PyAny>>,
        stream: Option<stream::GivenStream>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let stream = stream::given(stream);
        let ary = match ary.filter(|ary| !ary.is_none()) {
            Some(ary) => ary.clone(),
            None => {
                let order = if self.is_f_contiguous()? && !self.is_c_contiguous()? { "F" } else { "C" };
                let options = PyDict::new(py);
                options.set_item("order", order)?;
                py.import("numpy")?
                    .getattr("empty")?
                    .call((self.shape(py)?, self.dtype.numpy(py)?), Some(&options))?
            }
        };
        if let (Ok(host), Some(stream)) = (ary.cast::<HostNDArray>(), &stream)
            && !self.dtype.is_unaligned()
        {
            self.dtype.expect(py, host.get().dtype())?;
            host.get().read_from(py, &self.elements, &stream.0)?;
            return Ok(ary);
        }
        let mut host = Host::to_write(&ary)?;
        self.dtype.expect(py, &host.dtype)?;
        let in_bytes = if host.is_odd() { Some(self.in_bytes()?) } else { None };
        each!(&in_bytes.as_ref().unwrap_or(self).elements, array => {
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
        stream: Option<stream::GivenStream>,
    ) -> PyResult<()> {
        self.fill_from(py, ary, stream::given(stream).as_ref(), Way::Copy)
    }

    /// The elements in another shape, as a view; one length may be -1. The order is `C`, `F`, or `A` for that of the array.
    #[pyo3(signature = (*shape, order="C"))]
    fn reshape(&self, py: Python<'_>, shape: &Bound<'_, PyTuple>, order: &str) -> PyResult<Self> {
        self.reshaped(py, shape, order)
    }

    /// The elements in one axis, as a view. The order is `C`, `F`, `A` for that of the array, or `K` for that in memory.
    #[pyo3(signature = (order="C"))]
    fn ravel(&self, py: Python<'_>, order: &str) -> PyResult<Self> {
        self.raveled(py, order)
    }

    /// The same bytes as elements of another type, as a view. Where the sizes differ, the last axis is cut or joined.
    #[pyo3(signature = (dtype=None))]
    fn view(&self, py: Python<'_>, dtype: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        self.viewed(py, dtype)
    }

    /// The elements repeated along new and short axes, as a view that can only be read.
    fn broadcast_to(&self, py: Python<'_>, shape: &Bound<'_, PyAny>) -> PyResult<Self> {
        let layout = self.layout()?.broadcast(&crate::make::shape(shape)?).map_err(raise_layout)?;
        Ok(Self { read_only: true, ..self.relayout(py, &layout)? })
    }

    /// Parts of `section` elements along the first axis, as a list of views; the last may be smaller. Arrays have no
    /// stream of their own, and `stream` changes nothing.
    #[pyo3(signature = (section, stream=None))]
    fn split(
        &self,
        py: Python<'_>,
        section: isize,
        stream: Option<stream::GivenStream>,
    ) -> PyResult<Vec<Self>> {
        drop(stream);
        self.parts(py, section)
    }

    /// The elements without axes of length one: all of them, or those that `axis` names, one or a tuple. A view; `stream`
    /// changes nothing.
    #[pyo3(signature = (axis=None, stream=None))]
    fn squeeze(
        &self,
        py: Python<'_>,
        axis: Option<&Bound<'_, PyAny>>,
        stream: Option<stream::GivenStream>,
    ) -> PyResult<Self> {
        drop(stream);
        self.without_axes(py, axis)
    }

    /// The axes in reversed order, or in the given one; a view.
    #[pyo3(signature = (*axes))]
    fn transpose(&self, py: Python<'_>, axes: &Bound<'_, PyTuple>) -> PyResult<Self> {
        self.permuted(py, axes)
    }

    /// The axes in reversed order; a view.
    #[getter]
    #[pyo3(name = "T")]
    fn transposed(&self, py: Python<'_>) -> PyResult<Self> {
        self.relayout(py, &self.layout()?.reversed_axes())
    }

    /// The array itself: arrays have no stream of their own, and one may be used on any stream. For scripts of Numba's.
    #[pyo3(signature = (stream=None))]
    fn bind(slf: Py<Self>, stream: Option<stream::GivenStream>) -> Py<Self> {
        drop(stream);
        slf
    }

    /// A handle by which another process on this machine opens the array. It must come from `ipc_array`.
    fn get_ipc_handle(slf: &Bound<'_, Self>) -> PyResult<crate::ipc::IpcArrayHandle> {
        crate::ipc::export(slf)
    }

    /// As indexing, after everything that was enqueued on `stream`.
    #[pyo3(signature = (item, stream=None))]
    fn getitem<'py>(
        &self,
        py: Python<'py>,
        item: &Bound<'py, PyAny>,
        stream: Option<stream::GivenStream>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Some(stream) = stream::given(stream) {
            stream.synchronize(py)?;
        }
        self.item(py, item)
    }

    /// As assignment to a part, in the order of `stream`.
    #[pyo3(signature = (key, value, stream=None))]
    fn setitem(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        stream: Option<stream::GivenStream>,
    ) -> PyResult<()> {
        self.set_item(py, key, value, stream::given(stream).as_ref())
    }

    /// A part, as a view; a single element as a NumPy scalar.
    fn __getitem__<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.item(py, key)
    }

    /// Assigns to a part, broadcast and converted as NumPy does.
    fn __setitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.set_item(py, key, value, None)
    }

    fn __len__(&self) -> PyResult<usize> {
        self.layout()?
            .shape()
            .first()
            .copied()
            .ok_or_else(|| PyTypeError::new_err("len() of an array without axes"))
    }

    /// The parts along the first axis, one after the other.
    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        if slf.get().ndim()? == 0 {
            return Err(PyTypeError::new_err("iteration over an array without axes"));
        }
        // SAFETY: an object that Python can ask for its items by number; what comes back is a new reference or an error.
        unsafe { Bound::from_owned_ptr_or_err(slf.py(), ffi::PySeqIter_New(slf.as_ptr())) }
    }

    /// The truth value of the only element, as NumPy's.
    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        match self.size()? {
            1 => self.scalar(py)?.is_truthy(),
            0 => Err(PyValueError::new_err(
                "the truth value of an array without elements is ambiguous; ask for its size",
            )),
            _ => Err(PyValueError::new_err("the truth value of an array with several elements is ambiguous")),
        }
    }

    /// Refuses NumPy's functions of elements, which do not run on a device.
    #[pyo3(signature = (ufunc, method, *_inputs, **_options))]
    fn __array_ufunc__(
        &self,
        ufunc: &Bound<'_, PyAny>,
        method: &str,
        _inputs: &Bound<'_, PyTuple>,
        _options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let _ = method;
        Err(operators::absent(&ufunc.getattr("__name__")?.to_string()))
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
        let (shape, dtype) = (self.shape(py)?, self.dtype.numpy(py)?);
        Ok(format!(
            "<gpumem.DeviceNDArray shape={} dtype={} on {}>",
            shape.repr()?,
            dtype.str()?,
            self.device()?.0.name()
        ))
    }
}

/// Adds the class, with operators that say what to do instead.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<DeviceNDArray>()?;
    module.add_function(wrap_pyfunction!(convert::conversion_kernel, module)?)?;
    operators::add(&module.py().get_type::<DeviceNDArray>())
}
