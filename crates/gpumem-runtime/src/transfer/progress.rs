//! Watching a long transfer, and ending it early.

use std::ops::ControlFlow;

/// How far a transfer has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Progress {
    /// Bytes that have been moved, or handed to the copy engine.
    pub done: u64,
    /// Bytes of the whole transfer.
    pub total: u64,
}

/// What is told of a transfer between two of its pieces, on the thread that asked for it. `Break` ends it.
pub(crate) type ProgressFn<'a> = &'a mut dyn FnMut(Progress) -> ControlFlow<()>;
