//! `y = a * x + y`: each work-item has one element.

use gpumem::kernel::prelude::*;

/// `x`, `y` and `a`.
pub type Parameters = (Slice<f32>, Own<f32>, f32);

/// The kernel, for `x` and `y` of one length and groups of any size along x.
#[gpumem::kernel]
pub fn saxpy(x: Slice<f32>, y: Own<f32>, a: f32) {
    let i = global_id(0);
    if i < y.len() {
        y[own()] = a * x[i] + y[own()];
    }
}
