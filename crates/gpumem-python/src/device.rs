//! Devices.

use crate::{error::raise, in_use::sweep, list::named, wait::may_wait};
use pyo3::{
    Borrowed,
    exceptions::{PyAttributeError, PyIndexError, PyTypeError},
    prelude::*,
    sync::PyOnceLock,
    types::{PyDict, PyTuple},
};
use std::{
    cell::RefCell,
    hash::{DefaultHasher, Hash, Hasher},
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

/// A device, opened by name: `host`, `cuda:1`, `roc:0`; without a name the default device.
#[pyclass(frozen, eq, module = "pygpumem", skip_from_py_object)]
#[derive(Clone, PartialEq)]
pub(crate) struct Device(pub(crate) gpumem::Device);

static CURRENT: Mutex<Option<gpumem::Device>> = Mutex::new(None);

thread_local! {
    /// The devices whose contexts this thread is in, the innermost last.
    static ENTERED: RefCell<Vec<gpumem::Device>> = const { RefCell::new(Vec::new()) };
}

/// The device whose context this thread entered last. At the very end of a thread its contexts are gone.
fn innermost() -> Option<gpumem::Device> {
    ENTERED.try_with(|entered| entered.borrow().last().cloned()).ok().flatten()
}

/// A context that ends with this value, and those that were entered in it.
pub(crate) struct Entered(usize);

/// Enters the context of a device.
pub(crate) fn enter(device: &gpumem::Device) -> Entered {
    let push = |entered: &RefCell<Vec<gpumem::Device>>| {
        let mut entered = entered.borrow_mut();
        entered.push(device.clone());
        entered.len() - 1
    };
    Entered(ENTERED.try_with(push).unwrap_or(usize::MAX))
}

impl Drop for Entered {
    fn drop(&mut self) {
        let _ = ENTERED.try_with(|entered| entered.borrow_mut().truncate(self.0));
    }
}

/// The contexts of a thread that it is outside of until this is dropped.
pub(crate) struct Outside(Vec<gpumem::Device>);

/// Leaves all contexts of the thread for a while. A thread that waits runs bodies of kernels of others: which device a body finds must
/// not depend on the thread, and what it enqueues does not belong to the graph that the thread records.
pub(crate) fn outside() -> Outside {
    Outside(ENTERED.try_with(RefCell::take).unwrap_or_default())
}

impl Drop for Outside {
    fn drop(&mut self) {
        let _ = ENTERED.try_with(|entered| entered.replace(std::mem::take(&mut self.0)));
    }
}

/// The device of calls that name none.
pub(crate) fn current() -> PyResult<gpumem::Device> {
    if let Some(device) = innermost() {
        return Ok(device);
    }
    let mut current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
    match &*current {
        Some(device) => Ok(device.clone()),
        None => {
            let device = gpumem::Device::open_default().map_err(raise)?;
            Ok(current.insert(device).clone())
        }
    }
}

/// A device as an argument: a `Device`, or the name to open it by.
pub(crate) struct GivenDevice(pub(crate) gpumem::Device);

impl<'py> FromPyObject<'_, 'py> for GivenDevice {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(device) = object.cast::<Device>() {
            return Ok(Self(device.get().0.clone()));
        }
        match object.extract::<String>() {
            Ok(name) => object.py().detach(|| gpumem::Device::open(&name)).map(Self).map_err(raise),
            Err(_) => Err(PyTypeError::new_err("a device is a pygpumem.Device, or its name")),
        }
    }
}

pub(crate) fn given(device: Option<GivenDevice>) -> PyResult<gpumem::Device> {
    match device {
        Some(device) => Ok(device.0),
        None => current(),
    }
}

/// Those of these folders that packages of this Python have.
pub(crate) fn package_folders(py: Python<'_>, names: &[&str]) -> PyResult<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in py.import("sys")?.getattr("path")?.try_iter()? {
        let Ok(entry) = entry?.extract::<PathBuf>() else { continue };
        found.extend(names.iter().map(|name| entry.join(name)).filter(|folder| folder.is_dir()));
    }
    Ok(found)
}

/// Has NVIDIA's packages looked into for the compiler, where the system has none: of CUDA 13, of CUDA 12.
pub(crate) fn look_for_compilers(py: Python<'_>) -> PyResult<()> {
    let folders = package_folders(py, &["nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"])?;
    gpumem::cuda::add_compiler_folders(folders);
    Ok(())
}

/// The names of the GPUs of every backend.
pub(crate) fn gpu_names() -> PyResult<Vec<String>> {
    let devices = gpumem::Device::list().map_err(raise)?;
    let gpus = devices.iter().filter(|info| info.backend != "host");
    Ok(gpus.map(|info| format!("{}:{}", info.backend, info.ordinal)).collect())
}

/// The GPU of a number; negative ones count from the last.
pub(crate) fn gpu(py: Python<'_>, number: isize) -> PyResult<Device> {
    let names = py.detach(gpu_names)?;
    let place = if number < 0 { number.checked_add_unsigned(names.len()) } else { Some(number) };
    let name = place.and_then(|place| names.get(usize::try_from(place).ok()?));
    let none = || PyIndexError::new_err(format!("there is no GPU {number}: there are {}", names.len()));
    let name = name.ok_or_else(none)?;
    py.detach(|| gpumem::Device::open(name)).map(Device).map_err(raise)
}

