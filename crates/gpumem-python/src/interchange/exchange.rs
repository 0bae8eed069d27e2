//! DLPack's C exchange API (version 1.3): a table of functions on a class, by which libraries take arrays, and give theirs, without a call
//! of Python's.

use super::{adopted, is_on, lend_on_default_stream};
use crate::dtype::{each, with_type};
use crate::{
    attach::{Code, without_lock},
    device,
    device_array::DeviceNDArray,
    error::raise,
    tensor::deleted_without_lock,
    recording::is_recorded,
};
use gpumem::{
    ArraySpec, DlpackDevice, DlpackTensor, InterchangeStream, RawStream,
    dlpack::abi::{DLManagedTensorVersioned, DLPackVersion, DLTensor},
    ndarray::IxDyn,
};
use pyo3::{exceptions::PyBufferError, ffi, intern, prelude::*, types::PyCapsule};
use std::{
    ffi::{CStr, CString, c_char, c_int, c_void},
    ptr::{NonNull, null, null_mut},
};

/// The name of the capsule that is the attribute of a class.
const NAME: &CStr = c"dlpack_exchange_api";
/// The major version of DLPack whose table this is.
const MAJOR: u32 = 1;

type Tensor = DLManagedTensorVersioned;
/// Takes the context, the name of an exception and its text.
type Tell = unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char);

/// The beginning of the tables of all versions.
#[repr(C)]
struct Header {
    version: DLPackVersion,
    /// A table of an older version.
    older: *const Header,
}

/// `DLPackExchangeAPI`. The functions return 0, or -1 with an exception set.
#[repr(C)]
struct Table {
    header: Header,
    /// Makes a tensor like another. May be called without Python's lock.
    allocate:
        Option<unsafe extern "C" fn(*const DLTensor, *mut *mut Tensor, *mut c_void, Option<Tell>) -> c_int>,
    /// The tensor of an object.
    lend: Option<unsafe extern "C" fn(*mut ffi::PyObject, *mut *mut Tensor) -> c_int>,
    /// The object of a tensor.
    take: Option<unsafe extern "C" fn(*mut Tensor, *mut *mut ffi::PyObject) -> c_int>,
    /// A tensor that lasts until the caller returns. Optional.
    borrow: Option<unsafe extern "C" fn(*mut ffi::PyObject, *mut DLTensor) -> c_int>,
    /// The stream on which the elements of a device are ready, and on which they are to be used.
    stream: Option<unsafe extern "C" fn(i32, i32, *mut *mut c_void) -> c_int>,
}

// SAFETY: it is only read.
unsafe impl Sync for Table {}

static OWN: Table = Table {
    header: Header { version: DLPackVersion { major: MAJOR, minor: 3 }, older: null() },
    allocate: Some(allocate),
    lend: Some(lend),
    take: Some(take),
    // Such a borrow has no end that could be waited for.
    borrow: None,
    stream: Some(stream),
};

/// The attribute of the library's class.
pub(crate) fn capsule(py: Python<'_>) -> PyResult<Py<PyAny>> {
    // SAFETY: the table and the name live as long as the process.
    let made = unsafe { ffi::PyCapsule_New((&raw const OWN).cast_mut().cast(), NAME.as_ptr(), None) };
    // SAFETY: a new reference, or null with an exception.
    Ok(unsafe { Bound::from_owned_ptr_or_err(py, made) }?.unbind())
}

// ---- arrays of others -----------------------------------------------------------------------------------------------

