//! A double of NCCL: it carries the operations out between ranks of one process, on streams that a test gives it.
//!
//! It is found as NCCL is, by `GPUMEM_NCCL`, and has the functions that gpumem's engine calls. As the real library, it waits
//! in `ncclCommInitRank` for all ranks, and calls aborted work a success. [`Fault`] makes it fail on purpose.
#![allow(non_snake_case, clippy::missing_safety_doc)] // The library's names, and the library's contracts.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A double that cannot go on ends the test.

mod communicator;
mod exports;
mod meeting;
mod platform;
mod reduce;

pub use exports::{nccl_double_alive, nccl_double_fault, nccl_double_registered};
pub use platform::{Platform, Wake, Work, nccl_double_platform};

/// What goes wrong on purpose.
#[repr(u32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The communicators report an asynchronous error.
    AsynchronousError = 0,
    /// `ncclCommAbort` waits until the fault is over.
    HangingAbort = 1,
    /// Calls wait until all ranks have made them, as those that connect ranks do.
    WaitingCalls = 2,
    /// Calls of operations report an error.
    FailingCalls = 3,
    /// `ncclCommInitRank` waits until the fault is over.
    HangingInit = 4,
    /// `ncclCommDeregister` reports an error.
    FailingDeregister = 5,
}
