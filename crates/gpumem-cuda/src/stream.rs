//! Queues of work.

use crate::{
    device::{CudaDevice, Owner},
    error::Status,
    event::CudaEvent,
};
use cudarc::driver::sys::{CUstream, CUstream_flags_enum as Flags, CUstream_st};
use gpumem_core::{RawStream, Result, Stream, StreamKind, StreamOptions};
use std::ptr::{null_mut, with_exposed_provenance_mut};

/// The driver's name for the default stream that orders itself with all blocking streams.
const LEGACY: usize = 1;
/// The driver's name for the default stream of the calling thread.
const PER_THREAD: usize = 2;

/// A CUDA stream: one of ours, one of the driver's default streams, or one of another library.
///
/// The per-thread default stream is a name and not a stream: used on another thread, it means that thread's.
#[derive(Debug)]
pub struct CudaStream {
    pub(crate) owner: Owner,
    pub(crate) raw: CUstream,
    owned: bool,
}

// SAFETY: a stream handle is a name that the driver takes from any thread, and its functions are thread-safe.
unsafe impl Send for CudaStream {}
// SAFETY: as above; what we keep beside the handle never changes.
unsafe impl Sync for CudaStream {}

impl CudaStream {
    pub(crate) fn create(device: &CudaDevice, options: &StreamOptions) -> Result<Self> {
        const OPERATION: &str = "cuStreamCreateWithPriority";
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
        let flags =
            if options.non_blocking { Flags::CU_STREAM_NON_BLOCKING } else { Flags::CU_STREAM_DEFAULT };
        let _current = device.enter(OPERATION)?;
        let mut raw = null_mut();
        // SAFETY: a place for a handle; the context is current.
        let status = unsafe { device.api().cuStreamCreateWithPriority(&mut raw, flags as u32, priority) };
        device.check(status, OPERATION)?;
        Ok(Self { owner, raw, owned: true })
    }

    pub(crate) fn wrap(device: &CudaDevice, raw: RawStream) -> Result<Self> {
        device.check_alive("wrap_stream")?;
        let raw: *mut CUstream_st = with_exposed_provenance_mut(raw.0 as usize);
        Ok(Self { owner: Owner::new(device), raw, owned: false })
    }

    pub(crate) fn destroy(mut self) -> Result<()> {
        if !std::mem::take(&mut self.owned) {
            return Ok(());
        }
        // SAFETY: the stream is ours and is not used again; the driver lets enqueued work finish.
        self.owner.destroy("cuStreamDestroy", |api| unsafe { api.cuStreamDestroy_v2(self.raw) })
    }

    pub(crate) fn record(&self, event: &CudaEvent) -> Result<()> {
        const OPERATION: &str = "cuEventRecord";
        event.owner.check_fresh(OPERATION, "event")?;
        let device = &self.owner.device;
        // SAFETY: both handles are alive and of this context.
        let status = self.call(OPERATION, || unsafe { device.api().cuEventRecord(event.raw, self.raw) })?;
        device.check(status, OPERATION)
    }

    pub(crate) fn wait(&self, event: &CudaEvent) -> Result<()> {
        const OPERATION: &str = "cuStreamWaitEvent";
        event.owner.check_fresh(OPERATION, "event")?;
        let device = &self.owner.device;
        // SAFETY: both handles are alive; the event may be another device's.
        let status =
            self.call(OPERATION, || unsafe { device.api().cuStreamWaitEvent(self.raw, event.raw, 0) })?;
        device.check(status, OPERATION)
    }

    /// Calls the driver with the stream's handle. A default stream, ours or another library's, is a name whose meaning
    /// depends on the current context, so that the context must be current.
    #[inline]
    fn call(&self, operation: &'static str, call: impl Fn() -> Status) -> Result<Status> {
        if self.raw.addr() > PER_THREAD {
            return self.owner.by_handle(operation, "stream", call);
        }
        let _current = self.owner.enter(operation, "stream")?;
        Ok(call())
    }
}

impl Stream for CudaStream {
    fn synchronize(&self) -> Result<()> {
        const OPERATION: &str = "cuStreamSynchronize";
        let device = &self.owner.device;
        let _current = self.owner.enter(OPERATION, "stream")?;
        // SAFETY: the handle is alive.
        device.check(unsafe { device.api().cuStreamSynchronize(self.raw) }, OPERATION)
    }

    fn query(&self) -> Result<bool> {
        const OPERATION: &str = "cuStreamQuery";
        let device = &self.owner.device;
        let _current = self.owner.enter(OPERATION, "stream")?;
        // SAFETY: the handle is alive.
        match unsafe { device.api().cuStreamQuery(self.raw) } {
            Status::NOT_READY => Ok(false),
            status => device.check(status, OPERATION).map(|()| true),
        }
    }

    fn raw(&self) -> RawStream {
        RawStream(self.raw.expose_provenance() as u64)
    }
}

impl Drop for CudaStream {
    fn drop(&mut self) {
        if self.owned {
            // SAFETY: the stream is ours and is not used again; the driver lets enqueued work finish.
            self.owner.destroy_quietly("cuStreamDestroy", |api| unsafe { api.cuStreamDestroy_v2(self.raw) });
        }
    }
}
