//! The engine for GPUs: NCCL, or RCCL, which has the same functions.
//!
//! The library's calls go to the stream of the caller, between the waits and the notes of its accesses. A thread of the
//! process looks after operations that are under way, and aborts the communicator of those that are late.

mod calls;
mod check;
mod close;
mod device_order;
mod end;
mod enqueue;
mod join;
mod library;
mod link;
mod numbers;
mod peers;
mod progress;
mod register;
mod revoke;
mod split;

pub(crate) use join::{identity, join};
pub(crate) use library::is_engine_of;
pub use library::{FoundLibrary, add_library_folder, find_library};

use end::LibraryEnd;
use link::Link;
