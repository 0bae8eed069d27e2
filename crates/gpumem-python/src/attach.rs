//! From the extension into code of Python: bodies of kernels and of graphs, callbacks, and what makes and deletes tensors.
//!
//! A thread that asks for Python's lock when Python has begun to end never gets it: it ends in the middle of its functions, or
//! Python aborts. So Python does not begin to end while a thread is inside, and then lets no others in.

use crate::{device, wait::at_end};
use gpumem_core::process::ProcessGuard;
use pyo3::{
    exceptions::{PyImportError, PyKeyboardInterrupt},
    ffi,
    prelude::*,
    types::PyDict,
};
use std::{
    cell::Cell,
    io::Write,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
};

/// Code of Python that the extension runs.
#[derive(Clone, Copy)]
pub(crate) enum Code {
    KernelBody,
    GraphBody,
    Callback,
    Deleter,
    Progress,
    Allocation,
}

const NAMES: [&str; 6] = [
    "bodies of kernels",
    "bodies of graphs",
    "callbacks",
    "deleters of tensors",
    "reports of progress",
    "allocations of tensors",
];

/// Threads that run code of each kind, or wait for Python's lock to do so.
static INSIDE: [AtomicUsize; NAMES.len()] = [const { AtomicUsize::new(0) }; NAMES.len()];
static HAS_ENDED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Whether the thread is the one that ends Python: it has the lock until the end.
    static ENDS: Cell<bool> = const { Cell::new(false) };
}

/// A thread that may ask for Python's lock. There is no other way from here into code of Python.
struct Inside {
    code: Code,
    /// A forked child counts anew.
    origin: ProcessGuard,
}

impl Inside {
    /// `None` once Python ends.
    fn enter(code: Code) -> Option<Self> {
        let inside = Self { code, origin: ProcessGuard::current() };
        inside.count().map(|count| count.fetch_add(1, Ordering::SeqCst));
        (!HAS_ENDED.load(Ordering::SeqCst) || ENDS.get()).then_some(inside)
    }

    fn count(&self) -> Option<&'static AtomicUsize> {
        INSIDE.get(self.code as usize)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        if let Some(count) = self.count().filter(|_| self.origin.is_valid()) {
            count.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// Runs code of Python on a thread without Python's lock: one of the library's, or one of the program's that has given it up. `None`
/// if Python has ended.
pub(crate) fn attach<R>(code: Code, run: impl for<'py> FnOnce(Python<'py>) -> R) -> Option<R> {
    let inside = Inside::enter(code)?;
    // The body of a graph and a report run in their calls, and in the contexts of those.
    let _outside = match code {
        Code::KernelBody | Code::Callback => Some(device::outside()),
        Code::GraphBody | Code::Deleter | Code::Progress | Code::Allocation => None,
    };
    // SAFETY: Python has not ended, and does not while the thread is inside.
    let is_of_library = unsafe { ffi::PyGILState_GetThisThreadState() }.is_null();
    Python::try_attach(|py| {
        let done = run(py);
        if is_of_library && !inside.origin.is_valid() {
            // The code has forked. The child has this thread alone, and no code of the program to go on with.
            end_process(py, 0);
        }
        done
    })
}

/// Does what may wait, without Python's lock: a thread that Python knows may have it, and takes it only to give it up. `None` if Python
/// has ended.
pub(crate) fn without_lock<R: Send>(code: Code, run: impl FnOnce() -> R + Send) -> Option<R> {
    // SAFETY: it may be called by any thread.
    match unsafe { ffi::PyGILState_GetThisThreadState() }.is_null() {
        true => Some(run()),
        false => attach(code, |py| py.detach(run)),
    }
}

/// Hands an interrupt that has ended code of Python on to the program: its main thread may have run that code while it waited, and gets the
/// signal again.
pub(crate) fn interrupt_again(py: Python<'_>, error: &PyErr) {
    if error.is_instance_of::<PyKeyboardInterrupt>(py) {
        // SAFETY: it may be called from anywhere; it notes the signal for the main thread.
        unsafe { ffi::PyErr_SetInterrupt() }
    }
}

/// Ends the process, whatever its threads do, with what it has printed.
fn end_process(py: Python<'_>, status: i32) -> ! {
    for name in ["stdout", "stderr"] {
        // No code is left that a failure could be told to.
        let _ = py.import("sys").and_then(|sys| sys.getattr(name)?.call_method0("flush"));
    }
    // SAFETY: it ends the process; nothing runs after it.
    unsafe { libc::_exit(status) }
}

/// Waits for the threads that are inside. No other one enters from here on. If one stays for too long, the process ends here, where
/// Python would crash.
#[pyfunction]
fn end(py: Python<'_>) {
    ENDS.set(true);
    HAS_ENDED.store(true, Ordering::SeqCst);
    let inside = || INSIDE.iter().map(|count| count.load(Ordering::SeqCst));
    if at_end(py, || inside().all(|count| count == 0)) {
        return;
    }
    let running: Vec<_> = inside().zip(NAMES).filter(|(count, _)| *count > 0).collect();
    let names: Vec<_> = running.iter().map(|(count, name)| format!("{name}: {count}")).collect();
    let text = "gpumem: the program has ended, but code of Python still runs for the library";
    let _ = writeln!(std::io::stderr(), "{text} ({}). The process ends now, with status 1.", names.join(", "));
    end_process(py, 1)
}

/// The threads of the parent are not there in a forked child.
#[pyfunction]
fn forked() {
    INSIDE.iter().for_each(|count| count.store(0, Ordering::SeqCst));
}

/// Refuses another interpreter of the process than the main one, as NumPy does: the end of one would be the end of all.
pub(crate) fn check_interpreter() -> PyResult<()> {
    // SAFETY: the caller is attached to an interpreter, which is that of the calls.
    match unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) } {
        0 => Ok(()),
        _ => Err(PyImportError::new_err("gpumem is for the main interpreter of a process")),
    }
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
