//! Making arrays in memory that the host sees: page-locked, mapped and managed ones.

use crate::dtype::with_type;
use crate::{
    device,
    element::DType,
    error::raise,
    list::Listed,
    make,
    pinned::{Held, HostNDArray, Memory},
    stream,
};
use gpumem::{ArraySpec, Attach, MappedOptions, ndarray::IxDyn};
use pyo3::prelude::*;

/// The use that an array is made for.
#[derive(Clone, Copy)]
enum Kind {
    Pinned,
    Mapped(MappedOptions),
    Managed(Attach),
}

fn array(
    py: Python<'_>,
    kind: Kind,
    spec: ArraySpec<IxDyn>,
    dtype: DType,
    device: gpumem::Device,
) -> PyResult<HostNDArray> {
    let memory = with_type!(dtype.held(), {
        let memory = py.detach(|| {
            Ok(match kind {
                Kind::Pinned => Memory::of(Held::pinned(device.pinned_array::<T, _>(spec)?)),
                Kind::Mapped(options) => {
                    Memory::of(Held::new(device.mapped_array::<T, _>(spec, options)?).visible())
                }
                Kind::Managed(attach) => {
                    Memory::of(Held::new(device.managed_array::<T, _>(spec, attach)?).visible())
                }
            })
        });
        memory.map_err(raise)?
    })?;
    HostNDArray::new(memory, dtype)
}

/// The type and the shape of a new array, as it is held.
fn described(
    shape: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    strides: Option<Listed<isize>>,
    order: &str,
) -> PyResult<(ArraySpec<IxDyn>, DType)> {
    let dtype = DType::parse(shape.py(), dtype)?;
    Ok((dtype.held_spec(make::spec(make::shape(shape)?, strides, order)?)?, dtype))
}

/// The type and the shape of a new array with the shape and the order of axes of another.
fn like(ary: &Bound<'_, PyAny>) -> PyResult<(ArraySpec<IxDyn>, DType)> {
    let (layout, dtype) = make::described(ary)?;
    Ok((make::spec_like(&layout, &dtype)?, dtype))
}

/// The device of a call, whose stream changes nothing: it is one of that device.
fn with_stream(
    stream: Option<stream::GivenStream>,
    device: Option<device::GivenDevice>,
) -> PyResult<gpumem::Device> {
    let device = device::given(device)?;
    stream::given(stream, &device)?;
    Ok(device)
}

fn attach(global: bool) -> Attach {
    if global { Attach::Global } else { Attach::Host }
}

/// A new page-locked array of zeros.
#[pyfunction]
#[pyo3(signature = (shape, dtype=None, strides=None, order="C", device=None))]
pub(crate) fn pinned_array(
    py: Python<'_>,
    shape: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    strides: Option<Listed<isize>>,
    order: &str,
    device: Option<device::GivenDevice>,
) -> PyResult<HostNDArray> {
    let (spec, dtype) = described(shape, dtype, strides, order)?;
    array(py, Kind::Pinned, spec, dtype, device::given(device)?)
}

/// A new page-locked array of zeros with the shape, the type and the order of axes of another.
#[pyfunction]
#[pyo3(signature = (ary, device=None))]
pub(crate) fn pinned_array_like(
    py: Python<'_>,
    ary: &Bound<'_, PyAny>,
    device: Option<device::GivenDevice>,
) -> PyResult<HostNDArray> {
    let (spec, dtype) = like(ary)?;
    array(py, Kind::Pinned, spec, dtype, device::given(device)?)
}

/// A new page-locked array of zeros that the device can use. `stream` changes nothing: arrays have none.
#[pyfunction]
#[pyo3(signature = (shape, dtype=None, strides=None, order="C", stream=None, portable=false, wc=false, device=None))]
#[allow(clippy::too_many_arguments)] // Numba's own
pub(crate) fn mapped_array(
    py: Python<'_>,
    shape: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    strides: Option<Listed<isize>>,
    order: &str,
    stream: Option<stream::GivenStream>,
    portable: bool,
    wc: bool,
    device: Option<device::GivenDevice>,
) -> PyResult<HostNDArray> {
    let device = with_stream(stream, device)?;
    let (spec, dtype) = described(shape, dtype, strides, order)?;
    array(py, Kind::Mapped(MappedOptions { portable, write_combined: wc }), spec, dtype, device)
}

/// As `mapped_array`, with the shape, the type and the order of axes of another array.
#[pyfunction]
#[pyo3(signature = (ary, stream=None, portable=false, wc=false, device=None))]
pub(crate) fn mapped_array_like(
    py: Python<'_>,
    ary: &Bound<'_, PyAny>,
    stream: Option<stream::GivenStream>,
    portable: bool,
    wc: bool,
    device: Option<device::GivenDevice>,
) -> PyResult<HostNDArray> {
    let device = with_stream(stream, device)?;
    let (spec, dtype) = like(ary)?;
    array(py, Kind::Mapped(MappedOptions { portable, write_combined: wc }), spec, dtype, device)
}

/// A new array of zeros that migrates between host and device: both use the same addresses. `stream` changes nothing.
#[pyfunction]
#[pyo3(signature = (shape, dtype=None, strides=None, order="C", stream=None, attach_global=true, device=None))]
#[allow(clippy::too_many_arguments)] // Numba's own
pub(crate) fn managed_array(
    py: Python<'_>,
    shape: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    strides: Option<Listed<isize>>,
    order: &str,
    stream: Option<stream::GivenStream>,
    attach_global: bool,
    device: Option<device::GivenDevice>,
) -> PyResult<HostNDArray> {
    let device = with_stream(stream, device)?;
    let (spec, dtype) = described(shape, dtype, strides, order)?;
    array(py, Kind::Managed(attach(attach_global)), spec, dtype, device)
}

/// As `managed_array`, with the shape, the type and the order of axes of another array.
#[pyfunction]
#[pyo3(signature = (ary, stream=None, attach_global=true, device=None))]
pub(crate) fn managed_array_like(
    py: Python<'_>,
    ary: &Bound<'_, PyAny>,
    stream: Option<stream::GivenStream>,
    attach_global: bool,
    device: Option<device::GivenDevice>,
) -> PyResult<HostNDArray> {
    let device = with_stream(stream, device)?;
    let (spec, dtype) = like(ary)?;
    array(py, Kind::Managed(attach(attach_global)), spec, dtype, device)
}
