//! How often each byte occurs. Each group counts in shared memory and adds what it has found to the totals once.

use gpumem::{
    BarrierScope::Local,
    kernel::{KernelDef, SliceMut, View, WorkItem},
};

/// The bytes, in any layout, and the 256 totals.
pub type Parameters = (View<u8, 1>, SliceMut<u32>);

/// Work-items of a group: one for each total.
pub const GROUP: u32 = 256;

const SOURCE: &str = "using namespace gpumem;
GPUMEM_KERNEL histogram(view<const u8, 1> values, slice<u32> totals) {
    GPUMEM_SHARED(u32, bins, 256);
    u32 local = local_id(0);
    bins(local) = 0;
    barrier(LOCAL);
    for (u64 i = global_id(0); i < values.extent(0); i += global_size(0)) atomic_add(bins(values(i)), 1u);
    barrier(LOCAL);
    atomic_add(totals[local], bins(local));
}";

/// The kernel, for any number of groups of [`GROUP`] along x.
pub fn declaration() -> KernelDef<Parameters> {
    // SAFETY: bins and totals are changed atomically, but for what barriers order.
    unsafe { KernelDef::new("histogram") }.shared_bytes(256 * 4).source(SOURCE).host_body(
        async |item: WorkItem<'_>, (values, totals): &Parameters| {
            let bins = item.shared::<u32, 1>([256]);
            let local = item.local_id(0);
            bins.set(local, 0);
            item.barrier(Local).await;
            for i in (item.global_id(0)..values.extent(0)).step_by(item.global_size(0)) {
                bins.atomic_add(usize::from(values.get(i)), 1);
            }
            item.barrier(Local).await;
            totals.atomic_add(local, bins.get(local));
        },
    )
}
