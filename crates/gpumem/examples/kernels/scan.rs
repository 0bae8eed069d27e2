//! Inclusive prefix sums over any number of groups: reduce, then scan. The first launch leaves the sum of each group, which are scanned
//! in the same way; the second one starts each group from the sum of those before it. No group waits for another.

use gpumem::{
    BarrierScope::Local,
    kernel::{KernelDef, Slice, SliceMut, WorkItem},
};

/// * `x`;
/// * the sum of all groups up to each, from an earlier launch, or nothing;
/// * the sum of each group, or nothing;
/// * the prefix sums, or nothing.
///
/// Sums wrap.
pub type Parameters = (Slice<u32>, Slice<u32>, SliceMut<u32>, SliceMut<u32>);

const SOURCE: &str = "using namespace gpumem;
GPUMEM_KERNEL scan(slice<const u32> x, slice<const u32> before, slice<u32> totals, slice<u32> out) {
    GPUMEM_SHARED(u32, waves, 32);
    u64 i = global_id(0), group = group_id(0);
    u32 sum = wave_scan(i < x.size() ? x[i] : 0u);
    if (lane() + 1 == wave_items()) waves(wave_id()) = sum;
    barrier(LOCAL);
    for (u32 wave = 0; wave < wave_id(); ++wave) sum += waves(wave);
    if (group > 0 && group <= before.size()) sum += before[group - 1];
    if (i < out.size()) out[i] = sum;
    if (group < totals.size() && local_id(0) + 1 == group_size(0)) totals[group] = sum;
}";

/// The kernel, for groups of any size along x that cover `x`.
pub fn declaration() -> KernelDef<Parameters> {
    // SAFETY: each work-item writes its own elements, and what is shared lies behind a barrier.
    unsafe { KernelDef::new("scan") }.shared_bytes(32 * 4).source(SOURCE).host_body(
        async |item: WorkItem<'_>, (x, before, totals, out): &Parameters| {
            let waves = item.shared::<u32, 1>([32]);
            let (i, group) = (item.global_id(0), item.group_id(0));
            let mut sum = item.wave_scan(if i < x.len() { x.get(i) } else { 0 }).await;
            if item.lane() + 1 == item.wave_items() {
                waves.set(item.wave_id(), sum);
            }
            item.barrier(Local).await;
            for wave in 0..item.wave_id() {
                sum = sum.wrapping_add(waves.get(wave));
            }
            if group > 0 && group <= before.len() {
                sum = sum.wrapping_add(before.get(group - 1));
            }
            if i < out.len() {
                out.set(i, sum);
            }
            if group < totals.len() && item.local_id(0) + 1 == item.group_size(0) {
                totals.set(group, sum);
            }
        },
    )
}
