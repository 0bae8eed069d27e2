//! Streams. The null stream and the one of each thread (2) have the same handles in CUDA.

use super::exports;
use crate::{
    driver::Status,
    error::Outcome,
    flags,
    state::{not_null, on_device, put},
    types::{hipError_t, hipEvent_t, hipHostFn_t, hipStream_t, hipStreamCallback_t},
};
use cudarc::driver::sys::{CUresult, CUstream, CUstreamCallback};
use std::{
    ffi::{c_int, c_uint, c_void},
    mem::transmute,
    ptr::null_mut,
};

/// # Safety
/// As for [`hipStreamCreate`].
unsafe fn create(stream: *mut hipStream_t, flags: c_uint, priority: c_int) -> hipError_t {
    on_device(|cuda| {
        not_null(stream)?;
        let (flags, mut found) = (flags::stream(flags)?, null_mut());
        // SAFETY: a place for a handle; a context is current. The driver brings the priority into its range.
        unsafe { cuda.api.cuStreamCreateWithPriority(&mut found, flags, priority) }.hip()?;
        // SAFETY: the caller's promise.
        unsafe { put(stream, found) }
    })
}

/// The callback for the driver, and the function that it calls.
struct Callback {
    function: unsafe extern "C" fn(hipStream_t, hipError_t, *mut c_void),
    data: *mut c_void,
}

/// Called by the driver with a status that it may have invented after this was written.
unsafe extern "C" fn called(stream: CUstream, status: Status, callback: *mut c_void) {
    // SAFETY: the box that was given away with this function, which the driver calls once.
    let Callback { function, data } = *unsafe { Box::from_raw(callback.cast::<Callback>()) };
    // SAFETY: the function and the data that belong together.
    unsafe { function(stream, status.into(), data) }
}

/// Values that a stream waits for or writes.
fn value(address: *mut c_void, call: impl FnOnce(&crate::driver::DriverApi, u64) -> Status) -> hipError_t {
    on_device(|cuda| {
        not_null(address)?;
        call(&cuda.api, address.expose_provenance() as u64).hip()
    })
}

/// CUDA compares all bits.
fn whole(mask: u64, all: u64) -> Outcome {
    if mask == all { Ok(()) } else { Err(hipError_t::NOT_SUPPORTED) }
}

