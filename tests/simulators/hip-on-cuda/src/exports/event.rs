//! Events.

use super::exports;
use crate::{
    error::Outcome,
    flags,
    state::{Cuda, not_null, on_device, put},
    types::{hipError_t, hipEvent_t, hipStream_t},
};
use std::{ffi::c_uint, ptr::null_mut};

/// # Safety
/// As for [`hipEventCreate`].
unsafe fn create(event: *mut hipEvent_t, flags: c_uint) -> hipError_t {
    on_device(|cuda| {
        not_null(event)?;
        let (flags, mut found) = (flags::event(flags)?, null_mut());
        // SAFETY: a place for a handle; a context is current.
        unsafe { cuda.api.cuEventCreate(&mut found, flags) }.hip()?;
        // SAFETY: the caller's promise.
        unsafe { put(event, found) }
    })
}

/// A call with an event, which must not be null.
fn with(event: hipEvent_t, body: impl FnOnce(&'static Cuda) -> Outcome) -> hipError_t {
    on_device(|cuda| if event.is_null() { Err(hipError_t::INVALID_HANDLE) } else { body(cuda) })
}

exports! {
    fn hipEventCreate(event: *mut hipEvent_t) -> hipError_t {
        // SAFETY: the caller's promise.
        unsafe { create(event, 0) }
    }

    fn hipEventCreateWithFlags(event: *mut hipEvent_t, flags: c_uint) -> hipError_t {
        // SAFETY: the caller's promise.
        unsafe { create(event, flags) }
    }

    fn hipEventRecord(event: hipEvent_t, stream: hipStream_t) -> hipError_t {
        // SAFETY: the caller's event and stream.
        with(event, |cuda| unsafe { cuda.api.cuEventRecord(event, stream) }.hip())
    }

    fn hipEventDestroy(event: hipEvent_t) -> hipError_t {
        // SAFETY: the caller's event, which is not used again.
        with(event, |cuda| unsafe { cuda.api.cuEventDestroy_v2(event) }.hip())
    }

    fn hipEventSynchronize(event: hipEvent_t) -> hipError_t {
        // SAFETY: the caller's event.
        with(event, |cuda| unsafe { cuda.api.cuEventSynchronize(event) }.hip())
    }

    fn hipEventQuery(event: hipEvent_t) -> hipError_t {
        // SAFETY: the caller's event.
        with(event, |cuda| unsafe { cuda.api.cuEventQuery(event) }.hip())
    }

    fn hipEventElapsedTime(milliseconds: *mut f32, start: hipEvent_t, stop: hipEvent_t) -> hipError_t {
        with(start, |cuda| {
            not_null(milliseconds)?;
            if stop.is_null() {
                return Err(hipError_t::INVALID_HANDLE);
            }
            // SAFETY: the caller's events, and room for a number.
            unsafe { cuda.api.cuEventElapsedTime(milliseconds, start, stop) }.hip()
        })
    }
}
