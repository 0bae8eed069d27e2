//! Graphs of the driver that records calls.

use super::fixture::{Kernel, Lab, Mock, Stream, lacks};
use gpumem_core::{ExecutableGraph, GraphNode, KernelArguments, LaunchConfig, Result};
use std::{ops::Range, sync::Arc};

/// A number that no graph takes.
pub const NOT_TAKEN: u32 = 100;
/// A number with which no launch of a graph succeeds.
pub const FAILS: u32 = 101;

/// A call of a kernel, with an array and a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct KernelCall {
    pub array: u64,
    pub number: u32,
    pub writes: bool,
}

/// Calls that went to a stream together.
#[derive(Debug, Clone)]
pub struct Launched {
    pub by_graph: bool,
    pub calls: Vec<KernelCall>,
}

impl KernelCall {
    pub fn of(kernel: &Kernel, arguments: &KernelArguments) -> Self {
        let array = arguments.get(0).unwrap()[..8].try_into().unwrap();
        let number = arguments.iter().last().unwrap().try_into().unwrap();
        Self { array: u64::from_ne_bytes(array), number: u32::from_ne_bytes(number), writes: kernel.writes }
    }

    pub fn bytes(&self) -> Range<u64> {
        self.array..self.array + 1
    }
}

#[derive(Debug)]
pub struct Graph {
    lab: Arc<Lab>,
    /// Each launch uses it, so that it may only be destroyed when all are done.
    address: u64,
    calls: Vec<KernelCall>,
}

impl Graph {
    pub fn new(lab: &Arc<Lab>, calls: Vec<KernelCall>) -> Self {
        Self { lab: lab.clone(), address: lab.record(|record| record.make(1)), calls }
    }
}

// SAFETY: a double without memory, for the order of streams alone.
unsafe impl ExecutableGraph<Mock> for Graph {
    unsafe fn launch(&mut self, stream: &Stream) -> Result<()> {
        if self.calls.iter().any(|call| call.number == FAILS) {
            return lacks("this number");
        }
        self.lab.record(|record| {
            record.touch(stream.number, self.address..self.address + 1, false);
            self.calls.iter().for_each(|call| record.run(stream.number, call));
            record.launches.push(Launched { by_graph: true, calls: self.calls.clone() });
        });
        Ok(())
    }

    unsafe fn set_launch(
        &mut self,
        node: GraphNode,
        kernel: &Kernel,
        _: &LaunchConfig,
        arguments: &KernelArguments,
    ) -> Result<()> {
        // A point where threads switch.
        self.lab.record(|_| ());
        let (at, call) = (node.0 as usize, KernelCall::of(kernel, arguments));
        // After a part of the numbers was taken.
        if call.number == NOT_TAKEN && at > 0 {
            return lacks("this number");
        }
        self.calls[at] = call;
        Ok(())
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        self.lab.record(|record| record.end("the end of a graph", self.address..self.address + 1));
    }
}
