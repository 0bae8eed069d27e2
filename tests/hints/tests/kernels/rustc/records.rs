//! What rustc says of functions, records and parameters.

use gpumem::kernel::prelude::*;

fn unmarked(v: f32) -> f32 {
    v
}

#[gpumem::kernel(unsafe)]
fn calls(y: SliceMut<f32>) {
    y[0] = unmarked(1.0);
}

#[gpumem::device]
fn takes(v: f32) -> f32 {
    v
}

#[gpumem::kernel(unsafe)]
fn wrong_argument(y: SliceMut<f32>, n: u32) {
    y[0] = takes(n);
}

#[derive(Clone, Copy, gpumem::DeviceRecord)]
#[repr(C)]
struct Padded {
    a: u8,
    b: u32,
}

#[derive(Clone, Copy, gpumem::DeviceRecord)]
#[repr(C)]
struct NoElement {
    a: bool,
}

#[derive(Clone, Copy)]
struct Plain {
    x: f32,
}

#[gpumem::kernel(unsafe)]
fn no_derive(y: SliceMut<f32>) {
    let p = Plain { x: 1.0 };
    y[0] = p.x;
}

#[gpumem::kernel(unsafe)]
fn no_field(y: SliceMut<f32>) {
    y[0].re = 1.0;
}

#[gpumem::kernel(unsafe)]
fn read_only_field(x: Slice<[f32; 2]>) {
    x[0][1] = 1.0;
}

fn main() {}
