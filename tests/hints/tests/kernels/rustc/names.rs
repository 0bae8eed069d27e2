//! Names that are something else than their letters say.
#![allow(unused, non_upper_case_globals)]

use gpumem::kernel::prelude::*;

const first: u32 = 0;

#[gpumem::kernel]
fn a_constant_in_small_letters(y: Own<u32>) {
    let i = global_id(0);
    if i < y.len() {
        y[own()] = match y[own()] {
            first => 10,
            _ => 20,
        };
    }
}

fn main() {}
