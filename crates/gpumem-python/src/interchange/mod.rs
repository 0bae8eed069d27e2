//! The CUDA Array Interface and DLPack, between Python's objects and the library.

pub(crate) mod exchange;

use crate::dtype::{each, with_type};
use crate::{
    device,
    device_array::DeviceNDArray,
    dtype,
    element::DType,
    error::{raise, raise_descriptor},
    host::{fixed, is_of_numpy},
    kept::Kept,
    list::Listed,
    page_locked::page_locked,
    tensor::{deleted_before_the_end, deleted_without_lock},
};
use gpumem::{
    AnyBackend, Attach, CudaArrayInterface, DescriptorError, DlpackDevice, DlpackTensor, ElementKind,
    ElementType, Error, HasCudaArrayInterface, InterchangeStream, Loan, MemoryKind, RawStream, StorageMut,
    generic::ArrayBase, ndarray::IxDyn,
};
use gpumem_core::DriverDevice;
use pyo3::{
    exceptions::{PyBufferError, PyOverflowError, PyTypeError, PyValueError},
    ffi,
    prelude::*,
    types::{PyCapsule, PyDict, PyString, PyTuple},
};
use std::{ffi::CStr, ptr::NonNull};

const INTERFACE: &str = "__cuda_array_interface__";
const VERSIONED: &CStr = c"dltensor_versioned";
const UNVERSIONED: &CStr = c"dltensor";

// ---- the CUDA Array Interface ---------------------------------------------------------------------------------------

/// The attribute of an array, after waiting for pending work. Its loan lasts as long as the array object: the borrower
/// works on the named stream, or orders its own with it.
pub(crate) fn describe<'py>(py: Python<'py>, array: &DeviceNDArray) -> PyResult<Bound<'py, PyDict>> {
    let loan = py.detach(|| {
        each!(&array.elements, elements => {
            // SAFETY: Python's arrays promise nothing about their elements.
            let mut view = unsafe { elements.detach() };
            lend_by_stream(&mut view, array.read_only)
        })
    });
    let loan = loan.map_err(raise)?;
    let mut says = loan.describe();
    array.keep(py, loan);
    if array.dtype.is_bytes() {
        // The last axis is that of the bytes of a record.
        says.shape.pop();
        let layout = array.layout()?;
        let strides = layout.strides().iter().map(|stride| *stride as i64).collect();
        says.strides = (!layout.is_c_contiguous()).then_some(strides);
    }
    let dtype = array.dtype.numpy(py)?;
    let dict = PyDict::new(py);
    dict.set_item("shape", PyTuple::new(py, &says.shape)?)?;
    dict.set_item("strides", says.strides.map(|strides| PyTuple::new(py, strides)).transpose()?)?;
    dict.set_item("typestr", dtype.getattr("str")?)?;
    dict.set_item("descr", dtype.getattr("descr")?)?;
    dict.set_item("data", says.data)?;
    dict.set_item("stream", says.stream)?;
    dict.set_item("version", says.version)?;
    Ok(dict)
}

fn lend_by_stream<S: StorageMut<Backend = AnyBackend>>(
    view: &mut ArrayBase<S, IxDyn>,
    read_only: bool,
) -> Result<Loan<AnyBackend>, Error> {
    if place(view).is_some_and(|place| place.device_type == DlpackDevice::CPU) {
        return lend_to_host(view, read_only);
    }
    // Some borrowers do not look at the named stream (PyTorch). The work that is pending now is done for them too.
    crate::wait::ask("lend")?.for_array(view)?;
    lend_on_default_stream(view, read_only)
}

/// To a borrower that works on the device's default stream, or orders its work with that.
fn lend_on_default_stream<S: StorageMut<Backend = AnyBackend>>(
    view: &mut ArrayBase<S, IxDyn>,
    read_only: bool,
) -> Result<Loan<AnyBackend>, Error> {
    if place(view).is_some_and(|place| place.device_type == DlpackDevice::CPU) {
        return lend_to_host(view, read_only);
    }
    let stream = view.device()?.default_stream()?;
    if read_only { view.lend(&stream) } else { view.lend_mut(&stream) }
}

fn lend_to_host<S: StorageMut<Backend = AnyBackend>>(
    view: &mut ArrayBase<S, IxDyn>,
    read_only: bool,
) -> Result<Loan<AnyBackend>, Error> {
    if read_only { view.lend_to_host() } else { view.lend_mut_to_host() }
}

