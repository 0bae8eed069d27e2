//! Page-locking NumPy's own arrays: `pinned`, `mapped`, `register` and `deregister`.

use crate::dtype::with_type;
use crate::{
    device,
    error::raise,
    host::{Host, check_destination, fix},
    kept::{Kept, Traverse},
    pinned::{Held, HostNDArray, Memory},
    wait::may_wait,
};
use gpumem::{generic::RegisterError, ndarray::IxDyn};
use pyo3::{
    PyTraverseError, PyVisit,
    prelude::*,
    types::{PyList, PyTuple, PyWeakref, PyWeakrefMethods, PyWeakrefReference},
};
use std::sync::{Mutex, PoisonError};

/// The arrays that `register` has locked, by the address of the array object.
static REGISTERED: Mutex<Vec<(usize, Kept<HostNDArray>)>> = Mutex::new(Vec::new());

/// The page-locked arrays of NumPy's arrays, by the addresses of those array objects.
static LOCKED: Mutex<Vec<(usize, Kept<PyWeakref>)>> = Mutex::new(Vec::new());

/// Has copies of these arrays on a stream be copies of their page-locked arrays, until they are unlocked.
fn announce(arrays: &Bound<'_, PyTuple>, locked: &[Kept<HostNDArray>]) -> PyResult<()> {
    let weak = |array: &Kept<HostNDArray>| PyWeakrefReference::new(array.bind(arrays.py()).as_any());
    let weak = locked.iter().map(|array| Ok(weak(array)?.into_any().cast_into::<PyWeakref>()?.unbind().into()));
    let weak = weak.collect::<PyResult<Vec<_>>>()?;
    let names = arrays.iter().map(|array| array.as_ptr().addr());
    LOCKED.lock().unwrap_or_else(PoisonError::into_inner).extend(names.zip(weak));
    Ok(())
}

/// Takes those back that have ended or are gone.
fn withdraw(py: Python<'_>) {
    let is_over = |(_, weak): &mut (usize, Kept<PyWeakref>)| {
        let array = weak.bind(py).upgrade().and_then(|array| array.cast_into::<HostNDArray>().ok());
        array.is_none_or(|array| array.get().has_ended())
    };
    // The mutex is free again before they are dropped.
    let over: Vec<_> = LOCKED.lock().unwrap_or_else(PoisonError::into_inner).extract_if(.., is_over).collect();
    drop(over);
}

/// The page-locked array of an array of NumPy while `pinned` or `register` has locked it in this process. What is locked twice is had from
/// the last.
pub(crate) fn locked<'py>(array: &Bound<'py, PyAny>) -> Option<Bound<'py, HostNDArray>> {
    let arrays = LOCKED.lock().unwrap_or_else(PoisonError::into_inner);
    let (_, weak) = arrays.iter().rev().find(|(name, _)| *name == array.as_ptr().addr())?;
    let found: Bound<'py, HostNDArray> = weak.bind(array.py()).upgrade()?.cast_into().ok()?;
    (!found.get().is_of_parent()).then_some(found)
}

/// Page-locks one array, which is kept alive until it is unlocked.
fn lock(array: &Bound<'_, PyAny>, device: &gpumem::Device, mapped: bool) -> PyResult<HostNDArray> {
    let py = array.py();
    let host = Host::to_write(array)?;
    let (lowest, layout) = host.memory()?;
    // Locked memory must not move: it stays fixed until it is unlocked.
    let kept = (array.clone(), fix(array)?).into_pyobject(py)?.into_any().unbind();
    let owner = Kept::from(kept.clone_ref(py));
    let lowest = std::ptr::with_exposed_provenance_mut::<u8>(lowest);
    let lowest = SendPointer(lowest);
    let dtype = host.dtype.clone_ref(py);
    with_type!(host.dtype.held(), {
        let locked = py.detach(move || -> Result<Memory, RegisterError<Kept>> {
            let lowest = { lowest }.0;
            Ok(match mapped {
                // SAFETY: NumPy's own memory, which its array keeps alive; as in Numba, the program must not use it
                // elsewhere meanwhile.
                false => Memory::of(
                    Held::new(unsafe { device.register_foreign::<T, IxDyn, _>(lowest, &layout, owner)? })
                        .ending(|array| array.give_back::<Kept>().map(drop).map_err(Box::new)),
                ),
                // SAFETY: as above.
                true => Memory::of(
                    Held::new(unsafe {
                        device.register_foreign_mapped::<T, IxDyn, _>(lowest, &layout, owner)?
                    })
                    .visible()
                    .ending(|array| array.give_back::<Kept>().map(drop).map_err(Box::new)),
                ),
            })
        });
        let locked = HostNDArray::new(locked.map_err(|refused| raise(refused.error))?, dtype)?;
        locked.owned_by(kept).known_at(py, &host.place())
    })
}

/// An address on its way to another closure.
struct SendPointer(*mut u8);
// SAFETY: it is a number until it is used.
unsafe impl Send for SendPointer {}

/// Page-locks all, or none.
fn lock_all(
    arrays: &Bound<'_, PyTuple>,
    device: &gpumem::Device,
    mapped: bool,
) -> PyResult<Vec<Kept<HostNDArray>>> {
    let (py, mut locked) = (arrays.py(), Vec::<Kept<HostNDArray>>::new());
    for array in arrays.iter() {
        match lock(&array, device, mapped).and_then(|array| Py::new(py, array)) {
            Ok(array) => locked.push(array.into()),
            Err(error) => {
                unlock_all(py, &locked)?;
                return Err(error);
            }
        }
    }
    Ok(locked)
}

