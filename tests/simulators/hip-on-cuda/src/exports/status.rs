//! The last status of a thread, and names of statuses.

use super::exports;
use crate::{state, types::hipError_t};
use std::ffi::c_char;

exports! {
    /// CUDA's driver has no such notion: it is kept here, for each thread.
    fn hipGetLastError() -> hipError_t {
        state::last(true)
    }

    fn hipPeekAtLastError() -> hipError_t {
        state::last(false)
    }

    fn hipGetErrorName(status: hipError_t) -> *const c_char {
        status.name().as_ptr()
    }

    /// The name, as ROCm 5 has it.
    fn hipGetErrorString(status: hipError_t) -> *const c_char {
        status.name().as_ptr()
    }
}