fn field<'py>(dict: &Bound<'py, PyDict>, name: &'static str) -> PyResult<Bound<'py, PyAny>> {
    let missing = || raise_descriptor(DescriptorError::Missing { field: name });
    dict.get_item(name)?.ok_or_else(missing)
}

fn optional<'py>(dict: &Bound<'py, PyDict>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    Ok(dict.get_item(name)?.filter(|value| !value.is_none()))
}

/// The value of an entry, or an error that names it.
fn said<T>(name: &str, value: Bound<'_, PyAny>) -> PyResult<T>
where
    T: for<'a, 'py> FromPyObject<'a, 'py>,
{
    value.extract::<T>().map_err(|error| {
        let error: PyErr = error.into();
        let text = format!("`{name}` of {INTERFACE}: {}", error.value(value.py()));
        match error.is_instance_of::<PyOverflowError>(value.py()) {
            true => PyValueError::new_err(text),
            false => PyTypeError::new_err(text),
        }
    })
}

/// The type of the elements. Records have no name: `descr` lists their fields.
fn said_type(dict: &Bound<'_, PyDict>) -> PyResult<DType> {
    let text: String = said("typestr", field(dict, "typestr")?)?;
    match text.parse::<ElementType>() {
        Ok(element) if element.kind != ElementKind::Opaque => return Ok(DType::plain(element)),
        Err(error) if !text.contains(['M', 'm', 'S', 'U']) => return Err(raise_descriptor(error)),
        _ => {}
    }
    let plain = DType::parse(dict.py(), Some(PyString::new(dict.py(), &text).as_any()));
    let plain = plain.map_err(|error| PyTypeError::new_err(format!("`typestr` of {INTERFACE}: {error}")))?;
    let fields = optional(dict, "descr")?.filter(|_| text.contains('V'));
    // With the padding between fields as padding, and not as fields of their own.
    let records = fields.and_then(|fields| {
        let found =
            dict.py().import("numpy.lib.format").ok()?.call_method1("descr_to_dtype", (fields,)).ok()?;
        DType::parse(dict.py(), Some(&found)).ok()
    });
    Ok(records.filter(|records| records.is_bytes() && records.size() == plain.size()).unwrap_or(plain))
}

/// The contents of an object's attribute, in the library's elements, and their NumPy type.
fn read(object: &Bound<'_, PyAny>) -> PyResult<(CudaArrayInterface, DType)> {
    let says = object.getattr_opt(INTERFACE)?;
    let missing = || raise_descriptor(DescriptorError::Missing { field: INTERFACE });
    let says = says.ok_or_else(missing)?;
    let dict = says.cast::<PyDict>().map_err(|_| PyTypeError::new_err("the interface is not a dict"))?;
    let dtype = said_type(dict)?;
    let (address, read_only): (i128, bool) = said("data", field(dict, "data")?)?;
    let address = u64::try_from(address)
        .map_err(|_| raise_descriptor(DescriptorError::AddressSpace { address: 0, bytes: 0 }))?;
    let Listed::<i64>(mut shape) = said("shape", field(dict, "shape")?)?;
    let strides = optional(dict, "strides")?.map(|strides| said("strides", strides)).transpose()?;
    let mut strides = strides.map(|Listed::<i64>(strides)| strides);
    if dtype.is_bytes() {
        shape.push(dtype.size() as i64);
        strides.iter_mut().for_each(|strides| strides.push(1));
    }
    let says = CudaArrayInterface {
        shape: shape.into_iter().collect(),
        typestr: dtype.held(),
        data: (address, read_only),
        strides: strides.map(|strides| strides.into_iter().collect()),
        // Returns nothing more about the library's elements.
        descr: None,
        mask: optional(dict, "mask")?.is_some(),
        version: said("version", field(dict, "version")?)?,
        stream: optional(dict, "stream")?.map(|stream| said("stream", stream)).transpose()?,
    };
    Ok((says, dtype))
}

/// Returns the device array that an object is or describes, or `None` for objects of the host. `device` is the device
/// of the memory; by default the current one.
pub(crate) fn device_source<'py>(
    object: &Bound<'py, PyAny>,
    device: Option<&gpumem::Device>,
) -> PyResult<Option<Bound<'py, DeviceNDArray>>> {
    if let Ok(array) = object.cast::<DeviceNDArray>() {
        return Ok(Some(array.clone()));
    }
    // NumPy's own are read where they are: mapped ones among them describe themselves, too.
    if is_of_numpy(object)? {
        return Ok(None);
    }
    let current = device.is_none().then(device::current).transpose()?;
    let Some(device) = device.or(current.as_ref()) else { return Ok(None) };
    // By its table a library also says on which stream the elements are ready. Those of the host are read where they are.
    let array = match exchange::tensor_of(object, device)? {
        Some((tensor, Some(stream))) => adopted(object.py(), device, tensor, Some(&stream))?,
        _ if object.getattr_opt(INTERFACE)?.is_none() => return Ok(None),
        _ => take(object, device)?,
    };
    Bound::new(object.py(), array).map(Some)
}

