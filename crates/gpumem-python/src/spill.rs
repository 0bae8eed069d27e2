//! Arrays that leave a device when its memory is short, and come back when they are used.

use crate::{
    device::{self, Device, GivenDevice},
    device_array::{DeviceNDArray, Way},
    dtype::{Elements, each, hold},
    element::DType,
    error::raise,
    file_view::FileView,
    list::named,
    make,
    spilled::Spilled,
    stream::{self, GivenStream},
    wait::may_wait,
};
use gpumem::{ElementType, Layout, SpillOptions, SpillOrder, ndarray::IxDyn};
use pyo3::{exceptions::PyValueError, prelude::*, sync::PyOnceLock, types::PyTuple};

/// The arrays of one device that may leave it. When an allocation on the device finds no memory, arrays that are not in use are copied
/// to page-locked memory, those first that `order` says: `least_recent`, or `most_recent` for loops over all of them.
/// `host_bytes` bounds the page-locked memory.
#[pyclass(frozen, module = "pygpumem")]
pub(crate) struct SpillManager {
    manager: gpumem::SpillManager,
    device: gpumem::Device,
}

#[pymethods]
impl SpillManager {
    #[new]
    #[pyo3(signature = (device=None, *, host_bytes=None, order="least_recent"))]
    fn new(
        py: Python<'_>,
        device: Option<GivenDevice>,
        host_bytes: Option<usize>,
        order: &str,
    ) -> PyResult<Self> {
        let order = match order {
            "least_recent" => SpillOrder::LeastRecent,
            "most_recent" => SpillOrder::MostRecent,
            _ => return Err(PyValueError::new_err("the order is 'least_recent' or 'most_recent'")),
        };
        let options = SpillOptions::new().host_bytes(host_bytes.unwrap_or(usize::MAX)).order(order);
        let device = device::given(device)?;
        let manager = py.detach(|| gpumem::SpillManager::new(&device, options)).map_err(raise)?;
        Ok(Self { manager, device })
    }

    /// An array that may leave the device, with the elements of a source. One in a file is read when it is used, and read again after it
    /// has left, unless it was written. Others are copied to the device now.
    fn add(&self, py: Python<'_>, source: &Bound<'_, PyAny>) -> PyResult<Spillable> {
        let source = make::source(source)?;
        if let Ok(view) = source.cast::<FileView>() {
            let (array, layout, dtype) = view.get().spilled(py, &self.manager)?;
            return Ok(Spillable { array, layout, dtype, device: self.device.clone() });
        }
        let (layout, dtype) = make::described(&source)?;
        let layout = layout.like();
        let bytes = dtype.held_layout(&layout)?.extent().end;
        let array = py.detach(|| self.device.device_array::<u8, _>(IxDyn(&[bytes]))).map_err(raise)?;
        over(py, hold(&array), &layout, &dtype)?.fill_from(py, &source, None, Way::Copy)?;
        let array = py.detach(|| self.manager.add(array).map_err(|(_, error)| error)).map_err(raise)?;
        Ok(Spillable { array: Box::new(array), layout, dtype, device: self.device.clone() })
    }

    /// Makes all arrays leave the device that can, waits for it, and gives its idle memory back to the driver. Returns the bytes that
    /// have left, that the driver has again, and of the arrays that stay, and why the first of them could not leave, if it failed.
    fn sleep<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        static NAMED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        may_wait("sleep")?;
        let slept = py.detach(|| self.manager.sleep()).map_err(raise)?;
        let error = slept.error.map(|error| error.to_string());
        let all = (slept.evicted, slept.returned, slept.kept, error);
        named(py, &NAMED, "Slept", &["evicted", "returned", "kept", "error"])?.call1(all)
    }

    /// Brings back the arrays that have left by `sleep` and have not been used since, the one that was used last first, in the order
    /// of a stream. Returns their bytes.
    #[pyo3(signature = (stream=None))]
    fn wake(&self, py: Python<'_>, stream: Option<GivenStream>) -> PyResult<usize> {
        let stream = stream_of(stream, &self.device)?;
        py.detach(|| self.manager.wake(&stream)).map_err(raise)
    }

    /// The bytes of the arrays: on the device, in page-locked memory, and copied there and back so far.
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        static NAMED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let own = self.manager.report();
        let names = ["device_bytes", "host_bytes", "downloaded_bytes", "uploaded_bytes"];
        let all = (own.device_bytes, own.host_bytes, own.downloaded_bytes, own.uploaded_bytes);
        named(py, &NAMED, "SpillReport", &names)?.call1(all)
    }

    /// The device of the arrays.
    #[getter]
    fn device(&self) -> Device {
        Device(self.device.clone())
    }

    fn __repr__(&self) -> String {
        let own = self.manager.report();
        format!("<pygpumem.SpillManager of {} bytes on {}>", own.device_bytes, self.device.name())
    }
}

