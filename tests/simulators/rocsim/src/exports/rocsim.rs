//! The simulator's own functions, for test programs.

use super::export;
use crate::{
    kernels::registry::{self, KernelBody, name_of},
    stats,
};
use std::ffi::{c_char, c_void};

export! {
    /// Registers the body of a kernel. 0, or -1 if the name is not usable.
    ///
    /// # Safety
    /// * `name` is null or a C string.
    /// * `body` is the address of a function as [`KernelBody`] describes, until it is unregistered.
    "rocsim_register_kernel" => unsafe fn register_kernel(name: *const c_char, body: Option<KernelBody>) -> i32 {
        // SAFETY: the caller's promise.
        unsafe { register_kernel_with(name, body, std::ptr::null_mut()) }
    }

    /// As `rocsim_register_kernel`, with a value that the body finds in its `Dispatch`.
    ///
    /// # Safety
    /// As `rocsim_register_kernel`.
    "rocsim_register_kernel_with" => unsafe fn register_kernel_with(
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
    "rocsim_unregister_kernel" => unsafe fn unregister_kernel(name: *const c_char) -> i32 {
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
    "rocsim_counter" => unsafe fn counter(name: *const c_char) -> u64 {
        // SAFETY: the caller's promise.
        unsafe { name_of(name) }.and_then(|name| stats::counter(&name)).unwrap_or(u64::MAX)
    }
}
