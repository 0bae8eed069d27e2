//! Functions of Python as kernels of the host device.

use crate::dtype::{each, with_type};
use crate::{
    attach::{Code, attach, interrupt_again},
    dtype::{self, Elements},
    host::Host,
    kept::{Kept, Traverse},
    signature::{Form, Parameter},
};
use gpumem::{
    AnyBackend, ElementKind, ElementType,
    generic::{view_at, view_mut_at},
    kernel::{HostFunction, KernelArguments},
};
use gpumem_runtime::internal::Noted;
use pyo3::{
    PyTraverseError, PyVisit,
    exceptions::{PyRuntimeError, PyTypeError, PyValueError},
    prelude::*,
    types::{PyBytes, PyDict, PyTuple},
};
use std::{
    fmt::Write,
    sync::{Arc, Mutex, PoisonError},
};

/// The function as a host device runs it, in the order of its stream. An exception in it is a fault of the stream.
///
/// It serves one launch, with the `memory` of the parameters that are arrays: the function may keep its arrays for longer
/// than the launch lasts, and the arrays keep the memory.
pub(crate) fn host_function(
    function: Kept,
    parameters: Arc<[Parameter]>,
    memory: Vec<Elements>,
) -> HostFunction {
    // Taken by the launch: a driver may keep the function for longer than that.
    let once = Mutex::new(Some((function, memory)));
    HostFunction::new(move |launch| {
        let taken = once.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (function, memory) = taken.ok_or("the launch has run already")?;
        let done = attach(Code::KernelBody, |py| {
            let arguments = launch.arguments;
            run(py, function.bind(py), &parameters, memory, arguments).map_err(|error| text(py, &error))
        });
        done.unwrap_or_else(|| Err("Python has ended".to_owned()))
    })
}

/// As [`host_function`], for every launch of the graphs that have it recorded. Their memory serves other launches later, so the
/// function gets copies of the arrays, and those that it writes are copied back. No code of Python, NumPy's own included, sees an
/// array over that memory.
pub(crate) fn copying_host_function(function: Kept, parameters: Arc<[Parameter]>) -> HostFunction {
    HostFunction::new(move |launch| {
        let arguments = launch.arguments;
        let done = attach(Code::KernelBody, |py| {
            run_on_copies(py, function.bind(py), &parameters, arguments).map_err(|error| text(py, &error))
        });
        done.unwrap_or_else(|| Err("Python has ended".to_owned()))
    })
}

/// An exception as text. Its class is the program's own, and may have no name.
fn text(py: Python<'_>, error: &PyErr) -> String {
    let mut text = String::new();
    let written = write!(text, "{error}");
    // Last: Python raises it in the first code that runs.
    interrupt_again(py, error);
    match written {
        Ok(()) => text,
        Err(_) => "the function has raised an exception that has no text".to_owned(),
    }
}

fn run_on_copies(
    py: Python<'_>,
    function: &Bound<'_, PyAny>,
    parameters: &[Parameter],
    arguments: &KernelArguments,
) -> PyResult<()> {
    let (mut values, mut back) = (Vec::new(), Vec::new());
    for (parameter, argument) in parameters.iter().zip(arguments.iter()) {
        if parameter.form == Form::Value {
            values.push(number(py, parameter, argument)?);
            continue;
        }
        let memory = Memory::of(parameter, argument);
        let copy = memory.copy(py)?;
        // The function may change the shape of what it gets.
        let given = copy.call_method0("view")?;
        match memory.write {
            true => back.push((memory, copy)),
            false => drop(given.call_method1("setflags", (false,))?),
        }
        values.push(given);
    }
    call(function, values)?;
    back.into_iter().try_for_each(|(memory, copy)| memory.copy_back(&copy))
}

fn run(
    py: Python<'_>,
    function: &Bound<'_, PyAny>,
    parameters: &[Parameter],
    memory: Vec<Elements>,
    arguments: &KernelArguments,
) -> PyResult<()> {
    let mut memory = memory.into_iter();
    let value = |(parameter, argument): (&Parameter, &[u8])| match parameter.form {
        Form::Value => number(py, parameter, argument),
        _ => {
            let missing = || PyRuntimeError::new_err("the launch has other arrays");
            Memory::of(parameter, argument).array(py, memory.next().ok_or_else(missing)?)
        }
    };
    let values = parameters.iter().zip(arguments.iter()).map(value).collect::<PyResult<Vec<_>>>()?;
    call(function, values)
}

fn call(function: &Bound<'_, PyAny>, values: Vec<Bound<'_, PyAny>>) -> PyResult<()> {
    let py = function.py();
    let result = function.call1(PyTuple::new(py, values)?)?;
    let kinds = py.import("collections.abc")?;
    for kind in ["Generator", "Coroutine", "AsyncGenerator"] {
        if result.is_instance(&kinds.getattr(kind)?)? {
            return Err(PyTypeError::new_err(format!("the function gives a {kind}, and has not run")));
        }
    }
    Ok(())
}

