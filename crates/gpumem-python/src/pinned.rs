//! Page-locked arrays.

use crate::dtype::with_type;
use crate::{
    device_array::DeviceNDArray,
    dtype,
    dtype::{Elements, Place, hold},
    element::{DType, all_bytes},
    error::{raise, raise_layout},
    in_use::{self, Bytes, HostMemory, PageLocked, Swept, Use},
    kept::{Kept, Traverse},
};
use gpumem::{
    AnyBackend, Element, Error, ErrorKind, Layout, Loan, PinnedArray,
    generic::{DeviceVisible, HostArray, OwnedKind, Pinned, RegisterError},
    ndarray::IxDyn,
};
use pyo3::{
    PyTraverseError, PyVisit,
    exceptions::{PyAttributeError, PyTypeError, PyValueError},
    prelude::*,
    types::{PyDict, PyTuple},
};
use std::sync::{Arc, Mutex, PoisonError};

type Typed<K, T> = HostArray<K, T, IxDyn, AnyBackend>;
type View<K, T> = fn(&mut Typed<K, T>) -> Elements;
type ToBytes<K, T> = fn(&Typed<K, T>) -> Result<Bytes, Error>;
type End<K, T> = fn(Typed<K, T>) -> Result<(), Box<RegisterError<Typed<K, T>>>>;

/// A page-locked array, with functions that only some kinds have.
pub(crate) struct Held<K: OwnedKind, T: Element> {
    array: Typed<K, T>,
    view: Option<View<K, T>>,
    bytes: Option<ToBytes<K, T>>,
    end: Option<End<K, T>>,
    /// The loan to those who have the address: it lasts until the memory is given back. The library knows lent memory that comes back,
    /// and makes no second owner of it.
    loan: Option<Loan<AnyBackend>>,
}

impl<K: OwnedKind, T: Element> Held<K, T>
where
    Elements: From<gpumem::DeviceViewMut<'static, T, IxDyn>>,
{
    pub(crate) fn new(array: Typed<K, T>) -> Self {
        Self { array, view: None, bytes: None, end: None, loan: None }
    }

    /// With a view of the device's.
    pub(crate) fn visible(self) -> Self
    where
        K: DeviceVisible,
    {
        Self { view: Some(|array| hold(&array.device_view_mut())), ..self }
    }

    /// With the value whose drop frees the memory.
    pub(crate) fn ending(self, end: End<K, T>) -> Self {
        Self { end: Some(end), ..self }
    }
}

impl<T: Element> Held<Pinned, T>
where
    Elements: From<gpumem::DeviceViewMut<'static, T, IxDyn>>,
{
    /// An array that graphs may return.
    pub(crate) fn pinned(array: Typed<Pinned, T>) -> Self {
        Self { bytes: Some(bytes), ..Self::new(array) }
    }
}

fn bytes<T: Element>(array: &Typed<Pinned, T>) -> Result<Bytes, Error> {
    let bytes = all_bytes(array.layout()).map_err(|error| Error::new("", "record", error))?;
    // SAFETY: Python's arrays promise nothing about their elements, and all of them are initialised.
    Ok((unsafe { array.detach_as::<u8>(bytes) }?, array.layout().clone()))
}

