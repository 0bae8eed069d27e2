//! Access to the memory of other devices.

use super::exports;
use crate::{
    state::{cuda, device, not_null, on_device, put},
    types::hipError_t,
};
use std::ffi::{c_int, c_uint};

exports! {
    fn hipDeviceCanAccessPeer(can: *mut c_int, from: c_int, peer: c_int) -> hipError_t {
        crate::state::call(|| {
            not_null(can)?;
            let cuda = cuda()?;
            let (from_handle, peer_handle) = (cuda.handle(from)?, cuda.handle(peer)?);
            let mut found = 0;
            if from != peer {
                // SAFETY: a place for a number.
                unsafe { cuda.api.cuDeviceCanAccessPeer(&mut found, from_handle, peer_handle) }.hip()?;
            }
            // SAFETY: the caller's promise.
            unsafe { put(can, found) }
        })
    }

    /// For this thread's device. A device is no peer of itself.
    fn hipDeviceEnablePeerAccess(peer: c_int, flags: c_uint) -> hipError_t {
        on_device(|cuda| {
            if flags != 0 {
                return Err(hipError_t::INVALID_VALUE);
            }
            let context = cuda.context(peer)?;
            if peer == device() {
                return Err(hipError_t::INVALID_DEVICE);
            }
            // SAFETY: the context is alive.
            unsafe { cuda.api.cuCtxEnablePeerAccess(context, 0) }.hip()
        })
    }

    fn hipDeviceDisablePeerAccess(peer: c_int) -> hipError_t {
        on_device(|cuda| {
            let context = cuda.context(peer)?;
            if peer == device() {
                return Err(hipError_t::INVALID_DEVICE);
            }
            // SAFETY: the context is alive.
            unsafe { cuda.api.cuCtxDisablePeerAccess(context) }.hip()
        })
    }
}
