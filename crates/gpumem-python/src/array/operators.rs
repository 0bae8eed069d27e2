//! Operators: device arrays have none, and say what to do instead.

use pyo3::{
    exceptions::PyTypeError,
    prelude::*,
    types::{PyCFunction, PyTuple, PyType},
};

/// Python's operators of two operands that have a reflected form.
const REFLECTED: [&str; 13] = [
    "add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "divmod", "pow", "lshift", "rshift", "and",
    "xor",
];

/// The others.
const OTHERS: [&str; 12] = ["or", "ror", "neg", "pos", "abs", "invert", "eq", "ne", "lt", "le", "gt", "ge"];

/// The error of an operator or of a function of NumPy's.
pub(crate) fn absent(name: &str) -> PyErr {
    PyTypeError::new_err(format!(
        "device arrays have no `{name}`: copy_to_host() gives a NumPy array to compute with, compile() a kernel for the device"
    ))
}

/// Gives the class every operator: each raises what `refuse` makes of its name. Without them NumPy would compute with a silent
/// copy, and `==` would compare objects.
pub(crate) fn add(class: &Bound<'_, PyType>, refuse: fn(&str) -> PyErr) -> PyResult<()> {
    let reflected = REFLECTED.iter().flat_map(|name| [(*name).to_owned(), format!("r{name}")]);
    for name in reflected.chain(OTHERS.iter().map(|name| (*name).to_owned())) {
        let own = format!("__{name}__");
        let said = own.clone();
        let raises = PyCFunction::new_closure(
            class.py(),
            None,
            None,
            move |_: &Bound<'_, PyTuple>, _: Option<&Bound<'_, pyo3::types::PyDict>>| {
                Err::<(), _>(refuse(&said))
            },
        )?;
        class.setattr(own.as_str(), raises)?;
    }
    Ok(())
}
