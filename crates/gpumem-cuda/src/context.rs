//! The driver's current context: ours for the length of a call, the caller's own afterwards.

use crate::{api::DriverApi, error::Status};
use cudarc::driver::sys::CUcontext;
use std::{marker::PhantomData, ptr::null_mut};

/// While it lives, a context is current on this thread. The raw pointer keeps it from moving to another one.
pub(crate) struct Current<'a> {
    api: &'a DriverApi,
    /// What was current before, unless it was the same.
    before: Option<CUcontext>,
    thread: PhantomData<*mut ()>,
}

impl<'a> Current<'a> {
    /// Makes `context` current. Where it is already, that costs one call that only reads.
    pub(crate) fn enter(api: &'a DriverApi, context: CUcontext) -> Result<Self, Status> {
        let mut before = null_mut();
        // SAFETY: a place for a handle.
        match unsafe { api.cuCtxGetCurrent(&mut before) } {
            Status::SUCCESS => {}
            // The caller's own context is gone: there is none to go back to.
            Status::INVALID_CONTEXT | Status::CONTEXT_IS_DESTROYED => before = null_mut(),
            status => return Err(status),
        }
        if before == context {
            return Ok(Self { api, before: None, thread: PhantomData });
        }
        // SAFETY: the caller's device keeps the context alive.
        unsafe { api.cuCtxSetCurrent(context) }.ok()?;
        Ok(Self { api, before: Some(before), thread: PhantomData })
    }
}

impl Drop for Current<'_> {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // SAFETY: the handle was current on this thread when the call began; null takes ours away again.
            let status = unsafe { self.api.cuCtxSetCurrent(before) };
            if !status.is_success() {
                tracing::warn!("the caller's CUDA context could not be made current again: {status}");
            }
        }
    }
}
