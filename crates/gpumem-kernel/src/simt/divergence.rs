//! Chooses the work-item that an error names when work-items diverge at a barrier.

use crate::simt::{
    FaultKind,
    barrier::{Halt, Stop},
    name::Place,
};

/// For a group whose work-items are at different places, none waiting for its wave: the number of the first that is not
/// at the barrier, and the fault.
#[cold]
pub(crate) fn of_group(halts: &[Halt]) -> (u32, FaultKind) {
    let Meeting { at, arrived, missing, instead } = meeting(halts, Stop::is_group);
    (missing, FaultKind::GroupDivergence { arrived, of: halts.len() as u32, at, instead })
}

/// As `of_group`, for work-items of one wave, some of which wait for it.
#[cold]
pub(crate) fn of_wave(halts: &[Halt]) -> (u32, FaultKind) {
    let Meeting { at, arrived, missing, instead } = meeting(halts, Stop::is_wave);
    (missing, FaultKind::WaveDivergence { arrived, of: halts.len() as u32, at, instead })
}

struct Meeting {
    /// Where the first that waits does so.
    at: Place,
    /// How many wait there.
    arrived: u32,
    /// The first that does not.
    missing: u32,
    /// Where it waits instead; `None` if it has ended.
    instead: Option<Place>,
}

fn meeting(halts: &[Halt], waits: impl Fn(Stop) -> bool) -> Meeting {
    let first = halts.iter().find(|halt| waits(halt.stop)).unwrap_or(&Halt::ENDED);
    let is_there = |halt: &&Halt| waits(halt.stop) && first.joins(**halt);
    let missing = halts.iter().position(|halt| !is_there(&halt)).unwrap_or(0);
    let instead = halts.get(missing).filter(|halt| halt.stop != Stop::Ended).map(|halt| halt.place());
    Meeting {
        at: first.place(),
        arrived: halts.iter().filter(is_there).count() as u32,
        missing: missing as u32,
        instead,
    }
}
