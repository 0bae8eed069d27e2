//! What rustc says of kernels without `unsafe`.
#![forbid(unsafe_code)]

use gpumem::kernel::prelude::*;

type Anything = SliceMut<f32>;

#[gpumem::kernel]
fn by_another_name(y: Anything) {
    y[global_id(0)] = 1.0;
}

#[gpumem::kernel]
fn of_another(y: Own<f32>) {
    y[own()] = y[global_id(0) + 1];
}

#[gpumem::kernel]
fn to_another(y: Own<f32>, z: OwnView<f32, 2>) {
    y[global_id(0)] = 1.0;
    z[[0, 0]] = 1.0;
}

#[gpumem::kernel]
fn of_another_rank(y: Own<f32>, z: OwnView<f32, 2>) {
    let at = own();
    y[at] = z[at];
}

#[gpumem::kernel]
fn atomically(y: Own<u32>) {
    y.atomic_add(0, 1);
}

/// What arrays of a work-item's own do not have.
trait Atomic {
    fn atomic_exchange(&self, at: usize, value: u32) -> u32;
}

impl Atomic for Own<u32> {
    fn atomic_exchange(&self, _: usize, value: u32) -> u32 {
        value
    }
}

#[gpumem::kernel]
fn by_a_method_of_the_users(y: Own<u32>) {
    y.atomic_exchange(5, 1);
}

fn main() {}