impl<K: OwnedKind + 'static, T: Element> HostMemory for Held<K, T>
where
    Elements: From<gpumem::DeviceViewMut<'static, T, IxDyn>>,
{
    fn lend(&mut self) -> Result<usize, Error> {
        self.loan = Some(self.array.lend_mut_to_host()?);
        Ok(self.array.view_mut()?.as_mut_ptr().expose_provenance())
    }

    fn wait(&mut self, then: Use) -> Result<(), Error> {
        match then {
            Use::Read => self.array.view().map(drop),
            Use::Write => self.array.view_mut().map(drop),
        }
    }

    fn is_lent(&self) -> bool {
        self.loan.is_some()
    }

    fn device_view(&mut self) -> Option<Elements> {
        self.view.map(|view| view(&mut self.array))
    }

    fn is_visible(&self) -> bool {
        self.view.is_some()
    }

    fn bytes(&self) -> Option<Result<Bytes, Error>> {
        Some(self.bytes?(&self.array))
    }

    fn to_device(&self, stream: &gpumem::Stream) -> Result<Elements, Error> {
        Ok(hold(&stream.to_device(&self.array)?))
    }

    fn write_to(&self, to: &Elements, stream: &gpumem::Stream) -> Option<Result<(), Error>> {
        let mut to = dtype::elements_of::<T>(to)?;
        Some(stream.copy_to_device(&mut to, &self.array))
    }

    fn read_from(&mut self, from: &Elements, stream: &gpumem::Stream) -> Option<Result<(), Error>> {
        let from = dtype::elements_of::<T>(from)?;
        if from.shape() != self.array.shape() {
            // Told by the blocking copy in the same words.
            return Some(self.array.view_mut().and_then(|to| from.copy_to_host_into(to).map(drop)));
        }
        Some(stream.copy_to_host_into(&from, &mut self.array))
    }

    fn is_over(&mut self, is_told: bool) -> bool {
        self.loan = None;
        self.array.is_over(is_told)
    }

    fn end(mut self: Box<Self>) -> Result<(), (Box<dyn HostMemory>, Error)> {
        self.loan = None;
        let held = *self;
        let Some(end) = held.end else { return Ok(()) };
        end(held.array).map_err(|refused| {
            let left: Box<dyn HostMemory> = Box::new(Self { array: refused.given, ..held });
            (left, refused.error)
        })
    }
}

/// A page-locked, mapped or managed array. `numpy.asarray` of it is a NumPy array over the same memory.
#[pyclass(frozen, weakref, module = "pygpumem", name = "HostNDArray")]
pub(crate) struct HostNDArray {
    memory: Arc<PageLocked>,
    is_visible: bool,
    dtype: DType,
    shape: Vec<usize>,
    strides: Vec<isize>,
    /// The owner of the memory, if it was locked in place. If the memory was lent, it stays beyond the end of the lock: NumPy's
    /// arrays over the memory have this object as their base.
    owner: Mutex<Option<Kept>>,
    _swept: Swept,
}

/// Page-locked memory, and where its elements lie as they are held.
pub(crate) struct Memory {
    memory: Box<dyn HostMemory>,
    held: Layout,
}

impl Memory {
    pub(crate) fn of<K: OwnedKind + 'static, T: Element>(array: Held<K, T>) -> Self
    where
        Elements: From<gpumem::DeviceViewMut<'static, T, IxDyn>>,
    {
        Self { held: array.array.layout().clone(), memory: Box::new(array) }
    }
}

impl HostNDArray {
    pub(crate) fn new(memory: Memory, dtype: DType) -> PyResult<Self> {
        let layout = dtype.layout(&memory.held)?;
        let (shape, strides) = (layout.shape().to_vec(), layout.strides().to_vec());
        let (is_visible, memory) = (memory.memory.is_visible(), PageLocked::new(memory.memory));
        Ok(Self { memory, is_visible, dtype, shape, strides, owner: Mutex::default(), _swept: Swept })
    }

    /// An array of the elements that lie there in bytes.
    pub(crate) fn over(bytes: &PinnedArray<u8, IxDyn>, held: Layout, dtype: DType) -> PyResult<Self> {
        let memory = with_type!(dtype.held(), {
            // SAFETY: as in `bytes`.
            Memory::of(Held::pinned(unsafe { bytes.detach_as::<T>(held) }.map_err(raise)?))
        })?;
        Self::new(memory, dtype)
    }

    /// With the owner of memory that was locked in place.
    pub(crate) fn owned_by(self, owner: Py<PyAny>) -> Self {
        Self { owner: Mutex::new(Some(owner.into())), ..self }
    }

    pub(crate) fn dtype(&self) -> &DType {
        &self.dtype
    }

    /// Does something with the memory, without holding Python up. `None` where it is not page-locked any more.
    fn attempt<R: Send>(
        &self,
        py: Python<'_>,
        body: impl FnOnce(&mut dyn HostMemory) -> Result<R, Error> + Send,
    ) -> PyResult<Option<R>> {
        let done = py.detach(|| {
            let mut locked = self.memory.lock("use of a page-locked array")?;
            let memory = locked.memory.as_mut().filter(|_| !self.has_ended());
            memory.map(|memory| body(memory.as_mut())).transpose()
        });
        done.map_err(raise)
    }

