//! Making device arrays.

use crate::dtype::{each, with_type};
use crate::{
    device,
    device_array::{DeviceNDArray, Way},
    dtype::hold,
    element::DType,
    error::{raise, raise_descriptor},
    file_view::FileView,
    host::{Host, fixed},
    list::Listed,
    page_locked::page_locked,
    stream::{self, Stream},
};
use gpumem::{ArraySpec, DescriptorError, Layout, Order, ndarray::IxDyn};
use pyo3::{exceptions::PyValueError, prelude::*, types::PyTuple};

/// A shape: a length, or a tuple of lengths.
pub(crate) fn shape(shape: &Bound<'_, PyAny>) -> PyResult<Vec<usize>> {
    let Listed(lengths) = match shape.is_instance_of::<PyTuple>() {
        true => shape.extract()?,
        false => match shape.extract::<i64>() {
            Ok(length) => Listed(vec![length]),
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
    strides: Option<Listed<isize>>,
    order: &str,
) -> PyResult<ArraySpec<IxDyn>> {
    let spec = ArraySpec::new(IxDyn(&lengths));
    match (strides, order) {
        (Some(Listed(strides)), _) => Ok(spec.strides(&strides)),
        (None, "C") => Ok(spec.order(Order::C)),
        (None, "F") => Ok(spec.order(Order::F)),
        _ => Err(PyValueError::new_err("the order is 'C' or 'F'")),
    }
}

/// Returns a new array. As in Numba, its elements are arbitrary: old contents of the memory, or zeros if it is new.
#[pyfunction]
#[pyo3(signature = (shape, dtype=None, strides=None, order="C", stream=None, device=None))]
pub(crate) fn device_array(
    py: Python<'_>,
    shape: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    strides: Option<Listed<isize>>,
    order: &str,
    stream: Option<stream::GivenStream>,
    device: Option<device::GivenDevice>,
) -> PyResult<DeviceNDArray> {
    let dtype = DType::parse(py, dtype)?;
    let spec = dtype.held_spec(spec(self::shape(shape)?, strides, order)?)?;
    let (_, device) = stream::placed(stream, device)?;
    let elements = with_type!(dtype.held(), {
        let array = py.detach(|| device.uninit_array::<T, _>(spec)).map_err(raise)?;
        // SAFETY: all bits are elements. Memory of a GPU is only read by its driver; memory of the host was zeroed when it
        // came from the system, and written since by its former owner.
        hold(&unsafe { array.assume_init() })
    })?;
    Ok(DeviceNDArray::new(elements, dtype))
}

/// The layout and the type of an array of the host or of a device.
pub(crate) fn described(ary: &Bound<'_, PyAny>) -> PyResult<(Layout, DType)> {
    if let Some(source) = crate::interchange::device_source(ary, None)? {
        let source = source.get();
        return Ok((source.layout()?, source.dtype.clone_ref(ary.py()).with_alignment(true)));
    }
    let host = Host::of(ary)?;
    Ok((host.layout()?, host.dtype))
}

/// How a new array with the shape and the order of axes of another is held.
pub(crate) fn spec_like(layout: &Layout, dtype: &DType) -> PyResult<ArraySpec<IxDyn>> {
    let held = dtype.held_layout(&layout.like())?;
    Ok(ArraySpec::new(IxDyn(held.shape())).strides(held.strides()))
}

/// A new array of zeros with the shape, the type and the order of axes of another, on the host or on a device.
#[pyfunction]
#[pyo3(signature = (ary, stream=None, device=None))]
pub(crate) fn device_array_like(
    py: Python<'_>,
    ary: &Bound<'_, PyAny>,
    stream: Option<stream::GivenStream>,
    device: Option<device::GivenDevice>,
) -> PyResult<DeviceNDArray> {
    let (stream, device) = stream::placed(stream, device)?;
    zeros_like(py, ary, stream.as_ref(), &device)
}

fn zeros_like(
    py: Python<'_>,
    ary: &Bound<'_, PyAny>,
    stream: Option<&Stream>,
    at: &gpumem::Device,
) -> PyResult<DeviceNDArray> {
    let (layout, dtype) = described(ary)?;
    zeros(py, &layout, dtype, stream.map(|stream| &stream.0), at)
}

/// A new array with the shape and the order of axes of a layout.
fn zeros(
    py: Python<'_>,
    like: &Layout,
    dtype: DType,
    stream: Option<&gpumem::Stream>,
    at: &gpumem::Device,
) -> PyResult<DeviceNDArray> {
    let spec = spec_like(like, &dtype)?;
    let elements = with_type!(dtype.held(), {
        let array = py.detach(|| match stream {
            Some(stream) => stream.device_array::<T, _>(spec),
            None => at.device_array::<T, _>(spec),
        });
        hold(&array.map_err(raise)?)
    })?;
    Ok(DeviceNDArray::new(elements, dtype))
}

/// Copies to a device, into a new array or into `to`, which is returned. Without `copy` the new array holds zeros.
#[pyfunction]
#[pyo3(signature = (obj, stream=None, copy=true, to=None, device=None))]
pub(crate) fn to_device<'py>(
    py: Python<'py>,
    obj: &Bound<'py, PyAny>,
    stream: Option<stream::GivenStream>,
    copy: bool,
    to: Option<&Bound<'py, DeviceNDArray>>,
    device: Option<device::GivenDevice>,
) -> PyResult<Bound<'py, DeviceNDArray>> {
    if let Some(to) = to {
        // The device of a call that makes nothing is that of the array.
        let own = to.get().device()?;
        let handle = stream::given(stream, &own.0)?;
        if device.is_some_and(|device| device.0 != own.0) {
            return Err(PyValueError::new_err("`to` is an array of another device"));
        }
        if copy {
            to.get().fill_from(py, obj, handle.as_ref(), Way::Copy)?;
        }
        return Ok(to.clone());
    }
    let (handle, at) = stream::placed(stream, device)?;
    if !copy {
        return Bound::new(py, zeros_like(py, obj, handle.as_ref(), &at)?);
    }
    Bound::new(py, copied(py, obj, handle.as_ref(), &at)?)
}

