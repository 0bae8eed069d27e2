//! Where a thread may wait for a device.

use gpumem_core::{Error, ErrorKind, NonBlockingContext, Result};

/// Whether the calling thread may wait for a device: not in a callback, nor in the host body of a kernel.
#[inline]
pub fn may_block(operation: &'static str) -> Result<()> {
    match NonBlockingContext::current() {
        Some(context) => Err(refuse_to_block(context, operation)),
        None => Ok(()),
    }
}

#[cold]
#[inline(never)]
fn refuse_to_block(context: NonBlockingContext, operation: &'static str) -> Error {
    let NonBlockingContext { backend, device, .. } = context;
    Error::new("", operation, ErrorKind::BlockingInCallback).on_device(backend, device)
}
