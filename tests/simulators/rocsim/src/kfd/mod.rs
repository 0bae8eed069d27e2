//! The kernel driver's interface, for AMD's runtimes that have the thunk built in (ROCm 6.3 and newer): device files,
//! requests on them, memory that is mapped from them, the description of the machine, and the functions of libdrm.
//!
//! Here is what each call does. The package `rocsim-kfd` puts it in the place of the C library's functions.

mod device;
pub mod drm;
mod events;
mod memory;
mod queues;
mod request;
mod sysfs;

pub use device::{map, open};
pub use request::request;
pub use sysfs::{folder, text};

use crate::abi::Status;
use std::ffi::c_int;

/// The error that the kernel driver has for what the simulator calls by the thunk's name.
fn errno(status: Status) -> c_int {
    match status {
        Status::NO_MEMORY => libc::ENOMEM,
        Status::OUT_OF_RESOURCES => libc::ENOSPC,
        Status::NOT_SUPPORTED => libc::EOPNOTSUPP,
        _ => libc::EINVAL,
    }
}
