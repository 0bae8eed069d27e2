//! Copies between device arrays of different numbers: a kernel on the device, NumPy's own conversion on the host.

use crate::{
    device_array::DeviceNDArray,
    dtype::Place,
    element::DType,
    error::{raise, raise_layout},
    kernel::{Given, Kernel, compile},
    signature::Form,
    stream::Stream,
};
use gpumem::{ElementKind, ElementType, LaunchConfig, Layout, Order};
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    sync::PyOnceLock,
    types::PyDict,
};
use std::fmt::Write;

/// The function that a host device runs.
const ON_HOST: &std::ffi::CStr = c"
import numpy

def convert(source, to):
    if source.dtype.kind == 'c' and to.dtype.kind not in 'cb':
        source = source.real
    with numpy.errstate(all='ignore'):
        numpy.copyto(to, source, casting='unsafe')
";

/// Copies `source`, broadcast and converted, to `to`: in the order of a stream, or of the device's default stream.
pub(super) fn convert(
    py: Python<'_>,
    source: &DeviceNDArray,
    to: &DeviceNDArray,
    stream: Option<&Stream>,
) -> PyResult<()> {
    let (Some(from_element), Some(to_element)) = (source.dtype.number(), to.dtype.number()) else {
        let (found, wanted) = (source.dtype.name(py)?, to.dtype.name(py)?);
        let text =
            format!("{found} cannot be converted to {wanted} on a device: copy_to_host() and convert there");
        return Err(PyTypeError::new_err(text));
    };
    let stream = match stream {
        Some(stream) => stream.0.clone(),
        None => to.device()?.0.default_stream().map_err(raise)?,
    };
    // NumPy converts by way of a copy too where the source is written.
    let is_apart = source.device()?.0 == *stream.device()
        && !Place::of(&source.elements).shares(&Place::of(&to.elements));
    let moved = if is_apart { None } else { Some(source.copy_on(py, &stream)?) };
    let source = moved.as_ref().unwrap_or(source);
    let (to_layout, from_layout) = (to.layout()?, source.layout()?);
    let from_layout = from_layout.broadcast(to_layout.shape()).map_err(raise_layout)?;
    if to_layout.is_empty() {
        return Ok(());
    }
    if from_element.kind == ElementKind::Complex
        && !matches!(to_element.kind, ElementKind::Complex | ElementKind::Bool)
    {
        warn_of_lost_parts(py)?;
    }
    let (from_layout, to_layout) = (flat(&from_layout, &to_layout)?, flat(&to_layout, &from_layout)?);
    let rank = to_layout.ndim();
    let count = to_layout.len().div_ceil(256).min(1 << 16) as u32;
    let dims = LaunchConfig { groups: [count, 1, 1], group_size: [256, 1, 1], shared_bytes: 0 };
    let given = [(source, from_layout, false), (to, to_layout, true)].map(|(array, layout, write)| {
        let elements = array.relayout(py, &layout)?.elements;
        Ok::<_, PyErr>(Given::Array { elements, form: Form::View { write, rank }, host: None })
    });
    let [from, to] = given;
    kernel(py, from_element, to_element, rank)?.get().enqueue(py, &stream, dims, &mut [from?, to?])
}

/// The layout along one axis where that and its partner's elements lie side by side; always of an axis at least.
fn flat(layout: &Layout, partner: &Layout) -> PyResult<Layout> {
    match layout.ndim() == 0 || (layout.is_c_contiguous() && partner.is_c_contiguous()) {
        true => layout.ravel(Order::C).map_err(raise_layout),
        false => Ok(layout.clone()),
    }
}

/// NumPy's warning for it.
fn warn_of_lost_parts(py: Python<'_>) -> PyResult<()> {
    let numpy = py.import("numpy")?;
    let place = numpy.getattr("exceptions").unwrap_or(numpy.into_any());
    let text = c"Casting complex values to real discards the imaginary part";
    PyErr::warn(py, &place.getattr("ComplexWarning")?, text, 1)
}

/// The kernel for two types and a number of axes.
fn kernel(py: Python<'_>, from: ElementType, to: ElementType, rank: usize) -> PyResult<Py<Kernel>> {
    static KERNELS: PyOnceLock<(Py<PyDict>, Py<PyAny>)> = PyOnceLock::new();
    let (kernels, on_host) = KERNELS.get_or_try_init(py, || {
        let module = PyModule::from_code(py, ON_HOST, c"gpumem", c"gpumem_convert")?;
        Ok::<_, PyErr>((PyDict::new(py).unbind(), module.getattr("convert")?.unbind()))
    })?;
    let key = (from.to_string(), to.to_string(), rank);
    if let Some(found) = kernels.bind(py).get_item(&key)? {
        return Ok(found.cast::<Kernel>()?.clone().unbind());
    }
    let source = source(from, to, rank).ok_or_else(|| PyValueError::new_err("too many axes"))?;
    let made = Py::new(py, compile(&source, None, Some(on_host.clone_ref(py)), None, false)?)?;
    kernels.bind(py).set_item(&key, &made)?;
    Ok(made)
}

