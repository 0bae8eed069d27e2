//! A record is made by its fields, not by a function `new` with the parts of a complex number.
#![deny(unsafe_code)]

use gpumem::kernel::{codegen::NewComplex, prelude::*};

#[derive(Clone, Copy, gpumem::DeviceRecord)]
#[repr(C)]
struct Turned {
    im: f32,
    re: f32,
}

impl NewComplex for Turned {}

#[gpumem::kernel]
fn turned(y: Own<f32>) {
    let z = Turned::new(1.0, 2.0);
    y[own()] = z.re;
}

fn main() {}
