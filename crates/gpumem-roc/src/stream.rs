//! Queues of work.

use crate::{
    device::{Held, Owner, RocDevice},
    event::RocEvent,
};
use gpumem_core::{Event, EventOptions, RawStream, Result, Stream, StreamKind, StreamOptions};
use gpumem_hip_sys::{hipStream_t, hipStreamCaptureStatus, hipStreamDefault, hipStreamNonBlocking};
use std::ptr::{null_mut, with_exposed_provenance_mut};

/// HIP's name for the default stream that orders itself with all blocking streams: of the device that is current.
const LEGACY: usize = 0;
/// HIP's name for the default stream of the calling thread.
const PER_THREAD: usize = 2;

/// A HIP stream: one that this library made, one of HIP's default streams, or one of another library.
///
/// The per-thread default stream is a name and not a stream: used on another thread, it means that thread's.
#[derive(Debug)]
pub struct RocStream {
    pub(crate) owner: Owner,
    pub(crate) raw: hipStream_t,
    owned: bool,
}

// SAFETY: a stream handle is a name that HIP takes from any thread, and its functions are thread-safe.
unsafe impl Send for RocStream {}
// SAFETY: as above; the other fields never change.
unsafe impl Sync for RocStream {}

impl RocStream {
    pub(crate) fn create(device: &RocDevice, options: &StreamOptions) -> Result<Self> {
        const OPERATION: &str = "hipStreamCreateWithPriority";
        let owner = Owner::new(device);
        let named =
            |name| Self { owner: owner.clone(), raw: with_exposed_provenance_mut(name), owned: false };
        match options.kind {
            StreamKind::New => {}
            StreamKind::Legacy => return device.check_alive(OPERATION).map(|()| named(LEGACY)),
            StreamKind::PerThread => return device.check_alive(OPERATION).map(|()| named(PER_THREAD)),
        }
        let [least, greatest] = device.inner().capabilities.stream_priorities;
        let priority = options.priority.min(least).max(greatest);
        let flags = if options.non_blocking { hipStreamNonBlocking } else { hipStreamDefault };
        let _current = device.enter(OPERATION)?;
        let mut raw = null_mut();
        // SAFETY: a place for a handle; the device is current.
        let status = unsafe { device.hip().hipStreamCreateWithPriority(&mut raw, flags, priority) };
        device.check(status, OPERATION)?;
        device.hold(Held::Stream(raw.expose_provenance()));
        Ok(Self { owner, raw, owned: true })
    }

    pub(crate) fn wrap(device: &RocDevice, raw: RawStream) -> Result<Self> {
        device.check_alive("wrap_stream")?;
        let raw: hipStream_t = with_exposed_provenance_mut(raw.0 as usize);
        Ok(Self { owner: Owner::new(device), raw, owned: false })
    }

    fn held(&self) -> Held {
        Held::Stream(self.raw.expose_provenance())
    }

    pub(crate) fn destroy(mut self) -> Result<()> {
        if !std::mem::take(&mut self.owned) {
            return Ok(());
        }
        self.owner.destroy("hipStreamDestroy", self.held())
    }

    pub(crate) fn is_capturing(&self) -> Result<bool> {
        const OPERATION: &str = "hipStreamIsCapturing";
        let device = &self.owner.device;
        let _current = self.owner.enter(OPERATION, "stream")?;
        let mut state = hipStreamCaptureStatus::hipStreamCaptureStatusNone;
        // SAFETY: a place for the state.
        device.check(unsafe { device.hip().hipStreamIsCapturing(self.raw, &mut state) }, OPERATION)?;
        Ok(state != hipStreamCaptureStatus::hipStreamCaptureStatusNone)
    }

    pub(crate) fn record(&self, event: &RocEvent) -> Result<()> {
        const OPERATION: &str = "hipEventRecord";
        event.owner.check(OPERATION, "event")?;
        let device = &self.owner.device;
        let _turn = device.enqueue_lock().shared();
        let _current = self.owner.enter(OPERATION, "stream")?;
        // SAFETY: both handles are alive and of this device.
        device.check(unsafe { device.hip().hipEventRecord(event.raw, self.raw) }, OPERATION)
    }

    pub(crate) fn wait(&self, event: &RocEvent) -> Result<()> {
        const OPERATION: &str = "hipStreamWaitEvent";
        event.owner.check(OPERATION, "event")?;
        let device = &self.owner.device;
        let _turn = device.enqueue_lock().shared();
        let _current = self.owner.enter(OPERATION, "stream")?;
        // SAFETY: both handles are alive; the event may be another device's.
        device.check(unsafe { device.hip().hipStreamWaitEvent(self.raw, event.raw, 0) }, OPERATION)
    }
}

// SAFETY: the result is the driver's answer.
unsafe impl Stream for RocStream {
    fn synchronize(&self) -> Result<()> {
        const OPERATION: &str = "hipStreamSynchronize";
        let device = &self.owner.device;
        if device.enqueue_lock().are_needed() {
            // A wait for the stream while others enqueue there is not true: see `EnqueueLock`. One for an event is.
            let event = RocEvent::create(device, EventOptions::default(), false)?;
            self.record(&event)?;
            return event.synchronize().map_err(|error| error.in_operation(OPERATION));
        }
        let _current = self.owner.enter(OPERATION, "stream")?;
        // SAFETY: the handle is alive.
        device.check(unsafe { device.hip().hipStreamSynchronize(self.raw) }, OPERATION)
    }

    fn query(&self) -> Result<bool> {
        const OPERATION: &str = "hipStreamQuery";
        let device = &self.owner.device;
        let _current = self.owner.enter(OPERATION, "stream")?;
        // SAFETY: the handle is alive.
        device.check_ready(unsafe { device.hip().hipStreamQuery(self.raw) }, OPERATION)
    }

    fn raw(&self) -> RawStream {
        RawStream(self.raw.expose_provenance() as u64)
    }
}

impl Drop for RocStream {
    fn drop(&mut self) {
        if self.owned {
            self.owner.destroy_quietly("hipStreamDestroy", self.held());
        }
    }
}
