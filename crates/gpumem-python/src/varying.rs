//! Numbers of each launch of a graph, as the body of the graph sees them.

use crate::dtype;
use gpumem::{AnyBackend, ElementType};
use gpumem_runtime::internal::UntypedValue;
use pyo3::{
    exceptions::PyTypeError,
    prelude::*,
    types::{PyDict, PyTuple},
};

pub(crate) type Number = gpumem::Varying<UntypedValue, AnyBackend>;

/// What the body of a graph gets for a number: an argument of kernels and of graphs, whose value each launch gives. Nothing
/// else can be done with it.
#[pyclass(frozen, module = "pygpumem")]
pub(crate) struct Varying {
    number: Number,
    element: ElementType,
}

/// The error of everything that needs the value.
pub(crate) fn opaque(name: &str) -> PyErr {
    PyTypeError::new_err(format!(
        "`{name}` of a number that each launch of a graph gives: it is an argument of kernels, and has no value in the body"
    ))
}

impl Varying {
    pub(crate) fn new(number: Number, element: ElementType) -> Self {
        Self { number, element }
    }

    /// The number for a parameter of that type.
    pub(crate) fn of(&self, py: Python<'_>, element: ElementType) -> PyResult<Number> {
        if self.element == element {
            return Ok(self.number.clone());
        }
        let [found, wanted] = [self.element, element].map(|element| dtype::numpy(py, element));
        let text = format!("the number is {} of each launch, and {} is needed", found?.str()?, wanted?.str()?);
        Err(PyTypeError::new_err(text))
    }
}

#[pymethods]
impl Varying {
    /// Type of the number, as NumPy's.
    #[getter]
    #[pyo3(name = "dtype")]
    fn numpy_dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        dtype::numpy(py, self.element)
    }

    fn __bool__(&self) -> PyResult<bool> {
        Err(opaque("bool"))
    }

    /// Refuses NumPy's functions, which would take it as an object.
    #[pyo3(signature = (*_arguments, **_options))]
    fn __array__(
        &self,
        _arguments: &Bound<'_, PyTuple>,
        _options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        Err(opaque("__array__"))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("<pygpumem.Varying dtype={}>", dtype::numpy(py, self.element)?.str()?))
    }
}
