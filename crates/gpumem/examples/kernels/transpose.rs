//! Rows become columns. Through a tile in shared memory, so that both reads and writes run along rows; the tile has one
//! column more than it needs, so that a column of it lies in different banks.

use gpumem::kernel::prelude::*;

/// `input` and `output`, whose extents are those of `input` the other way round.
pub type Parameters = (View<f32, 2>, ViewMut<f32, 2>);

/// Work-items of a group along x and along y.
pub const TILE: u32 = 16;

/// The kernel, for groups of [`TILE`] by [`TILE`] that cover `input`.
// SAFETY: each work-item writes its own element, and the tile is shared after a barrier.
#[gpumem::kernel(unsafe)]
pub fn transpose(input: View<f32, 2>, output: ViewMut<f32, 2>) {
    let tile = shared::<f32>([16, 17]);
    let (x, y) = (local_id(0), local_id(1));
    let (row, column) = (global_id(1), global_id(0));
    if row < input.extent(0) && column < input.extent(1) {
        tile[[y, x]] = input[[row, column]];
    }
    barrier(Local);
    let (row, column) = (group_id(0) * 16 + y, group_id(1) * 16 + x);
    if row < output.extent(0) && column < output.extent(1) {
        output[[row, column]] = tile[[x, y]];
    }
}
