//! Where a thread may wait for a device.

use crate::user_code::{Marked, mark};
use gpumem_core::{Error, ErrorKind, NonBlockingContext, Result};
use std::cell::Cell;

crate::thread_mark! {
    /// Whether this thread grows a pool. Others may wait for it to end, the device's own work among them.
    IS_GROWING
}

/// Whether the calling thread may wait for a device: not in a callback, nor in the host body of a kernel, nor in a resource while a
/// pool grows from it.
#[inline]
pub fn may_block(operation: &'static str) -> Result<()> {
    check_outside_callback(operation)?;
    match IS_GROWING.try_with(Cell::get) {
        Ok(true) => Err(refuse_to_hold_up(operation)),
        _ => Ok(()),
    }
}

/// Says that this thread grows a pool, until the result is dropped.
pub(crate) fn growing() -> Marked {
    mark(&IS_GROWING)
}

/// Whether the calling thread may wait for other threads: not in a callback, nor in the host body of a kernel.
#[inline]
pub(crate) fn check_outside_callback(operation: &'static str) -> Result<()> {
    match NonBlockingContext::current() {
        Some(context) => Err(refuse_to_block(context, operation)),
        None => Ok(()),
    }
}

#[cold]
#[inline(never)]
fn refuse_to_hold_up(operation: &'static str) -> Error {
    let what = "waiting for a device inside a memory resource while a pool grows from it";
    Error::new("", operation, ErrorKind::Unsupported { what })
}

#[cold]
#[inline(never)]
fn refuse_to_block(context: NonBlockingContext, operation: &'static str) -> Error {
    let NonBlockingContext { backend, device, .. } = context;
    let error = Error::new("", operation, ErrorKind::BlockingInCallback);
    // A subscriber runs for no device.
    if backend.is_empty() { error } else { error.on_device(backend, device) }
}
