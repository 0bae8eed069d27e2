//! Puts the simulated AMD GPU in the place of the kernel driver.
//!
//! Since ROCm 6.3 AMD's runtime has the thunk built in, which opens `/dev/kfd`. This library is preloaded: its functions
//! come before those of the C library (`files`) and of libdrm (`drm`), give the simulator what is meant for the
//! driver, and everything else to the system. `rocsim --rocm FOLDER COMMAND` does this.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

// A test program must not get functions with the names of the C library's.
#[cfg(not(test))]
mod drm;
#[cfg(not(test))]
mod files;

/// Sets the C library's `errno`.
#[cfg(not(test))]
fn set_errno(error: std::ffi::c_int) {
    // SAFETY: the address is that of this thread's `errno`.
    unsafe { *libc::__errno_location() = error };
}
