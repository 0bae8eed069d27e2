//! Kernels run from their machine code.

use super::Refusal;
use crate::{
    abi::DispatchPacket,
    config::Config,
    isa::{self, Cause, Failure, Launch, Undecoded},
    stats::stats,
};

/// Where a dispatch comes from: addresses of the GPU.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProcessGuard {
    pub(crate) packet: u64,
    pub(crate) queue: u64,
}

/// Runs a kernel of that name.
pub(super) fn run(
    name: &str,
    node: u32,
    packet: &DispatchPacket,
    origin: ProcessGuard,
    stopped: &dyn Fn() -> bool,
) -> Result<(), Refusal> {
    let config = Config::get();
    let launch = Launch {
        node,
        isa: config.model.isa,
        name: name.to_owned(),
        grid: packet.grid_size,
        group: packet.workgroup_size.map(u32::from),
        shared_bytes: packet.group_segment_size,
        private_bytes: packet.private_segment_size,
        object: packet.kernel_object,
        arguments: packet.kernarg_address,
        packet: origin.packet,
        queue: origin.queue,
        most_instructions: config.most_instructions,
    };
    match isa::run(&launch, config.check, stopped) {
        Ok(instructions) => {
            stats().machine_code_dispatches.add(1);
            stats().instructions.add(instructions);
            Ok(())
        }
        Err(Failure::Stopped) => Err(Refusal::Stopped),
        Err(Failure::Undecoded(Undecoded::Fault(fault))) => Err(Refusal::Fault(fault)),
        Err(Failure::Undecoded(Undecoded::Missing(missing))) => {
            eprintln!("rocsim: kernel {name} cannot be run: {missing}");
            stats().unknown_kernels.add(1);
            Err(Refusal::Unknown)
        }
        Err(Failure::Stop(stop)) => {
            eprintln!("rocsim: {stop}");
            Err(match stop.cause {
                Cause::Fault(fault) => Refusal::Fault(fault),
                Cause::Unknown(_) => {
                    stats().unknown_kernels.add(1);
                    Refusal::Unknown
                }
                Cause::Trap
                | Cause::BadAddress { .. }
                | Cause::NotWaitedFor { .. }
                | Cause::Race { .. }
                | Cause::Unwritten { .. }
                | Cause::Endless { .. } => Refusal::Trap,
            })
        }
    }
}
