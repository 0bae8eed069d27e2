//! [`transpose`](crate::transpose) with a source in C++ and a body for the host.

use gpumem::{
    BarrierScope::Local,
    kernel::{KernelDef, WorkItem},
};

use crate::transpose::Parameters;

const SOURCE: &str = "using namespace gpumem;
GPUMEM_KERNEL transpose_from_source(view<const float, 2> input, view<float, 2> output) {
    GPUMEM_SHARED(float, tile, 16, 17);
    u32 x = local_id(0), y = local_id(1);
    u64 row = global_id(1), column = global_id(0);
    if (row < input.extent(0) && column < input.extent(1)) tile(y, x) = input(row, column);
    barrier(LOCAL);
    row = (u64)group_id(0) * 16 + y;
    column = (u64)group_id(1) * 16 + x;
    if (row < output.extent(0) && column < output.extent(1)) output(row, column) = tile(x, y);
}";

/// The kernel, for groups of [`TILE`](crate::transpose::TILE) by as many that cover `input`.
pub fn declaration() -> KernelDef<Parameters> {
    // SAFETY: each work-item writes its own element, and the tile is shared after a barrier.
    unsafe { KernelDef::new("transpose_from_source") }.shared_bytes(16 * 17 * 4).source(SOURCE).host_body(
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
