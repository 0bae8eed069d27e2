//! The graph of a backend.

use super::{Backend, lacks};
use crate::{KernelArguments, LaunchConfig, Result};
use std::fmt::Debug;

/// Whether a stream is captured now: the answer of [`Stream::begin_capture`](super::Stream::begin_capture).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaptureStart {
    /// It is, and other streams become part of the capture by waiting for it.
    Begun,
    /// It is, but no other stream may be: the runtime enqueues everything on this one.
    BegunAlone,
    /// It is not, for this reason: the backend makes no graphs.
    Refused(&'static str),
}

/// A call in a graph of the driver: [`Stream::captured_node`](super::Stream::captured_node).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GraphNode(pub u64);

/// What was enqueued on a stream while it was [captured](super::Stream::begin_capture), which the driver enqueues as one piece of
/// work. Dropping it may call the driver.
///
/// # Safety
/// * A launch does what was captured, with the same addresses, and nothing else.
/// * It runs after what was enqueued on its stream before. Launches that conflict are ordered by who launches them.
pub unsafe trait ExecutableGraph<B: Backend>: Debug + Send {
    /// Enqueues everything that was captured.
    ///
    /// # Safety
    /// As for the calls that were captured.
    ///
    /// # Errors
    /// Returns [`Driver`](crate::ErrorKind::Driver) if the driver reports a failure. Nothing has been enqueued then.
    unsafe fn launch(&mut self, stream: &B::Stream) -> Result<()>;

    /// Replaces the size and the arguments of a captured launch, for later launches of the graph.
    ///
    /// # Safety
    /// The node is a launch of this kernel in this graph. The arguments are those of the kernel's signature.
    ///
    /// # Errors
    /// Returns [`Unsupported`](crate::ErrorKind::Unsupported) by default, and [`Driver`](crate::ErrorKind::Driver) if the driver
    /// reports a failure. The graph is as it was then.
    unsafe fn set_launch(
        &mut self,
        node: GraphNode,
        kernel: &B::Kernel,
        dims: &LaunchConfig,
        arguments: &KernelArguments,
    ) -> Result<()> {
        let _ = (node, kernel, dims, arguments);
        lacks::<B, _>("set_launch", "other arguments for a captured launch")
    }
}
