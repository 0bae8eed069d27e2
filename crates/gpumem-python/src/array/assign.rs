//! Writing into arrays: copies from whatever can be a source, and numbers.

use super::DeviceNDArray;
use crate::{
    dtype,
    dtype::{check_writable, each},
    error::raise,
    host::Host,
    interchange::device_source,
    number,
    pinned::HostNDArray,
    stream::Stream,
};
use pyo3::{exceptions::PyTypeError, prelude::*};

impl DeviceNDArray {
    /// Copies from whatever can be a source.
    pub(crate) fn fill_from(
        &self,
        py: Python<'_>,
        source: &Bound<'_, PyAny>,
        stream: Option<&Stream>,
        wide: bool,
    ) -> PyResult<()> {
        check_writable(self.read_only)?;
        if let Ok(host) = source.cast::<HostNDArray>()
            && !wide
            && let Some(stream) = stream
        {
            return host.get().write_to(py, &self.elements, &stream.0);
        }
        if let Some(source) = device_source(source, None)? {
            let source = source.get();
            return each!(&self.elements, array => {
                // SAFETY: Python's arrays promise nothing about their elements.
                let mut to = unsafe { array.detach() };
                let Some(from) = source.elements_of::<T>() else {
                    return Err(PyTypeError::new_err("the elements are of another type"));
                };
                py.detach(move || match (stream, wide) {
                    (Some(stream), true) => stream.0.assign(&mut to, &from),
                    (Some(stream), false) => stream.0.copy_to_device(&mut to, &from),
                    (None, true) => to.assign(&from),
                    (None, false) => to.copy_to_device(&from).map(drop),
                })
                .map_err(raise)
            });
        }
        let mut host = Host::of(source)?;
        if host.element != self.element() {
            if !wide {
                let (found, wanted) = (host.element, self.element());
                return Err(PyTypeError::new_err(format!(
                    "the elements are {found}, and {wanted} is needed"
                )));
            }
            // Assignment converts, as NumPy's does.
            host = Host::of(&host.array.call_method1("astype", (dtype::numpy(py, self.element())?,))?)?;
        }
        each!(&self.elements, array => {
            // SAFETY: as above.
            let mut to = unsafe { array.detach() };
            let from = host.view::<T>()?;
            py.detach(move || match (stream, wide) {
                (Some(stream), true) => stream.0.assign(&mut to, &from),
                (Some(stream), false) => stream.0.copy_to_device(&mut to, &from),
                (None, true) => to.assign(&from),
                (None, false) => to.copy_to_device(&from).map(drop),
            })
            .map_err(raise)
        })
    }

    /// Sets every element to a number of Python's: without an array of NumPy on the way.
    pub(super) fn fill(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        check_writable(self.read_only)?;
        let bytes = number::bytes(self.element(), value)?;
        each!(&self.elements, array => {
            let wrong = |_| PyTypeError::new_err("the number is not of the elements' type");
            let value: T = bytemuck::try_pod_read_unaligned(&bytes).map_err(wrong)?;
            // SAFETY: Python's arrays promise nothing about their elements.
            let mut to = unsafe { array.detach() };
            py.detach(move || {
                let device = to.device()?.clone();
                // Code of the host that has borrowed the memory knows no streams.
                match device.capabilities().pageable_direct {
                    true => to.fill(value),
                    false => device.default_stream()?.fill(&mut to, value),
                }
            })
            .map_err(raise)
        })
    }
}
