//! Programs of safe code that once were unsound: each reached foreign memory, hung, or panicked.
#![deny(unsafe_code)] // `s![]` of ndarray forbids to forbid it
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod at_thread_end;
mod blocks;
mod bodies;
mod changed;
mod frozen;
mod gate;
mod loans;
mod no_bytes;
mod objects;
mod order;
mod own;
mod panics;
mod resources;
mod thread_streams;
mod traits;

use gpumem_host::{Host, HostOptions};
use gpumem_runtime::Device;

/// A device of one test's own.
fn device() -> Device<Host> {
    Device::from_raw(Host::open_with(&HostOptions::new()).unwrap())
}
