//! A library with NCCL's names and the binary interface of one version: `rustc --cfg nccl="2.18.3"`. Written from NCCL's
//! documentation, not from the declarations that it is to test.
#![no_std]
#![allow(non_snake_case)]

use core::ffi::{c_char, c_int, c_void};

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

const VERSION: c_int = if cfg!(nccl = "2.13.4") {
    21304
} else if cfg!(nccl = "2.17.1") {
    21701
} else if cfg!(nccl = "2.18.3") {
    21803
} else {
    23203
};

#[repr(C)]
pub struct Id([u8; 128]);

#[cfg(not(nccl = "other"))]
#[unsafe(no_mangle)]
unsafe extern "C" fn ncclGetVersion(version: *mut c_int) -> c_int {
    unsafe { version.write(VERSION) };
    // One that cannot tell its version.
    if cfg!(nccl = "broken") { 3 } else { 0 }
}

/// Bytes that differ, so that an identity that is cut short is found.
#[unsafe(no_mangle)]
unsafe extern "C" fn ncclGetUniqueId(id: *mut Id) -> c_int {
    for index in 0..128 {
        unsafe { (*id).0[index] = index as u8 };
    }
    0
}

#[unsafe(no_mangle)]
extern "C" fn ncclGetErrorString(code: c_int) -> *const c_char {
    match code {
        4 => c"an argument is invalid",
        _ => c"a result that this mock does not know",
    }
    .as_ptr()
}

#[unsafe(no_mangle)]
extern "C" fn ncclGetLastError(communicator: *mut c_void) -> *const c_char {
    if communicator.is_null() { c"what was last".as_ptr() } else { core::ptr::null() }
}

/// Gives a communicator only for the identity above; a rank that there is not, is an invalid argument, and the rank 99 a
/// result that no header has.
#[unsafe(no_mangle)]
unsafe extern "C" fn ncclCommInitRank(communicator: *mut usize, ranks: c_int, id: Id, rank: c_int) -> c_int {
    if rank == 99 {
        return 99;
    }
    if rank >= ranks || id.0.iter().enumerate().any(|(index, byte)| index != *byte as usize) {
        return 4;
    }
    unsafe { communicator.write(0x1234) };
    0
}

#[cfg(nccl = "2.32.3")]
#[unsafe(no_mangle)]
extern "C" fn ncclCommRevoke(_: *mut c_void, _: c_int) -> c_int {
    5
}

/// Only AMD's library.
#[cfg(nccl = "2.13.4")]
#[unsafe(no_mangle)]
extern "C" fn ncclAllToAll(
    _: *const c_void,
    _: *mut c_void,
    _: usize,
    _: c_int,
    _: *mut c_void,
    _: *mut c_void,
) -> c_int {
    6
}
