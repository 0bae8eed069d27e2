//! [`convolution`](crate::convolution) with a source in C++ and a body for the host.

use crate::convolution::Parameters;
use gpumem::{
    BarrierScope::Local,
    kernel::{KernelDef, WorkItem},
};

const SOURCE: &str = "using namespace gpumem;
GPUMEM_DEVICE i64 nearest(i64 at, i64 extent) { return at < 0 ? 0 : at < extent ? at : extent - 1; }

GPUMEM_KERNEL convolution_from_source(view<const u8, 3> image, view<u8, 3> result, constant<i32, 25> weights, u32 shift) {
    GPUMEM_SHARED(u8, tile, 12, 36);
    u64 row = global_id(1), column = global_id(0), channel = global_id(2);
    i64 height = image.extent(0), width = image.extent(1);
    if (height == 0 || width == 0 || channel >= image.extent(2)) return;
    i64 top = (i64)group_id(1) * 8 - 2, left = (i64)group_id(0) * 32 - 2;
    for (u32 at = local_linear(); at < 12 * 36; at += 32 * 8) {
        u32 y = at / 36, x = at % 36;
        tile(y, x) = image(nearest(top + y, height), nearest(left + x, width), channel);
    }
    barrier(LOCAL);
    if (row >= height || column >= width) return;
    i32 sum = 1 << shift >> 1;
    for (u32 y = 0; y < 5; ++y)
        for (u32 x = 0; x < 5; ++x) sum += weights[y * 5 + x] * tile(local_id(1) + y, local_id(0) + x);
    sum >>= shift;
    result(row, column, channel) = (u8)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
}";

/// The kernel, for groups of [`GROUP`](crate::convolution::GROUP) that cover the width, the height and the channels.
pub fn declaration() -> KernelDef<Parameters> {
    // SAFETY: each work-item writes its own pixel, and the tile is shared after a barrier.
    unsafe { KernelDef::new("convolution_from_source") }.shared_bytes(12 * 36).source(SOURCE).host_body(
        async |item: WorkItem<'_>, (image, result, weights, shift): &Parameters| {
            let tile = item.shared::<u8, 2>([12, 36]);
            let (row, column, channel) = (item.global_id(1), item.global_id(0), item.global_id(2));
            let [height, width, channels] = image.extents();
            if height == 0 || width == 0 || channel >= channels {
                return;
            }
            // Two are taken off: the halo.
            let nearest = |at: usize, extent: usize| at.saturating_sub(2).min(extent - 1);
            let (top, left) = (item.group_id(1) * 8, item.group_id(0) * 32);
            for at in (item.local_linear()..12 * 36).step_by(32 * 8) {
                let (y, x) = (at / 36, at % 36);
                let pixel = image.get([nearest(top + y, height), nearest(left + x, width), channel]);
                tile.set([y, x], pixel);
            }
            item.barrier(Local).await;
            if row >= height || column >= width {
                return;
            }
            let mut sum = 1 << shift >> 1;
            for y in 0..5 {
                for x in 0..5 {
                    let pixel = tile.get([item.local_id(1) + y, item.local_id(0) + x]);
                    sum += weights.0[y * 5 + x] * i32::from(pixel);
                }
            }
            result.set([row, column, channel], (sum >> shift).clamp(0, 255) as u8);
        },
    )
}
