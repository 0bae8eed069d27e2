//! Kernels that the simulated GPU replaces by functions of the host. The one that delays a stream sleeps, and counts no cycles.

use super::library;
use std::{
    ffi::{CStr, c_char, c_void},
    time::Duration,
};

/// Gets the arguments, and the launch: `Dispatch` of `rocsim`.
pub(crate) type Body = unsafe extern "C" fn(*const c_void, *const c_void) -> i32;
type Register = unsafe extern "C" fn(*const c_char, Body) -> i32;

/// Gives the simulated GPU the kernel; false where there is none.
pub(crate) fn register_delay() -> bool {
    register(c"delay", delay)
}

/// Gives the simulated GPU a kernel, which takes the arguments of the compiled one; false where there is no such GPU.
pub(crate) fn register(name: &CStr, body: Body) -> bool {
    // SAFETY: a function of this name has this type.
    let found =
        unsafe { library().and_then(|library| library.get::<Register>(b"rocsim_register_kernel\0").ok()) };
    // SAFETY: the name is a C string, and the function takes the arguments that the simulator passes.
    found.is_some_and(|register| unsafe { register(name.as_ptr(), body) } == 0)
}

/// `delay(unsigned long long cycles)`, in nanoseconds.
unsafe extern "C" fn delay(arguments: *const c_void, _: *const c_void) -> i32 {
    // SAFETY: the kernel has one argument of eight bytes.
    let nanoseconds = unsafe { arguments.cast::<u64>().read_unaligned() };
    std::thread::sleep(Duration::from_nanos(nanoseconds));
    0
}
