//! Arrays in device memory.

mod assign;
pub(crate) mod convert;
mod index;
mod operators;
mod shape;

pub(crate) use operators::{absent, add as add_operators};

use crate::dtype::each;
use crate::{
    device,
    device_array::{DeviceNDArray, Way},
    element::DType,
    error::{raise, raise_layout},
    host::{Host, wait_within},
    in_use::Use,
    kept::Traverse,
    page_locked::page_locked,
    stream,
    wait::may_wait,
};
use pyo3::{
    PyTraverseError, PyVisit,
    exceptions::{PyAttributeError, PyTypeError, PyValueError},
    ffi,
    prelude::*,
    types::{PyDict, PyTuple},
};

impl DeviceNDArray {
    /// The stream of a call, if it names one.
    fn given(&self, stream: Option<stream::GivenStream>) -> PyResult<Option<stream::Stream>> {
        match stream {
            Some(stream) => stream::given(Some(stream), &self.device()?.0),
            None => Ok(None),
        }
    }

    /// Copies the only element to a record of NumPy's, which is no array: field by field.
    fn copy_to_record(
        &self,
        py: Python<'_>,
        record: &Bound<'_, PyAny>,
        stream: Option<stream::GivenStream>,
    ) -> PyResult<()> {
        self.dtype.expect(py, &DType::parse(py, Some(&record.getattr("dtype")?))?)?;
        if self.ndim()? != 0 {
            return Err(PyValueError::new_err("a record is the destination of an array without axes"));
        }
        let host = self.copy_to_host(py, None, stream)?;
        wait_within(record, Use::Write)?;
        for name in self.dtype.numpy(py)?.getattr("fields")?.try_iter()? {
            let name = name?;
            record.set_item(&name, host.get_item(&name)?)?;
        }
        Ok(())
    }
}

#[pymethods]
impl DeviceNDArray {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // The library refers to the owner too, as long as it is the memory's.
        self.owner.visit(&visit)
    }

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

    /// Bytes from the first element to the last.
    #[getter]
    fn alloc_size(&self) -> usize {
        each!(&self.elements, array => array.layout().extent().len())
    }

    /// No stream: arrays have none of their own, and every use of one comes after the earlier ones.
    #[getter]
    fn stream(&self) -> u32 {
        0
    }

    /// The address of the first element, as a pointer of ctypes. As by `__cuda_array_interface__`, the memory is lent as long as the
    /// array object lives.
    #[getter]
    fn device_ctypes_pointer<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let says = crate::interchange::describe(py, self)?;
        let data = says.get_item("data")?.ok_or_else(|| PyAttributeError::new_err("the array has no address"))?;
        py.import("ctypes")?.getattr("c_void_p")?.call1((data.get_item(0)?,))
    }

    /// The array itself, whose `device_ctypes_pointer` is that of its memory.
    #[getter]
    fn gpu_data(slf: Py<Self>) -> Py<Self> {
        slf
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
    pub(crate) fn owner(&self, py: Python<'_>) -> Option<Py<PyAny>> {
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
        let stream = self.given(stream)?;
        let ary = match ary.filter(|ary| !ary.is_none()) {
            Some(record) if record.is_instance(&py.import("numpy")?.getattr("void")?)? => {
                self.copy_to_record(py, record, stream.map(stream::GivenStream::from))?;
                return Ok(record.clone());
            }
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
        if let Some(stream) = &stream
            && !self.dtype.is_unaligned()
            && let Some(host) = page_locked(&ary)?
        {
            self.dtype.expect(py, host.get().dtype())?;
            if host.get().read_from(py, &self.elements, &stream.0)? {
                return Ok(ary);
            }
        }
        let mut host = Host::to_write(&ary)?;
        self.dtype.expect(py, &host.dtype)?;
        host.check_apart(&self.elements)?;
        let in_bytes = if host.is_odd() { Some(self.in_bytes()?) } else { None };
        each!(&in_bytes.as_ref().unwrap_or(self).elements, array => {
            let to = host.view_mut::<T>()?;
            if let Some(stream) = stream {
                may_wait("copy_to_host")?.for_work(py, &stream.0)?;
            }
            py.detach(|| array.copy_to_host_into(to).map(drop)).map_err(raise)?
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
        self.fill_from(py, ary, self.given(stream)?.as_ref(), Way::Copy)
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
        Ok(self.relayout(py, &layout)?.into_read_only())
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
        self.given(stream)?;
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
        self.given(stream)?;
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
    fn bind(slf: Py<Self>, stream: Option<stream::GivenStream>) -> PyResult<Py<Self>> {
        slf.get().given(stream)?;
        Ok(slf)
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
        if let Some(stream) = self.given(stream)? {
            may_wait("getitem")?.for_work(py, &stream.0)?;
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
        self.set_item(py, key, value, self.given(stream)?.as_ref())
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
        // SAFETY: the object is a sequence; the call returns a new reference or an error.
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
            return Err(PyValueError::new_err("`copy=False` is not supported: the elements of a device array are copied to the host"));
        }
        let host = self.copy_to_host(py, None, None)?;
        match dtype {
            Some(dtype) => host.call_method1("astype", (dtype,)),
            None => Ok(host),
        }
    }

    /// The CUDA Array Interface, version 3, after waiting for pending work: not every reader looks at its stream. The
    /// memory is lent while the array lives.
    #[getter]
    fn __cuda_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        crate::interchange::describe(py, self)
    }

    /// DLPack's functions of C for arrays of the class.
    #[classattr]
    fn __dlpack_c_exchange_api__(py: Python<'_>) -> PyResult<Py<PyAny>> {
        crate::interchange::exchange::capsule(py)
    }

    /// The place of the memory, by DLPack's numbers.
    fn __dlpack_device__(&self) -> PyResult<(i32, i32)> {
        crate::interchange::dlpack_device(self)
    }

    /// A DLPack capsule, by the array API's rules. `stream` is the consumer's, and waits for pending work.
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
            "<pygpumem.DeviceNDArray shape={} dtype={} on {}>",
            shape.repr()?,
            dtype.str()?,
            self.device()?.0.name()
        ))
    }
}
