//! Graphs: what was enqueued on a stream while it was captured.

use crate::counters::{CounterCells, Counters};
use crate::engine::{Command, Engine, GraphLaunch, KERNEL, Nodes, Work, drop_of_user};
use crate::error::{error, invalid};
use crate::{Host, Kernel, NAME, Stream};
use gpumem_core::{
    Capabilities, ErrorKind, ExecutableGraph, GraphNode, KernelArguments, LaunchConfig, Result,
};
use std::mem;
use std::sync::Arc;

/// A graph that can be launched.
#[derive(Debug)]
pub(crate) struct HostGraph {
    // Not the device, which may end before.
    engine: Arc<Engine>,
    generation: u64,
    capabilities: Capabilities,
    nodes: Arc<Nodes>,
    cost: Option<usize>,
    counted: Counters,
}

pub(crate) fn captured_node(stream: &Stream) -> Result<GraphNode> {
    let name = "captured_node";
    stream.queue().engine.origin().check(NAME, name)?;
    let last = stream.queue().capture_point().and_then(|capture_point| capture_point.node());
    last.map(|node| GraphNode(node as u64)).ok_or_else(|| invalid(name, "the capture has no last call"))
}

pub(crate) fn end(stream: &Stream) -> Result<Box<dyn ExecutableGraph<Host>>> {
    let (name, queue) = ("end_capture", stream.queue());
    let engine = &queue.engine;
    engine.origin().check(NAME, name)?;
    let nodes = queue.end_capture().ok_or_else(|| invalid(name, "nothing is captured"))?;
    queue.admit(name)?;
    let counted = CounterCells::default();
    nodes.iter().for_each(|node| counted.count(node.work.counted()));
    let cost = nodes.iter().try_fold(0, |sum: usize, node| sum.checked_add(node.work.cost()?));
    Ok(Box::new(HostGraph {
        engine: engine.clone(),
        generation: queue.generation,
        capabilities: stream.device().0.capabilities.clone(),
        nodes: Arc::new(nodes),
        cost,
        counted: counted.snapshot(),
    }))
}

impl HostGraph {
    /// The commands that are to fail by an injection, and why. Returns the error of one that fails at once.
    fn injected(&self) -> Result<Vec<(usize, String)>> {
        let mut failing = Vec::new();
        if self.engine.injections().has_any() {
            for (at, node) in self.nodes.iter().enumerate() {
                let (name, operation) = node.work.call();
                let what = self.engine.enter_work(name, operation)?;
                failing.extend(what.map(|what| (at, what)));
            }
        }
        Ok(failing)
    }
}

// SAFETY: the queue runs the commands with the addresses that were captured, in its order.
unsafe impl ExecutableGraph<Host> for HostGraph {
    unsafe fn launch(&mut self, stream: &Stream) -> Result<()> {
        let (name, queue) = ("launch_graph", stream.queue());
        self.engine.origin().check(NAME, name)?;
        if !Arc::ptr_eq(&self.engine, &queue.engine) {
            let told = |engine: &Engine| format!("host:{}", engine.ordinal());
            let (has, wants) = (told(&self.engine), told(&queue.engine));
            return Err(error(name, ErrorKind::WrongDevice { what: "graph", has, wants }));
        }
        if self.generation != self.engine.generation() {
            return Err(error(name, ErrorKind::Stale { what: "graph" }));
        }
        self.engine.point();
        queue.admit(name)?;
        let injected = self.injected()?;
        let launch = GraphLaunch::new(&self.nodes, self.cost, injected, self.engine.random());
        queue.enqueue(name, Command::Graph(Box::new(launch)))?;
        self.engine.counters().add(&self.counted);
        self.engine.point();
        Ok(())
    }

    unsafe fn set_launch(
        &mut self,
        node: GraphNode,
        kernel: &Kernel,
        dims: &LaunchConfig,
        arguments: &KernelArguments,
    ) -> Result<()> {
        let name = "set_launch";
        self.engine.origin().check(NAME, name)?;
        let work = kernel.work(&self.engine, &self.capabilities, dims, arguments)?;
        // Launches that are under way keep what they have.
        let nodes = Arc::make_mut(&mut self.nodes);
        let node = nodes.get_mut(node.0 as usize).filter(|node| matches!(node.work, Work::Launch(_)));
        let node = node.ok_or_else(|| invalid(name, "the call is no launch"))?;
        *node = Arc::new(node.with(work));
        Ok(())
    }
}

impl Drop for HostGraph {
    fn drop(&mut self) {
        if self.engine.origin().is_valid() {
            if self.cost.is_none() {
                drop_of_user(KERNEL, mem::take(&mut self.nodes));
            }
        } else {
            // One count too many: nothing is ever freed in a process that does not own it.
            mem::forget((self.engine.clone(), self.nodes.clone()));
        }
    }
}
