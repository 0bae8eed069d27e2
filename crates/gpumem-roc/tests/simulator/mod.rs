//! What the tests run on, and the kernels that the simulated GPU has to be given: it executes no device code.

use gpumem_conformance::RanOn;
use libloading::Library;
use std::{
    ffi::{CStr, c_char, c_void},
    time::{Duration, Instant},
};

type Body = unsafe extern "C" fn(*const c_void, *const c_void) -> i32;
type Register = unsafe extern "C" fn(*const c_char, Body) -> i32;

/// Finds out, and registers the kernel by which the suite keeps a stream busy.
pub(crate) fn prepare() -> RanOn {
    if register(c"delay", delay) {
        return RanOn::Rocsim;
    }
    // HIP over the CUDA driver says so by a function of its own.
    let places = ["libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"];
    let over_cuda = places.iter().any(|name| {
        // SAFETY: loading HIP has no preconditions; the function is only looked up.
        unsafe { Library::new(*name).is_ok_and(|library| library.get::<Body>(b"hip_on_cuda_version\0").is_ok()) }
    });
    if over_cuda { RanOn::HipOnCuda } else { RanOn::Hardware }
}

/// Gives the simulated GPU a kernel; false where there is none.
pub(crate) fn register(name: &CStr, body: Body) -> bool {
    // SAFETY: loading the thunk has no preconditions; a function of this name has this type.
    unsafe {
        let Ok(library) = Library::new("libhsakmt.so.1") else { return false };
        let Ok(register) = library.get::<Register>(b"rocsim_register_kernel\0").map(|found| *found) else {
            return false;
        };
        // The functions are called until the end.
        std::mem::forget(library);
        register(name.as_ptr(), body) == 0
    }
}

/// `delay(unsigned long long cycles)`, in nanoseconds.
unsafe extern "C" fn delay(arguments: *const c_void, _: *const c_void) -> i32 {
    // SAFETY: the kernel has one argument of eight bytes.
    let nanoseconds = unsafe { arguments.cast::<u64>().read_unaligned() };
    let end = Instant::now() + Duration::from_nanos(nanoseconds);
    std::thread::sleep(end.saturating_duration_since(Instant::now()));
    0
}
