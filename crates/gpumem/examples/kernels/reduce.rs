//! One sum for each group, found in two ways: by a tree in shared memory, and by waves that exchange values and leave one sum each.
//! Launched again on the sums, until one is left.
//!
//! Once the tree has come down to one wave, that wave finishes it alone, without waiting for others.

use gpumem::kernel::prelude::*;

/// `x`, and for each group of work-items the sum by tree and the sum by wave.
pub type Parameters = (Slice<f32>, SliceMut<f32>, SliceMut<f32>);

/// Work-items of a group, and so elements of a sum.
pub const GROUP: u32 = 256;

/// The kernel, for groups of [`GROUP`] along x that cover `x`.
// SAFETY: each group writes its own elements, and barriers separate the writes and reads of shared memory.
#[gpumem::kernel(unsafe)]
pub fn reduce(x: Slice<f32>, by_tree: SliceMut<f32>, by_wave: SliceMut<f32>) {
    let tree = shared::<f32>([256]);
    let waves = shared::<f32>([8]);
    let (i, local) = (global_id(0), local_id(0));
    let value = if i < x.len() { x[i] } else { 0.0 };
    tree[local] = value;
    barrier(Local);
    let mut step = 128;
    while step > 0 {
        if local < step {
            tree[local] += tree[local + step];
        }
        if step > wave_size() {
            barrier(Local);
        } else {
            wavebarrier();
        }
        step /= 2;
    }
    let sum = wave_sum(value);
    if lane() == 0 {
        waves[wave_id()] = sum;
    }
    barrier(Local);
    if local == 0 {
        by_tree[group_id(0)] = tree[0];
        let mut all = 0.0;
        for wave in 0..256 / wave_size() {
            all += waves[wave];
        }
        by_wave[group_id(0)] = all;
    }
}
