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

#[gpumem::kernel]
fn host_sizes(y: Own<f32>, n: usize) {
    if global_id(0) < n {
        y[own()] = 1.0;
    }
}

#[gpumem::kernel]
fn elements_of_host_sizes(x: Slice<isize>, y: Own<f32>, wide: Value<u128>) {
    y[own()] = 1.0;
}

#[gpumem::kernel]
fn thirteen(y: Own<f32>, a: f32, b: f32, c: f32, d: f32, e: f32, f: f32, g: f32, h: f32, i: f32, j: f32, k: f32, l: f32) {
    y[own()] = a + b + c + d + e + f + g + h + i + j + k + l;
}

fn main() {
    // Declarations that are refused bring no errors where they are used.
    let device = gpumem::Device::open("host").unwrap();
    let _ = (host_sizes().load(&device), thirteen().load(&device));
}
