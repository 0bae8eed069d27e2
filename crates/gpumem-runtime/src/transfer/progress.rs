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

/// The callback between two pieces of a transfer, on the calling thread. `Break` ends the transfer.
pub(crate) type ProgressFn<'a> = &'a mut dyn FnMut(Progress) -> ControlFlow<()>;