/// The table of an object's class, if it has one of this version.
fn table_of(object: &Bound<'_, PyAny>) -> PyResult<Option<&'static Table>> {
    let capsule = object.get_type().getattr_opt(intern!(object.py(), "__dlpack_c_exchange_api__"))?;
    let Some(capsule) = capsule.filter(|capsule| capsule.is_instance_of::<PyCapsule>()) else {
        return Ok(None);
    };
    // SAFETY: a capsule and a name that are there.
    if unsafe { ffi::PyCapsule_IsValid(capsule.as_ptr(), NAME.as_ptr()) } == 0 {
        return Ok(None);
    }
    // SAFETY: the capsule has just been found to be one of that name.
    let found = unsafe { ffi::PyCapsule_GetPointer(capsule.as_ptr(), NAME.as_ptr()) };
    let mut next = found.cast::<Header>().cast_const();
    // SAFETY: the protocol: a capsule of that name has a table, which lives as long as the process, and whose beginning is that of all
    // versions.
    while let Some(header) = unsafe { next.as_ref() } {
        if header.version.major == MAJOR {
            // SAFETY: this major version has all functions of the table.
            return Ok(unsafe { next.cast::<Table>().as_ref() });
        }
        next = header.older;
    }
    Ok(None)
}

/// Whether memory is the host's own.
fn is_of_host(place: DlpackDevice) -> bool {
    place.device_type == DlpackDevice::CPU
}

/// The tensor of an object on a device, and the stream after whose work its elements are ready. `None` if its class has no table or the
/// tensor cannot be had by it: the other protocols say why.
pub(crate) fn tensor_of(
    object: &Bound<'_, PyAny>,
    device: &gpumem::Device,
) -> PyResult<Option<(DlpackTensor, Option<gpumem::Stream>)>> {
    let Some(Table { lend: Some(lend), stream: Some(stream), .. }) = table_of(object)? else {
        return Ok(None);
    };
    let (py, mut tensor) = (object.py(), null_mut());
    // SAFETY: the protocol: the function takes an object of the class that has the table, and a place for the tensor.
    let status = unsafe { lend(object.as_ptr(), &mut tensor) };
    let (0, Some(tensor)) = (status, NonNull::new(tensor)) else {
        drop(PyErr::take(py));
        return Ok(None);
    };
    // SAFETY: the protocol: the tensor is the caller's now. As of capsules, deleters may be called from any thread.
    let tensor = unsafe { DlpackTensor::from_versioned(tensor) };
    let Some(place) = tensor.device().ok().filter(|place| is_on(device, *place)) else { return Ok(None) };
    if is_of_host(place) {
        return Ok(Some((tensor, None)));
    }
    let mut raw = null_mut();
    // A graph has no streams of others.
    if device.default_stream().map_or(true, |own| is_recorded(&own)) {
        return Ok(None);
    }
    // SAFETY: the protocol: a place for the handle.
    if unsafe { stream(place.device_type, place.device_id, &mut raw) } != 0 {
        drop(PyErr::take(py));
        return Ok(None);
    }
    let number = raw.expose_provenance() as i64;
    let ordered = py.detach(|| {
        let theirs = match InterchangeStream::from_number(number) {
            Ok(InterchangeStream::PerThread) => device.per_thread_stream()?,
            // SAFETY: the producer has just named it, and it is used here alone.
            Ok(InterchangeStream::Handle(raw)) => unsafe { device.external_stream(raw, ()) }?,
            // Null is the legacy default stream, too.
            _ => device.legacy_stream()?,
        };
        let own = device.default_stream()?;
        own.wait(&theirs.record_event()?)?;
        Ok::<_, gpumem::Error>(own)
    });
    Ok(ordered.ok().map(|own| (tensor, Some(own))))
}

// ---- arrays of the library ------------------------------------------------------------------------------------------

/// The device of a place: the current one, if it is there.
fn device_at(place: DlpackDevice) -> PyResult<gpumem::Device> {
    let current = device::current()?;
    if is_on(&current, place) {
        return Ok(current);
    }
    let name = match place.device_type {
        DlpackDevice::CPU => "host".to_owned(),
        DlpackDevice::CUDA => format!("cuda:{}", place.device_id),
        DlpackDevice::ROCM => format!("roc:{}", place.device_id),
        other => return Err(PyBufferError::new_err(format!("no device is of DLPack's type {other}"))),
    };
    gpumem::Device::open(&name).map_err(raise)
}

/// The status for a result, which is written to its place.
///
/// # Safety
/// The thread has Python's lock, and `place` is one for the result.
unsafe fn answer<T>(py: Python<'_>, result: PyResult<T>, place: *mut T) -> c_int {
    match result {
        Ok(value) => {
            // SAFETY: the caller's promise.
            unsafe { place.write(value) };
            0
        }
        Err(error) => {
            error.restore(py);
            -1
        }
    }
}

fn passed_on(tensor: DlpackTensor) -> PyResult<*mut Tensor> {
    let tensor = deleted_without_lock(tensor);
    let tensor = tensor.into_versioned().map_err(|_| PyBufferError::new_err("a tensor of an older form"))?;
    Ok(tensor.as_ptr())
}

unsafe extern "C" fn lend(object: *mut ffi::PyObject, place: *mut *mut Tensor) -> c_int {
    // SAFETY: the protocol: the caller has Python's lock.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: the protocol: the caller has a reference.
    let object = unsafe { Bound::from_borrowed_ptr(py, object) };
    let lent = || {
        let array = object.cast::<DeviceNDArray>()?.get();
        if array.dtype.number().is_none() {
            let text = format!("DLPack has no name for elements of {}", array.dtype.name(py)?);
            return Err(PyBufferError::new_err(text));
        }
        let loan = py.detach(|| {
            each!(&array.elements, elements => {
                // SAFETY: Python's arrays promise nothing about their elements.
                let mut view = unsafe { elements.detach() };
                lend_on_default_stream(&mut view, array.read_only)
            })
        });
        passed_on(loan.and_then(|loan| loan.into_dlpack()).map_err(raise)?)
    };
    // SAFETY: the protocol: a place for the tensor.
    unsafe { answer(py, lent(), place) }
}

unsafe extern "C" fn take(tensor: *mut Tensor, place: *mut *mut ffi::PyObject) -> c_int {
    // SAFETY: the protocol: the caller has Python's lock.
    let py = unsafe { Python::assume_attached() };
    let taken = || {
        let tensor = NonNull::new(tensor).ok_or_else(|| PyBufferError::new_err("there is no tensor"))?;
        // SAFETY: the protocol: the tensor is passed on, and its deleter may be called from any thread.
        let tensor = unsafe { DlpackTensor::from_versioned(tensor) };
        let at = tensor.device().map_err(crate::error::raise_descriptor)?;
        let device = py.detach(|| device_at(at))?;
        // The caller orders: what it has enqueued is on the default stream.
        let stream = device.default_stream().map_err(raise)?;
        Ok(Bound::new(py, adopted(py, &device, tensor, Some(&stream))?)?.into_ptr())
    };
    // SAFETY: the protocol: a place for the object.
    unsafe { answer(py, taken(), place) }
}

unsafe extern "C" fn stream(device_type: i32, device_id: i32, place: *mut *mut c_void) -> c_int {
    // SAFETY: the protocol: the caller has Python's lock.
    let py = unsafe { Python::assume_attached() };
    let asked = DlpackDevice::new(device_type, device_id);
    let found = || {
        if is_of_host(asked) {
            return Ok(null_mut());
        }
        let device = py.detach(|| device_at(asked))?;
        let handle = py.detach(|| device.default_stream()?.raw_handle()).map_err(raise)?;
        let RawStream(handle) = handle;
        Ok(std::ptr::with_exposed_provenance_mut(handle as usize))
    };
    // SAFETY: the protocol: a place for the handle.
    unsafe { answer(py, found(), place) }
}

/// The caller may have Python's lock, or another thread.
unsafe extern "C" fn allocate(
    like: *const DLTensor,
    place: *mut *mut Tensor,
    context: *mut c_void,
    tell: Option<Tell>,
) -> c_int {
    // SAFETY: the protocol: a tensor whose shape has as many numbers as it has axes. Its elements are not read.
    let made = unsafe { like.as_ref() }
        .ok_or_else(|| "there is no prototype".to_owned())
        .and_then(|like| unsafe { new_like(like) });
    match made {
        Ok(tensor) => {
            // SAFETY: the protocol: a place for the tensor.
            unsafe { place.write(tensor) };
            0
        }
        Err(text) => {
            let text = CString::new(text).unwrap_or_default();
            if let Some(tell) = tell {
                // SAFETY: the protocol: two texts, which are copied.
                unsafe { tell(context, c"MemoryError".as_ptr(), text.as_ptr()) };
            }
            -1
        }
    }
}

/// A new array of the library's, lent on its default stream.
///
/// # Safety
/// Where the shape is not null, it has as many numbers as there are axes.
unsafe fn new_like(like: &DLTensor) -> Result<*mut Tensor, String> {
    let shape = match usize::try_from(like.ndim) {
        Ok(axes) if axes > 0 && !like.shape.is_null() => {
            // SAFETY: the caller's promise.
            unsafe { std::slice::from_raw_parts(like.shape, axes) }
        }
        _ => &[],
    };
    let lengths: Result<Vec<usize>, _> = shape.iter().map(|length| usize::try_from(*length)).collect();
    let lengths = lengths.map_err(|_| "a length of the shape is negative".to_owned())?;
    let mut typed = *like;
    (typed.data, typed.strides, typed.byte_offset) = (null_mut(), null_mut(), 0);
    let mut form = Tensor {
        version: DLPackVersion { major: MAJOR, minor: 0 },
        manager_ctx: null_mut(),
        deleter: None,
        flags: 0,
        dl_tensor: typed,
    };
    // SAFETY: it has no memory and no deleter, and is asked for its type and its place alone.
    let described = unsafe { DlpackTensor::from_versioned(NonNull::from(&mut form)) };
    let (element, at) = match (described.element(), described.device()) {
        (Ok(element), Ok(at)) => (element, at),
        (Err(error), _) | (_, Err(error)) => return Err(error.to_string()),
    };
    drop(described);
    let loan = without_lock(Code::Allocation, || {
        let device = device_at(at).map_err(|_| "the device cannot be opened".to_owned())?;
        let spec = ArraySpec::new(IxDyn(&lengths));
        let loan = with_type!(element, {
            device.device_array::<T, _>(spec).and_then(|mut array| lend_on_default_stream(&mut array, false))
        });
        loan.map_err(|_| format!("arrays of {element} cannot be made"))
    });
    let loan = loan.ok_or_else(|| "Python has ended".to_owned())??;
    let tensor = loan.and_then(|loan| loan.into_dlpack()).map_err(|error| error.to_string())?;
    passed_on(tensor).map_err(|_| "a tensor of an older form".to_owned())
}
