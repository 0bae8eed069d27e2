//! `c = a · b`, tile by tile: the example that Numba's page on ROC memory points to. A group brings one tile of each matrix into shared
//! memory at a time, so that every element comes out of global memory once for sixteen uses.

use gpumem::kernel::prelude::*;

/// `a`, `b` and `c`.
pub type Parameters = (View<f32, 2>, View<f32, 2>, ViewMut<f32, 2>);

/// Work-items of a group along x and along y.
pub const TILE: u32 = 16;

/// The kernel, for groups of [`TILE`] by [`TILE`] that cover `c`.
// SAFETY: each work-item writes its own element, and the tiles are shared between barriers.
#[gpumem::kernel(unsafe)]
pub fn matmul(a: View<f32, 2>, b: View<f32, 2>, c: ViewMut<f32, 2>) {
    let left = shared::<f32>([16, 16]);
    let right = shared::<f32>([16, 16]);
    let (x, y) = (local_id(0), local_id(1));
    let (row, column, depth) = (global_id(1), global_id(0), a.extent(1));
    let mut sum = 0.0;
    for start in (0..depth).step_by(16) {
        left[[y, x]] = if row < a.extent(0) && start + x < depth { a[[row, start + x]] } else { 0.0 };
        right[[y, x]] = if start + y < depth && column < b.extent(1) { b[[start + y, column]] } else { 0.0 };
        barrier(Local);
        for k in 0..16 {
            sum += left[[y, k]] * right[[k, x]];
        }
        barrier(Local);
    }
    if row < c.extent(0) && column < c.extent(1) {
        c[[row, column]] = sum;
    }
}
