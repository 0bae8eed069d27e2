//! `y = a * x + y`: each work-item has one element.

use gpumem::kernel::{KernelDef, Slice, SliceMut, WorkItemIds};

/// `x`, `y` and `a`.
pub type Parameters = (Slice<f32>, SliceMut<f32>, f32);

const SOURCE: &str = "using namespace gpumem;
GPUMEM_KERNEL saxpy(slice<const float> x, slice<float> y, float a) {
    u64 i = global_id(0);
    if (i < y.size()) y[i] = a * x[i] + y[i];
}";

/// The kernel, for `x` and `y` of one length and groups of any size along x.
pub fn declaration() -> KernelDef<Parameters> {
    // SAFETY: each work-item uses its own elements.
    unsafe { KernelDef::new("saxpy") }.source(SOURCE).host_loop(
        |ids: &WorkItemIds<'_>, (x, y, a): &Parameters| {
            let i = ids.global_id(0);
            if i < y.len() {
                y.set(i, a * x.get(i) + y.get(i));
            }
        },
    )
}