/// The stream of a call, which is the default one of the device if it names none.
fn stream_of(stream: Option<GivenStream>, device: &gpumem::Device) -> PyResult<gpumem::Stream> {
    match stream::given(stream, device)? {
        Some(stream) => Ok(stream.0),
        None => device.default_stream().map_err(raise),
    }
}

/// Elements that are held in memory of their own, as an array of Python's.
fn over(py: Python<'_>, elements: Elements, layout: &Layout, dtype: &DType) -> PyResult<DeviceNDArray> {
    let element = each!(&elements, _array => ElementType::of::<T>());
    DeviceNDArray::new(elements, DType::plain(element)).at(layout, dtype.clone_ref(py))
}

/// An array that may leave the device when its memory is short. It stays as long as an array that `get` has returned lives.
#[pyclass(frozen, module = "pygpumem")]
pub(crate) struct Spillable {
    array: Box<dyn Spilled>,
    /// Where NumPy's elements lie in the memory of the array.
    layout: Layout,
    dtype: DType,
    device: gpumem::Device,
}

#[pymethods]
impl Spillable {
    /// The array, which is brought back in the order of a stream if it has left. It can only be read, unless `write` says that it is
    /// written. It stays on the device as long as what is returned here, or a part of that, lives: take it late, and keep it for no longer
    /// than it is used.
    #[pyo3(signature = (stream=None, write=false))]
    fn get(&self, py: Python<'_>, stream: Option<GivenStream>, write: bool) -> PyResult<DeviceNDArray> {
        let stream = stream_of(stream, &self.device)?;
        let elements = py.detach(|| self.array.get(&stream, write)).map_err(raise)?;
        let array = over(py, elements, &self.layout, &self.dtype)?;
        Ok(if write { array } else { array.into_read_only() })
    }

    /// Brings the array back in the order of a stream, ahead of its use.
    #[pyo3(signature = (stream=None))]
    fn prefetch(&self, py: Python<'_>, stream: Option<GivenStream>) -> PyResult<()> {
        let stream = stream_of(stream, &self.device)?;
        py.detach(|| self.array.prefetch(&stream)).map_err(raise)
    }

    /// Makes the array leave the device, if it is not in use. Returns whether it has left just now.
    fn evict(&self, py: Python<'_>) -> PyResult<bool> {
        py.detach(|| self.array.evict()).map_err(raise)
    }

    /// Whether the array is on the device.
    fn is_resident(&self, py: Python<'_>) -> PyResult<bool> {
        py.detach(|| self.array.is_resident()).map_err(raise)
    }

    /// Lengths of the axes.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.layout.shape())
    }

    /// Type of the elements, as NumPy's.
    #[getter]
    #[pyo3(name = "dtype")]
    fn numpy_dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.dtype.numpy(py)
    }

    /// Number of axes.
    #[getter]
    fn ndim(&self) -> usize {
        self.layout.ndim()
    }

    /// Bytes of all elements.
    #[getter]
    fn nbytes(&self) -> usize {
        self.layout.packed_bytes()
    }

    /// The device that it comes back to.
    #[getter]
    fn device(&self) -> Device {
        Device(self.device.clone())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let (shape, dtype) = (self.shape(py)?, self.dtype.numpy(py)?);
        let name = self.device.name();
        Ok(format!("<pygpumem.Spillable shape={} dtype={} on {name}>", shape.repr()?, dtype.str()?))
    }
}
