//! Functions of the caller that are told how far a load has come.

use crate::{
    attach::{Code, attach},
    error::raise,
    kept::Kept,
};
use gpumem::Progress;
use pyo3::{exceptions::PyRuntimeError, prelude::*};
use std::ops::ControlFlow;

/// Such a function. An exception of it ends the load, which raises it.
pub(crate) struct Told {
    function: Kept,
    /// Bytes of the copies before this one, and of all.
    done: u64,
    total: u64,
    raised: Option<PyErr>,
}

impl Told {
    /// `total`: the bytes of several copies, one after the other; 0 for one copy.
    pub(crate) fn new(function: Py<PyAny>, total: u64) -> Self {
        Self { function: function.into(), done: 0, total, raised: None }
    }

    /// Goes on to the next copy, after one of so many bytes.
    pub(crate) fn next(&mut self, bytes: u64) {
        self.done += bytes;
    }

    pub(crate) fn tell(&mut self, Progress { done, total }: Progress) -> ControlFlow<()> {
        let (done, total) = (self.done + done, self.total.max(total));
        let told = attach(Code::Progress, |py| self.function.call1(py, (done, total)).map(drop));
        match told.unwrap_or_else(|| Err(PyRuntimeError::new_err("Python has ended"))) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.raised = Some(error);
                ControlFlow::Break(())
            }
        }
    }

    /// The exception of a load that has failed.
    pub(crate) fn raise(&mut self, error: gpumem::Error) -> PyErr {
        self.raised.take().unwrap_or_else(|| raise(error))
    }
}
