//! Complex numbers of parts with which C++ computes otherwise.
#![deny(unsafe_code)]

use gpumem::kernel::prelude::*;
use gpumem::num_complex::Complex;

#[gpumem::kernel]
fn integers(y: Own<Complex<i32>>) {
    y[own()] = y[own()] * y[own()];
}

fn main() {}
