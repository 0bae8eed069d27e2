//! Arrays in files, as sources of copies to a device.

use crate::{
    device::GivenDevice,
    device_array::DeviceNDArray,
    dtype::{Elements, hold},
    element::DType,
    error::raise,
    key::basic_key,
    progress::Told,
    spilled::Spilled,
    stream::{self, GivenStream, Stream},
    wait::ask,
};
use gpumem::{
    DeviceViewMut, Element, ElementType, Layout, files,
    ndarray::{IxDyn, SliceInfoElem},
};
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::{PyDict, PyTuple},
};
use std::sync::{Arc, Mutex, PoisonError};

/// What a context has opened, until it is closed.
pub(crate) struct Opened<T: ?Sized>(Mutex<Option<Arc<T>>>);

impl<T: ?Sized> Opened<T> {
    pub(crate) fn new(opened: Arc<T>) -> Self {
        Self(Mutex::new(Some(opened)))
    }

    pub(crate) fn get(&self) -> PyResult<Arc<T>> {
        let opened = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        opened.ok_or_else(|| PyValueError::new_err("the file is closed"))
    }

    /// Closing what is closed does nothing, as with files of Python.
    pub(crate) fn close(&self) {
        drop(self.0.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

/// An array in a file, whatever its elements are.
pub(crate) trait ArrayInFile: Send + Sync {
    fn layout(&self) -> &Layout;

    fn part(&self, key: &[SliceInfoElem]) -> gpumem::Result<Arc<dyn ArrayInFile>>;

    fn to_device(&self, stream: Option<&gpumem::Stream>, device: &gpumem::Device)
    -> gpumem::Result<Elements>;

    /// As [`to_device`](Self::to_device), and tells how far it has come.
    fn to_device_and_tell(
        &self,
        stream: Option<&gpumem::Stream>,
        device: &gpumem::Device,
        told: &mut Told,
    ) -> gpumem::Result<Elements>;

    /// The array as one that is read when it is used.
    fn spilled(&self, manager: &gpumem::SpillManager) -> gpumem::Result<Box<dyn Spilled>>;
}

impl<T: Element> ArrayInFile for files::FileView<T, IxDyn>
where
    Elements: From<DeviceViewMut<'static, T, IxDyn>>,
{
    fn layout(&self) -> &Layout {
        files::FileView::layout(self)
    }

    fn part(&self, key: &[SliceInfoElem]) -> gpumem::Result<Arc<dyn ArrayInFile>> {
        Ok(Arc::new(self.slice(key)?))
    }

    fn to_device(
        &self,
        stream: Option<&gpumem::Stream>,
        device: &gpumem::Device,
    ) -> gpumem::Result<Elements> {
        let array = match stream {
            Some(stream) => stream.to_device(self),
            None => device.to_device(self),
        };
        array.map(|array| hold(&array))
    }

    fn to_device_and_tell(
        &self,
        stream: Option<&gpumem::Stream>,
        device: &gpumem::Device,
        told: &mut Told,
    ) -> gpumem::Result<Elements> {
        let (on, wait) = match stream {
            Some(stream) => (stream.clone(), None),
            None => (device.stream()?, Some(ask("load")?)),
        };
        let tell = |progress| told.tell(progress);
        let array = on.to_device_all_with_progress(std::slice::from_ref(self), tell)?.remove(0);
        if let Some(wait) = wait {
            wait.for_array(&array)?;
        }
        Ok(hold(&array))
    }

    fn spilled(&self, manager: &gpumem::SpillManager) -> gpumem::Result<Box<dyn Spilled>> {
        Ok(Box::new(manager.open(self.clone())?))
    }
}

/// An array in a file, or a part of one. It reads what it needs, when it is copied to a device.
#[pyclass(frozen, module = "pygpumem")]
pub(crate) struct FileView {
    array: Opened<dyn ArrayInFile>,
    element: ElementType,
    file_dtype: String,
}

impl FileView {
    /// An array of elements that the extension has, with the file's name for them.
    pub(crate) fn new<T: Element>(array: files::FileView<T, IxDyn>, file_dtype: String) -> Self
    where
        files::FileView<T, IxDyn>: ArrayInFile,
    {
        Self { array: Opened::new(Arc::new(array)), element: ElementType::of::<T>(), file_dtype }
    }

    /// The same view once more, which is closed by itself.
    pub(crate) fn again(&self) -> PyResult<Self> {
        let array = Opened::new(self.array.get()?);
        Ok(Self { array, element: self.element, file_dtype: self.file_dtype.clone() })
    }

    /// The array as one that is read when it is used, with where its elements lie then, and their type.
    pub(crate) fn spilled(
        &self,
        py: Python<'_>,
        manager: &gpumem::SpillManager,
    ) -> PyResult<(Box<dyn Spilled>, Layout, DType)> {
        let array = self.array.get()?;
        let spilled = py.detach(|| array.spilled(manager)).map_err(raise)?;
        Ok((spilled, array.layout().like(), DType::plain(self.element)))
    }

    /// A new array of a device.
    pub(crate) fn copy_to(
        &self,
        py: Python<'_>,
        stream: Option<&Stream>,
        device: &gpumem::Device,
    ) -> PyResult<DeviceNDArray> {
        let (array, stream) = (self.array.get()?, stream.map(|stream| &stream.0));
        let elements = py.detach(|| array.to_device(stream, device)).map_err(raise)?;
        Ok(DeviceNDArray::new(elements, DType::plain(self.element)))
    }

    /// As [`copy_to`](Self::copy_to), and tells a function how far it has come, if there is one.
    pub(crate) fn copy_and_tell(
        &self,
        py: Python<'_>,
        stream: Option<&Stream>,
        device: &gpumem::Device,
        told: &mut Option<Told>,
    ) -> PyResult<DeviceNDArray> {
        let Some(told) = told else { return self.copy_to(py, stream, device) };
        let (array, stream) = (self.array.get()?, stream.map(|stream| &stream.0));
        let elements = py.detach(|| array.to_device_and_tell(stream, device, told));
        let elements = elements.map_err(|error| told.raise(error))?;
        told.next(self.nbytes()? as u64);
        Ok(DeviceNDArray::new(elements, DType::plain(self.element)))
    }
}

#[pymethods]
impl FileView {
    /// Lengths of the axes.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.array.get()?.layout().shape())
    }

    /// Type of the elements, as NumPy's. Floats of eight bits or fewer are bytes.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        DType::plain(self.element).numpy(py)
    }

    /// Type of the elements, as the file names it.
    #[getter]
    fn file_dtype(&self) -> &str {
        &self.file_dtype
    }

    /// Number of axes.
    #[getter]
    fn ndim(&self) -> PyResult<usize> {
        Ok(self.array.get()?.layout().ndim())
    }

    /// Bytes of all elements.
    #[getter]
    pub(crate) fn nbytes(&self) -> PyResult<usize> {
        Ok(self.array.get()?.layout().packed_bytes())
    }

    /// A new array of the elements. With a stream they have been read on return, and the copy is in its order.
    #[pyo3(signature = (stream=None, device=None))]
    fn to_device(
        &self,
        py: Python<'_>,
        stream: Option<GivenStream>,
        device: Option<GivenDevice>,
    ) -> PyResult<DeviceNDArray> {
        let (stream, device) = stream::placed(stream, device)?;
        self.copy_to(py, stream.as_ref(), &device)
    }

    /// Refuses NumPy's functions, which would take it as a sequence of objects.
    #[pyo3(signature = (*_arguments, **_options))]
    fn __array__(
        &self,
        _arguments: &Bound<'_, PyTuple>,
        _options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        Err(PyTypeError::new_err("an array in a file is read by to_device()"))
    }

    /// A part, by a key that NumPy calls basic. Nothing is read.
    fn __getitem__(&self, key: &Bound<'_, PyAny>) -> PyResult<Self> {
        let array = self.array.get()?;
        let part = array.part(&basic_key(key, array.layout().shape())?).map_err(raise)?;
        Ok(Self { array: Opened::new(part), element: self.element, file_dtype: self.file_dtype.clone() })
    }

    fn __len__(&self) -> PyResult<usize> {
        let array = self.array.get()?;
        let first = array.layout().shape().first().copied();
        first.ok_or_else(|| PyTypeError::new_err("len() of an array without axes"))
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// Closes this view. Parts that were made of it keep the file open as long as they live.
    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) -> bool {
        self.array.close();
        false
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("<pygpumem.FileView shape={} of {}>", self.shape(py)?.repr()?, self.file_dtype))
    }
}
