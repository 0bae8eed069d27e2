//! Copies of `slices × rows × bytes`.

use super::{copy_run, pointer};
use gpumem_core::{CopyRegion, Endpoint};
use std::ops::Range;

/// Bytes from the first to behind the last that one side of a region spans, or `None` if the number does not fit.
pub(crate) fn extent(region: &CopyRegion, side: &Endpoint) -> Option<usize> {
    let slices = side.pitch[1].checked_mul(region.slices.checked_sub(1)?)?;
    let rows = side.pitch[0].checked_mul(region.rows.checked_sub(1)?)?;
    let bytes = slices.checked_add(rows)?.checked_add(region.bytes)?;
    side.address.checked_add(bytes as u64).map(|_| bytes)
}

/// Copies the bytes of `part`, counted as if both sides were packed.
///
/// # Safety
/// Both sides are valid for the region, which obeys the rules of [`CopyRegion`]; `part` lies within its bytes.
pub(crate) unsafe fn run_region(region: &CopyRegion, part: Range<usize>) {
    let (source, destination) = (pointer(region.source.address), pointer(region.destination.address));
    let packed = |side: &Endpoint| {
        (region.rows == 1 || side.pitch[0] == region.bytes)
            && (region.slices == 1 || side.pitch[1] == region.bytes * region.rows)
    };
    if packed(&region.source) && packed(&region.destination) {
        // SAFETY: both sides are contiguous, valid and disjoint.
        unsafe {
            copy_run(source.add(part.start), destination.add(part.start), part.len());
        }
        return;
    }
    let mut at = part.start;
    let mut row = at / region.bytes;
    while at < part.end {
        let within = at - row * region.bytes;
        let bytes = (region.bytes - within).min(part.end - at);
        let offset =
            |side: &Endpoint| row / region.rows * side.pitch[1] + row % region.rows * side.pitch[0] + within;
        // SAFETY: the offset and the bytes lie inside the region of each side.
        unsafe {
            let (from, to) = (offset(&region.source), offset(&region.destination));
            copy_run(source.add(from), destination.add(to), bytes);
        }
        at += bytes;
        row += 1;
    }
}
