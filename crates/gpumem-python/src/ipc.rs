//! Arrays that several processes share.

use crate::dtype::{each, with_type};
use crate::{
    device,
    device_array::DeviceNDArray,
    dtype::{check_writable, hold},
    element::DType,
    error::{raise, raise_layout},
    kept::{Kept, Traverse},
    list::Listed,
    make,
};
use gpumem::{Layout, Order, ndarray::IxDyn};
use gpumem_core::IpcMemory;
use pyo3::{
    PyTraverseError, PyVisit,
    exceptions::PyValueError,
    prelude::*,
    types::{PyBytes, PyTuple, PyType},
};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Where another process finds an array. It can be pickled, and opened there; as a context it is closed at its end.
#[pyclass(frozen, module = "pygpumem")]
pub(crate) struct IpcArrayHandle {
    data: Vec<u8>,
    dtype: DType,
    /// The exported array of this process: it stays alive as long as the handle.
    _exported: Option<Kept<DeviceNDArray>>,
    opened: Mutex<Option<Kept<DeviceNDArray>>>,
}

impl IpcArrayHandle {
    fn new_of(data: Vec<u8>, dtype: DType, exported: Option<Py<DeviceNDArray>>) -> Self {
        Self { data, dtype, _exported: exported.map(Kept::from), opened: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Kept<DeviceNDArray>>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type State<'py> = (Bound<'py, PyBytes>, Bound<'py, PyAny>);

#[pymethods]
impl IpcArrayHandle {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self._exported.visit(&visit)?;
        self.opened.visit(&visit)
    }

    #[new]
    fn new(data: &[u8], dtype: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self::new_of(data.to_vec(), DType::parse(dtype.py(), Some(dtype))?, None))
    }

    /// Opens the array of the other process, which keeps it alive meanwhile. Both see the same elements; in which order
    /// they use them is for them to agree on.
    #[pyo3(signature = (device=None))]
    fn open(&self, py: Python<'_>, device: Option<device::GivenDevice>) -> PyResult<Py<DeviceNDArray>> {
        let is_open = || PyValueError::new_err("the handle is open already");
        // Not locked while Python's lock is given up: another thread would wait for this one, and hold Python's lock.
        if self.lock().is_some() {
            return Err(is_open());
        }
        let device = device::given(device)?;
        let elements = with_type!(self.dtype.held(), {
            let array = gpumem::IpcArrayHandle::<T, IxDyn>::from_bytes(&self.data).map_err(raise)?;
            // The type was said apart from the handle, which knows the bytes of records and not their size.
            let held = Layout::strided(array.shape(), array.strides(), size_of::<T>());
            self.dtype.layout(&held.map_err(raise_layout)?)?;
            // SAFETY: the other process keeps the memory and agrees on its use, which Python has no way to promise.
            let array = py.detach(|| unsafe { Ok(device.open_ipc(&array)?.into_array()) });
            hold(&array.map_err(raise)?)
        })?;
        let array = DeviceNDArray::new(elements, self.dtype.clone_ref(py));
        let array = Py::new(py, array)?;
        let mut opened = self.lock();
        if opened.is_some() {
            return Err(is_open());
        }
        *opened = Some(array.clone_ref(py).into());
        drop(opened);
        Ok(array)
    }

    /// Closes the array that `open` has opened; the memory is unmapped with the last array over it.
    fn close(&self) -> PyResult<()> {
        let opened = self.lock().take();
        opened.map(drop).ok_or_else(|| PyValueError::new_err("the handle is not open"))
    }

    fn __enter__(&self, py: Python<'_>) -> PyResult<Py<DeviceNDArray>> {
        self.open(py, None)
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) -> PyResult<bool> {
        self.close()?;
        Ok(false)
    }

    /// The state for pickle: plain bytes and the type.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyType>, State<'py>)> {
        Ok((py.get_type::<Self>(), (PyBytes::new(py, &self.data), self.dtype.numpy(py)?)))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("<pygpumem.IpcArrayHandle of {}>", self.dtype.name(py)?))
    }
}

/// The handle of an array that [`ipc_array`] has made, or of a view of one.
pub(crate) fn export(array: &Bound<'_, DeviceNDArray>) -> PyResult<IpcArrayHandle> {
    let (py, own) = (array.py(), array.get());
    // The other process could write it.
    check_writable(own.read_only)?;
    let data = each!(&own.elements, elements => {
        // SAFETY: the handle keeps the array; the processes agree on its use, which Python has no way to promise.
        py.detach(|| unsafe { elements.ipc_handle() }).map(|shared| shared.to_bytes())
    });
    Ok(IpcArrayHandle::new_of(data.map_err(raise)?, own.dtype.clone_ref(py), Some(array.clone().unbind())))
}

/// Returns a new array of zeros that other processes may open. Its memory is not from a pool: an opened array shows the
/// whole block that it lies in.
#[pyfunction]
#[pyo3(signature = (shape, dtype=None, strides=None, order="C", device=None))]
pub(crate) fn ipc_array(
    py: Python<'_>,
    shape: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    strides: Option<Listed<isize>>,
    order: &str,
    device: Option<device::GivenDevice>,
) -> PyResult<DeviceNDArray> {
    let dtype = DType::parse(py, dtype)?;
    let spec = dtype.held_spec(make::spec(make::shape(shape)?, strides, order)?)?;
    let device = device::given(device)?;
    let elements =
        with_type!(dtype.held(), hold(&py.detach(|| device.ipc_array::<T, _>(spec)).map_err(raise)?))?;
    Ok(DeviceNDArray::new(elements, dtype))
}

/// The handle of an array by its parts: the driver's 64 bytes, and where the elements lie from `offset` on. A context.
#[pyfunction]
#[pyo3(signature = (handle, shape, dtype, strides=None, offset=0))]
pub(crate) fn open_ipc_array(
    handle: &[u8],
    shape: &Bound<'_, PyAny>,
    dtype: &Bound<'_, PyAny>,
    strides: Option<Listed<isize>>,
    offset: u64,
) -> PyResult<IpcArrayHandle> {
    let wrong = || PyValueError::new_err("a driver's handle of shared memory has 64 bytes");
    let handle: &[u8; 64] = handle.try_into().map_err(|_| wrong())?;
    let (shape, dtype) = (make::shape(shape)?, DType::parse(dtype.py(), Some(dtype))?);
    let layout = match strides {
        Some(Listed(strides)) => Layout::strided(&shape, &strides, dtype.size()),
        None => Layout::packed(&shape, dtype.size(), Order::C),
    };
    let layout = dtype.held_layout(&layout.map_err(raise_layout)?)?;
    let memory = IpcMemory::new(*handle, offset, layout.extent().len() as u64);
    let data = with_type!(dtype.held(), {
        gpumem::IpcArrayHandle::<T, IxDyn>::from_parts(memory, &layout).map_err(raise)?.to_bytes()
    })?;
    Ok(IpcArrayHandle::new_of(data, dtype, None))
}
