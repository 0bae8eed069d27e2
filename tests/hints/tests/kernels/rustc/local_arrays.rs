//! A local array is used by its elements: what holds them on the host is no field.

use gpumem::kernel::prelude::*;

#[gpumem::kernel(unsafe)]
fn written(y: SliceMut<f32>) {
    let mut window = local::<f32>([4]);
    window.0[1] = 5.0;
}

#[gpumem::kernel(unsafe)]
fn read(y: SliceMut<f32>) {
    let window = local::<f32>([4]);
    y[0] = window.0[1];
}

fn main() {}