/// Unlocks all of them, and tells the first error.
fn unlock_all(py: Python<'_>, locked: &[Kept<HostNDArray>]) -> PyResult<()> {
    let ended: Vec<_> = locked.iter().rev().map(|array| array.get().end(py)).collect();
    withdraw(py);
    ended.into_iter().collect()
}

/// The context of [`pinned`], [`mapped`] and [`register`]: its end waits for the arrays and unlocks them.
#[pyclass(frozen, module = "pygpumem")]
pub(crate) struct Locking {
    arrays: Kept<PyTuple>,
    device: gpumem::Device,
    way: Way,
    /// The arrays of each `with` that has begun: one context may be entered again before it ends.
    locked: Mutex<Vec<Vec<Kept<HostNDArray>>>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Pinned,
    Mapped,
    Registered,
}

#[pymethods]
impl Locking {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.arrays.visit(&visit)?;
        self.locked.visit(&visit)
    }

    fn __enter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if self.way == Way::Registered {
            return Ok(self.arrays.bind(py).clone().into_any());
        }
        let arrays = self.arrays.bind(py);
        let locked = lock_all(arrays, &self.device, self.way == Way::Mapped)?;
        if self.way == Way::Pinned {
            announce(arrays, &locked)?;
        }
        let given: Vec<Bound<'py, PyAny>> = match self.way {
            Way::Mapped => locked
                .iter()
                .map(|array| Ok(Bound::new(py, array.get().device_view(py)?)?.into_any()))
                .collect::<PyResult<_>>()?,
            _ => locked.iter().map(|array| array.bind(py).clone().into_any()).collect(),
        };
        self.locked.lock().unwrap_or_else(PoisonError::into_inner).push(locked);
        match (&given[..], self.way) {
            // As in Numba: one array by itself, several in a list.
            ([one], Way::Mapped) => Ok(one.clone()),
            (_, Way::Mapped) => Ok(PyList::new(py, given)?.into_any()),
            _ => Ok(PyTuple::new(py, given)?.into_any()),
        }
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<bool> {
        if self.way == Way::Registered {
            deregister(self.arrays.bind(py))?;
            return Ok(false);
        }
        may_wait("deregister")?;
        let own = || self.locked.lock().unwrap_or_else(PoisonError::into_inner);
        let mut locked = own().pop().unwrap_or_default();
        let ended = unlock_all(py, &locked);
        locked.retain(|array| !array.get().has_ended());
        if !locked.is_empty() {
            own().push(locked);
        }
        ended.map(|()| false)
    }
}

fn locking(arrays: &Bound<'_, PyTuple>, device: Option<device::GivenDevice>, way: Way) -> PyResult<Locking> {
    let device = device::given(device)?;
    Ok(Locking { arrays: arrays.clone().unbind().into(), device, way, locked: Mutex::default() })
}

/// Page-locks NumPy arrays while the context lasts. It gives them as page-locked arrays of the library's, in a tuple:
/// copies of these, and of the arrays themselves, on a stream are only enqueued. At the end they are waited for and unlocked at once.
#[pyfunction]
#[pyo3(signature = (*arrays, device=None))]
pub(crate) fn pinned(arrays: &Bound<'_, PyTuple>, device: Option<device::GivenDevice>) -> PyResult<Locking> {
    locking(arrays, device, Way::Pinned)
}

/// Page-locks NumPy arrays while the context lasts, and gives device arrays over the same memory: one by itself, several
/// in a list.
#[pyfunction]
#[pyo3(signature = (*arrays, device=None))]
pub(crate) fn mapped(arrays: &Bound<'_, PyTuple>, device: Option<device::GivenDevice>) -> PyResult<Locking> {
    locking(arrays, device, Way::Mapped)
}

/// Page-locks NumPy arrays now, until `deregister`, or until the end of the context that is returned. Copies of them on a stream are only
/// enqueued meanwhile.
#[pyfunction]
#[pyo3(signature = (*arrays, device=None))]
pub(crate) fn register(
    arrays: &Bound<'_, PyTuple>,
    device: Option<device::GivenDevice>,
) -> PyResult<Locking> {
    let context = locking(arrays, device, Way::Registered)?;
    let locked = lock_all(arrays, &context.device, false)?;
    announce(arrays, &locked)?;
    let names = arrays.iter().map(|array| array.as_ptr().addr());
    REGISTERED.lock().unwrap_or_else(PoisonError::into_inner).extend(names.zip(locked));
    Ok(context)
}

/// Unlocks arrays that `register` has locked, after waiting for work that uses them. Ignores other arrays.
#[pyfunction]
#[pyo3(signature = (*arrays))]
pub(crate) fn deregister(arrays: &Bound<'_, PyTuple>) -> PyResult<()> {
    // All of them before the first is taken out, which is then waited for.
    arrays.iter().try_for_each(|array| check_destination(&array))?;
    may_wait("deregister")?;
    let own = || REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
    let mut found = Vec::new();
    for array in arrays.iter() {
        let mut registered = own();
        if let Some(at) = registered.iter().rposition(|(name, _)| *name == array.as_ptr().addr()) {
            found.push(registered.remove(at));
        }
    }
    let (names, locked): (Vec<_>, Vec<_>) = found.into_iter().unzip();
    let ended = unlock_all(arrays.py(), &locked);
    // The others are dropped before the mutex is locked: that may let Python's lock go.
    let refused: Vec<_> = names.into_iter().zip(locked).filter(|(_, array)| !array.get().has_ended()).collect();
    own().extend(refused);
    ended
}
