//! The host bodies of kernels, for the simulated GPU.

use super::library;
use gpumem_core::LaunchDims;
use gpumem_runtime::kernel::Entry;
use std::{
    ffi::{CStr, CString, c_char, c_void},
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

pub(crate) type Body = unsafe extern "C" fn(*const c_void, *const Dispatch) -> i32;
type Register = unsafe extern "C" fn(*const c_char, Body, *mut c_void) -> i32;

/// `rocsim_dispatch`.
#[repr(C)]
pub(crate) struct Dispatch {
    bytes: u32,
    node: u32,
    pub(crate) grid: [u32; 3],
    workgroup: [u32; 3],
    group_segment_bytes: u32,
    kernarg_bytes: u32,
    name: *const c_char,
    context: *mut c_void,
    /// Host address of device memory, or null if the GPU may not use it.
    pub(crate) translate: unsafe extern "C" fn(*const Dispatch, u64, u64) -> *mut c_void,
    private: *const c_void,
    group_segment_fixed_bytes: u32,
}

/// Gives the simulated GPU a kernel; false where there is none.
pub(crate) fn register(name: &CStr, body: Body) -> bool {
    register_with(name, body, std::ptr::null_mut())
}

/// Gives the simulated GPU the host body of a kernel, in place of an earlier one of that name.
pub(crate) fn register_entry(name: &str, entry: Entry) {
    let Ok(name) = CString::new(name) else { return };
    // A launch may come at any time until the process ends.
    let entry = Box::leak(Box::new(entry));
    assert!(register_with(&name, run, (&raw mut *entry).cast()), "there is no simulated GPU");
}

fn register_with(name: &CStr, body: Body, context: *mut c_void) -> bool {
    // SAFETY: a function of this name has this type.
    unsafe {
        let found =
            library().and_then(|library| library.get::<Register>(b"rocsim_register_kernel_with\0").ok());
        found.is_some_and(|register| register(name.as_ptr(), body, context) == 0)
    }
}

/// Runs a launch of a kernel whose [`Entry`] is the context. Anything but 0 stops the queue.
unsafe extern "C" fn run(block: *const c_void, dispatch: *const Dispatch) -> i32 {
    // SAFETY: the simulator passes the launch, which lives during the call, and what was registered.
    let (launch, entry) = unsafe { (&*dispatch, &*(*dispatch).context.cast::<Entry>()) };
    let block = match launch.kernarg_bytes {
        0 => &[][..],
        // SAFETY: the block is as long as the code object says.
        bytes => unsafe { std::slice::from_raw_parts(block.cast::<u8>(), bytes as usize) },
    };
    let translate = |address, bytes| {
        // SAFETY: the launch is alive; null is what may not be used.
        let host = unsafe { (launch.translate)(dispatch, address, bytes) };
        (!host.is_null()).then_some(host.expose_provenance() as u64)
    };
    let dims = LaunchDims {
        // HIP launches whole groups.
        groups: std::array::from_fn(|axis| launch.grid[axis] / launch.workgroup[axis].max(1)),
        group_size: launch.workgroup,
        shared_bytes: launch.group_segment_bytes - launch.group_segment_fixed_bytes,
    };
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let arguments = entry.arguments(block, translate)?;
        // SAFETY: the arguments are the kernel's, and the stream orders what else uses their memory.
        unsafe { entry.run(dims, &arguments) }
    }));
    let fault = match outcome {
        Ok(Ok(())) => return 0,
        Ok(Err(fault)) => fault,
        Err(_) => "the launch has panicked".to_owned(),
    };
    // SAFETY: the name is a C string that lives during the call.
    eprintln!("kernel {:?}: {fault}", unsafe { CStr::from_ptr(launch.name) });
    1
}

/// `delay(unsigned long long cycles)`, in nanoseconds.
pub(crate) unsafe extern "C" fn delay(arguments: *const c_void, _: *const Dispatch) -> i32 {
    // SAFETY: the kernel has one argument of eight bytes.
    let nanoseconds = unsafe { arguments.cast::<u64>().read_unaligned() };
    std::thread::sleep(Duration::from_nanos(nanoseconds));
    0
}
