//! Starting a device anew.

use super::{Device, open::is_open_by_another_type};
use gpumem_core::{Backend, DriverDevice, ErrorKind, Result};
use std::sync::atomic::Ordering;

impl<B: Backend> Device<B> {
    /// Gives everything that this process holds on the device back to the driver. Arrays, streams and events made
    /// before are stale afterwards: using them is [`ErrorKind::Stale`], dropping them frees nothing.
    ///
    /// # Safety
    /// No other thread uses the device meanwhile: work that it enqueues while the driver frees the memory would use
    /// freed memory. Other libraries in this process lose their objects on the device, too: they use none of them afterwards, nor
    /// memory that this one lent to them.
    ///
    /// # Errors
    /// Returns [`ErrorKind::HostMemoryInUse`] while pinned, mapped or managed arrays are alive, or arrays of the
    /// caller are page-locked: their memory would vanish while the host sees it. Returns [`ErrorKind::Unsupported`]
    /// inside a memory resource, which the reset would call again, and while the device is open by another type of backend too
    /// (`Device<AnyBackend>` and `Device<Host>`), [`ErrorKind::BlockingInCallback`] in a callback,
    /// and [`ErrorKind::Driver`] if the driver reports a failure.
    pub unsafe fn reset(&self) -> Result<()> {
        let core = &self.0.core;
        gpumem_memory::may_block("reset")?;
        core.check("reset")?;
        gpumem_memory::memory::check_outside_resource("reset").map_err(|error| core.place(error))?;
        if is_open_by_another_type::<B>(core.raw.info()) {
            let what = "a reset of a device that is open by another type of backend too";
            return Err(core.error("reset", ErrorKind::Unsupported { what }));
        }
        self.0.staging.trim();
        self.0.kept.clear();
        core.deferred_frees.flush_all(core);
        let count = core.host_memory.load(Ordering::Acquire);
        if count > 0 {
            return Err(core.error("reset", ErrorKind::HostMemoryInUse { count }));
        }
        // Enqueued work uses memory that is about to be freed.
        core.note_loss(core.raw.synchronize())?;
        // From here on everything older is stale, also if the driver fails half-way.
        core.next_generation();
        core.events.take().into_iter().for_each(std::mem::forget);
        core.memory.all().for_each(|resource| resource.forget(&core.errors));
        core.late.forget();
        // SAFETY: everything older is stale and never reaches the driver again (its generation is checked), and no
        // other thread is at work (the caller's promise); no host-accessible memory is alive.
        let result = unsafe { core.raw.reset() };
        core.note_loss(result)
    }
}
