//! Arrays by another name of their type, between brackets.
#![allow(clippy::undocumented_unsafe_blocks, unused_parens)]

use gpumem::kernel::prelude::*;

type Any = SliceMut<u32>;

#[gpumem::device]
fn bump(y: SliceMut<u32>, i: usize) -> u32 {
    y[i] = y[i] + 1;
    y[i]
}

#[gpumem::kernel(unsafe)]
fn brackets(y: Any, x: SliceMut<u32>) {
    y[0] = (y)[0] * 10 + bump((y), 0) + bump((x), 0);
    (y)[1] = (x).len() as u32 + (y).len() as u32;
    (x).atomic_add(0, (y)[1]);
    assert!((y)[0] > 1, "{}", (y)[1]);
}

pub(crate) fn main() {
    let _ = brackets();
}
