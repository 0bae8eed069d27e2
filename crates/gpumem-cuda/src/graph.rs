//! Graphs: what was enqueued on a stream while it was captured.

use crate::{Cuda, CudaKernel, NAME, api::RELAXED, device::Owner, stream::CudaStream};
use cudarc::driver::sys::{CUgraph, CUgraphExec, CUgraphNode};
use gpumem_core::{
    CaptureStart, Error, ErrorKind, ExecutableGraph, GraphNode, KernelArguments, LaunchConfig, Result,
};
use std::{
    cell::Cell,
    ptr::{null, null_mut, with_exposed_provenance_mut},
};

/// A graph that can be launched.
#[derive(Debug)]
pub(crate) struct CudaGraph {
    owner: Owner,
    raw: CUgraphExec,
    /// What was captured, whose nodes are named where launches change; null where they do not.
    captured: CUgraph,
}

impl CudaGraph {
    fn forget_captured(&mut self) {
        let captured = std::mem::replace(&mut self.captured, null_mut());
        if !captured.is_null() {
            // SAFETY: the graph is ours and is not used again; what was instantiated has its own copy.
            self.owner.destroy_quietly("cuGraphDestroy", |api| unsafe { api.cuGraphDestroy(captured) });
        }
    }
}

// SAFETY: the driver takes a graph from any thread, from one at a time.
unsafe impl Send for CudaGraph {}

pub(crate) fn begin(stream: &CudaStream) -> Result<CaptureStart> {
    const OPERATION: &str = "cuStreamBeginCapture";
    let device = &stream.owner.device;
    let _current = stream.owner.enter(OPERATION, "stream")?;
    // SAFETY: the handle is alive.
    device.check(unsafe { device.api().cuStreamBeginCapture_v2(stream.raw, RELAXED) }, OPERATION)?;
    Ok(CaptureStart::Begun)
}

/// The call that has been captured last: what the next one would depend on.
pub(crate) fn captured_node(stream: &CudaStream) -> Result<GraphNode> {
    const OPERATION: &str = "cuStreamGetCaptureInfo";
    let api = stream.owner.device.api();
    // An integer, because a newer driver may answer with a value that the enum lacks.
    let (state, nodes, count) = (Cell::new(0u32), Cell::new(null::<CUgraphNode>()), Cell::new(0));
    // SAFETY: places for the enum, whose C type is that integer, and for a list, which stays until the next call on the stream.
    stream.call(OPERATION, || unsafe {
        api.cuStreamGetCaptureInfo_v2(
            stream.raw,
            state.as_ptr().cast(),
            null_mut(),
            null_mut(),
            nodes.as_ptr(),
            count.as_ptr(),
        )
    })?;
    if count.get() != 1 || nodes.get().is_null() {
        let why = "the capture has no last call";
        return Err(Error::new(NAME, OPERATION, ErrorKind::InvalidArgument { why }));
    }
    // SAFETY: the list has one handle.
    let node = unsafe { *nodes.get() };
    Ok(GraphNode(node.expose_provenance() as u64))
}

pub(crate) fn end(stream: &CudaStream, changes: bool) -> Result<Box<dyn ExecutableGraph<Cuda>>> {
    const OPERATION: &str = "cuStreamEndCapture";
    let (device, api) = (&stream.owner.device, stream.owner.device.api());
    let _current = stream.owner.enter(OPERATION, "stream")?;
    let mut graph = CudaGraph { owner: stream.owner.clone(), raw: null_mut(), captured: null_mut() };
    // SAFETY: a place for a handle; the stream's is alive.
    device.check(unsafe { api.cuStreamEndCapture(stream.raw, &mut graph.captured) }, OPERATION)?;
    if graph.captured.is_null() {
        let why = "the capture has been invalidated";
        return Err(Error::new(NAME, OPERATION, ErrorKind::InvalidArgument { why }));
    }
    // SAFETY: a place for a handle; the graph is ours.
    let status = unsafe { api.cuGraphInstantiateWithFlags(&mut graph.raw, graph.captured, 0) };
    device.check(status, "cuGraphInstantiateWithFlags")?;
    if !changes {
        graph.forget_captured();
    }
    Ok(Box::new(graph))
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

    unsafe fn set_launch(
        &mut self,
        node: GraphNode,
        kernel: &CudaKernel,
        dims: &LaunchConfig,
        arguments: &KernelArguments,
    ) -> Result<()> {
        const OPERATION: &str = "cuGraphExecKernelNodeSetParams";
        let device = &self.owner.device;
        let _current = self.owner.enter(OPERATION, "graph")?;
        let node = with_exposed_provenance_mut(node.0 as usize);
        arguments.with_pointers(|pointers| {
            let parameters = kernel.node_parameters(dims, pointers);
            // SAFETY: all handles are alive, the node is one of the graph that was captured, and no other thread has the graph. The
            // driver copies the arguments before it returns. They are those of the kernel's signature (the caller's promise).
            let status =
                unsafe { device.api().cuGraphExecKernelNodeSetParams_v2(self.raw, node, &parameters) };
            device.check(status, OPERATION)
        })
    }
}

impl Drop for CudaGraph {
    fn drop(&mut self) {
        if !self.raw.is_null() {
            // SAFETY: the graph is ours and is not used again; the driver lets launches finish.
            self.owner
                .destroy_quietly("cuGraphExecDestroy", |api| unsafe { api.cuGraphExecDestroy(self.raw) });
        }
        self.forget_captured();
    }
}
