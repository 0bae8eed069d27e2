//! What a kernel without `unsafe` cannot do.
#![forbid(unsafe_code)]

use gpumem::kernel::prelude::*;

#[gpumem::kernel]
fn any_element(y: SliceMut<f32>, z: ViewMut<f32, 2>) {
    y[global_id(0)] = z[[0, 0]];
}

#[gpumem::kernel]
fn shared_array(y: Own<f32>) {
    let tile = shared::<f32>([32]);
    tile[local_id(0)] = y[own()];
}

#[gpumem::kernel]
fn dynamic_array(y: Own<f32>) {
    let tile = dynamic_shared::<f32>();
    tile[local_id(0)] = y[own()];
}

#[gpumem::kernel]
fn parting(y: Own<f32>) {
    if y[own()] > 0.0 {
        barrier(Local);
    }
}

#[gpumem::kernel(flag = "-use_fast_math")]
fn flag(y: Own<f32>) {
    y[own()] = 1.0;
}

#[gpumem::device]
fn place(y: Own<f32>) -> f32 {
    y[own()]
}

fn main() {}
