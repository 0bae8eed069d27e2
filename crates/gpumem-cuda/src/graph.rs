//! Graphs: what was enqueued on a stream while it was captured.

use crate::{Cuda, NAME, api::DriverApi, device::Owner, stream::CudaStream};
use cudarc::driver::sys::{
    CUgraph, CUgraphExec, CUstreamCaptureMode,
    CUstreamCaptureMode_enum::CU_STREAM_CAPTURE_MODE_RELAXED as RELAXED,
};
use gpumem_core::{Error, ErrorKind, ExecutableGraph, Result};
use std::ptr::null_mut;

/// A graph that can be launched.
#[derive(Debug)]
pub(crate) struct CudaGraph {
    owner: Owner,
    raw: CUgraphExec,
}

// SAFETY: the driver takes a graph from any thread, from one at a time.
unsafe impl Send for CudaGraph {}

/// While it lives, calls of this thread neither end nor hinder a capture of another library's, which may run on any thread.
struct RelaxedMode<'a> {
    api: &'a DriverApi,
    before: CUstreamCaptureMode,
}

impl<'a> RelaxedMode<'a> {
    fn enter(api: &'a DriverApi) -> Self {
        let mut before = RELAXED;
        // SAFETY: a place for the mode, which the driver exchanges with that of the thread.
        let _ = unsafe { api.cuThreadExchangeStreamCaptureMode(&mut before) };
        Self { api, before }
    }
}

impl Drop for RelaxedMode<'_> {
    fn drop(&mut self) {
        // SAFETY: as above.
        let _ = unsafe { self.api.cuThreadExchangeStreamCaptureMode(&mut self.before) };
    }
}

pub(crate) fn begin(stream: &CudaStream) -> Result<bool> {
    const OPERATION: &str = "cuStreamBeginCapture";
    let device = &stream.owner.device;
    let _current = stream.owner.enter(OPERATION, "stream")?;
    let _mode = RelaxedMode::enter(device.api());
    // SAFETY: the handle is alive.
    device.check(unsafe { device.api().cuStreamBeginCapture_v2(stream.raw, RELAXED) }, OPERATION)?;
    Ok(true)
}

pub(crate) fn end(stream: &CudaStream) -> Result<Box<dyn ExecutableGraph<Cuda>>> {
    const OPERATION: &str = "cuStreamEndCapture";
    let (device, api) = (&stream.owner.device, stream.owner.device.api());
    let _current = stream.owner.enter(OPERATION, "stream")?;
    let _mode = RelaxedMode::enter(api);
    let (mut graph, mut raw): (CUgraph, CUgraphExec) = (null_mut(), null_mut());
    // SAFETY: a place for a handle; the stream's is alive.
    device.check(unsafe { api.cuStreamEndCapture(stream.raw, &mut graph) }, OPERATION)?;
    if graph.is_null() {
        let why = "the capture has been invalidated";
        return Err(Error::new(NAME, OPERATION, ErrorKind::InvalidArgument { why }));
    }
    // SAFETY: a place for a handle; the graph is ours.
    let instantiated = unsafe { api.cuGraphInstantiateWithFlags(&mut raw, graph, 0) };
    // SAFETY: the graph is ours and is not used again; what was instantiated has its own copy.
    let destroyed = unsafe { api.cuGraphDestroy(graph) };
    device.check(instantiated, "cuGraphInstantiateWithFlags")?;
    let made = CudaGraph { owner: stream.owner.clone(), raw };
    device.check(destroyed, "cuGraphDestroy")?;
    Ok(Box::new(made))
}

// SAFETY: the driver does what it captured, in the order of the stream and of the graph's launches.
unsafe impl ExecutableGraph<Cuda> for CudaGraph {
    unsafe fn launch(&mut self, stream: &CudaStream) -> Result<()> {
        const OPERATION: &str = "cuGraphLaunch";
        let api = self.owner.device.api();
        self.owner.check_fresh(OPERATION, "graph")?;
        // SAFETY: both handles are alive, and no other thread has the graph; the rest is the caller's promise.
        stream.call(OPERATION, || unsafe { api.cuGraphLaunch(self.raw, stream.raw) })
    }
}

impl Drop for CudaGraph {
    fn drop(&mut self) {
        // SAFETY: the graph is ours and is not used again; the driver lets launches finish.
        self.owner.destroy_quietly("cuGraphExecDestroy", |api| unsafe { api.cuGraphExecDestroy(self.raw) });
    }
}
