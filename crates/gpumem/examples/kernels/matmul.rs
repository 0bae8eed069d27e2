//! `c = a · b`, tile by tile: the example that Numba's page on ROC memory points to. A group brings one tile of each matrix into shared
//! memory at a time, so that every element comes out of global memory once for sixteen uses.

use gpumem::{
    BarrierScope::Local,
    kernel::{KernelDef, View, ViewMut, WorkItem},
};

/// `a`, `b` and `c`.
pub type Parameters = (View<f32, 2>, View<f32, 2>, ViewMut<f32, 2>);

/// Work-items of a group along x and along y.
pub const TILE: u32 = 16;

const SOURCE: &str = "using namespace gpumem;
GPUMEM_KERNEL matmul(view<const float, 2> a, view<const float, 2> b, view<float, 2> c) {
    GPUMEM_SHARED(float, left, 16, 16);
    GPUMEM_SHARED(float, right, 16, 16);
    u32 x = local_id(0), y = local_id(1);
    u64 row = global_id(1), column = global_id(0), depth = a.extent(1);
    float sum = 0.0f;
    for (u64 start = 0; start < depth; start += 16) {
        left(y, x) = row < a.extent(0) && start + x < depth ? a(row, start + x) : 0.0f;
        right(y, x) = start + y < depth && column < b.extent(1) ? b(start + y, column) : 0.0f;
        barrier(LOCAL);
        for (u32 k = 0; k < 16; ++k) sum += left(y, k) * right(k, x);
        barrier(LOCAL);
    }
    if (row < c.extent(0) && column < c.extent(1)) c(row, column) = sum;
}";

/// The kernel, for groups of [`TILE`] by [`TILE`] that cover `c`.
pub fn declaration() -> KernelDef<Parameters> {
    // SAFETY: each work-item writes its own element, and the tiles are shared between barriers.
    unsafe { KernelDef::new("matmul") }.shared_bytes(2 * 16 * 16 * 4).source(SOURCE).host_body(
        async |item: WorkItem<'_>, (a, b, c): &Parameters| {
            let (left, right) = (item.shared::<f32, 2>([16, 16]), item.shared::<f32, 2>([16, 16]));
            let (x, y) = (item.local_id(0), item.local_id(1));
            let (row, column, depth) = (item.global_id(1), item.global_id(0), a.extent(1));
            let mut sum = 0.0;
            for start in (0..depth).step_by(16) {
                let is_left = row < a.extent(0) && start + x < depth;
                left.set([y, x], if is_left { a.get([row, start + x]) } else { 0.0 });
                let is_right = start + y < depth && column < b.extent(1);
                right.set([y, x], if is_right { b.get([start + y, column]) } else { 0.0 });
                item.barrier(Local).await;
                for k in 0..16 {
                    sum += left.get([y, k]) * right.get([k, x]);
                }
                item.barrier(Local).await;
            }
            if row < c.extent(0) && column < c.extent(1) {
                c.set([row, column], sum);
            }
        },
    )
}
