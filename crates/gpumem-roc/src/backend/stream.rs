//! What ROCm does on a stream.

use crate::{NAME, Roc, RocEvent, RocKernel, RocStream, copy, fill, graph, graph_test, managed, pack};
use gpumem_core::{
    CaptureStart, CopyRegion, Error, ErrorKind, Event, EventOptions, ExecutableGraph, Fill, GraphNode,
    KernelArguments, LaunchConfig, Location, RawStream, Result, Stream, StridedCopy,
};
use gpumem_sys::hip::hipStreamCaptureStatus;
use std::{ffi::c_void, ptr::with_exposed_provenance, sync::atomic::Ordering};

// SAFETY: each function is HIP's, and so is its answer.
unsafe impl Stream<Roc> for RocStream {
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
        let Some(_turn) = device.enqueue_lock().for_query() else { return Ok(false) };
        // SAFETY: the handle is alive.
        device.check_ready(unsafe { device.hip().hipStreamQuery(self.raw) }, OPERATION)
    }

    fn raw(&self) -> RawStream {
        // Relaxed: who captures the stream got the handle from here, and orders itself with those that use the stream meanwhile.
        self.is_shared.store(true, Ordering::Relaxed);
        self.lent()
    }

    fn lent(&self) -> RawStream {
        RawStream(self.raw.expose_provenance() as u64)
    }

    fn destroy(mut self) -> Result<()> {
        if !std::mem::take(&mut self.owned) {
            return Ok(());
        }
        self.owner.destroy("hipStreamDestroy", self.held())
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
        const OPERATION: &str = "hipMemPrefetchAsync";
        let device = &self.owner.device;
        managed::needs_concurrent_access(device, OPERATION)?;
        let place = managed::place(device, to);
        let _turn = self.owner.device.enqueue_lock().shared();
        let _current = self.owner.enter(OPERATION, "stream")?;
        let address = with_exposed_provenance::<c_void>(address as usize);
        // SAFETY: the range lies in one live managed buffer, as the caller promises.
        let status = unsafe { device.hip().hipMemPrefetchAsync(address, bytes, place, self.raw) };
        device.check(status, OPERATION)
    }

    fn is_capturing(&self) -> Result<bool> {
        const OPERATION: &str = "hipStreamIsCapturing";
        if !self.is_shared.load(Ordering::Relaxed) {
            // No other library has the handle.
            return Ok(false);
        }
        let device = &self.owner.device;
        let _current = self.owner.enter(OPERATION, "stream")?;
        let mut state = hipStreamCaptureStatus::hipStreamCaptureStatusNone;
        // SAFETY: a place for the state.
        device.check(unsafe { device.hip().hipStreamIsCapturing(self.raw, &mut state) }, OPERATION)?;
        Ok(state != hipStreamCaptureStatus::hipStreamCaptureStatusNone)
    }

    unsafe fn begin_capture(&self) -> Result<CaptureStart> {
        graph_test::begin(self)
    }

    fn captured_node(&self) -> Result<GraphNode> {
        graph::captured_node(self)
    }

    fn end_capture(&self, changes: bool) -> Result<Box<dyn ExecutableGraph<Roc>>> {
        graph::end(self, changes)
    }

    fn record(&self, event: &RocEvent) -> Result<()> {
        const OPERATION: &str = "hipEventRecord";
        event.owner.check(OPERATION, "event")?;
        // Who waits for the event would become part of the capture, and what is enqueued there later would not run.
        if self.is_capturing()? {
            let what = "work that waits for a stream which another library captures";
            return Err(Error::new(NAME, OPERATION, ErrorKind::Unsupported { what }));
        }
        let device = &self.owner.device;
        let _turn = device.enqueue_lock().shared();
        let _current = self.owner.enter(OPERATION, "stream")?;
        // SAFETY: both handles are alive and of this device.
        device.check(unsafe { device.hip().hipEventRecord(event.raw, self.raw) }, OPERATION)
    }

    fn wait(&self, event: &RocEvent) -> Result<()> {
        const OPERATION: &str = "hipStreamWaitEvent";
        event.owner.check(OPERATION, "event")?;
        let device = &self.owner.device;
        let _turn = device.enqueue_lock().shared();
        let _current = self.owner.enter(OPERATION, "stream")?;
        // SAFETY: both handles are alive; the event may be another device's.
        device.check(unsafe { device.hip().hipStreamWaitEvent(self.raw, event.raw, 0) }, OPERATION)
    }

    unsafe fn launch(
        &self,
        kernel: &RocKernel,
        dims: &LaunchConfig,
        arguments: &KernelArguments,
    ) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe { kernel.launch(self, dims, arguments) }
    }
}
