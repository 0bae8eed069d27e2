//! Inclusive prefix sums over any number of groups: reduce, then scan. The first launch leaves the sum of each group, which are scanned
//! in the same way; the second one starts each group from the sum of those before it. No group waits for another.

use gpumem::kernel::prelude::*;

/// * `x`;
/// * the sum of all groups up to each, from an earlier launch, or nothing;
/// * the sum of each group, or nothing;
/// * the prefix sums, or nothing.
///
/// Sums wrap.
pub type Parameters = (Slice<u32>, Slice<u32>, SliceMut<u32>, SliceMut<u32>);

/// The kernel, for groups of any size along x that cover `x`.
// SAFETY: each work-item writes its own elements, and barriers separate the writes and reads of shared memory.
#[gpumem::kernel(unsafe)]
pub fn scan(x: Slice<u32>, before: Slice<u32>, totals: SliceMut<u32>, out: SliceMut<u32>) {
    let waves = shared::<u32>([32]);
    let (i, group) = (global_id(0), group_id(0));
    let value = if i < x.len() { x[i] } else { 0 };
    let mut sum = wave_scan(value);
    if lane() + 1 == wave_items() {
        waves[wave_id()] = sum;
    }
    barrier(Local);
    for wave in 0..wave_id() {
        sum = sum.wrapping_add(waves[wave]);
    }
    if group > 0 && group <= before.len() {
        sum = sum.wrapping_add(before[group - 1]);
    }
    if i < out.len() {
        out[i] = sum;
    }
    if group < totals.len() && local_id(0) + 1 == group_size(0) {
        totals[group] = sum;
    }
}