    /// As [`attempt`](Self::attempt), for those who can do nothing else.
    fn with<R: Send>(
        &self,
        py: Python<'_>,
        body: impl FnOnce(&mut dyn HostMemory) -> Result<R, Error> + Send,
    ) -> PyResult<R> {
        let given_back = || PyValueError::new_err("the array is not page-locked any more");
        self.attempt(py, body)?.ok_or_else(given_back)
    }

    /// A copy on a stream's device; `None` where the memory is not page-locked any more.
    pub(crate) fn to_device(&self, py: Python<'_>, stream: &gpumem::Stream) -> PyResult<Option<Elements>> {
        self.memory.wait_for_others(py, Use::Read)?;
        self.attempt(py, |memory| memory.to_device(stream))
    }

    /// Copies to an array of a device. Returns whether the memory was still page-locked.
    pub(crate) fn write_to(&self, py: Python<'_>, to: &Elements, stream: &gpumem::Stream) -> PyResult<bool> {
        self.memory.wait_for_others(py, Use::Read)?;
        is_done(self.attempt(py, |memory| memory.write_to(to, stream).transpose())?)
    }

    /// Copies from an array of a device, as [`write_to`](Self::write_to).
    pub(crate) fn read_from(
        &self,
        py: Python<'_>,
        from: &Elements,
        stream: &gpumem::Stream,
    ) -> PyResult<bool> {
        self.memory.wait_for_others(py, Use::Write)?;
        is_done(self.attempt(py, |memory| memory.read_from(from, stream).transpose())?)
    }

    /// Whether the device sees it: a mapped or managed array.
    pub(crate) fn is_visible(&self) -> bool {
        self.is_visible
    }

    /// Whether it is of a process that this one was forked from.
    pub(crate) fn is_of_parent(&self) -> bool {
        self.memory.is_of_parent()
    }

    /// With memory of NumPy's array at `place`.
    pub(crate) fn known_at(self, py: Python<'_>, place: &Place) -> Self {
        self.memory.announce(py, place.bytes(), true);
        self
    }

    /// The array as a result of a graph; `None` if it is more than page-locked.
    pub(crate) fn bytes(&self, py: Python<'_>) -> PyResult<Option<Bytes>> {
        self.with(py, |memory| memory.bytes().transpose())
    }

    /// Where the elements are, after waiting for the device.
    fn interface<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.memory.wait_for_others(py, Use::Write)?;
        let address = self.with(py, |memory| memory.lend())?;
        let layout = Layout::strided(&self.shape, &self.strides, self.dtype.size()).map_err(raise_layout)?;
        // NumPy's arrays have this one as their base.
        let place = Place::new(address.wrapping_sub(layout.offset()) as u64, layout);
        self.memory.announce(py, place.bytes(), false);
        let dict = PyDict::new(py);
        dict.set_item("shape", PyTuple::new(py, &self.shape)?)?;
        dict.set_item("strides", PyTuple::new(py, &self.strides)?)?;
        dict.set_item("typestr", self.dtype.numpy(py)?.getattr("str")?)?;
        dict.set_item("data", (address, false))?;
        dict.set_item("version", 3)?;
        Ok(dict)
    }

    /// Whether it is page-locked no more.
    pub(crate) fn has_ended(&self) -> bool {
        self.memory.has_ended()
    }

    /// Waits for work that uses the memory, and frees it. Where that is refused, or views of the device's are still there, the memory
    /// is known until it is over.
    pub(crate) fn end(&self, py: Python<'_>) -> PyResult<()> {
        let ended = py.detach(|| {
            // Locked to the end: what uses the memory in another way waits for the same work.
            let mut locked = self.memory.lock("give_back")?;
            let memory = if self.memory.set_ended() { None } else { locked.memory.take() };
            let Some(memory) = memory else { return Ok((true, Ok(()))) };
            let is_lent = memory.is_lent();
            let ended = memory.end().or_else(|(memory, error)| {
                *locked.memory = Some(memory);
                match error.kind() {
                    ErrorKind::InvalidArgument { .. } => Ok(()),
                    _ => {
                        self.memory.set_told(&error);
                        Err(error)
                    }
                }
            });
            Ok((is_lent, ended))
        });
        in_use::sweep(py, false);
        let (is_lent, ended) = ended.map_err(raise)?;
        if !is_lent {
            let owner = self.owner.lock().unwrap_or_else(PoisonError::into_inner).take();
            drop(owner);
        }
        ended.map_err(raise)
    }
}

