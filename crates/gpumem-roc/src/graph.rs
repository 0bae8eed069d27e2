//! Graphs of HIP: what was enqueued on a stream while it was captured.
//!
//! From version 6.4 on only: so no call here takes a turn of the enqueue lock, which ROCm 5 needs.

use crate::{
    NAME, Roc, RocKernel, RocStream,
    device::{Held, Owner},
};
use gpumem_core::{Error, ErrorKind, ExecutableGraph, GraphNode, KernelArguments, LaunchConfig, Result};
use gpumem_sys::hip::{
    hipGraph_t, hipGraphExec_t, hipGraphNode_t, hipStreamCaptureMode, hipStreamCaptureStatus,
};
use std::ptr::{null, null_mut, with_exposed_provenance_mut};

/// Changes of launches that a graph takes. HIP takes memory for each and gives it back with the graph (ROCm/rocm-systems#10713).
const MOST_CHANGES: u32 = 1 << 16;

/// HIP 7.2 looks at a chain by a recursion: one of 20000 nodes overflows a stack of 2 MiB, and one of 5000 does not.
const MOST_NODES: usize = 1024;

/// A graph that can be launched.
#[derive(Debug)]
pub(crate) struct RocGraph {
    owner: Owner,
    raw: hipGraphExec_t,
    /// What was captured, whose nodes are named where launches change; null where they do not.
    captured: hipGraph_t,
    changes: u32,
}

// SAFETY: HIP takes a graph from any thread, from one at a time.
unsafe impl Send for RocGraph {}

/// Begins to capture the stream.
pub(crate) fn begin(stream: &RocStream) -> Result<()> {
    const OPERATION: &str = "hipStreamBeginCapture";
    let device = &stream.owner.device;
    let _current = stream.owner.enter(OPERATION, "stream")?;
    // Made on first use by a copy that waits: it would be captured instead, and read memory of the host that is gone.
    device.words(stream.raw).map_err(|status| device.failure(status, OPERATION))?;
    let mode = hipStreamCaptureMode::hipStreamCaptureModeRelaxed;
    // SAFETY: the handle is alive.
    device.check(unsafe { device.hip().hipStreamBeginCapture(stream.raw, mode) }, OPERATION)
}

/// The call that has been captured last: what the next one would depend on.
pub(crate) fn captured_node(stream: &RocStream) -> Result<GraphNode> {
    const OPERATION: &str = "hipStreamGetCaptureInfo";
    let device = &stream.owner.device;
    let _current = stream.owner.enter(OPERATION, "stream")?;
    let mut state = hipStreamCaptureStatus::hipStreamCaptureStatusNone;
    let (mut nodes, mut count) = (null::<hipGraphNode_t>(), 0);
    // SAFETY: places for the state and for a list, which stays until the next call on the stream.
    let status = unsafe {
        device.hip().hipStreamGetCaptureInfo_v2(
            stream.raw,
            &mut state,
            null_mut(),
            null_mut(),
            &mut nodes,
            &mut count,
        )
    };
    device.check(status, OPERATION)?;
    if state != hipStreamCaptureStatus::hipStreamCaptureStatusActive || count != 1 || nodes.is_null() {
        let why = "the capture has no last call";
        return Err(Error::new(NAME, OPERATION, ErrorKind::InvalidArgument { why }));
    }
    // SAFETY: the list has one handle.
    let node = unsafe { *nodes };
    Ok(GraphNode(node.expose_provenance() as u64))
}

pub(crate) fn end(stream: &RocStream, changes: bool) -> Result<Box<dyn ExecutableGraph<Roc>>> {
    const OPERATION: &str = "hipStreamEndCapture";
    let device = &stream.owner.device;
    let _current = stream.owner.enter(OPERATION, "stream")?;
    let owner = stream.owner.clone();
    let mut graph = RocGraph { owner, raw: null_mut(), captured: null_mut(), changes: 0 };
    let mut captured = null_mut();
    // SAFETY: a place for a handle; the stream's is alive.
    device.check(unsafe { device.hip().hipStreamEndCapture(stream.raw, &mut captured) }, OPERATION)?;
    if captured.is_null() {
        let why = "the capture has been invalidated";
        return Err(Error::new(NAME, OPERATION, ErrorKind::InvalidArgument { why }));
    }
    device.hold(Held::Graph(captured.expose_provenance()));
    graph.captured = captured;
    let mut nodes = 0;
    // SAFETY: a place for a number; the graph is ours.
    let status = unsafe { device.hip().hipGraphGetNodes(captured, null_mut(), &mut nodes) };
    device.check(status, "hipGraphGetNodes")?;
    if nodes > MOST_NODES {
        let what = "more than 1024 calls in one of HIP's graphs";
        return Err(Error::new(NAME, OPERATION, ErrorKind::Unsupported { what }));
    }
    let mut raw = null_mut();
    // SAFETY: a place for a handle; the graph is ours.
    let status = unsafe { device.hip().hipGraphInstantiateWithFlags(&mut raw, captured, 0) };
    device.check(status, "hipGraphInstantiateWithFlags")?;
    device.hold(Held::Executable(raw.expose_provenance()));
    graph.raw = raw;
    if !changes {
        graph.forget_captured();
    }
    Ok(Box::new(graph))
}

impl RocGraph {
    fn forget_captured(&mut self) {
        let captured = std::mem::replace(&mut self.captured, null_mut());
        if !captured.is_null() {
            self.owner.destroy_quietly("hipGraphDestroy", Held::Graph(captured.expose_provenance()));
        }
    }
}

// SAFETY: HIP does what it captured, in the order of the stream and of the graph's launches. Where it does not, the user has
// asked for it: see `graph_test`.
unsafe impl ExecutableGraph<Roc> for RocGraph {
    unsafe fn launch(&mut self, stream: &RocStream) -> Result<()> {
        const OPERATION: &str = "hipGraphLaunch";
        self.owner.check(OPERATION, "graph")?;
        let device = &stream.owner.device;
        let _current = stream.owner.enter(OPERATION, "stream")?;
        // SAFETY: both handles are alive, and no other thread has the graph; the rest is the caller's promise.
        device.check(unsafe { device.hip().hipGraphLaunch(self.raw, stream.raw) }, OPERATION)
    }

    unsafe fn set_launch(
        &mut self,
        node: GraphNode,
        kernel: &RocKernel,
        dims: &LaunchConfig,
        arguments: &KernelArguments,
    ) -> Result<()> {
        const OPERATION: &str = "hipGraphExecKernelNodeSetParams";
        let device = &self.owner.device;
        let _current = self.owner.enter(OPERATION, "graph")?;
        if self.changes == MOST_CHANGES {
            let what = "more changes of one of HIP's graphs, which would keep the memory of each";
            return Err(Error::new(NAME, OPERATION, ErrorKind::Unsupported { what }));
        }
        self.changes += 1;
        let node = with_exposed_provenance_mut(node.0 as usize);
        arguments.with_pointers(|pointers| {
            let parameters = kernel.node_parameters(device, dims, pointers)?;
            // SAFETY: all handles are alive, the node is one of the graph that was captured, and no other thread has the graph. HIP
            // copies the arguments before it returns. They are those of the kernel's signature (the caller's promise).
            let status = unsafe { device.hip().hipGraphExecKernelNodeSetParams(self.raw, node, &parameters) };
            device.check(status, OPERATION)
        })
    }
}

impl Drop for RocGraph {
    fn drop(&mut self) {
        if !self.raw.is_null() {
            self.owner.destroy_quietly("hipGraphExecDestroy", Held::Executable(self.raw.expose_provenance()));
        }
        self.forget_captured();
    }
}
