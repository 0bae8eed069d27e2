//! Page-locked arrays among what Python gives.

use crate::{host::ndarray, locked::locked, pinned::HostNDArray};
use pyo3::{intern, prelude::*};

/// A page-locked array of the library's, also by an array of NumPy's that is page-locked now, or by one of a class that says which one has
/// its memory: what `pygpumem.cuda` makes. Whatever it says, the elements of that one are used. One that has been given another shape or type in place,
/// or that cannot be written, is an ordinary array.
pub(crate) fn page_locked<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, HostNDArray>>> {
    if let Ok(host) = object.cast::<HostNDArray>() {
        return Ok(Some(host.clone()));
    }
    let (class, of_numpy) = (object.get_type(), ndarray(object.py())?);
    let named = match class.is(&of_numpy) {
        true => None,
        false if !class.is_subclass(&of_numpy)? => return Ok(None),
        false => object.getattr_opt(intern!(object.py(), "_page_locked"))?,
    };
    let named = named.and_then(|host| host.cast_into::<HostNDArray>().ok());
    let Some(host) = named.or_else(|| locked(object)) else { return Ok(None) };
    for name in ["shape", "strides", "dtype"] {
        if !object.getattr(name)?.eq(host.getattr(name)?)? {
            return Ok(None);
        }
    }
    Ok(object.getattr("flags")?.getattr("writeable")?.is_truthy()?.then_some(host))
}
