//! Copies of `slices × rows × bytes`.

use super::{copy_run, pointer, strided::rows};
use gpumem_core::{Axis, CopyRegion, Endpoint};
use std::ops::Range;

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
    while at < part.end {
        let (row, within) = (at / region.bytes, at % region.bytes);
        let (slice, first) = (row / region.rows, row % region.rows);
        let offset = |side: &Endpoint| slice * side.pitch[1] + first * side.pitch[0] + within;
        let (from, to) = (offset(&region.source), offset(&region.destination));
        // All whole rows of the slice at once: finding a row costs more than copying a short one.
        let whole = ((part.end - at) / region.bytes).min(region.rows - first);
        if within == 0 && whole > 0 {
            let pitch = |side: &Endpoint| side.pitch[0] as isize;
            let axis = Axis { len: whole, src: pitch(&region.source), dst: pitch(&region.destination) };
            // SAFETY: the rows lie inside the region of each side.
            unsafe { rows(source.add(from), destination.add(to), axis, region.bytes) };
            at += whole * region.bytes;
            continue;
        }
        // A row that the part begins or ends in.
        let bytes = (region.bytes - within).min(part.end - at);
        // SAFETY: the offset and the bytes lie inside the region of each side.
        unsafe { copy_run(source.add(from), destination.add(to), bytes) };
        at += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpumem_core::Space;

    /// Every part of a region, cut at any byte, copies its own bytes and no others.
    #[test]
    fn parts_cut_anywhere_copy_their_bytes() {
        for bytes in [1, 2, 3, 4, 8, 12, 16, 17] {
            let (rows, slices) = (3, 2);
            let pitches = [[bytes + 2, 4 * (bytes + 2) + 1], [bytes + 1, 3 * (bytes + 1) + 5]];
            let source: Vec<u8> = (0..pitches[0][1] * slices).map(|byte| byte as u8).collect();
            let mut destination = vec![0xEE; pitches[1][1] * slices];
            let total = bytes * rows * slices;
            for cut in (0..=total).step_by(if cfg!(miri) { 11 } else { 1 }) {
                destination.fill(0xEE);
                let mut expected = destination.clone();
                for part in [cut..total, 0..cut] {
                    for at in part.clone() {
                        let (slice, row, byte) = (at / bytes / rows, at / bytes % rows, at % bytes);
                        let offset = |pitch: [usize; 2]| slice * pitch[1] + row * pitch[0] + byte;
                        expected[offset(pitches[1])] = source[offset(pitches[0])];
                    }
                    let side = |address: usize, pitch| Endpoint {
                        address: address as u64,
                        space: Space::Host,
                        pitch,
                    };
                    let region = CopyRegion {
                        source: side(source.as_ptr().expose_provenance(), pitches[0]),
                        destination: side(destination.as_mut_ptr().expose_provenance(), pitches[1]),
                        bytes,
                        rows,
                        slices,
                    };
                    // SAFETY: both blocks are alive and as long as the region says.
                    unsafe { run_region(&region, part) };
                    assert_eq!(destination, expected, "{bytes} bytes, cut at {cut}");
                }
            }
        }
    }
}
