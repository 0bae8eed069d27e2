//! Objects of Python that the extension keeps.

use pyo3::prelude::*;
use std::{cell::Cell, mem::ManuallyDrop, ops::Deref};

/// An object that one of the extension's keeps: every field of a class, and what the library is given to hold, is one of these.
///
/// The last use of an object drops what it keeps, which drops what that keeps: a program can make such a chain longer than any stack is
/// deep. So an object that is dropped inside the drop of another one waits until that is over.
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

impl<T> Drop for Kept<T> {
    fn drop(&mut self) {
        // SAFETY: it is taken here only, and `self` is not used again.
        let own = unsafe { ManuallyDrop::take(&mut self.0) };
        drop_alone(own.into_any());
    }
}

thread_local! {
    static IS_DROPPING: Cell<bool> = const { Cell::new(false) };
    static LATER: Cell<Vec<Py<PyAny>>> = const { Cell::new(Vec::new()) };
}

/// Drops an object when no other one is being dropped on the thread: now, or in the loop of the outermost call.
fn drop_alone(object: Py<PyAny>) {
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
    if IS_DROPPING.replace(true) {
        with_later(|later| later.push(object));
        return;
    }
    drop(object);
    while let Some(next) = with_later(Vec::pop).flatten() {
        drop(next);
    }
    IS_DROPPING.set(false);
}
