//! The driver's current context: ours for the length of a call, the caller's own afterwards.

use crate::{api::DriverApi, error::Status};
use cudarc::driver::sys::CUcontext;
use std::{marker::PhantomData, ptr::null_mut};

/// While it lives, a context is current on this thread. The raw pointer keeps it from moving to another one.
pub(crate) struct ContextGuard<'a> {
    api: &'a DriverApi,
    /// Whether the context was put on top of the caller's own, if it has one.
    pushed: bool,
    thread: PhantomData<*mut ()>,
}

impl<'a> ContextGuard<'a> {
    /// Makes `context` current. Where it is already, that costs one call that only reads.
    #[inline]
    pub(crate) fn enter(api: &'a DriverApi, context: CUcontext) -> Result<Self, Status> {
        let mut found = null_mut();
        // A status that reports the loss of the caller's own context is ignored: this call takes nothing from it.
        // SAFETY: the pointer is a valid place for a handle.
        if unsafe { api.cuCtxGetCurrent(&mut found) }.is_success() && found == context {
            return Ok(Self { api, pushed: false, thread: PhantomData });
        }
        // SAFETY: the device that is entered keeps the context alive.
        unsafe { api.cuCtxPushCurrent_v2(context) }.ok()?;
        Ok(Self { api, pushed: true, thread: PhantomData })
    }

    /// Makes the caller's own context current again.
    #[inline(never)]
    fn pop(&self) {
        let mut ours = null_mut();
        // SAFETY: the pointer is a valid place for a handle. The pushed context is on top: calls within popped what
        // they pushed.
        let status = unsafe { self.api.cuCtxPopCurrent_v2(&mut ours) };
        if !status.is_success() {
            gpumem_core::tell!(warn: "the caller's CUDA context could not be made current again: {status}");
        }
    }
}

impl Drop for ContextGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.pushed {
            self.pop();
        }
    }
}