/// Whether an object has a CUDA array interface. Tests for the attribute only.
#[pyfunction]
pub(crate) fn is_cuda_array(obj: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(obj.getattr_opt(INTERFACE)?.is_some())
}

/// Takes an object with a CUDA array interface as an array, without a copy. An array of gpumem that comes back can only be
/// read.
#[pyfunction]
#[pyo3(signature = (obj, device=None))]
pub(crate) fn as_cuda_array(
    obj: &Bound<'_, PyAny>,
    device: Option<device::GivenDevice>,
) -> PyResult<DeviceNDArray> {
    if let Some(host) = page_locked(obj)?
        && host.get().is_visible()
    {
        return host.get().device_view(obj.py());
    }
    take(obj, &device::given(device)?)
}

/// What an object says, with the object.
struct Described {
    says: CudaArrayInterface,
    _owner: Kept,
}

// SAFETY: the object's own description is believed, which Python cannot check; the object is kept alive. Memory of the
// library's own is found by its address, and can only be read.
unsafe impl HasCudaArrayInterface for Described {
    fn cuda_array_interface(&self) -> Result<CudaArrayInterface, Error> {
        Ok(self.says.clone())
    }
}

fn take(obj: &Bound<'_, PyAny>, device: &gpumem::Device) -> PyResult<DeviceNDArray> {
    let (says, dtype) = read(obj)?;
    let (elements, read_only) = with_type!(says.typestr, {
        let described = Described { says, _owner: obj.clone().unbind().into() };
        // It may record an event, for which a full queue has no room until another thread of Python's goes on.
        let imported = obj.py().detach(|| device.as_cuda_array::<T, IxDyn, _>(described));
        dtype::adopt::<T>(imported.map_err(raise)?)
    })?;
    // An array over memory of another object has taken it from there.
    let from = obj.cast::<DeviceNDArray>().ok().and_then(|array| array.get().owner(obj.py()));
    let owner = from.unwrap_or_else(|| obj.clone().unbind());
    Ok(DeviceNDArray::adopted(elements, dtype, read_only, owner))
}

// ---- DLPack ---------------------------------------------------------------------------------------------------------

fn place<S: StorageMut<Backend = AnyBackend>>(view: &ArrayBase<S, IxDyn>) -> Option<DlpackDevice> {
    use gpumem::DriverDevice as _;
    view.device().ok()?.raw().dlpack_device(view.kind())
}

pub(crate) fn dlpack_device(array: &DeviceNDArray) -> PyResult<(i32, i32)> {
    match each!(&array.elements, elements => place(elements)) {
        Some(place) => Ok((place.device_type, place.device_id)),
        None => Err(PyBufferError::new_err("DLPack has no name for this memory")),
    }
}

/// The stream that a consumer names: by the array API's rules for CUDA and for ROCm.
fn consumer(stream: Option<i64>, device_type: i32) -> PyResult<Option<InterchangeStream>> {
    let rocm = device_type == DlpackDevice::ROCM;
    match stream {
        Some(-1) => Ok(None),
        None => Ok(Some(InterchangeStream::Legacy)),
        Some(0) if rocm => Ok(Some(InterchangeStream::Legacy)),
        Some(1 | 2) if rocm => Err(PyValueError::new_err("streams 1 and 2 are CUDA's")),
        Some(number) => InterchangeStream::from_number(number).map(Some).map_err(raise_descriptor),
    }
}

