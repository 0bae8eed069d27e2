//! The simulator's own functions, for test programs. They have no symbol version: rustc exports them itself, from every
//! shared library that contains the simulator.

use crate::{
    kernels::registry::{self, KernelBody, name_of},
    stats,
};
use std::ffi::{c_char, c_void};

/// Registers the body of a kernel. 0, or -1 if the name is not usable.
///
/// # Safety
/// * `name` is null or a C string.
/// * `body` is the address of a function as [`KernelBody`] describes, until it is unregistered.
#[unsafe(export_name = "rocsim_register_kernel")]
pub(crate) unsafe extern "C" fn register_kernel(name: *const c_char, body: Option<KernelBody>) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { register_kernel_with(name, body, std::ptr::null_mut()) }
}

/// As `rocsim_register_kernel`, with a value that the body finds in its `Dispatch`.
///
/// # Safety
/// As `rocsim_register_kernel`.
#[unsafe(export_name = "rocsim_register_kernel_with")]
pub(crate) unsafe extern "C" fn register_kernel_with(
    name: *const c_char,
    body: Option<KernelBody>,
    context: *mut c_void,
) -> i32 {
    // SAFETY: the caller's promise.
    match (unsafe { name_of(name) }, body) {
        (Some(name), Some(body)) => {
            registry::register(name, body, context);
            0
        }
        _ => -1,
    }
}

/// Forgets the body of a kernel. 0, or -1 if there is none. One that runs is not waited for.
///
/// # Safety
/// `name` is null or a C string.
#[unsafe(export_name = "rocsim_unregister_kernel")]
pub(crate) unsafe extern "C" fn unregister_kernel(name: *const c_char) -> i32 {
    // SAFETY: the caller's promise.
    match unsafe { name_of(name) } {
        Some(name) if registry::unregister(&name) => 0,
        _ => -1,
    }
}

/// The counter of that name in the statistics, or `u64::MAX` if there is none.
///
/// # Safety
/// `name` is null or a C string.
#[unsafe(export_name = "rocsim_counter")]
pub(crate) unsafe extern "C" fn counter(name: *const c_char) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { name_of(name) }.and_then(|name| stats::counter(&name)).unwrap_or(u64::MAX)
}