/// A new array of a device with the elements of a source, in the order of a stream if there is one.
pub(crate) fn copied(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    stream: Option<&Stream>,
    at: &gpumem::Device,
) -> PyResult<DeviceNDArray> {
    if let Ok(view) = source.cast::<FileView>() {
        return view.get().copy_to(py, stream, at);
    }
    if let Some(stream) = stream
        && let Some(host) = page_locked(source)?
        && let Some(elements) = host.get().to_device(py, &stream.0)?
    {
        return Ok(DeviceNDArray::new(elements, host.get().dtype().clone_ref(py)));
    }
    if let Some(source) = crate::interchange::device_source(source, None)? {
        let mut source = source.get();
        let packed;
        if !source.copies_keep_bytes() {
            let own = source.device()?.0.default_stream().map_err(raise)?;
            packed = source.copy_on(py, stream.map_or(&own, |stream| &stream.0))?;
            source = &packed;
        }
        let elements = each!(&source.elements, from => {
            let array = py.detach(|| match stream {
                Some(stream) => stream.0.to_device(from),
                None => at.to_device(from),
            });
            hold(&array.map_err(raise)?)
        });
        return DeviceNDArray::copied(py, elements, source.dtype.clone_ref(py));
    }
    let host = Host::of(source)?;
    let host = host.without_repeats()?.unwrap_or(host);
    if let Some(stream) = stream {
        return upload(py, &host, &stream.0);
    }
    let elements = with_type!(host.dtype.held(), {
        let view = host.view::<T>()?;
        hold(&py.detach(|| at.to_device(&view)).map_err(raise)?)
    })?;
    Ok(DeviceNDArray::new(elements, host.dtype))
}

/// What a call takes the elements of more than once, as an object that is the library's or NumPy's own: a view of a file, which stays
/// open; an array of a device; a page-locked array; or a view of an array of the host, whose memory it fixes.
pub(crate) fn source<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if let Ok(view) = object.cast::<FileView>() {
        return Ok(Bound::new(object.py(), view.get().again()?)?.into_any());
    }
    if let Some(array) = crate::interchange::device_source(object, None)? {
        return Ok(array.into_any());
    }
    if let Some(host) = page_locked(object)? {
        return Ok(host.into_any());
    }
    let host = Host::of(object)?;
    Ok(fixed(&host.array)?.unwrap_or(host.array))
}

/// A copy of an array of the host, in the order of a stream.
pub(crate) fn upload(py: Python<'_>, host: &Host<'_>, stream: &gpumem::Stream) -> PyResult<DeviceNDArray> {
    let packed = host.without_repeats()?;
    let host = packed.as_ref().unwrap_or(host);
    let elements = with_type!(host.dtype.held(), {
        let view = host.view::<T>()?;
        hold(&py.detach(|| stream.to_device(&view)).map_err(raise)?)
    })?;
    Ok(DeviceNDArray::new(elements, host.dtype.clone_ref(py)))
}

/// An array like that of [`upload`], with zeros.
pub(crate) fn zeros_for(py: Python<'_>, host: &Host<'_>, stream: &gpumem::Stream) -> PyResult<DeviceNDArray> {
    zeros(py, &host.layout()?, host.dtype.clone_ref(py), Some(stream), stream.device())
}
