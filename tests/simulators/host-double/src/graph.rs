//! Graphs of the double: what was captured on its streams. Calls that do not depend on each other run in another order each time.

use crate::{Double, DoubleDevice, DoubleStream, double::NAME};
use gpumem_core::{
    CopyRegion, Error, ErrorKind, ExecutableGraph, Fill, GraphNode, KernelArguments, LaunchConfig, Result,
    Stream, StridedCopy,
};
use gpumem_host::Kernel;
use parking_lot::Mutex;
use std::sync::{Arc, atomic::Ordering};

/// A call that was captured.
#[derive(Debug, Clone)]
pub(crate) enum Call {
    Copy(CopyRegion),
    CopyStrided(StridedCopy),
    Fill(Fill),
    Launch(Kernel, LaunchConfig, Box<KernelArguments>),
}

/// The calls of one capture, each with those that it runs after.
type Calls = Vec<(Call, Vec<usize>)>;

/// A capture that goes on, and the calls that the next one of the stream runs after; of an event those that it stands for.
#[derive(Debug, Clone)]
pub(crate) struct Capture {
    calls: Arc<Mutex<Calls>>,
    last: Vec<usize>,
}

impl Capture {
    pub(crate) fn begin() -> Self {
        Self { calls: Arc::default(), last: Vec::new() }
    }

    pub(crate) fn push(&mut self, call: Call) {
        let mut calls = self.calls.lock();
        let before = std::mem::replace(&mut self.last, vec![calls.len()]);
        calls.push((call, before));
    }

    /// What comes next runs after the event too.
    pub(crate) fn join(own: &mut Option<Self>, event: &Self) {
        match own {
            Some(own) => own.last.extend(&event.last),
            None => *own = Some(event.clone()),
        }
    }

    pub(crate) fn node(&self) -> Result<GraphNode> {
        match self.last[..] {
            [last] => Ok(GraphNode(last as u64)),
            _ => Err(invalid("captured_node", "the capture has no last call")),
        }
    }

    pub(crate) fn end(self, device: &DoubleDevice) -> Box<dyn ExecutableGraph<Double>> {
        let calls = std::mem::take(&mut *self.calls.lock());
        device.graph_counter().fetch_add(1, Ordering::Relaxed);
        Box::new(Graph { device: device.clone(), calls, random: 1 })
    }
}

pub(crate) fn invalid(operation: &'static str, why: &'static str) -> Error {
    Error::new(NAME, operation, ErrorKind::InvalidArgument { why })
}

#[derive(Debug)]
struct Graph {
    device: DoubleDevice,
    calls: Calls,
    random: u64,
}

impl Drop for Graph {
    fn drop(&mut self) {
        self.device.graph_counter().fetch_sub(1, Ordering::Relaxed);
    }
}

// SAFETY: the calls run as they were captured, each after those that it depends on.
unsafe impl ExecutableGraph<Double> for Graph {
    unsafe fn launch(&mut self, stream: &DoubleStream) -> Result<()> {
        self.device.call("launch_graph")?;
        let mut left: Vec<usize> = (0..self.calls.len()).collect();
        while !left.is_empty() {
            let is_ready = |at: &usize| !self.calls[*at].1.iter().any(|before| left.contains(before));
            let ready: Vec<usize> = left.iter().copied().filter(is_ready).collect();
            self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let next = ready[(self.random >> 33) as usize % ready.len()];
            left.retain(|at| *at != next);
            // SAFETY: the caller's promise.
            unsafe {
                match &self.calls[next].0 {
                    Call::Copy(region) => stream.copy(region)?,
                    Call::CopyStrided(copy) => stream.copy_strided(copy)?,
                    Call::Fill(fill) => stream.fill(fill)?,
                    Call::Launch(kernel, dims, arguments) => stream.launch(kernel, dims, arguments)?,
                }
            }
        }
        Ok(())
    }

    unsafe fn set_launch(
        &mut self,
        node: GraphNode,
        kernel: &Kernel,
        dims: &LaunchConfig,
        arguments: &KernelArguments,
    ) -> Result<()> {
        self.device.call("set_launch")?;
        match self.calls.get_mut(node.0 as usize) {
            Some((call @ Call::Launch(..), _)) => {
                *call = Call::Launch(kernel.clone(), *dims, Box::new(arguments.clone()));
                Ok(())
            }
            _ => Err(invalid("set_launch", "the call is no launch")),
        }
    }
}
