//! Lists and tuples that a graph gets and returns.

use crate::list::MOST;
use pyo3::{
    exceptions::{PyRecursionError, PyValueError},
    prelude::*,
    types::{PyList, PyTuple},
};
use std::cell::Cell;

/// Lists and tuples in each other at most.
const DEEPEST: usize = 64;

/// A list or a tuple.
#[derive(Clone, Copy)]
pub(super) enum Sequence {
    List,
    Tuple,
}

impl Sequence {
    pub(super) fn over<'py>(self, py: Python<'py>, all: Vec<Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Self::List => Ok(PyList::new(py, all)?.into_any()),
            Self::Tuple => Ok(PyTuple::new(py, all)?.into_any()),
        }
    }
}

/// Members that one call has looked at.
#[derive(Default)]
pub(super) struct Visited(Cell<usize>);

/// A visit to an object among those that a call gives. The members of a list or a tuple are had from it alone, so each call ends: a
/// list may be one of its own members, and a few lists that are members of each other several times have more members than there
/// is time for.
#[derive(Clone, Copy)]
pub(super) struct Visit<'v> {
    visited: &'v Visited,
    depth: usize,
}

/// A list or a tuple, its members, and the visit to each.
pub(super) type Members<'v, 'py> = (Sequence, Vec<Bound<'py, PyAny>>, Visit<'v>);

impl<'v> Visit<'v> {
    /// The visit to what a call gives.
    pub(super) fn new(visited: &'v Visited) -> Self {
        Self { visited, depth: 0 }
    }

    /// The members of a list or a tuple. A class of the caller's own is neither.
    pub(super) fn members<'py>(self, object: &Bound<'py, PyAny>) -> PyResult<Option<Members<'v, 'py>>> {
        let (kind, all): (_, Vec<_>) = match (object.cast_exact::<PyList>(), object.cast_exact::<PyTuple>()) {
            (Ok(list), _) => (Sequence::List, list.iter().take(MOST + 1).collect()),
            (_, Ok(tuple)) => (Sequence::Tuple, tuple.iter().take(MOST + 1).collect()),
            _ => return Ok(None),
        };
        if self.depth == DEEPEST {
            return Err(PyRecursionError::new_err("lists and tuples of a graph are too deep"));
        }
        // Each count is at most `MOST` before the addition.
        let visited = self.visited.0.get() + all.len();
        if visited > MOST {
            let text = format!("lists and tuples of a graph have at most {MOST} members in all");
            return Err(PyValueError::new_err(text));
        }
        self.visited.0.set(visited);
        Ok(Some((kind, all, Self { depth: self.depth + 1, ..self })))
    }
}
