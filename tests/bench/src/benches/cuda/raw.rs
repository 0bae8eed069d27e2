//! The driver's own handles, as short as they can be written.

use anyhow::{Result, ensure};
use cudarc::driver::sys;
use gpumem_cuda::{Cuda, CudaExt};
use gpumem_runtime::Device;
use std::{
    ptr::null_mut,
    rc::Rc,
    time::{Duration, Instant},
};

/// Turns the driver's status into a result.
pub(crate) fn check(status: sys::CUresult, operation: &str) -> Result<()> {
    ensure!(status == sys::CUresult::CUDA_SUCCESS, "{operation}: {status:?}");
    Ok(())
}

/// A device's context, for the side that calls the driver.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    context: sys::CUcontext,
    /// Keeps the context open.
    device: Device<Cuda>,
}

impl Context {
    pub(crate) fn of(device: &Device<Cuda>) -> Self {
        Self { context: Cuda::context(device.raw()), device: device.clone() }
    }

    /// Runs `body` with the context current, and with none afterwards.
    pub(crate) fn within<R>(&self, body: impl FnOnce() -> Result<R>) -> Result<R> {
        // SAFETY: the device keeps the context alive.
        check(unsafe { sys::cuCtxSetCurrent(self.context) }, "cuCtxSetCurrent")?;
        let value = body();
        // SAFETY: no context is current on a thread that has set none.
        check(unsafe { sys::cuCtxSetCurrent(null_mut()) }, "cuCtxSetCurrent")?;
        value
    }

    /// How long `body` takes, with the context current.
    pub(crate) fn time(&self, body: impl FnOnce() -> Result<()>) -> Result<Duration> {
        self.within(|| {
            let start = Instant::now();
            body()?;
            Ok(start.elapsed())
        })
    }

    /// A stream that does not wait for the legacy stream, as ours.
    pub(crate) fn stream(&self) -> Result<Rc<Stream>> {
        self.within(|| {
            let mut raw = null_mut();
            let flags = sys::CUstream_flags_enum::CU_STREAM_NON_BLOCKING as u32;
            // SAFETY: a place for a handle; the context is current.
            check(unsafe { sys::cuStreamCreate(&mut raw, flags) }, "cuStreamCreate")?;
            Ok(Rc::new(Stream { raw, context: self.clone() }))
        })
    }

    /// An event that does not remember the time, as ours.
    pub(super) fn event(&self) -> Result<Event> {
        self.within(|| {
            let mut raw = null_mut();
            let flags = sys::CUevent_flags_enum::CU_EVENT_DISABLE_TIMING as u32;
            // SAFETY: a place for a handle; the context is current.
            check(unsafe { sys::cuEventCreate(&mut raw, flags) }, "cuEventCreate")?;
            Ok(Event { raw, context: self.clone() })
        })
    }

    pub(super) fn ordinal(&self) -> i32 {
        self.device.info().ordinal as i32
    }
}

/// A stream of the driver.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) raw: sys::CUstream,
    pub(super) context: Context,
}

impl Stream {
    pub(crate) fn synchronize(&self) -> Result<()> {
        // SAFETY: the stream is alive.
        check(unsafe { sys::cuStreamSynchronize(self.raw) }, "cuStreamSynchronize")
    }

    pub(super) fn record(&self, event: &Event) -> Result<()> {
        // SAFETY: both are alive.
        check(unsafe { sys::cuEventRecord(event.raw, self.raw) }, "cuEventRecord")
    }

    pub(super) fn wait(&self, event: &Event) -> Result<()> {
        // SAFETY: both are alive.
        check(unsafe { sys::cuStreamWaitEvent(self.raw, event.raw, 0) }, "cuStreamWaitEvent")
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: nothing uses the stream any more.
        let _ =
            self.context.within(|| check(unsafe { sys::cuStreamDestroy_v2(self.raw) }, "cuStreamDestroy"));
    }
}

/// An event of the driver.
#[derive(Debug)]
pub(super) struct Event {
    raw: sys::CUevent,
    context: Context,
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: nothing uses the event any more.
        let _ = self.context.within(|| check(unsafe { sys::cuEventDestroy_v2(self.raw) }, "cuEventDestroy"));
    }
}
