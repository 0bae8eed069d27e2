//! Writes into arrays: copies from any source, and numbers.

use super::convert::convert;
use crate::{
    device_array::{DeviceNDArray, Way},
    dtype::{check_writable, each},
    error::raise,
    host::Host,
    interchange::device_source,
    number,
    page_locked::page_locked,
    recording::is_recorded,
    stream::Stream,
};
use gpumem::ElementType;
use pyo3::{exceptions::PyTypeError, prelude::*};

impl DeviceNDArray {
    /// Copies from any source.
    pub(crate) fn fill_from(
        &self,
        py: Python<'_>,
        source: &Bound<'_, PyAny>,
        stream: Option<&Stream>,
        way: Way,
    ) -> PyResult<()> {
        check_writable(self.read_only)?;
        let wide = way != Way::Copy;
        if !wide
            && !self.dtype.is_unaligned()
            && let Some(stream) = stream
            && let Some(host) = page_locked(source)?
        {
            self.dtype.expect(py, host.get().dtype())?;
            if host.get().write_to(py, &self.elements, &stream.0)? {
                return Ok(());
            }
        }
        if let Some(source) = device_source(source, None)? {
            let source = source.get();
            if wide && !self.dtype.same(py, &source.dtype)? {
                return convert(py, source, self, stream);
            }
            self.dtype.expect(py, &source.dtype)?;
            if self.dtype.is_unaligned() != source.dtype.is_unaligned() {
                let source = Bound::new(py, source.in_bytes()?)?;
                return self.in_bytes()?.fill_from(py, source.as_any(), stream, way);
            }
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
        let host = match way {
            Way::AssignOne => Host::to_assign_to_one(source, &self.dtype)?,
            Way::Assign => Host::to_assign(source, &self.dtype)?,
            Way::Copy => Host::of(source)?,
        };
        self.dtype.expect(py, &host.dtype)?;
        host.check_apart(&self.elements)?;
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
    pub(super) fn fill(
        &self,
        py: Python<'_>,
        element: ElementType,
        value: &Bound<'_, PyAny>,
        stream: Option<&Stream>,
    ) -> PyResult<()> {
        check_writable(self.read_only)?;
        let bytes = number::bytes(element, value)?;
        each!(&self.elements, array => {
            let wrong = |_| PyTypeError::new_err("the number is not of the elements' type");
            let value: T = bytemuck::try_pod_read_unaligned(&bytes).map_err(wrong)?;
            // SAFETY: Python's arrays promise nothing about their elements.
            let mut to = unsafe { array.detach() };
            py.detach(move || {
                if let Some(stream) = stream {
                    return stream.0.fill(&mut to, value);
                }
                let device = to.device()?.clone();
                let stream = device.default_stream()?;
                // Code of the host that has borrowed the memory knows no streams.
                match device.capabilities().pageable_direct && !is_recorded(&stream) {
                    true => to.fill(value),
                    false => stream.fill(&mut to, value),
                }
            })
            .map_err(raise)
        })
    }
}
