//! Python on threads of the library: callbacks, and bodies of kernels.
//!
//! A thread that asks for Python's lock when Python has begun to end never gets it: it ends in the middle of its functions, or
//! Python aborts. So the end waits for the threads that run code of Python, and lets no others in.

use crate::wait::at_end;
use pyo3::{prelude::*, types::PyDict};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Threads of the library that run code of Python, or wait for its lock.
static INSIDE: AtomicUsize = AtomicUsize::new(0);
static HAS_ENDED: AtomicBool = AtomicBool::new(false);

/// A thread that may ask for Python's lock.
struct Inside(());

impl Inside {
    /// `None` once Python ends.
    fn enter() -> Option<Self> {
        INSIDE.fetch_add(1, Ordering::SeqCst);
        let inside = Self(());
        (!HAS_ENDED.load(Ordering::SeqCst)).then_some(inside)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Runs code of Python on a thread of the library. `None` if Python has ended.
pub(crate) fn attach<R>(run: impl for<'py> FnOnce(Python<'py>) -> R) -> Option<R> {
    let _inside = Inside::enter()?;
    Python::try_attach(run)
}

/// Waits for the threads that are inside. No other one enters from here on.
#[pyfunction]
fn end(py: Python<'_>) -> PyResult<()> {
    HAS_ENDED.store(true, Ordering::SeqCst);
    at_end(py, || INSIDE.load(Ordering::SeqCst) == 0)
}

/// The threads of the parent are not there in a forked child.
#[pyfunction]
fn forked() {
    INSIDE.store(0, Ordering::SeqCst);
}

/// Has Python call the functions above.
pub(crate) fn watch(py: Python<'_>) -> PyResult<()> {
    py.import("atexit")?.call_method1("register", (wrap_pyfunction!(end, py)?,))?;
    // Where there is no fork, there is no such function.
    if let Some(register) = py.import("os")?.getattr_opt("register_at_fork")? {
        let options = PyDict::new(py);
        options.set_item("after_in_child", wrap_pyfunction!(forked, py)?)?;
        register.call((), Some(&options))?;
    }
    Ok(())
}
