//! One step of heat that spreads: each inner element becomes the mean of its four neighbours, the edge stays. On views of any strides.

use gpumem::kernel::prelude::*;

/// The plate before and after the step, of the same extents.
pub type Parameters = (View<f32, 2>, OwnView<f32, 2>);

/// The kernel, for groups of any size along x and y that cover the plate.
#[gpumem::kernel]
pub fn stencil(before: View<f32, 2>, after: OwnView<f32, 2>) {
    let (y, x, height, width) = (global_id(1), global_id(0), before.extent(0), before.extent(1));
    if y >= height || x >= width {
        return;
    }
    let inside = y > 0 && y + 1 < height && x > 0 && x + 1 < width;
    after[own()] = if inside {
        0.25 * ((before[[y - 1, x]] + before[[y + 1, x]]) + (before[[y, x - 1]] + before[[y, x + 1]]))
    } else {
        before[[y, x]]
    };
}
