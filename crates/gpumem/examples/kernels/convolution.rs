//! Each pixel becomes a weighted sum of the 5 by 5 around it. A group brings its tile and the two pixels around it (the halo) into
//! shared memory; the weights lie in constant memory. Beyond an edge the nearest pixel counts.
//!
//! In integers, so that every device computes the same: compilers may join a floating-point product and sum in one rounding.

use gpumem::kernel::prelude::*;

/// * the image, as (height, width, channel);
/// * the result, of the same extents;
/// * the weights row by row, in units of `1 / 2^shift`;
/// * `shift`.
pub type Parameters = (View<u8, 3>, ViewMut<u8, 3>, Constant<i32, 25>, u32);

/// Work-items of a group: a tile of one channel.
pub const GROUP: [u32; 3] = [32, 8, 1];

/// The binomial blur and its scale.
pub const BLUR: (Constant<i32, 25>, u32) = (Constant(weights(0, 1)), 8);

/// Twice the image less its blur.
pub const SHARPEN: (Constant<i32, 25>, u32) = (Constant(weights(512, -1)), 8);

/// `factor` times the binomial weights, whose sum is 256, and `center` more in the middle.
const fn weights(center: i32, factor: i32) -> [i32; 25] {
    let row = [1, 4, 6, 4, 1];
    let mut weights = [0; 25];
    let mut at = 0;
    while at < 25 {
        weights[at] = factor * row[at / 5] * row[at % 5];
        at += 1;
    }
    weights[12] += center;
    weights
}

/// The pixel that counts at a place, which may lie beyond an edge.
#[gpumem::device]
fn nearest(at: isize, extent: usize) -> usize {
    at.min(extent as isize - 1).max(0) as usize
}

/// The kernel, for groups of [`GROUP`] that cover the width, the height and the channels.
// SAFETY: each work-item writes its own pixel, and the tile is shared after a barrier.
#[gpumem::kernel(unsafe)]
pub fn convolution(image: View<u8, 3>, result: ViewMut<u8, 3>, weights: Constant<i32, 25>, shift: u32) {
    let tile = shared::<u8>([12, 36]);
    let (row, column, channel) = (global_id(1), global_id(0), group_id(2));
    let (height, width) = (image.extent(0), image.extent(1));
    if height == 0 || width == 0 || channel >= image.extent(2) {
        return;
    }
    // The halo begins two pixels before the tile.
    let (top, left) = (group_id(1) as isize * 8 - 2, group_id(0) as isize * 32 - 2);
    for at in (local_linear()..12 * 36).step_by(32 * 8) {
        let (y, x) = (at / 36, at % 36);
        let (row, column) = (nearest(top + y as isize, height), nearest(left + x as isize, width));
        tile[[y, x]] = image[[row, column, channel]];
    }
    barrier(Local);
    if row >= height || column >= width {
        return;
    }
    let mut sum = 1i32 << shift >> 1;
    for y in 0..5 {
        for x in 0..5 {
            sum += weights[y * 5 + x] * tile[[local_id(1) + y, local_id(0) + x]] as i32;
        }
    }
    result[[row, column, channel]] = (sum >> shift).clamp(0, 255) as u8;
}
