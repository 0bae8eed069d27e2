//! No warning that the author of a kernel has not earned.
#![deny(warnings, missing_docs, unsafe_op_in_unsafe_fn, unused, unreachable_pub)]

use gpumem::kernel::prelude::*;

/// Adds.
// SAFETY: each work-item writes its own element.
#[gpumem::kernel(unsafe)]
pub fn add(x: Slice<f32>, y: SliceMut<f32>) {
    let tile = shared::<f32>([32]);
    let (i, local) = (global_id(0), local_id(0));
    tile[local] = x[i];
    barrier(Local);
    let mut total = 0.0;
    for k in 0..32 {
        total += tile[k];
    }
    let total = (total + 1.0).abs() + (total - 1.0).min(2.0);
    y[i] = if total > 1.0 { total } else { (0.0 - 1.0) * total };
}

/// Adds two.
#[rustfmt::skip]
#[gpumem::device]
pub fn on_one_line(a: f32, b: f32) -> f32 { a + b }

pub(crate) fn main() {
    let _declaration = add();
}
