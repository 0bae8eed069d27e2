//! Functions of Python as kernels of the host device.

use crate::{
    attach::attach,
    dtype::{self, Elements},
    kept::Kept,
    signature::{Form, Parameter},
};
use gpumem::{ElementKind, kernel::{HostFunction, KernelArguments}};
use pyo3::{
    prelude::*,
    types::{PyBytes, PyDict, PyTuple},
};
use std::sync::{Arc, Mutex, PoisonError};

/// The function as a host device runs it, in the order of its stream. An exception in it is a fault of the stream.
///
/// It serves one launch, with `memory` for each parameter that is an array: the function may keep its arrays for longer
/// than the launch lasts, and the arrays keep the memory.
pub(crate) fn host_function(
    function: Kept,
    parameters: Arc<[Parameter]>,
    memory: Vec<Option<Elements>>,
) -> HostFunction {
    // Taken by the launch: a driver may keep the function for longer than that.
    let once = Mutex::new(Some((function, memory)));
    HostFunction::new(move |launch| {
        let taken = once.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (function, memory) = taken.ok_or("the launch has run already")?;
        let done = attach(|py| {
            let arguments = launch.arguments;
            run(py, function.bind(py), &parameters, &memory, arguments).map_err(|error| error.to_string())
        });
        done.unwrap_or_else(|| Err("Python has ended".to_owned()))
    })
}

/// As [`host_function`], for every launch of the graphs that have it recorded. Their memory serves other launches later, so the
/// function gets copies of the arrays, and those that it writes are copied back.
pub(crate) fn copying_host_function(function: Kept, parameters: Arc<[Parameter]>) -> HostFunction {
    HostFunction::new(move |launch| {
        let arguments = launch.arguments;
        let done = attach(|py| {
            run_on_copies(py, function.bind(py), &parameters, arguments).map_err(|error| error.to_string())
        });
        done.unwrap_or_else(|| Err("Python has ended".to_owned()))
    })
}

fn run_on_copies(
    py: Python<'_>,
    function: &Bound<'_, PyAny>,
    parameters: &[Parameter],
    arguments: &KernelArguments,
) -> PyResult<()> {
    let (mut values, mut back) = (Vec::new(), Vec::new());
    for (parameter, argument) in parameters.iter().zip(arguments.iter()) {
        let own = value(py, parameter, None, argument)?;
        if parameter.form == Form::Value {
            values.push(own);
            continue;
        }
        let copy = own.call_method1("copy", ("K",))?;
        // The function may change the shape of what it gets.
        let given = copy.call_method0("view")?;
        match parameter.form.is_written() {
            true => back.push((parameter, argument, copy)),
            false => drop(given.call_method1("setflags", (false,))?),
        }
        values.push(given);
    }
    function.call1(PyTuple::new(py, values)?)?;
    let copyto = py.import("numpy")?.getattr("copyto")?;
    // While the function ran, no array of NumPy was over the memory.
    let put = |(parameter, argument, copy)| copyto.call1((value(py, parameter, None, argument)?, copy)).map(drop);
    back.into_iter().try_for_each(put)
}

fn run(
    py: Python<'_>,
    function: &Bound<'_, PyAny>,
    parameters: &[Parameter],
    memory: &[Option<Elements>],
    arguments: &KernelArguments,
) -> PyResult<()> {
    let values: Vec<_> = parameters
        .iter()
        .zip(memory)
        .zip(arguments.iter())
        .map(|((parameter, memory), argument)| value(py, parameter, memory.as_ref(), argument))
        .collect::<PyResult<_>>()?;
    function.call1(PyTuple::new(py, values)?).map(drop)
}

/// Memory that NumPy looks at: the base of the arrays that a function gets. It keeps the memory for as long as they live, where
/// they live for longer than the call.
#[pyclass(frozen, module = "gpumem")]
struct Seen {
    says: Kept<PyDict>,
    _memory: Option<Elements>,
}

#[pymethods]
impl Seen {
    #[getter]
    fn __array_interface__(&self, py: Python<'_>) -> Py<PyDict> {
        self.says.clone_ref(py)
    }
}

/// An argument for Python: an array of NumPy over the memory, or a number. Without `memory` the array is not for the function.
fn value<'py>(
    py: Python<'py>,
    parameter: &Parameter,
    memory: Option<&Elements>,
    bytes: &[u8],
) -> PyResult<Bound<'py, PyAny>> {
    let numpy = py.import("numpy")?;
    let words: Vec<u64> =
        bytes.chunks_exact(8).filter_map(|chunk| Some(u64::from_ne_bytes(chunk.try_into().ok()?))).collect();
    let (write, shape, strides) = match parameter.form {
        Form::Value => {
            let dtype = dtype::numpy(py, parameter.element)?;
            return numpy.call_method1("frombuffer", (PyBytes::new(py, bytes), dtype))?.get_item(0);
        }
        Form::Slice { write } => {
            let item = parameter.element.bytes as i64;
            (write, words.get(1..2).unwrap_or_default().to_vec(), vec![item])
        }
        Form::View { write, rank } => {
            let shape = words.get(1..=rank).unwrap_or_default().to_vec();
            let strides = words.get(1 + rank..).unwrap_or_default();
            (write, shape, strides.iter().map(|stride| *stride as i64).collect())
        }
    };
    if shape.contains(&0) {
        return numpy.call_method1("empty", (shape, dtype::numpy(py, parameter.element)?));
    }
    let says = PyDict::new(py);
    says.set_item("shape", PyTuple::new(py, shape)?)?;
    says.set_item("strides", PyTuple::new(py, strides)?)?;
    says.set_item("typestr", parameter.element.to_string())?;
    says.set_item("data", (words.first().copied().unwrap_or_default(), !write))?;
    says.set_item("version", 3)?;
    let seen = Seen { says: says.unbind().into(), _memory: memory.map(dtype::again) };
    let array = numpy.call_method1("asarray", (Bound::new(py, seen)?,))?;
    match parameter.element.kind {
        // The protocol has no name for it.
        ElementKind::BFloat => array.call_method1("view", (dtype::numpy(py, parameter.element)?,)),
        _ => Ok(array),
    }
}
