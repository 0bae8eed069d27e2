//! A library with HIP's names and the binary interface of ROCm 5, 6 or 7: `rustc --cfg rocm="6" --cfg part="hip"`.
//! Written from the layouts, not from the declarations that it is to test.
#![no_std]
#![allow(non_snake_case)]

use core::ffi::{c_char, c_int, c_void};

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

/// Writes a text and its zero at a place.
#[cfg(part = "hip")]
unsafe fn put(place: *mut c_void, offset: usize, text: &[u8]) {
    for (index, byte) in text.iter().chain(&[0]).enumerate() {
        unsafe { place.cast::<u8>().add(offset + index).write(*byte) };
    }
}

#[cfg(part = "hip")]
#[unsafe(no_mangle)]
extern "C" fn hipInit(flags: u32) -> u32 {
    // `hipErrorInvalidValue`, for callers that pass flags.
    (flags != 0) as u32
}

#[cfg(part = "hip")]
#[unsafe(no_mangle)]
unsafe extern "C" fn hipRuntimeGetVersion(version: *mut c_int) -> u32 {
    let number = if cfg!(rocm = "5") {
        50_221_153
    } else if cfg!(rocm = "6") {
        60_443_484
    } else {
        70_253_211
    };
    unsafe { version.write(number) };
    0
}

/// Old layout, in every version. Fills all of it, so that a structure that is too small is found.
#[cfg(part = "hip")]
#[unsafe(no_mangle)]
unsafe extern "C" fn hipGetDeviceProperties(properties: *mut c_void, device: c_int) -> u32 {
    if device != 0 {
        return 101;
    }
    unsafe {
        properties.cast::<u8>().write_bytes(b'x', 792);
        put(properties, 0, b"an old mock");
        put(properties, 396, b"gfx906:sramecc-:xnack-");
    }
    0
}

#[cfg(all(part = "hip", not(rocm = "5")))]
#[unsafe(no_mangle)]
unsafe extern "C" fn hipGetDevicePropertiesR0600(properties: *mut c_void, device: c_int) -> u32 {
    if device != 0 {
        return 101;
    }
    unsafe {
        properties.cast::<u8>().write_bytes(b'x', 1472);
        put(properties, 0, b"a new mock");
        put(properties, 1160, b"gfx942:sramecc+:xnack-");
    }
    0
}

/// Address 1 is page-locked, 2 of a device, 3 managed, everything else ordinary.
#[cfg(part = "hip")]
#[unsafe(no_mangle)]
unsafe extern "C" fn hipPointerGetAttributes(attributes: *mut c_void, address: *const c_void) -> u32 {
    let old = cfg!(rocm = "5");
    let kind: u32 = match (address as usize, old) {
        (1, true) => 0,
        (1, false) => 1,
        (2, true) => 1,
        (2, false) => 2,
        (3, true) => 4,
        (3, false) => 3,
        (_, true) => return 1,
        (_, false) => 0,
    };
    unsafe {
        attributes.cast::<u32>().write(kind);
        attributes.cast::<u32>().add(1).write(7);
        attributes.cast::<usize>().add(1).write(address as usize + 0x1000);
        attributes.cast::<usize>().add(2).write(address as usize);
        attributes.cast::<u32>().add(6).write((address as usize == 3) as u32);
        attributes.cast::<u32>().add(7).write(0);
    }
    0
}

/// The minor version tells which library answered.
#[cfg(any(part = "hiprtc", not(rocm = "7")))]
#[unsafe(no_mangle)]
unsafe extern "C" fn hiprtcVersion(major: *mut c_int, minor: *mut c_int) -> u32 {
    unsafe {
        major.write(9);
        minor.write(if cfg!(part = "hiprtc") { 1 } else { 0 });
    }
    0
}

#[cfg(any(part = "hiprtc", not(rocm = "7")))]
#[unsafe(no_mangle)]
extern "C" fn hiprtcCompileProgram(_: *mut c_void, _: c_int, _: *const *const c_char) -> u32 {
    6
}
