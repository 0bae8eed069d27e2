//! HIP's current device: ours for the length of a call, the caller's own afterwards.

use crate::error::Status;
use gpumem_sys::hip::Hip;
use std::{ffi::c_int, marker::PhantomData};

/// While it lives, a device is current on this thread. The raw pointer keeps it from moving to another one.
pub(crate) struct Current<'a> {
    hip: &'a Hip,
    /// The caller's own device, where it is another.
    before: Option<c_int>,
    thread: PhantomData<*mut ()>,
}

impl<'a> Current<'a> {
    /// Makes a device current. Where it is already, that costs one call that only reads.
    #[inline]
    pub(crate) fn enter(hip: &'a Hip, device: c_int) -> Result<Self, Status> {
        let mut found = 0;
        // SAFETY: a place for a number.
        Status::from(unsafe { hip.hipGetDevice(&mut found) }).ok()?;
        let before = (found != device).then_some(found);
        if before.is_some() {
            // SAFETY: the number of a device that is open.
            Status::from(unsafe { hip.hipSetDevice(device) }).ok()?;
        }
        Ok(Self { hip, before, thread: PhantomData })
    }
}

impl Drop for Current<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // SAFETY: the number of the device that was current.
            let status = Status::from(unsafe { self.hip.hipSetDevice(before) });
            if !status.is_success() {
                gpumem_core::tell!(warn: "the caller's HIP device could not be made current again: {status}");
            }
        }
    }
}
