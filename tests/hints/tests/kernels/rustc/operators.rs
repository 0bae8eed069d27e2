//! Operators, comparisons and fields of the user's, which the code for GPUs does not have.
#![allow(unused)]

use gpumem::{DeviceRecord, kernel::prelude::*};
use std::ops::{Add, AddAssign, Deref, Not};

#[derive(Clone, Copy, DeviceRecord, PartialEq, PartialOrd)]
#[repr(u32)]
enum Mode {
    A = 3,
    B = 5,
}

impl Add<u32> for Mode {
    type Output = u32;
    fn add(self, _: u32) -> u32 {
        1000
    }
}

impl AddAssign<Mode> for u32 {
    fn add_assign(&mut self, _: Mode) {
        *self = 1000;
    }
}

impl Not for Mode {
    type Output = u32;
    fn not(self) -> u32 {
        1000
    }
}

impl From<Mode> for f32 {
    fn from(_: Mode) -> f32 {
        1000.0
    }
}

#[gpumem::kernel]
fn operators(y: Own<u32>, z: Own<f32>) {
    let mut n = Mode::A + 2;
    n += Mode::B;
    y[own()] = !Mode::A + n;
    if Mode::A < Mode::B {
        y[own()] = 1;
    }
    z[own()] = f32::from(Mode::A);
}

impl PartialEq<u32> for Mode {
    fn eq(&self, _: &u32) -> bool {
        true
    }
}

#[gpumem::kernel]
fn compared(y: Own<u32>) {
    if Mode::A == 7u32 {
        y[own()] = 1;
    }
}

#[derive(Clone, Copy, DeviceRecord)]
#[repr(C)]
struct Inner {
    v: u32,
}

#[derive(Clone, Copy, DeviceRecord)]
#[repr(C)]
struct Wrap {
    inner: Inner,
}

impl Deref for Wrap {
    type Target = Inner;
    fn deref(&self) -> &Inner {
        &Inner { v: 7 }
    }
}

#[derive(Clone, Copy, DeviceRecord)]
#[repr(u8)]
enum Never {
    A,
}

impl PartialEq for Never {
    fn eq(&self, _: &Never) -> bool {
        false
    }
}

fn main() {}
