//! Events: recorded positions in streams.

use crate::{
    NAME,
    device::{CudaDevice, Owner},
    error::Status,
};
use cudarc::driver::sys::{CUevent, CUevent_flags_enum as Flags};
use gpumem_core::{Error, ErrorKind, Event, EventOptions, Result};
use std::ptr::null_mut;

/// A CUDA event.
#[derive(Debug)]
pub struct CudaEvent {
    pub(crate) owner: Owner,
    pub(crate) raw: CUevent,
    timing: bool,
    owned: bool,
}

// SAFETY: an event handle is a name that the driver takes from any thread, and its functions are thread-safe.
unsafe impl Send for CudaEvent {}
// SAFETY: as above; the other fields never change.
unsafe impl Sync for CudaEvent {}

impl CudaEvent {
    /// Makes an event. With `blocking`, a host thread that waits for it sleeps instead of spinning.
    pub(crate) fn create(device: &CudaDevice, options: EventOptions, blocking: bool) -> Result<Self> {
        const OPERATION: &str = "cuEventCreate";
        let owner = Owner::new(device);
        let mut flags = Flags::CU_EVENT_DEFAULT as u32;
        if !options.timing {
            flags |= Flags::CU_EVENT_DISABLE_TIMING as u32;
        }
        if blocking {
            flags |= Flags::CU_EVENT_BLOCKING_SYNC as u32;
        }
        let _current = device.enter(OPERATION)?;
        let mut raw = null_mut();
        // SAFETY: a place for a handle; the context is current.
        let status = unsafe { device.api().cuEventCreate(&mut raw, flags) };
        device.check(status, OPERATION)?;
        Ok(Self { owner, raw, timing: options.timing, owned: true })
    }
}

// SAFETY: the result is the driver's answer.
unsafe impl Event for CudaEvent {
    fn query(&self) -> Result<bool> {
        const OPERATION: &str = "cuEventQuery";
        let device = &self.owner.device;
        // SAFETY: the handle is alive.
        match self.owner.by_handle(OPERATION, "event", || unsafe { device.api().cuEventQuery(self.raw) })? {
            Status::NOT_READY => Ok(false),
            status => device.check(status, OPERATION).map(|()| true),
        }
    }

    fn synchronize(&self) -> Result<()> {
        const OPERATION: &str = "cuEventSynchronize";
        let device = &self.owner.device;
        // SAFETY: the handle is alive.
        let call = || unsafe { device.api().cuEventSynchronize(self.raw) };
        device.check(self.owner.by_handle(OPERATION, "event", call)?, OPERATION)
    }

    fn destroy(mut self) -> Result<()> {
        self.owned = false;
        // SAFETY: the event is ours and is not used again; the driver lets pending waits finish.
        self.owner.destroy("cuEventDestroy", |api| unsafe { api.cuEventDestroy_v2(self.raw) })
    }

    fn elapsed(&self, end: &Self) -> Result<f32> {
        const OPERATION: &str = "cuEventElapsedTime";
        let invalid = |why| Error::new(NAME, OPERATION, ErrorKind::InvalidArgument { why });
        if !(self.timing && end.timing) {
            return Err(invalid("an event does not remember the time"));
        }
        self.owner.check(OPERATION, "event")?;
        let device = &end.owner.device;
        let _current = end.owner.enter(OPERATION, "event")?;
        let mut milliseconds = 0.0;
        // SAFETY: a place for a number; both handles are alive.
        match unsafe { device.api().cuEventElapsedTime(&mut milliseconds, self.raw, end.raw) } {
            Status::INVALID_HANDLE => {
                Err(invalid("an event has not been recorded, or the events are of two devices"))
            }
            status => device.check(status, OPERATION).map(|()| milliseconds),
        }
    }
}

impl Drop for CudaEvent {
    fn drop(&mut self) {
        if self.owned {
            // SAFETY: the event is ours and is not used again; the driver lets pending waits finish.
            self.owner.destroy_quietly("cuEventDestroy", |api| unsafe { api.cuEventDestroy_v2(self.raw) });
        }
    }
}
