//! Memory and events of other processes. HIP's handles have CUDA's size and carry CUDA's contents.

use super::exports;
use crate::{
    flags,
    state::{not_null, on_device, put},
    types::{hipError_t, hipEvent_t, hipIpcEventHandle_t, hipIpcMemHandle_t},
    version::Version,
};
use cudarc::driver::sys::{CUipcEventHandle, CUipcMemHandle};
use std::{
    ffi::{c_uint, c_void},
    ptr::{null_mut, with_exposed_provenance_mut},
};

exports! {
    fn hipIpcGetMemHandle(handle: *mut hipIpcMemHandle_t, address: *mut c_void) -> hipError_t {
        on_device(|cuda| {
            not_null(handle)?;
            not_null(address)?;
            let mut found = CUipcMemHandle { reserved: [0; 64] };
            // SAFETY: a place for a handle; the caller's memory.
            unsafe { cuda.api.cuIpcGetMemHandle(&mut found, address.expose_provenance() as u64) }.hip()?;
            // SAFETY: the caller's promise.
            unsafe { put(handle, hipIpcMemHandle_t { reserved: found.reserved }) }
        })
    }

    fn hipIpcOpenMemHandle(address: *mut *mut c_void, handle: hipIpcMemHandle_t, flags: c_uint) -> hipError_t {
        on_device(|cuda| {
            not_null(address)?;
            let flags = flags::ipc(flags, Version::current())?;
            let (mut found, handle) = (0, CUipcMemHandle { reserved: handle.reserved });
            // SAFETY: a place for an address; the driver checks the handle.
            unsafe { cuda.api.cuIpcOpenMemHandle_v2(&mut found, handle, flags) }.hip()?;
            // SAFETY: the caller's promise.
            unsafe { put(address, with_exposed_provenance_mut(found as usize)) }
        })
    }

    fn hipIpcCloseMemHandle(address: *mut c_void) -> hipError_t {
        on_device(|cuda| {
            not_null(address)?;
            // SAFETY: the caller uses the memory no more.
            unsafe { cuda.api.cuIpcCloseMemHandle(address.expose_provenance() as u64) }.hip()
        })
    }

    fn hipIpcGetEventHandle(handle: *mut hipIpcEventHandle_t, event: hipEvent_t) -> hipError_t {
        on_device(|cuda| {
            not_null(handle)?;
            let mut found = CUipcEventHandle { reserved: [0; 64] };
            // SAFETY: a place for a handle; the caller's event.
            unsafe { cuda.api.cuIpcGetEventHandle(&mut found, event) }.hip()?;
            // SAFETY: the caller's promise.
            unsafe { put(handle, hipIpcEventHandle_t { reserved: found.reserved }) }
        })
    }

    fn hipIpcOpenEventHandle(event: *mut hipEvent_t, handle: hipIpcEventHandle_t) -> hipError_t {
        on_device(|cuda| {
            not_null(event)?;
            let (mut found, handle) = (null_mut(), CUipcEventHandle { reserved: handle.reserved });
            // SAFETY: a place for a handle; the driver checks the other.
            unsafe { cuda.api.cuIpcOpenEventHandle(&mut found, handle) }.hip()?;
            // SAFETY: the caller's promise.
            unsafe { put(event, found) }
        })
    }
}
