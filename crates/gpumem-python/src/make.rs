//! Making device arrays.

use crate::dtype::{each, with_type};
use crate::{
    array::DeviceNDArray,
    device, dtype,
    dtype::hold,
    error::{raise, raise_descriptor},
    host::Host,
    pinned::HostNDArray,
    stream::Stream,
};
use gpumem::{ArraySpec, DescriptorError, Order, ndarray::IxDyn};
use pyo3::{exceptions::PyValueError, prelude::*, types::PyTuple};

/// A shape: a length, or a tuple of lengths.
pub(crate) fn shape(shape: &Bound<'_, PyAny>) -> PyResult<Vec<usize>> {
    let lengths: Vec<i64> = match shape.is_instance_of::<PyTuple>() {
        true => shape.extract()?,
        false => match shape.extract::<i64>() {
            Ok(length) => vec![length],
            Err(_) => shape.extract()?,
        },
    };
    let length = |(axis, length): (usize, i64)| {
        usize::try_from(length).map_err(|_| raise_descriptor(DescriptorError::Length { axis, length }))
    };
    lengths.into_iter().enumerate().map(length).collect()
}

/// A shape with an order or strides.
pub(crate) fn spec(
    lengths: Vec<usize>,
    strides: Option<Vec<isize>>,
    order: &str,
) -> PyResult<ArraySpec<IxDyn>> {
    let spec = ArraySpec::new(IxDyn(&lengths));
    match (strides, order) {
        (Some(strides), _) => Ok(spec.strides(&strides)),
        (None, "C") => Ok(spec.order(Order::C)),
        (None, "F") => Ok(spec.order(Order::F)),
        _ => Err(PyValueError::new_err("the order is 'C' or 'F'")),
    }
}

/// The device of a call: its stream's, else the one that is named, else the current one.
fn place(
    stream: Option<&Bound<'_, Stream>>,
    device: Option<&Bound<'_, device::Device>>,
) -> PyResult<gpumem::Device> {
    match stream {
        Some(stream) => Ok(stream.get().0.device().clone()),
        None => device::given(device),
    }
}

/// A new array. As in Numba, nobody has written its elements: they are what the memory held, zeros where it is new.
#[pyfunction]
#[pyo3(signature = (shape, dtype=None, strides=None, order="C", stream=None, device=None))]
fn device_array(
    py: Python<'_>,
    shape: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    strides: Option<Vec<isize>>,
    order: &str,
    stream: Option<&Bound<'_, Stream>>,
    device: Option<&Bound<'_, device::Device>>,
) -> PyResult<DeviceNDArray> {
    let (element, spec) = (dtype::parse(py, dtype)?, spec(self::shape(shape)?, strides, order)?);
    let device = place(stream, device)?;
    let elements = with_type!(element, {
        let array = py.detach(|| device.uninit_array::<T, _>(spec)).map_err(raise)?;
        // SAFETY: all bits are elements. Memory of a GPU is only read by its driver; memory of the host was zeroed when it
        // came from the system, and written since by whoever had it.
        hold(&unsafe { array.assume_init() })
    })?;
    Ok(DeviceNDArray::new(elements))
}

/// A new array of zeros with the shape, the type and the order of axes of another, on the host or on a device.
#[pyfunction]
#[pyo3(signature = (ary, stream=None, device=None))]
fn device_array_like(
    py: Python<'_>,
    ary: &Bound<'_, PyAny>,
    stream: Option<&Bound<'_, Stream>>,
    device: Option<&Bound<'_, device::Device>>,
) -> PyResult<DeviceNDArray> {
    let at = place(stream, device)?;
    let elements = match crate::interchange::device_source(ary, None)? {
        Some(source) => each!(&source.get().elements, like => {
            hold(&py.detach(|| at.device_array_like(like)).map_err(raise)?)
        }),
        None => {
            let host = Host::of(ary)?;
            with_type!(host.element, {
                let view = host.view::<T>()?;
                hold(&py.detach(|| at.device_array_like(&view)).map_err(raise)?)
            })?
        }
    };
    Ok(DeviceNDArray::new(elements))
}

/// Copies to a device, into a new array or into `to`, which is returned. Without `copy` the new array holds zeros.
#[pyfunction]
#[pyo3(signature = (obj, stream=None, copy=true, to=None, device=None))]
fn to_device<'py>(
    py: Python<'py>,
    obj: &Bound<'py, PyAny>,
    stream: Option<&Bound<'py, Stream>>,
    copy: bool,
    to: Option<&Bound<'py, DeviceNDArray>>,
    device: Option<&Bound<'py, device::Device>>,
) -> PyResult<Bound<'py, DeviceNDArray>> {
    let handle = stream.map(|stream| stream.get().clone());
    if let Some(to) = to {
        if copy {
            to.get().fill_from(py, obj, handle.as_ref(), false)?;
        }
        return Ok(to.clone());
    }
    if !copy {
        return Bound::new(py, device_array_like(py, obj, stream, device)?);
    }
    let at = place(stream, device)?;
    if let (Ok(host), Some(stream)) = (obj.cast::<HostNDArray>(), &handle) {
        return Bound::new(py, DeviceNDArray::new(host.get().to_device(py, &stream.0)?));
    }
    let elements = match crate::interchange::device_source(obj, None)? {
        Some(source) => each!(&source.get().elements, from => {
            let array = py.detach(|| match &handle {
                Some(stream) => stream.0.to_device(from),
                None => at.to_device(from),
            });
            hold(&array.map_err(raise)?)
        }),
        None => {
            let host = Host::of(obj)?;
            if let Some(stream) = &handle {
                return Bound::new(py, upload(py, &host, &stream.0)?);
            }
            with_type!(host.element, {
                let view = host.view::<T>()?;
                hold(&py.detach(|| at.to_device(&view)).map_err(raise)?)
            })?
        }
    };
    Bound::new(py, DeviceNDArray::new(elements))
}

/// A copy of an array of the host, in the order of a stream.
pub(crate) fn upload(py: Python<'_>, host: &Host<'_>, stream: &gpumem::Stream) -> PyResult<DeviceNDArray> {
    let elements = with_type!(host.element, {
        let view = host.view::<T>()?;
        hold(&py.detach(|| stream.to_device(&view)).map_err(raise)?)
    })?;
    Ok(DeviceNDArray::new(elements))
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(device_array, module)?)?;
    module.add_function(wrap_pyfunction!(device_array_like, module)?)?;
    module.add_function(wrap_pyfunction!(to_device, module)?)
}
