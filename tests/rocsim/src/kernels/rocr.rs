//! The copy and fill shaders that are built into ROCr.
//!
//! They have no names; they are told apart by their arguments. Each layout ends in the number of work-items, which is
//! also the size of the grid.

use super::{Arguments, Refusal};
use crate::abi::DispatchPacket;

/// Fill: first address, address of the rest, end, value, work-items.
mod fill {
    pub(super) const START: u64 = 0;
    pub(super) const END: u64 = 16;
    pub(super) const VALUE: u64 = 24;
    pub(super) const WORK_ITEMS: u64 = 28;
}

/// Copies: source and destination of each phase, the two ends, work-items. The number of phases differs.
mod copy {
    pub(super) const SOURCE: u64 = 0;
    pub(super) const DESTINATION: u64 = 8;
    pub(super) const ALIGNED_SOURCE_END: u64 = 64;
    pub(super) const ALIGNED_WORK_ITEMS: u64 = 80;
    pub(super) const MISALIGNED_SOURCE_END: u64 = 32;
    pub(super) const MISALIGNED_WORK_ITEMS: u64 = 48;
}

/// Runs one of the shaders.
pub(super) fn run(arguments: &Arguments, packet: &DispatchPacket) -> Result<(), Refusal> {
    let grid = packet.grid_size[0];
    if arguments.u32(fill::WORK_ITEMS)? == grid {
        let (start, end) = (arguments.u64(fill::START)?, arguments.u64(fill::END)?);
        let value = arguments.u32(fill::VALUE)?;
        return arguments.fill(start, &value.to_ne_bytes(), end.saturating_sub(start) / 4);
    }
    let (source, destination) = (arguments.u64(copy::SOURCE)?, arguments.u64(copy::DESTINATION)?);
    let (end, work_items) = if source & 3 == destination & 3 {
        (copy::ALIGNED_SOURCE_END, copy::ALIGNED_WORK_ITEMS)
    } else {
        (copy::MISALIGNED_SOURCE_END, copy::MISALIGNED_WORK_ITEMS)
    };
    if arguments.u32(work_items)? != grid {
        return Err(Refusal::Unknown);
    }
    arguments.copy(source, destination, arguments.u64(end)?.saturating_sub(source))
}