pub(crate) fn dlpack<'py>(
    py: Python<'py>,
    array: &DeviceNDArray,
    stream: Option<i64>,
    max_version: Option<(u32, u32)>,
    dl_device: Option<(i32, i32)>,
    copy: Option<bool>,
) -> PyResult<Bound<'py, PyAny>> {
    if array.dtype.number().is_none() {
        return Err(PyBufferError::new_err(format!(
            "DLPack has no name for elements of {}",
            array.dtype.name(py)?
        )));
    }
    let own = dlpack_device(array)?;
    if dl_device.is_some_and(|wanted| wanted != own) {
        return Err(PyBufferError::new_err("the array cannot be had on another device; copy it first"));
    }
    let on_host = own.0 == DlpackDevice::CPU;
    if on_host && stream.is_some_and(|stream| stream != -1) {
        return Err(PyValueError::new_err("memory of the host has no streams"));
    }
    let borrower = consumer(stream, own.0)?;
    let loan = py.detach(|| -> Result<Loan<AnyBackend>, Error> {
        each!(&array.elements, elements => {
            if copy == Some(true) {
                let mut fresh = elements.device()?.to_device(elements)?;
                return lend(&mut fresh, false, on_host, borrower);
            }
            // SAFETY: Python's arrays promise nothing about their elements.
            let mut view = unsafe { elements.detach() };
            lend(&mut view, array.read_only, on_host, borrower)
        })
    });
    let loan = loan.map_err(raise)?;
    let newer = max_version.is_some_and(|(major, _)| major >= 1);
    let tensor = if newer { loan.into_dlpack() } else { loan.into_dlpack_unversioned() };
    capsule(py, deleted_without_lock(tensor.map_err(raise)?))
}

fn lend<S: StorageMut<Backend = AnyBackend>>(
    view: &mut ArrayBase<S, IxDyn>,
    read_only: bool,
    on_host: bool,
    borrower: Option<InterchangeStream>,
) -> Result<Loan<AnyBackend>, Error> {
    if on_host {
        return lend_to_host(view, read_only);
    }
    let device = view.device()?.clone();
    match borrower {
        // SAFETY: the consumer has just named it for us to wait on.
        Some(handle @ (InterchangeStream::Handle(_) | InterchangeStream::PerThread)) => unsafe {
            if read_only { view.lend_to_handle(handle) } else { view.lend_mut_to_handle(handle) }
        },
        Some(InterchangeStream::Legacy) => {
            let stream = device.legacy_stream()?;
            if read_only { view.lend(&stream) } else { view.lend_mut(&stream) }
        }
        None => {
            let stream = device.default_stream()?;
            let loan = if read_only { view.lend(&stream) } else { view.lend_mut(&stream) };
            loan.map(Loan::on_any_stream)
        }
    }
}

/// Deletes a tensor that was never taken out of its capsule, without Python's lock: it ends a loan.
unsafe extern "C" fn delete(capsule: *mut ffi::PyObject) {
    // SAFETY: called by Python, with its lock, for a capsule that `capsule` has made; a consumer renames it.
    unsafe {
        let pointer = |name: &CStr| match ffi::PyCapsule_IsValid(capsule, name.as_ptr()) {
            0 => None,
            _ => NonNull::new(ffi::PyCapsule_GetPointer(capsule, name.as_ptr())),
        };
        let newer = pointer(VERSIONED).map(|tensor| DlpackTensor::from_versioned(tensor.cast()));
        let older = pointer(UNVERSIONED).map(|tensor| DlpackTensor::from_unversioned(tensor.cast()));
        Python::assume_attached().detach(|| drop((newer, older)));
    }
}

