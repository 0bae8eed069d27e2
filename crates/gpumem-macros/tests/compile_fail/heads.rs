//! Heads of functions that no kernel has, and words that no attribute knows.

use gpumem::kernel::prelude::*;

#[gpumem::kernel(unsafe)]
fn reference(y: &mut [f32]) {}

#[gpumem::kernel(unsafe)]
fn value(y: SliceMut<f32>) -> f32 {
    1.0
}

#[gpumem::kernel(unsafe)]
async fn waits(y: SliceMut<f32>) {}

#[gpumem::kernel(unsafe)]
unsafe fn dangerous(y: SliceMut<f32>) {}

#[gpumem::kernel(unsafe)]
fn pattern((a, b): (f32, f32)) {}

#[gpumem::kernel]
fn without_a_promise(y: SliceMut<f32>) {
    y[global_id(0)] = 1.0;
}

#[gpumem::kernel(unchecked)]
fn unchecked(y: SliceMut<f32>) {
    y[global_id(0)] = 1.0;
}

#[gpumem::kernel(unsafe, fast)]
fn unknown_word(y: SliceMut<f32>) {
    y[global_id(0)] = 1.0;
}

fn main() {}
