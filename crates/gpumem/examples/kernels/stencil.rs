//! One step of heat that spreads: each inner element becomes the mean of its four neighbours, the edge stays. On views of any strides.

use gpumem::kernel::{KernelDef, View, ViewMut, WorkItemIds};

/// The plate before and after the step, of the same extents.
pub type Parameters = (View<f32, 2>, ViewMut<f32, 2>);

const SOURCE: &str = "using namespace gpumem;
GPUMEM_KERNEL stencil(view<const float, 2> before, view<float, 2> after) {
    u64 y = global_id(1), x = global_id(0), height = before.extent(0), width = before.extent(1);
    if (y >= height || x >= width) return;
    bool inside = y > 0 && y + 1 < height && x > 0 && x + 1 < width;
    after(y, x) = inside
        ? 0.25f * ((before(y - 1, x) + before(y + 1, x)) + (before(y, x - 1) + before(y, x + 1)))
        : before(y, x);
}";

/// The kernel, for groups of any size along x and y that cover the plate.
pub fn declaration() -> KernelDef<Parameters> {
    // SAFETY: each work-item writes its own element, and reads from another array.
    unsafe { KernelDef::new("stencil") }.source(SOURCE).host_loop(
        |ids: &WorkItemIds<'_>, (before, after): &Parameters| {
            let (y, x, [height, width]) = (ids.global_id(1), ids.global_id(0), before.extents());
            if y >= height || x >= width {
                return;
            }
            let inside = y > 0 && y + 1 < height && x > 0 && x + 1 < width;
            let value = if inside {
                let vertical = before.get([y - 1, x]) + before.get([y + 1, x]);
                0.25 * (vertical + (before.get([y, x - 1]) + before.get([y, x + 1])))
            } else {
                before.get([y, x])
            };
            after.set([y, x], value);
        },
    )
}
