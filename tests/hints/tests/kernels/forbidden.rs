//! `unsafe` in the attribute is what lints see.
#![forbid(unsafe_code)]

use gpumem::kernel::prelude::*;

#[gpumem::kernel(unsafe)]
fn promised(y: SliceMut<f32>) {
    y[global_id(0)] = 1.0;
}

fn main() {}
