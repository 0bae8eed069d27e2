//! What a path calls on the host is what it calls on a GPU, whatever functions the path's type has.
#![deny(unsafe_code)]

use gpumem::kernel::{codegen::Witness, prelude::*};

#[gpumem::device]
fn same(x: u32) -> u32 {
    x
}

/// Calls a function with another argument.
struct Other;

impl Other {
    fn __call(_: &Witness<same>, x: u32) -> u32 {
        same(x + 1)
    }
}

#[gpumem::kernel]
fn by_other(y: Own<u32>) {
    y[own()] = Other(1);
}

/// Has a witness that a function of kernels does not have.
struct Several;

impl Several {
    fn __witness<F>() -> Witness<F> {
        Witness::new()
    }
}

#[gpumem::kernel]
fn by_several(y: Own<u32>) {
    y[own()] = Several(1);
}

fn plain(x: u32) -> u32 {
    x
}

#[gpumem::kernel]
fn by_plain(y: Own<u32>) {
    y[own()] = plain(1);
}

fn main() {}