exports! {
    fn hipStreamCreate(stream: *mut hipStream_t) -> hipError_t {
        // SAFETY: the caller's promise.
        unsafe { create(stream, 0, 0) }
    }

    fn hipStreamCreateWithFlags(stream: *mut hipStream_t, flags: c_uint) -> hipError_t {
        // SAFETY: the caller's promise.
        unsafe { create(stream, flags, 0) }
    }

    fn hipStreamCreateWithPriority(stream: *mut hipStream_t, flags: c_uint, priority: c_int) -> hipError_t {
        // SAFETY: the caller's promise.
        unsafe { create(stream, flags, priority) }
    }

    /// The streams that always are cannot be destroyed.
    fn hipStreamDestroy(stream: hipStream_t) -> hipError_t {
        const LAST_BUILT_IN: usize = 2;
        on_device(|cuda| {
            if stream.addr() <= LAST_BUILT_IN {
                return Err(hipError_t::INVALID_HANDLE);
            }
            // SAFETY: the caller's stream, which is not used again.
            unsafe { cuda.api.cuStreamDestroy_v2(stream) }.hip()
        })
    }

    fn hipStreamQuery(stream: hipStream_t) -> hipError_t {
        // SAFETY: the caller's stream.
        on_device(|cuda| unsafe { cuda.api.cuStreamQuery(stream) }.hip())
    }

    fn hipStreamSynchronize(stream: hipStream_t) -> hipError_t {
        // SAFETY: the caller's stream.
        on_device(|cuda| unsafe { cuda.api.cuStreamSynchronize(stream) }.hip())
    }

    fn hipStreamWaitEvent(stream: hipStream_t, event: hipEvent_t, flags: c_uint) -> hipError_t {
        on_device(|cuda| {
            if event.is_null() {
                return Err(hipError_t::INVALID_HANDLE);
            }
            if flags != 0 {
                return Err(hipError_t::INVALID_VALUE);
            }
            // SAFETY: the caller's stream and event.
            unsafe { cuda.api.cuStreamWaitEvent(stream, event, 0) }.hip()
        })
    }

    fn hipStreamGetFlags(stream: hipStream_t, flags: *mut c_uint) -> hipError_t {
        on_device(|cuda| {
            not_null(flags)?;
            // SAFETY: the caller's stream, and room for a number.
            unsafe { cuda.api.cuStreamGetFlags(stream, flags) }.hip()
        })
    }

    fn hipStreamGetPriority(stream: hipStream_t, priority: *mut c_int) -> hipError_t {
        on_device(|cuda| {
            not_null(priority)?;
            // SAFETY: the caller's stream, and room for a number.
            unsafe { cuda.api.cuStreamGetPriority(stream, priority) }.hip()
        })
    }

    /// CUDA refuses its calls in a callback; here they fail with `hipErrorNotSupported`.
    fn hipStreamAddCallback(
        stream: hipStream_t,
        callback: hipStreamCallback_t,
        data: *mut c_void,
        flags: c_uint,
    ) -> hipError_t {
        on_device(|cuda| {
            let Some(function) = callback else { return Err(hipError_t::INVALID_VALUE) };
            if flags != 0 {
                return Err(hipError_t::INVALID_VALUE);
            }
            let callback = Box::into_raw(Box::new(Callback { function, data })).cast::<c_void>();
            type Native = unsafe extern "C" fn(CUstream, CUresult, *mut c_void);
            type Ours = unsafe extern "C" fn(CUstream, Status, *mut c_void);
            // SAFETY: both are functions of the same C type: a status is an integer of 32 bits.
            let native: CUstreamCallback = Some(unsafe { transmute::<Ours, Native>(called) });
            // SAFETY: the caller's stream; the box lives until the call.
            let outcome = unsafe { cuda.api.cuStreamAddCallback(stream, native, callback, 0) }.hip();
            if outcome.is_err() {
                // SAFETY: the driver has not taken it.
                drop(unsafe { Box::from_raw(callback.cast::<Callback>()) });
            }
            outcome
        })
    }

    /// The function may make the same calls as in [`hipStreamAddCallback`].
    fn hipLaunchHostFunc(stream: hipStream_t, function: hipHostFn_t, data: *mut c_void) -> hipError_t {
        on_device(|cuda| {
            if function.is_none() {
                return Err(hipError_t::INVALID_VALUE);
            }
            // SAFETY: the caller's stream and function.
            unsafe { cuda.api.cuLaunchHostFunc(stream, function, data) }.hip()
        })
    }

    /// Only with a mask of all bits.
    fn hipStreamWaitValue32(
        stream: hipStream_t,
        address: *mut c_void,
        wanted: u32,
        flags: c_uint,
        mask: u32,
    ) -> hipError_t {
        if let Err(error) = whole(mask.into(), u32::MAX.into()) {
            return crate::state::call(|| Err(error));
        }
        // SAFETY: the caller's stream and memory.
        value(address, |api, at| unsafe { api.cuStreamWaitValue32_v2(stream, at, wanted, flags) })
    }

    /// Only with a mask of all bits.
    fn hipStreamWaitValue64(
        stream: hipStream_t,
        address: *mut c_void,
        wanted: u64,
        flags: c_uint,
        mask: u64,
    ) -> hipError_t {
        if let Err(error) = whole(mask, u64::MAX) {
            return crate::state::call(|| Err(error));
        }
        // SAFETY: the caller's stream and memory.
        value(address, |api, at| unsafe { api.cuStreamWaitValue64_v2(stream, at, wanted, flags) })
    }

    /// HIP has no flags.
    fn hipStreamWriteValue32(
        stream: hipStream_t,
        address: *mut c_void,
        written: u32,
        _flags: c_uint,
    ) -> hipError_t {
        // SAFETY: the caller's stream and memory.
        value(address, |api, at| unsafe { api.cuStreamWriteValue32_v2(stream, at, written, 0) })
    }

    /// HIP has no flags.
    fn hipStreamWriteValue64(
        stream: hipStream_t,
        address: *mut c_void,
        written: u64,
        _flags: c_uint,
    ) -> hipError_t {
        // SAFETY: the caller's stream and memory.
        value(address, |api, at| unsafe { api.cuStreamWriteValue64_v2(stream, at, written, 0) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    unsafe extern "C" fn count(stream: hipStream_t, status: hipError_t, data: *mut c_void) {
        assert_eq!((stream.addr(), status), (2, hipError_t::LAUNCH_FAILURE));
        // SAFETY: the number below.
        unsafe { *data.cast::<u32>() += 1 };
    }

    #[test]
    fn a_callback_gets_hips_status() {
        let mut calls = 0u32;
        let data = (&raw mut calls).cast();
        let callback = Box::into_raw(Box::new(Callback { function: count, data })).cast();
        // SAFETY: as the driver does, once.
        unsafe { called(std::ptr::without_provenance_mut(2), Status(715), callback) };
        assert_eq!(calls, 1);
    }

    #[test]
    fn only_whole_masks_are_compared() {
        assert_eq!(whole(u64::MAX, u64::MAX), Ok(()));
        assert_eq!(whole(0xff, u32::MAX.into()), Err(hipError_t::NOT_SUPPORTED));
    }
}