/// The kernel that converts arrays of so many axes, for tests of it on devices and with compilers.
#[pyfunction]
#[pyo3(name = "_conversion_kernel")]
pub(crate) fn conversion_kernel(
    from: &Bound<'_, PyAny>,
    to: &Bound<'_, PyAny>,
    rank: usize,
) -> PyResult<Py<Kernel>> {
    let number = |dtype: &Bound<'_, PyAny>| {
        let no_number = || PyTypeError::new_err("not a number");
        DType::parse(dtype.py(), Some(dtype))?.number().ok_or_else(no_number)
    };
    kernel(from.py(), number(from)?, number(to)?, rank)
}

/// The name of an element in device code.
fn name(element: ElementType) -> &'static str {
    match (element.kind, element.bytes) {
        (ElementKind::Bool, _) => "bool",
        (ElementKind::Int, 1) => "i8",
        (ElementKind::Int, 2) => "i16",
        (ElementKind::Int, 4) => "i32",
        (ElementKind::Int, _) => "i64",
        (ElementKind::UInt, 1) => "u8",
        (ElementKind::UInt, 2) => "u16",
        (ElementKind::UInt, 4) => "u32",
        (ElementKind::UInt, _) => "u64",
        (ElementKind::Float, 2) => "f16",
        (ElementKind::BFloat, _) => "bf16",
        (ElementKind::Float, 4) => "float",
        (ElementKind::Complex, 8) => "complex<float>",
        (ElementKind::Complex, _) => "complex<double>",
        _ => "double",
    }
}

/// The source of the kernel: every work-item converts elements that lie a whole launch apart.
fn source(from: ElementType, to: ElementType, rank: usize) -> Option<String> {
    let (from_name, to_name) = (name(from), name(to));
    let part = if from.bytes == 16 { "double" } else { "float" };
    let (is_complex, real) = match (from.kind, from.bytes) {
        (ElementKind::Complex, _) => (true, "v.re".to_owned()),
        (ElementKind::Float | ElementKind::BFloat, 2) => (false, "(float)v".to_owned()),
        _ => (false, "v".to_owned()),
    };
    let is_double = from_name == "double" || (is_complex && part == "double");
    let value = match (to.kind, to.bytes) {
        (ElementKind::Bool, _) if is_complex => "(v.re != 0 || v.im != 0)".to_owned(),
        (ElementKind::Bool, _) => format!("({real} != 0)"),
        (ElementKind::Float | ElementKind::BFloat, 2) if is_double => format!("{to_name}(to_odd({real}))"),
        (ElementKind::Float | ElementKind::BFloat, 2) => format!("{to_name}((float)({real}))"),
        (ElementKind::Complex, bytes) => {
            let part = if bytes == 8 { "float" } else { "double" };
            let imaginary = if is_complex { "v.im" } else { "0" };
            format!("{to_name}(({part})({real}), ({part})({imaginary}))")
        }
        _ => format!("({to_name})({real})"),
    };
    let mut text = format!(
        "using namespace gpumem;
// A float that is not exact gets an odd last digit, by which the rounding to two bytes sees that it is none.
GPUMEM_DEVICE float to_odd(double value) {{
    float near = (float)value;
    if (value == value && (double)near != value) {{
        u32 bits = detail::bits<u32>(near);
        bool beyond = value < 0 ? (double)near < value : (double)near > value;
        near = detail::bits<float>((beyond ? bits - 1 : bits) | 1u);
    }}
    return near;
}}
GPUMEM_KERNEL gpumem_convert(view<const {from_name}, {rank}> from, view<{to_name}, {rank}> to) {{
    u64 count = 1;
    for (int axis = 0; axis < {rank}; ++axis) count *= to.extent(axis);
    for (u64 at = global_id(0); at < count; at += global_size(0)) {{
        u64 rest = at;
"
    );
    for axis in (0..rank).rev() {
        writeln!(text, "        u64 i{axis} = rest % to.extent({axis}); rest /= to.extent({axis});").ok()?;
    }
    let index = (0..rank).map(|axis| format!("i{axis}")).collect::<Vec<_>>().join(", ");
    let read = match from.kind {
        // Memory may hold any byte, of which C++ knows two.
        ElementKind::Bool => format!("*(const u8*)&from({index}) != 0"),
        _ => format!("from({index})"),
    };
    writeln!(text, "        {from_name} v = {read};\n        to({index}) = {value};\n    }}\n}}").ok()?;
    Some(text)
}
