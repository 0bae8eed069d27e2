//! How often each byte occurs. Each group counts in shared memory, and adds its counts to the totals once.

use gpumem::kernel::prelude::*;

/// The bytes, in any layout, and the 256 totals.
pub type Parameters = (View<u8, 1>, SliceMut<u32>);

/// Work-items of a group: one for each total.
pub const GROUP: u32 = 256;

/// The kernel, for any number of groups of [`GROUP`] along x.
// SAFETY: bins and totals are changed atomically, apart from accesses that barriers order.
#[gpumem::kernel(unsafe)]
pub fn histogram(values: View<u8, 1>, totals: SliceMut<u32>) {
    let bins = shared::<u32>([256]);
    let local = local_id(0);
    bins[local] = 0;
    barrier(Local);
    for i in (global_id(0)..values.extent(0)).step_by(global_size(0)) {
        bins.atomic_add(values[i] as usize, 1);
    }
    barrier(Local);
    totals.atomic_add(local, bins[local]);
}
