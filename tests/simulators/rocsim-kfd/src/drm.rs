//! The functions of `libdrm_amdgpu` that AMD's runtime calls. Results are 0 or a negative error number.

use rocsim::kfd::drm::{Buffer, BufferInfo, Device, GpuInfo, Metadata};
use std::{
    ffi::{c_char, c_int, c_void},
    os::fd::IntoRawFd,
};

/// Kinds of handles by which a buffer is passed on.
const KMS: u32 = 1;
const DESCRIPTOR: u32 = 2;

/// # Safety
/// The pointers lead to room for the results.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn amdgpu_device_initialize(
    file: c_int,
    major: *mut u32,
    minor: *mut u32,
    device: *mut *mut Device,
) -> c_int {
    match Device::of(file) {
        Ok(found) => {
            // SAFETY: the caller's promise.
            unsafe {
                (*major, *minor) = (3, 54);
                *device = Box::into_raw(Box::new(found));
            }
            0
        }
        Err(error) => -error,
    }
}

/// # Safety
/// `device` is one that was initialised and is not used any more.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn amdgpu_device_deinitialize(device: *mut Device) -> c_int {
    // SAFETY: the caller's promise.
    drop(unsafe { Box::from_raw(device) });
    0
}

/// # Safety
/// `device` is one that was initialised.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn amdgpu_device_get_fd(device: *const Device) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { &*device }.file()
}

/// The name of every GPU.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn amdgpu_get_marketing_name(_device: *const Device) -> *const c_char {
    c"rocsim GPU".as_ptr()
}

/// # Safety
/// `info` leads to room for the facts.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn amdgpu_query_gpu_info(_device: *const Device, info: *mut GpuInfo) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { *info = GpuInfo::get() };
    0
}

/// `amdgpu_bo_import_result`.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Imported {
    buffer: *mut Buffer,
    bytes: u64,
}

/// # Safety
/// `device` is one that was initialised, and `result` leads to room for the result.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn amdgpu_bo_import(
    device: *const Device,
    kind: u32,
    handle: u32,
    result: *mut Imported,
) -> c_int {
    if kind != DESCRIPTOR {
        return -libc::EINVAL;
    }
    // SAFETY: the caller's promise.
    match unsafe { &*device }.import(handle as c_int) {
        Ok(buffer) => {
            let bytes = buffer.bytes();
            // SAFETY: the caller's promise.
            unsafe { *result = Imported { buffer: Box::into_raw(Box::new(buffer)), bytes } };
            0
        }
        Err(error) => -error,
    }
}

/// # Safety
/// `buffer` is one that was imported, and `handle` leads to room for the result.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn amdgpu_bo_export(
    buffer: *const Buffer,
    kind: u32,
    handle: *mut u32,
) -> c_int {
    // SAFETY: the caller's promise.
    let buffer = unsafe { &*buffer };
    let exported = match kind {
        KMS => buffer.number(),
        DESCRIPTOR => buffer.file().map(|file| file.into_raw_fd() as u32),
        _ => Err(libc::EINVAL),
    };
    match exported {
        Ok(found) => {
            // SAFETY: the caller's promise.
            unsafe { *handle = found };
            0
        }
        Err(error) => -error,
    }
}

/// # Safety
/// `buffer` is one that was imported and is not used any more.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn amdgpu_bo_free(buffer: *mut Buffer) -> c_int {
    // SAFETY: the caller's promise.
    drop(unsafe { Box::from_raw(buffer) });
    0
}

/// # Safety
/// `buffer` is one that was imported.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn amdgpu_bo_va_op(
    buffer: *const Buffer,
    offset: u64,
    bytes: u64,
    address: u64,
    _flags: u64,
    how: u32,
) -> c_int {
    // SAFETY: the caller's promise.
    match unsafe { &*buffer }.change(offset, bytes, address, how) {
        Ok(()) => 0,
        Err(error) => -error,
    }
}

/// Buffers are not mapped for the host by libdrm here.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn amdgpu_bo_cpu_map(_buffer: *const Buffer, _address: *mut *mut c_void) -> c_int {
    -libc::ENOSYS
}

/// # Safety
/// `buffer` is one that was imported, and `info` leads to room for the facts.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn amdgpu_bo_query_info(buffer: *const Buffer, info: *mut BufferInfo) -> c_int {
    // SAFETY: the caller's promise.
    match unsafe { &*buffer }.info() {
        Ok(found) => {
            // SAFETY: the caller's promise.
            unsafe { *info = found };
            0
        }
        Err(error) => -error,
    }
}

/// # Safety
/// `buffer` is one that was imported, and `metadata` leads to what is to be said of it.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn amdgpu_bo_set_metadata(
    buffer: *const Buffer,
    metadata: *const Metadata,
) -> c_int {
    // SAFETY: the caller's promise.
    match unsafe { (&*buffer).set_metadata(&*metadata) } {
        Ok(()) => 0,
        Err(error) => -error,
    }
}
