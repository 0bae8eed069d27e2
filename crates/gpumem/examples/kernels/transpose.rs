//! Rows become columns. Through a tile in shared memory, so that both reads and writes run along rows; the tile has one
//! column more than it needs, so that a column of it lies in different banks.

use gpumem::{
    BarrierScope::Local,
    kernel::{KernelDef, View, ViewMut, WorkItem},
};

/// `input` and `output`, whose extents are those of `input` the other way round.
pub type Parameters = (View<f32, 2>, ViewMut<f32, 2>);

/// Work-items of a group along x and along y.
pub const TILE: u32 = 16;

const SOURCE: &str = "using namespace gpumem;
GPUMEM_KERNEL transpose(view<const float, 2> input, view<float, 2> output) {
    GPUMEM_SHARED(float, tile, 16, 17);
    u32 x = local_id(0), y = local_id(1);
    u64 row = global_id(1), column = global_id(0);
    if (row < input.extent(0) && column < input.extent(1)) tile(y, x) = input(row, column);
    barrier(LOCAL);
    row = (u64)group_id(0) * 16 + y;
    column = (u64)group_id(1) * 16 + x;
    if (row < output.extent(0) && column < output.extent(1)) output(row, column) = tile(x, y);
}";

/// The kernel, for groups of [`TILE`] by [`TILE`] that cover `input`.
pub fn declaration() -> KernelDef<Parameters> {
    // SAFETY: each work-item writes its own element, and the tile is shared behind a barrier.
    unsafe { KernelDef::new("transpose") }.shared_bytes(16 * 17 * 4).source(SOURCE).host_body(
        async |item: WorkItem<'_>, (input, output): &Parameters| {
            let tile = item.shared::<f32, 2>([16, 17]);
            let (x, y) = (item.local_id(0), item.local_id(1));
            let (row, column) = (item.global_id(1), item.global_id(0));
            if row < input.extent(0) && column < input.extent(1) {
                tile.set([y, x], input.get([row, column]));
            }
            item.barrier(Local).await;
            let (row, column) = (item.group_id(0) * 16 + y, item.group_id(1) * 16 + x);
            if row < output.extent(0) && column < output.extent(1) {
                output.set([row, column], tile.get([x, y]));
            }
        },
    )
}
