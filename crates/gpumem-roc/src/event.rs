//! Events: recorded positions in streams.

use crate::{
    NAME,
    device::{Held, Owner, RocDevice},
    error::Status,
};
use gpumem_core::{Error, ErrorKind, Event, EventOptions, Result};
use gpumem_sys::hip::{hipEvent_t, hipEventBlockingSync, hipEventDisableTiming, hipEventReleaseToSystem};
use std::ptr::null_mut;

/// A HIP event.
#[derive(Debug)]
pub struct RocEvent {
    pub(crate) owner: Owner,
    pub(crate) raw: hipEvent_t,
    timing: bool,
    owned: bool,
}

// SAFETY: an event handle is a name that HIP takes from any thread, and its functions are thread-safe.
unsafe impl Send for RocEvent {}
// SAFETY: as above; the other fields never change.
unsafe impl Sync for RocEvent {}

impl RocEvent {
    /// Makes an event. With `blocking`, a host thread that waits for it sleeps instead of spinning.
    pub(crate) fn create(device: &RocDevice, options: EventOptions, blocking: bool) -> Result<Self> {
        const OPERATION: &str = "hipEventCreateWithFlags";
        let owner = Owner::new(device);
        // Who waits for the event reads page-locked memory, which is not coherent (`hip_runtime_api.h`).
        let mut flags = hipEventReleaseToSystem;
        if !options.timing {
            flags |= hipEventDisableTiming;
        }
        if blocking {
            flags |= hipEventBlockingSync;
        }
        let _current = device.enter(OPERATION)?;
        let mut raw = null_mut();
        // SAFETY: a place for a handle; the device is current.
        let status = unsafe { device.hip().hipEventCreateWithFlags(&mut raw, flags) };
        device.check(status, OPERATION)?;
        device.hold(Held::Event(raw.expose_provenance()));
        Ok(Self { owner, raw, timing: options.timing, owned: true })
    }

    fn held(&self) -> Held {
        Held::Event(self.raw.expose_provenance())
    }
}

// SAFETY: the result is the driver's answer.
unsafe impl Event for RocEvent {
    fn query(&self) -> Result<bool> {
        const OPERATION: &str = "hipEventQuery";
        let device = &self.owner.device;
        let _current = self.owner.enter(OPERATION, "event")?;
        let Some(_turn) = device.enqueue_lock().for_query() else { return Ok(false) };
        // SAFETY: the handle is alive.
        device.check_ready(unsafe { device.hip().hipEventQuery(self.raw) }, OPERATION)
    }

    fn synchronize(&self) -> Result<()> {
        const OPERATION: &str = "hipEventSynchronize";
        let device = &self.owner.device;
        let _current = self.owner.enter(OPERATION, "event")?;
        // SAFETY: the handle is alive.
        device.check(unsafe { device.hip().hipEventSynchronize(self.raw) }, OPERATION)
    }

    fn destroy(mut self) -> Result<()> {
        self.owned = false;
        self.owner.destroy("hipEventDestroy", self.held())
    }

    fn elapsed(&self, end: &Self) -> Result<f32> {
        const OPERATION: &str = "hipEventElapsedTime";
        let invalid = |why| Error::new(NAME, OPERATION, ErrorKind::InvalidArgument { why });
        if !(self.timing && end.timing) {
            return Err(invalid("an event does not remember the time"));
        }
        self.owner.check(OPERATION, "event")?;
        let device = &end.owner.device;
        let _current = end.owner.enter(OPERATION, "event")?;
        let mut milliseconds = 0.0;
        // SAFETY: a place for a number; both handles are alive.
        let status = unsafe { device.hip().hipEventElapsedTime(&mut milliseconds, self.raw, end.raw) };
        match Status::from(status) {
            Status::INVALID_HANDLE => {
                device.forget_last_error();
                Err(invalid("an event has not been recorded, or the events are of two devices"))
            }
            status => device.check(status, OPERATION).map(|()| milliseconds),
        }
    }
}

impl Drop for RocEvent {
    fn drop(&mut self) {
        if self.owned {
            self.owner.destroy_quietly("hipEventDestroy", self.held());
        }
    }
}
