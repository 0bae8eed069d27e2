//! Queues of work.

use crate::{
    device::{CudaDevice, Owner},
    error::Status,
    event::CudaEvent,
};
use cudarc::driver::sys::{CUstream, CUstream_flags_enum as Flags, CUstream_st, CUstreamCaptureStatus};
use gpumem_core::{Error, RawStream, Result, Stream, StreamKind, StreamOptions};
use std::{
    cell::Cell,
    ptr::{null_mut, with_exposed_provenance_mut},
    sync::atomic::{AtomicBool, Ordering},
};

/// The driver's name for the default stream that orders itself with all blocking streams.
const LEGACY: usize = 1;
/// The driver's name for the default stream of the calling thread.
const PER_THREAD: usize = 2;

/// A CUDA stream: one that this library made, one of the driver's default streams, or one of another library.
///
/// The per-thread default stream is a name and not a stream: used on another thread, it means that thread's.
#[derive(Debug)]
pub struct CudaStream {
    pub(crate) owner: Owner,
    pub(crate) raw: CUstream,
    owned: bool,
    /// Whether the driver wants the stream's context to be current, as far as we have seen.
    needs_context: AtomicBool,
}

// SAFETY: a stream handle is a name that the driver takes from any thread, and its functions are thread-safe.
unsafe impl Send for CudaStream {}
// SAFETY: as above; the other fields never change.
unsafe impl Sync for CudaStream {}

impl CudaStream {
    pub(crate) fn create(device: &CudaDevice, options: &StreamOptions) -> Result<Self> {
        const OPERATION: &str = "cuStreamCreateWithPriority";
        let owner = Owner::new(device);
        let named = |name| Self::of(owner.clone(), with_exposed_provenance_mut(name), false);
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
        Ok(Self::of(owner, raw, true))
    }

    /// The handle of a default stream means the current context's stream, so the right context must be current.
    fn of(owner: Owner, raw: CUstream, owned: bool) -> Self {
        Self { owner, raw, owned, needs_context: AtomicBool::new(raw.addr() <= PER_THREAD) }
    }

    pub(crate) fn wrap(device: &CudaDevice, raw: RawStream) -> Result<Self> {
        device.check_alive("wrap_stream")?;
        let raw: *mut CUstream_st = with_exposed_provenance_mut(raw.0 as usize);
        Ok(Self::of(Owner::new(device), raw, false))
    }

    pub(crate) fn destroy(mut self) -> Result<()> {
        if !std::mem::take(&mut self.owned) {
            return Ok(());
        }
        // SAFETY: the stream is ours and is not used again; the driver lets enqueued work finish.
        self.owner.destroy("cuStreamDestroy", |api| unsafe { api.cuStreamDestroy_v2(self.raw) })
    }

    pub(crate) fn is_capturing(&self) -> Result<bool> {
        const OPERATION: &str = "cuStreamIsCapturing";
        let api = self.owner.device.api();
        // An integer, because a newer driver may answer with a value that the enum lacks.
        let state = Cell::new(0u32);
        let place = state.as_ptr().cast::<CUstreamCaptureStatus>();
        // SAFETY: a place for the enum, whose C type is that integer.
        self.call(OPERATION, || unsafe { api.cuStreamIsCapturing(self.raw, place) })?;
        Ok(state.get() != 0)
    }

    pub(crate) fn record(&self, event: &CudaEvent) -> Result<()> {
        const OPERATION: &str = "cuEventRecord";
        event.owner.check_fresh(OPERATION, "event")?;
        let api = self.owner.device.api();
        // SAFETY: both handles are alive and of this context.
        self.call(OPERATION, || unsafe { api.cuEventRecord(event.raw, self.raw) })
    }

    pub(crate) fn wait(&self, event: &CudaEvent) -> Result<()> {
        const OPERATION: &str = "cuStreamWaitEvent";
        event.owner.check_fresh(OPERATION, "event")?;
        let api = self.owner.device.api();
        // SAFETY: both handles are alive; the event may be another device's.
        self.call(OPERATION, || unsafe { api.cuStreamWaitEvent(self.raw, event.raw, 0) })
    }

    /// Calls the driver with the stream's handle, without changing the current context. If the driver needs the
    /// stream's own context, it refuses without any effect, and is called again with it. That saves three driver calls
    /// around each call, and leaves the caller's context alone.
    ///
    /// By the CUDA C++ Programming Guide ("Stream and event behavior") a copy and a wait succeed whatever device is
    /// current, a record where event and stream are of one device, and a launch fails to a stream of another device
    /// than the current one. Drivers of version 580 launch there too, and on threads without a context. They refuse
    /// copies of memory that was mapped piece by piece while another device's context is current, as an invalid value.
    /// The guide does not mention waits of the host for a stream, and queries of it.
    #[inline]
    pub(crate) fn call(&self, operation: &'static str, call: impl Fn() -> Status) -> Result<()> {
        self.call_or(operation, call, |status| self.owner.device.failure(status, operation))
    }

    /// As [`call`](Self::call), with `failure` to translate the driver's refusal.
    #[inline]
    pub(crate) fn call_or(
        &self,
        operation: &'static str,
        call: impl Fn() -> Status,
        failure: impl FnOnce(Status) -> Error,
    ) -> Result<()> {
        if self.needs_context.load(Ordering::Relaxed) {
            return self.call_with_context(operation, call, failure);
        }
        self.owner.check(operation, "stream")?;
        match call() {
            status if status.is_success() => Ok(()),
            status if status.may_be_about_the_context() => {
                self.call_with_context(operation, call, failure)?;
                self.needs_context.store(true, Ordering::Relaxed);
                Ok(())
            }
            status => Err(failure(status)),
        }
    }

    #[inline(never)]
    fn call_with_context(
        &self,
        operation: &'static str,
        call: impl Fn() -> Status,
        failure: impl FnOnce(Status) -> Error,
    ) -> Result<()> {
        let _current = self.owner.enter(operation, "stream")?;
        let status = call();
        if status.is_success() { Ok(()) } else { Err(failure(status)) }
    }
}

// SAFETY: the result is the driver's answer.
unsafe impl Stream for CudaStream {
    fn synchronize(&self) -> Result<()> {
        let api = self.owner.device.api();
        // SAFETY: the handle is alive.
        self.call("cuStreamSynchronize", || unsafe { api.cuStreamSynchronize(self.raw) })
    }

    fn query(&self) -> Result<bool> {
        let (api, is_ready) = (self.owner.device.api(), Cell::new(true));
        self.call("cuStreamQuery", || {
            // SAFETY: the handle is alive.
            match unsafe { api.cuStreamQuery(self.raw) } {
                Status::NOT_READY => {
                    is_ready.set(false);
                    Status::SUCCESS
                }
                status => status,
            }
        })?;
        Ok(is_ready.get())
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