fn capsule(py: Python<'_>, tensor: DlpackTensor) -> PyResult<Bound<'_, PyAny>> {
    let (pointer, name) = match tensor.into_versioned() {
        Ok(tensor) => (tensor.cast::<std::ffi::c_void>(), VERSIONED),
        Err(tensor) => match tensor.into_unversioned() {
            Ok(tensor) => (tensor.cast(), UNVERSIONED),
            Err(_) => return Err(PyBufferError::new_err("a tensor of an unknown form")),
        },
    };
    // SAFETY: a pointer and a name that live as long as the capsule; the destructor knows both.
    unsafe {
        Bound::from_owned_ptr_or_err(py, ffi::PyCapsule_New(pointer.as_ptr(), name.as_ptr(), Some(delete)))
    }
}

/// Takes the tensor out of a capsule, which is spent then.
fn open(capsule: &Bound<'_, PyAny>) -> PyResult<DlpackTensor> {
    let capsule = capsule.cast::<PyCapsule>()?;
    // SAFETY: the protocol: a capsule of one of these names holds a tensor that has not been consumed; renaming it
    // says that we have. Deleters of the protocol may be called from any thread.
    unsafe {
        for (name, used) in [(VERSIONED, c"used_dltensor_versioned"), (UNVERSIONED, c"used_dltensor")] {
            if ffi::PyCapsule_IsValid(capsule.as_ptr(), name.as_ptr()) == 0 {
                continue;
            }
            let tensor = NonNull::new(ffi::PyCapsule_GetPointer(capsule.as_ptr(), name.as_ptr()));
            let Some(tensor) = tensor else { return Err(PyErr::fetch(capsule.py())) };
            if ffi::PyCapsule_SetName(capsule.as_ptr(), used.as_ptr()) != 0 {
                return Err(PyErr::fetch(capsule.py()));
            }
            return Ok(match name == VERSIONED {
                true => DlpackTensor::from_versioned(tensor.cast()),
                false => DlpackTensor::from_unversioned(tensor.cast()),
            });
        }
    }
    Err(PyBufferError::new_err("the capsule holds no DLPack tensor, or it was consumed already"))
}

/// Whether memory is that of a device.
fn is_on(device: &gpumem::Device, place: DlpackDevice) -> bool {
    let kinds = [MemoryKind::Device, MemoryKind::Managed(Attach::Global)];
    kinds.iter().any(|kind| device.raw().dlpack_device(*kind) == Some(place))
}

/// Refuses memory of another device than this one.
fn check_place(device: &gpumem::Device, place: DlpackDevice) -> PyResult<()> {
    if is_on(device, place) {
        return Ok(());
    }
    let DlpackDevice { device_type, device_id } = place;
    let text = format!("the array lies on the DLPack device ({device_type}, {device_id}), and not on {}", device.name());
    Err(PyValueError::new_err(text))
}

/// Takes an object with `__dlpack__` as an array, without a copy. An array of gpumem that comes back can only be read.
#[pyfunction]
#[pyo3(signature = (obj, device=None))]
pub(crate) fn from_dlpack(
    obj: &Bound<'_, PyAny>,
    device: Option<device::GivenDevice>,
) -> PyResult<DeviceNDArray> {
    let (py, device) = (obj.py(), device::given(device)?);
    // The tensor holds the view, so the memory is neither moved nor freed before its last use is over.
    let fixed = fixed(obj)?;
    let obj = fixed.as_ref().unwrap_or(obj);
    if let Some((tensor, stream)) = exchange::tensor_of(obj, &device)? {
        return adopted(py, &device, tensor, stream.as_ref());
    }
    let (device_type, device_id): (i32, i32) = obj.call_method0("__dlpack_device__")?.extract()?;
    let on_host =
        matches!(device_type, DlpackDevice::CPU | DlpackDevice::CUDA_HOST | DlpackDevice::ROCM_HOST);
    // The producer makes this stream wait for its pending work: by a number, which means another stream to another device's driver.
    let stream = match on_host {
        true => None,
        false => {
            check_place(&device, DlpackDevice::new(device_type, device_id))?;
            Some(device.default_stream().map_err(raise)?)
        }
    };
    let options = PyDict::new(py);
    if let Some(stream) = &stream {
        // As in `Stream.handle`.
        let RawStream(handle) = py.detach(|| stream.raw_handle()).map_err(raise)?;
        options.set_item("stream", handle)?;
    }
    options.set_item("max_version", (1, 0))?;
    let capsule = match obj.call_method("__dlpack__", (), Some(&options)) {
        // Producers of the older protocol know no versions.
        Err(error) if error.is_instance_of::<PyTypeError>(py) => {
            options.del_item("max_version")?;
            obj.call_method("__dlpack__", (), Some(&options))?
        }
        capsule => capsule?,
    };
    adopted(py, &device, open(&capsule)?, stream.as_ref())
}

/// The array of a tensor whose elements are ready after the work of a stream.
fn adopted(
    py: Python<'_>,
    device: &gpumem::Device,
    tensor: DlpackTensor,
    stream: Option<&gpumem::Stream>,
) -> PyResult<DeviceNDArray> {
    let tensor = deleted_before_the_end(tensor);
    let element = tensor.element().map_err(raise_descriptor)?;
    let (elements, read_only) = with_type!(element, {
        // As in `take`.
        let imported = py.detach(|| device.from_dlpack::<T, IxDyn>(tensor, stream));
        dtype::adopt::<T>(imported.map_err(raise)?)
    })?;
    Ok(DeviceNDArray::adopted(elements, DType::plain(element), read_only, py.None()))
}