/// The base of NumPy's arrays of elements that the protocol has no name for.
#[pyclass(frozen, module = "pygpumem")]
struct Seen {
    says: Kept<PyDict>,
    _owner: Kept<HostNDArray>,
}

#[pymethods]
impl Seen {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.says.visit(&visit)?;
        self._owner.visit(&visit)
    }

    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        // What the caller does to it changes nothing here.
        self.says.bind(py).copy()
    }
}

/// Whether a copy was done that the memory was there for, and the elements are of the same type.
fn is_done(done: Option<Option<()>>) -> PyResult<bool> {
    match done {
        Some(None) => Err(PyTypeError::new_err("the elements are of another type")),
        done => Ok(done.is_some()),
    }
}

#[pymethods]
impl HostNDArray {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // The library refers to the owner too, as long as it is the memory's.
        self.owner.visit(&visit)
    }

    /// Waits for the device, and returns the address of the elements. Wait again for work that is enqueued later before
    /// you read the elements. Records have `__array__` instead, because this protocol cannot describe their padding, and so
    /// has bfloat16, for which it has no name.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        if self.dtype.is_nameless() {
            return Err(PyAttributeError::new_err("records and bfloat16 are described by __array__"));
        }
        self.interface(py)
    }

    /// A NumPy array over the same memory, after waiting for the device.
    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, own) = (slf.py(), slf.get());
        let seen = Seen { says: own.interface(py)?.unbind().into(), _owner: slf.clone().unbind().into() };
        let array = py.import("numpy")?.call_method1("asarray", (Bound::new(py, seen)?,))?;
        let array = array.call_method1("view", (own.dtype.numpy(py)?,))?;
        let wanted = match dtype.filter(|dtype| !dtype.is_none()) {
            Some(dtype) => array.call_method1("astype", (dtype,))?,
            None => array,
        };
        if copy == Some(true) { wanted.call_method0("copy") } else { Ok(wanted) }
    }

    /// The array as the device sees it, for mapped arrays.
    #[getter]
    pub(crate) fn device_view(&self, py: Python<'_>) -> PyResult<DeviceNDArray> {
        match self.with(py, |memory| Ok(memory.device_view()))? {
            Some(elements) => Ok(DeviceNDArray::new(elements, self.dtype.clone_ref(py))),
            None => Err(PyValueError::new_err("a pinned array has no device address; make a mapped one")),
        }
    }

    /// Type of the elements, as NumPy's.
    #[getter]
    #[pyo3(name = "dtype")]
    fn numpy_dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.dtype.numpy(py)
    }

    /// Lengths of the axes.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.shape)
    }

    /// Bytes from one element to the next along each axis.
    #[getter]
    fn strides<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.strides)
    }

    /// Number of axes.
    #[getter]
    fn ndim(&self) -> usize {
        self.shape.len()
    }

    /// Number of elements.
    #[getter]
    fn size(&self) -> usize {
        self.shape.iter().product()
    }

    /// Bytes of all elements.
    #[getter]
    fn nbytes(&self) -> usize {
        self.size() * self.dtype.size()
    }

    fn __len__(&self) -> PyResult<usize> {
        self.shape.first().copied().ok_or_else(|| PyTypeError::new_err("len() of an array without axes"))
    }

    /// As of the NumPy array over the same memory, after waiting for the device.
    fn __getitem__<'py>(slf: &Bound<'py, Self>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("numpy")?.getattr("asarray")?.call1((slf,))?.get_item(key)
    }

    /// As of the NumPy array over the same memory, after waiting for the device.
    fn __setitem__(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        slf.py().import("numpy")?.getattr("asarray")?.call1((slf,))?.set_item(key, value)
    }

    /// Describes the array without its elements: the device may be writing them.
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let (shape, dtype) = (self.shape(py)?.repr()?.to_string(), self.dtype.name(py)?);
        Ok(format!("<pygpumem.HostNDArray shape={shape} dtype={dtype}>"))
    }
}
