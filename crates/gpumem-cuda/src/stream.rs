//! Queues of work.

use crate::{
    device::{CudaDevice, Owner},
    error::Status,
};
use cudarc::driver::sys::{CUstream, CUstream_flags_enum as Flags};
use gpumem_core::{Error, Result, Stream, StreamKind, StreamOptions};
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
    pub(crate) owned: bool,
    /// Whether others have the handle, and so may capture the stream.
    pub(crate) is_shared: AtomicBool,
    /// Whether the driver wants the stream's context to be current, as far as we have seen.
    needs_context: AtomicBool,
}

// SAFETY: a stream handle is a name that the driver takes from any thread, and its functions are thread-safe.
unsafe impl Send for CudaStream {}
// SAFETY: as above; the other fields are atomics or never change.
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
    pub(crate) fn of(owner: Owner, raw: CUstream, owned: bool) -> Self {
        let needs_context = AtomicBool::new(raw.addr() <= PER_THREAD);
        Self { owner, raw, owned, is_shared: AtomicBool::new(!owned), needs_context }
    }

    /// Refuses what a graph cannot have while others capture the stream: the driver would refuse it, and invalidate the capture.
    #[inline]
    pub(crate) fn refuse_captured(&self, operation: &'static str) -> Result<()> {
        match self.is_capturing()? {
            true => Err(Status::STREAM_CAPTURE_UNSUPPORTED.error(operation)),
            false => Ok(()),
        }
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
        // By its name, or by the null handle.
        if self.raw.addr() <= LEGACY {
            check_not_captured(&self.owner.device, operation)?;
        }
        let status = call();
        if status.is_success() { Ok(()) } else { Err(failure(status)) }
    }
}

/// Refuses a call that waits for all blocking streams while one of them is captured: it would invalidate that capture, which may be
/// another library's. The driver does not show captures of other streams. The context is current.
pub(crate) fn check_not_captured(device: &CudaDevice, operation: &'static str) -> Result<()> {
    // An integer, because a newer driver may answer with a value that the enum lacks.
    let state = Cell::new(0u32);
    let legacy = with_exposed_provenance_mut(LEGACY);
    // SAFETY: a place for the enum, whose C type is that integer; the handle is the legacy stream's name.
    match unsafe { device.api().cuStreamIsCapturing(legacy, state.as_ptr().cast()) } {
        status @ Status::STREAM_CAPTURE_IMPLICIT => device.check(status, operation),
        _ => Ok(()),
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
