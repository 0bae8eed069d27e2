//! What CUDA does on a stream.

use crate::{Cuda, CudaEvent, CudaKernel, CudaStream, copy, error::Status, fill, graph, managed, pack};
use cudarc::driver::sys::CUstreamCaptureStatus;
use gpumem_core::{
    CaptureStart, CopyRegion, ExecutableGraph, Fill, GraphNode, KernelArguments, LaunchConfig, Location,
    RawStream, Result, Stream, StridedCopy,
};
use std::{cell::Cell, sync::atomic::Ordering};

// SAFETY: each function is the driver's, and so is its answer.
unsafe impl Stream<Cuda> for CudaStream {
    fn synchronize(&self) -> Result<()> {
        self.refuse_captured("cuStreamSynchronize")?;
        // SAFETY: the handle is alive.
        self.call("cuStreamSynchronize", || unsafe { self.owner.device.api().cuStreamSynchronize(self.raw) })
    }

    fn query(&self) -> Result<bool> {
        self.refuse_captured("cuStreamQuery")?;
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
        // Relaxed: who captures the stream got the handle from here, and orders itself with those that use the stream meanwhile.
        self.is_shared.store(true, Ordering::Relaxed);
        self.lent()
    }

    fn lent(&self) -> RawStream {
        RawStream(self.raw.expose_provenance() as u64)
    }

    fn unique_id(&self) -> Result<Option<u64>> {
        let id = Cell::new(0);
        let api = self.owner.device.api();
        // SAFETY: the handle is alive; a place for the number.
        self.call("cuStreamGetId", || unsafe { api.cuStreamGetId(self.raw, id.as_ptr()) })?;
        Ok(Some(id.get()))
    }

    fn destroy(mut self) -> Result<()> {
        if !std::mem::take(&mut self.owned) {
            return Ok(());
        }
        // SAFETY: the stream is ours and is not used again; the driver lets enqueued work finish.
        self.owner.destroy("cuStreamDestroy", |api| unsafe { api.cuStreamDestroy_v2(self.raw) })
    }

    unsafe fn copy(&self, region: &CopyRegion) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe { copy::copy(self, region) }
    }

    unsafe fn copy_strided(&self, copy: &StridedCopy) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe { pack::copy_strided(self, copy) }
    }

    unsafe fn fill(&self, fill: &Fill) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe { fill::fill(self, fill) }
    }

    unsafe fn prefetch(&self, address: u64, bytes: usize, to: Location) -> Result<()> {
        const OPERATION: &str = "cuMemPrefetchAsync";
        let device = &self.owner.device;
        managed::needs_concurrent_access(device, OPERATION)?;
        let place = managed::place(device, to);
        let _current = self.owner.enter(OPERATION, "stream")?;
        // SAFETY: the range lies in one live managed buffer, as the caller promises.
        let status = unsafe { device.api().cuMemPrefetchAsync(address, bytes, place, self.raw) };
        device.check(status, OPERATION)
    }

    fn is_capturing(&self) -> Result<bool> {
        const OPERATION: &str = "cuStreamIsCapturing";
        if !self.is_shared.load(Ordering::Relaxed) {
            // No other library has the handle.
            return Ok(false);
        }
        let api = self.owner.device.api();
        // An integer, because a newer driver may answer with a value that the enum lacks.
        let state = Cell::new(0u32);
        let place = state.as_ptr().cast::<CUstreamCaptureStatus>();
        // SAFETY: a place for the enum, whose C type is that integer.
        self.call(OPERATION, || unsafe { api.cuStreamIsCapturing(self.raw, place) })?;
        Ok(state.get() != 0)
    }

    unsafe fn begin_capture(&self) -> Result<CaptureStart> {
        graph::begin(self)
    }

    fn captured_node(&self) -> Result<GraphNode> {
        graph::captured_node(self)
    }

    fn end_capture(&self, changes: bool) -> Result<Box<dyn ExecutableGraph<Cuda>>> {
        graph::end(self, changes)
    }

    fn record(&self, event: &CudaEvent) -> Result<()> {
        const OPERATION: &str = "cuEventRecord";
        event.owner.check_fresh(OPERATION, "event")?;
        // Who waits for the event would become part of the capture, and what is enqueued there later would not run.
        self.refuse_captured(OPERATION)?;
        let api = self.owner.device.api();
        // SAFETY: both handles are alive and of this context.
        self.call(OPERATION, || unsafe { api.cuEventRecord(event.raw, self.raw) })
    }

    fn wait(&self, event: &CudaEvent) -> Result<()> {
        const OPERATION: &str = "cuStreamWaitEvent";
        event.owner.check_fresh(OPERATION, "event")?;
        self.refuse_captured(OPERATION)?;
        let api = self.owner.device.api();
        // SAFETY: both handles are alive; the event may be another device's.
        self.call(OPERATION, || unsafe { api.cuStreamWaitEvent(self.raw, event.raw, 0) })
    }

    #[inline]
    unsafe fn launch(
        &self,
        kernel: &CudaKernel,
        dims: &LaunchConfig,
        arguments: &KernelArguments,
    ) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe { kernel.launch(self, dims, arguments) }
    }
}
