//! Kernels: run from their machine code, or as functions of the host that the program has registered by name
//! ([`registry`]).

mod loader;
mod machine_code;
pub mod registry;

use crate::{
    abi::DispatchPacket,
    config::trace,
    memory::{self, Fault},
    stats::stats,
};
pub(crate) use machine_code::ProcessGuard;

/// Why a kernel has not run to its end.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// It has touched memory that is not mapped for its GPU.
    Fault(Fault),
    /// Its queue is to stand still.
    Stopped,
    /// It has an instruction that is not known.
    Unknown,
    /// It has executed a trap, or its host function has reported an error.
    Trap,
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        Refusal::Fault(fault)
    }
}

/// Runs a kernel. `stopped` is asked by kernels that wait.
pub(crate) fn dispatch(
    node: u32,
    packet: &DispatchPacket,
    origin: ProcessGuard,
    stopped: &dyn Fn() -> bool,
) -> Result<(), Refusal> {
    stats().dispatches.add(1);
    let descriptor = Descriptor::read(node, packet.kernel_object)?;
    // Before the name is asked for: the loader uses these kernels while it holds the lock that the question needs.
    if descriptor.is_rocr_shader() {
        stats().blit_dispatches.add(1);
        return machine_code::run("(a shader of ROCr)", node, packet, origin, stopped);
    }
    let name = loader::kernel_name(packet.kernel_object);
    let name = name.as_deref().unwrap_or("(no symbol)");
    trace!("node {node}: kernel {name}, grid {:?}, group {:?}", packet.grid_size, packet.workgroup_size);
    if let Some(outcome) = registry::run(name, node, packet, &descriptor) {
        stats().host_function_dispatches.add(1);
        return outcome;
    }
    match name {
        _ if name.starts_with("__amd_rocclr_") => stats().blit_dispatches.add(1),
        _ if name.starts_with("gpumem_") => stats().layout_dispatches.add(1),
        _ => 0,
    };
    machine_code::run(name, node, packet, origin, stopped)
}

/// The first 64 bytes of a kernel object.
struct Descriptor {
    words: [u32; 16],
    group_segment_fixed_bytes: u32,
    kernarg_bytes: u32,
}

impl Descriptor {
    fn read(node: u32, kernel_object: u64) -> Result<Self, Fault> {
        let span = memory::span(node, kernel_object, 64)?;
        // SAFETY: the span has 64 bytes, whatever their alignment.
        let words: [u32; 16] = unsafe { span.as_ptr().cast::<[u32; 16]>().read_unaligned() };
        Ok(Self { words, group_segment_fixed_bytes: words[0], kernarg_bytes: words[2] })
    }

    /// Whether it is one of the shaders that are built into ROCr: the header directly before the code, and nothing
    /// in it but registers. Compilers put the code on other pages and say how long the arguments are.
    fn is_rocr_shader(&self) -> bool {
        let entry_offset = u64::from(self.words[4]) | u64::from(self.words[5]) << 32;
        entry_offset == 256 && self.words[..4] == [0; 4]
    }
}
