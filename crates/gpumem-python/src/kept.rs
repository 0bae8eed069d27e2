//! Objects of Python that the extension keeps.

use pyo3::{PyTraverseError, PyVisit, prelude::*};
use std::{
    cell::Cell,
    mem::ManuallyDrop,
    ops::Deref,
    sync::{Mutex, TryLockError},
};

/// An object that one of the extension's keeps: every field of a class, and what the library is given to hold, is one of these.
///
/// The last use of an object drops what it keeps, which drops what that keeps: a program can make such a chain longer than any stack is
/// deep. So from [`MOST_NESTED`] drops within each other on, an object waits until the outermost is over, as in Python's own containers.
pub(crate) struct Kept<T = PyAny>(ManuallyDrop<Py<T>>);

impl<T> From<Py<T>> for Kept<T> {
    fn from(object: Py<T>) -> Self {
        Self(ManuallyDrop::new(object))
    }
}

impl<T> Deref for Kept<T> {
    type Target = Py<T>;

    fn deref(&self) -> &Py<T> {
        &self.0
    }
}

/// What has objects of Python that the garbage collector is told of, by `__traverse__` of the class.
///
/// Each reference is told once, by the object that alone has it, and in each pass of a collection alike: what is not told is taken for one
/// from outside, and keeps the object alive. So references that the library holds are not told. Threads without Python's lock pass them
/// on while the collector runs, which would then take an object in use for garbage.
///
/// No class needs `__clear__`, as Python's tuples need none: what an object refers to was there before it, or is made for it. A cycle
/// has an object of another class, which the collector clears.
pub(crate) trait Traverse {
    fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError>;
}

impl<T> Traverse for Kept<T> {
    fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&**self)
    }
}

impl<T: Traverse> Traverse for Option<T> {
    fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.iter().try_for_each(|one| one.visit(visit))
    }
}

impl<T: Traverse> Traverse for Vec<T> {
    fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.iter().try_for_each(|one| one.visit(visit))
    }
}

/// One that is locked under Python's lock only, and not for longer: it is free here, or in all passes of a collection that its own thread
/// has begun.
impl<T: Traverse> Traverse for Mutex<T> {
    fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self.try_lock() {
            Ok(own) => own.visit(visit),
            Err(TryLockError::Poisoned(own)) => own.into_inner().visit(visit),
            Err(TryLockError::WouldBlock) => Ok(()),
        }
    }
}

impl<T> Drop for Kept<T> {
    fn drop(&mut self) {
        // SAFETY: it is taken here only, and `self` is not used again.
        let own = unsafe { ManuallyDrop::take(&mut self.0) };
        drop_nested(own.into_any());
    }
}

/// The number of Python's own containers.
const MOST_NESTED: u32 = 50;

thread_local! {
    /// How many drops are within each other on the thread.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    static LATER: Cell<Vec<Py<PyAny>>> = const { Cell::new(Vec::new()) };
}

/// Drops an object: now, or where too many drops are within each other, in the loop of the outermost call.
fn drop_nested(object: Py<PyAny>) {
    fn with_later<R>(body: impl FnOnce(&mut Vec<Py<PyAny>>) -> R) -> Option<R> {
        // At the end of the thread the list may be gone.
        let done = LATER.try_with(|list| {
            let mut later = list.take();
            let done = body(&mut later);
            list.set(later);
            done
        });
        done.ok()
    }
    let depth = DEPTH.get();
    if depth >= MOST_NESTED {
        with_later(|later| later.push(object));
        return;
    }
    DEPTH.set(depth + 1);
    drop(object);
    if depth == 0 {
        while let Some(next) = with_later(Vec::pop).flatten() {
            drop(next);
        }
    }
    DEPTH.set(depth);
}
