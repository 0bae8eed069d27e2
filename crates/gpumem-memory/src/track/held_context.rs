//! References to a device that may go in any place.

use super::DeviceContext;
use gpumem_core::{Backend, HostFunction, process::DriverUse};
use std::{mem::ManuallyDrop, ops::Deref, sync::Arc};

/// A reference to a device that may be dropped under the locks of logs, queues and pools, also those of another device. Where it is
/// the last one, a thread of the library ends the device: that calls the driver and subscribers of tracing.
#[derive(Debug)]
pub struct HeldContext<B: Backend>(ManuallyDrop<Arc<DeviceContext<B>>>);

impl<B: Backend> HeldContext<B> {
    #[inline]
    pub(super) fn new(context: &Arc<DeviceContext<B>>) -> Self {
        Self(ManuallyDrop::new(context.clone()))
    }
}

impl<B: Backend> Deref for HeldContext<B> {
    type Target = Arc<DeviceContext<B>>;

    #[inline(always)]
    fn deref(&self) -> &Arc<DeviceContext<B>> {
        &self.0
    }
}

impl<B: Backend> Drop for HeldContext<B> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: taken here alone, and not used again.
        let context = unsafe { ManuallyDrop::take(&mut self.0) };
        if let Some(last) = Arc::into_inner(context) {
            end(last);
        }
    }
}

#[cold]
fn end<B: Backend>(last: DeviceContext<B>) {
    // Leaked where there is no thread for it: dropping it would end the device here.
    let last = ManuallyDrop::new(last);
    if cfg!(loom) {
        // The threads of a model are its own.
        return drop(ManuallyDrop::into_inner(last));
    }
    if !last.origin.is_valid() {
        // The driver belongs to another process, or has ended: there is nothing to give back.
        return;
    }
    // As in `DeferredFrees::abandon`.
    let thread = std::thread::Builder::new().name("gpumem frees".to_owned());
    let _ = thread.stack_size(HostFunction::STACK_BYTES).spawn(move || {
        let _in_driver = DriverUse::new();
        drop(ManuallyDrop::into_inner(last));
    });
}