/// Memory that NumPy looks at: the base of the arrays that a function gets. It keeps the memory for as long as they live, where
/// they live for longer than the call.
#[pyclass(frozen, module = "pygpumem")]
struct Seen {
    says: Kept<PyDict>,
    _memory: Elements,
    /// The library knows the memory that comes back, and makes no second owner of it.
    _noted: Noted<AnyBackend>,
}

#[pymethods]
impl Seen {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.says.visit(&visit)
    }

    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        // What the caller does to it changes nothing here.
        self.says.bind(py).copy()
    }
}

/// A number for Python.
fn number<'py>(py: Python<'py>, parameter: &Parameter, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let dtype = dtype::numpy(py, parameter.element)?;
    py.import("numpy")?.call_method1("frombuffer", (PyBytes::new(py, bytes), dtype))?.get_item(0)
}

/// The memory of an array of a launch, and how the elements lie there. It is the launch's until the launch ends.
struct Memory {
    element: ElementType,
    /// The address of the first element.
    address: u64,
    shape: Vec<usize>,
    /// In bytes.
    strides: Vec<isize>,
    write: bool,
}

impl Memory {
    /// The memory of an argument, which is an array.
    fn of(parameter: &Parameter, bytes: &[u8]) -> Self {
        let words: Vec<u64> =
            bytes.chunks_exact(8).filter_map(|chunk| Some(u64::from_ne_bytes(chunk.try_into().ok()?))).collect();
        let (element, address) = (parameter.element, words.first().copied().unwrap_or_default());
        let rank = match parameter.form {
            Form::View { rank, .. } => rank,
            _ => 1,
        };
        let shape = words.get(1..=rank).unwrap_or_default().iter().map(|length| *length as usize).collect();
        let strides = match parameter.form {
            Form::View { .. } => {
                words.get(1 + rank..).unwrap_or_default().iter().map(|stride| *stride as isize).collect()
            }
            _ => vec![element.bytes as isize],
        };
        Self { element, address, shape, strides, write: parameter.form.is_written() }
    }

    /// An array of NumPy's own, with the axes of these elements in their order.
    fn empty<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let is_first_axis_fastest = self.strides.is_sorted_by_key(|stride| stride.unsigned_abs());
        let order = if self.strides.len() > 1 && is_first_axis_fastest { "F" } else { "C" };
        let shape = PyTuple::new(py, &self.shape)?;
        py.import("numpy")?.call_method1("empty", (shape, dtype::numpy(py, self.element)?, order))
    }

    /// An array of NumPy over the memory, which it keeps.
    fn array<'py>(&self, py: Python<'py>, memory: Elements) -> PyResult<Bound<'py, PyAny>> {
        if self.shape.contains(&0) {
            return self.empty(py);
        }
        let says = PyDict::new(py);
        says.set_item("shape", PyTuple::new(py, &self.shape)?)?;
        says.set_item("strides", PyTuple::new(py, &self.strides)?)?;
        says.set_item("typestr", self.element.to_string())?;
        says.set_item("data", (self.address, !self.write))?;
        says.set_item("version", 3)?;
        let noted = each!(&memory, array => Noted::of(array));
        let seen = Seen { says: says.unbind().into(), _memory: memory, _noted: noted };
        let array = py.import("numpy")?.call_method1("asarray", (Bound::new(py, seen)?,))?;
        match self.element.kind {
            // The protocol has no name for it.
            ElementKind::BFloat => array.call_method1("view", (dtype::numpy(py, self.element)?,)),
            _ => Ok(array),
        }
    }

    fn first(&self) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.address as usize)
    }

    /// A copy of the elements in an array of NumPy's own.
    fn copy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let copy = self.empty(py)?;
        let mut to = Host::to_write(&copy)?;
        with_type!(self.element, {
            let mut to = to.view_mut::<T>()?;
            check_shape(to.shape(), &self.shape)?;
            // SAFETY: the library has given address and layout of elements of that type, which the launch may read until it ends.
            to.assign(&unsafe { view_at::<T>(self.first().cast_const(), &self.shape, &self.strides) });
        })?;
        Ok(copy)
    }

    /// Copies the elements of an array here.
    fn copy_back(&self, copy: &Bound<'_, PyAny>) -> PyResult<()> {
        let from = Host::of(copy)?;
        with_type!(self.element, {
            let from = from.view::<T>()?;
            check_shape(from.shape(), &self.shape)?;
            // SAFETY: as in `copy`; it may write them, and what it may write does not overlap.
            unsafe { view_mut_at::<T>(self.first(), &self.shape, &self.strides) }.assign(&from);
        })
    }
}

/// Refuses an array whose shape is not that of the argument: the function has changed the copy.
fn check_shape(found: &[usize], wanted: &[usize]) -> PyResult<()> {
    match found == wanted {
        true => Ok(()),
        false => Err(PyValueError::new_err(format!("the array of shape {wanted:?} has the shape {found:?} now"))),
    }
}
