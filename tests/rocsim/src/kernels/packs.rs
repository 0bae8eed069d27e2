//! The kernels by which gpumem copies between any two layouts (`gpumem_core::pack`), by name.
//!
//! Every program that uses gpumem may launch them, so that none has to register them.

use super::{Arguments, Refusal};
use crate::{abi::DispatchPacket, stats::stats};
use gpumem_core::pack::{Family, Turn, UNITS, Walk, Work};

/// Runs the kernel of that name, or gives `None` if it is not one of them.
pub(super) fn run(name: &str, arguments: &Arguments, packet: &DispatchPacket) -> Option<Result<(), Refusal>> {
    name.strip_prefix("gpumem_")?;
    let known = UNITS.iter().flat_map(|unit| Family::ALL.map(|family| (family, *unit)));
    let (family, unit) = known.into_iter().find(|(family, unit)| family.symbol(*unit) == name)?;
    Some(work(family, arguments).and_then(|work| {
        let [x, y] = work.group_size(unit);
        // The kernels reckon with these; a grid of any size does.
        if packet.workgroup_size.map(u32::from) != [x, y, 1]
            || (family == Family::Walk && work.family() != family)
        {
            eprintln!("rocsim: {name} in groups of {:?} with {work:?}", packet.workgroup_size);
            return Err(Refusal::Trap);
        }
        copy(&work, arguments, unit)
    }))
}

fn work(family: Family, arguments: &Arguments) -> Result<Work, Refusal> {
    Ok(match family {
        Family::Turn => Work::Turn(arguments.structure::<Turn>()?),
        _ => Work::Walk(arguments.structure::<Walk>()?),
    })
}

/// Copies unit by unit. What lies between the first and the last byte of either side is looked up as a whole.
fn copy(work: &Work, arguments: &Arguments, unit: usize) -> Result<(), Refusal> {
    let each = |act: &mut dyn FnMut(u64, u64)| match work {
        Work::Walk(walk) => walk.each_unit(act),
        Work::Turn(turn) => turn.each_unit(unit, act),
    };
    let (mut from, mut to, mut units) = ((u64::MAX, 0), (u64::MAX, 0), 0);
    let wider = |(low, high): (u64, u64), at: u64| (low.min(at), high.max(at));
    each(&mut |source, destination| {
        (from, to) = (wider(from, source), wider(to, destination));
        units += 1;
    });
    if units == 0 {
        return Ok(());
    }
    let length = |(low, high): (u64, u64)| (high - low).saturating_add(unit as u64);
    let (source, destination) = (arguments.span(from.0, length(from))?, arguments.span(to.0, length(to))?);
    let mut aligned = true;
    each(&mut |a, b| {
        aligned &= (a | b).is_multiple_of(unit as u64);
        // SAFETY: both lie within their spans; the two sides may share bytes only where the program is wrong.
        unsafe {
            let (a, b) =
                (source.as_ptr().add((a - from.0) as usize), destination.as_ptr().add((b - to.0) as usize));
            std::ptr::copy(a.cast_const(), b, unit);
        }
    });
    stats().layout_copied_bytes.add(units * unit as u64);
    if aligned { Ok(()) } else { Err(Refusal::Trap) }
}
