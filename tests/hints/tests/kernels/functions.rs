//! What functions of kernels do not know, and what the attribute says to write instead.
#![allow(unused)]

use gpumem::kernel::prelude::{Local, Value};

#[gpumem::device]
fn waits(_v: f32) -> f32 {
    barrier(Local);
    let i = global_id(0);
    let tile = shared::<f32>([4]);
    wave_sum(_v)
}

#[gpumem::device]
fn again(v: u32) -> u32 {
    if v == 0 { 0 } else { again(v - 1) }
}

#[gpumem::device]
fn no_value(v: u32) -> u32 {
    let w = v;
}

#[gpumem::device]
unsafe fn heads(r: &f32, v: Value<f32>, t: impl Copy) {}

#[gpumem::device]
fn lifetime<'a>(v: u32) {}

#[derive(Clone, Copy, gpumem::DeviceRecord)]
struct NoLayout {
    x: f32,
}

#[derive(Clone, Copy, gpumem::DeviceRecord)]
#[repr(C)]
struct Tuple(f32);

#[derive(Clone, Copy, gpumem::DeviceRecord)]
#[repr(C, packed)]
struct Packed {
    a: u8,
    b: u32,
}

#[derive(Clone, Copy, gpumem::DeviceRecord)]
#[repr(C, align(8))]
struct Aligned {
    a: f32,
    b: f32,
}

#[derive(Clone, Copy, gpumem::DeviceRecord)]
#[repr(C)]
struct Generic<T> {
    x: T,
}

#[derive(Clone, Copy, gpumem::DeviceRecord)]
enum NoNumber {
    A,
}

#[derive(Clone, Copy, gpumem::DeviceRecord)]
#[repr(u8)]
enum WithFields {
    A(f32),
}

#[derive(Clone, Copy, gpumem::DeviceRecord)]
#[repr(C)]
union Either {
    a: f32,
}

#[gpumem::device]
fn words_of_others(v: u32) -> u32 {
    syncthreads();
    v
}

fn main() {}