#[pymethods]
impl Device {
    #[new]
    #[pyo3(signature = (name=None))]
    fn new(py: Python<'_>, name: Option<&str>) -> PyResult<Self> {
        match name {
            Some(name) => py.detach(|| gpumem::Device::open(name)).map(Self).map_err(raise),
            None => current().map(Self),
        }
    }

    /// The name to open it by: `cuda:1`.
    #[getter]
    fn name(&self) -> String {
        self.0.name()
    }

    /// The vendor's name of the device.
    #[getter]
    fn product(&self) -> String {
        self.0.info().name.clone()
    }

    /// What its compiler calls it: `sm_90`, `gfx90a`, or the processor's architecture.
    #[getter]
    fn architecture(&self) -> String {
        self.0.info().architecture.clone()
    }

    /// Free and total bytes, as the driver says: a tuple with these names.
    fn memory_info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        static NAMED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let info = self.0.memory_info().map_err(raise)?;
        named(py, &NAMED, "MemoryInfo", &["free", "total"])?.call1((info.free, info.total))
    }

    /// As `memory_info`, by the name that Numba's contexts have for it.
    fn get_memory_info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.memory_info(py)
    }

    /// The compute capability of NVIDIA's GPUs, as two numbers.
    #[getter]
    fn compute_capability(&self) -> PyResult<(u32, u32)> {
        let number = self.0.info().architecture.strip_prefix("sm_").and_then(|number| number.parse::<u32>().ok());
        let none = || PyAttributeError::new_err("only NVIDIA's GPUs have a compute capability");
        number.map(|number| (number / 10, number % 10)).ok_or_else(none)
    }

    /// Whether the device can reach the memory of another directly, which is a `Device`, its name, or the number of a GPU. Copies work
    /// without.
    fn can_access_peer(&self, py: Python<'_>, peer: &Bound<'_, PyAny>) -> PyResult<bool> {
        let peer = match peer.extract::<isize>() {
            Ok(number) => gpu(py, number)?.0,
            Err(_) => peer.extract::<GivenDevice>()?.0,
        };
        py.detach(|| self.0.can_access_peer(&peer)).map_err(raise)
    }

    /// The position in the driver's list.
    #[getter]
    fn id(&self) -> usize {
        self.0.info().ordinal
    }

    /// The device, which is the current one of this thread while the context lasts.
    fn __enter__(slf: Py<Self>) -> Py<Self> {
        let _ = ENTERED.try_with(|entered| entered.borrow_mut().push(slf.get().0.clone()));
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) -> bool {
        let _ = ENTERED.try_with(|entered| {
            let mut entered = entered.borrow_mut();
            if let Some(at) = entered.iter().rposition(|device| *device == self.0) {
                entered.remove(at);
            }
        });
        false
    }

    /// Waits for everything on the device.
    fn synchronize(&self, py: Python<'_>) -> PyResult<()> {
        may_wait("synchronize")?.for_device(py, &self.0)
    }

    /// Gives memory that was dropped back to the driver.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        // Its stream tells what has failed: the memory does not stay for that.
        sweep(py, true);
        py.detach(|| self.0.flush()).map_err(raise)
    }

    /// Waits for the device and gives memory that is not in use back to its driver, in place of Numba's reset: arrays stay valid.
    fn reset(&self, py: Python<'_>) -> PyResult<()> {
        self.synchronize(py)?;
        self.flush(py)
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.0.name().hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        format!("<pygpumem.Device {:?}: {}>", self.0.name(), self.0.info().name)
    }
}

/// The names of all devices of every backend.
#[pyfunction]
pub(crate) fn list_devices() -> PyResult<Vec<String>> {
    let devices = gpumem::Device::list().map_err(raise)?;
    Ok(devices.iter().map(|info| format!("{}:{}", info.backend, info.ordinal)).collect())
}

/// The backends whose devices cannot be listed, with the reasons.
#[pyfunction]
pub(crate) fn unavailable(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let found = PyDict::new(py);
    for (backend, why) in py.detach(gpumem::AnyBackend::unavailable) {
        found.set_item(backend, why.to_string())?;
    }
    Ok(found)
}

/// The device of calls that name none: the one selected, else the default one (`GPUMEM_DEVICE`).
#[pyfunction]
pub(crate) fn get_current_device() -> PyResult<Device> {
    current().map(Device)
}

/// Makes a device the one of calls that name none, for every thread, and returns it: by its name, or a GPU by its number.
#[pyfunction]
pub(crate) fn select_device(py: Python<'_>, name: &Bound<'_, PyAny>) -> PyResult<Device> {
    let device = match name.extract::<isize>() {
        Ok(number) => gpu(py, number)?.0,
        Err(_) => {
            let name: String = name.extract()?;
            py.detach(|| gpumem::Device::open(&name)).map_err(raise)?
        }
    };
    *CURRENT.lock().unwrap_or_else(PoisonError::into_inner) = Some(device.clone());
    Ok(Device(device))
}

/// Waits for everything on the current device.
#[pyfunction]
pub(crate) fn synchronize(py: Python<'_>) -> PyResult<()> {
    may_wait("synchronize")?.for_device(py, &current()?)
}
