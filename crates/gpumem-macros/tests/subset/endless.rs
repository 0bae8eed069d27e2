//! Loops that do not end, of which C++ says that they do.

#![allow(clippy::empty_loop, clippy::never_loop)]

use gpumem::kernel::{KernelDef, prelude::*};

#[gpumem::kernel]
fn beyond(y: Own<u32>) {
    if global_id(0) >= y.len() {
        loop {}
    }
    y[own()] = 7;
}

#[gpumem::kernel]
fn waiting(y: Own<u32>) {
    while global_id(0) >= y.len() {}
    y[own()] = 7;
}

/// Counts past what it looks for.
#[gpumem::device]
fn odd(from: u32, to: u32) -> u32 {
    let mut i = from;
    while i != to {
        i += 2;
    }
    i
}

#[gpumem::kernel]
fn counting(y: Own<u32>) {
    y[own()] = odd(1, 20);
}

#[gpumem::kernel]
fn labelled(y: Own<u32>) {
    let mut i = 1u32;
    'outer: loop {
        loop {
            if i == 20 {
                break 'outer;
            }
            i += 2;
        }
    }
    y[own()] = i;
}

#[gpumem::kernel]
fn skipping(y: Own<u32>) {
    let mut i = 0;
    while i < 5 {
        if i == 3 {
            continue;
        }
        i += 1;
    }
    y[own()] = i;
}

#[gpumem::kernel]
fn returning(y: Own<u32>) {
    let mut i = 5;
    while i > 0 {
        if i == 1 {
            i = 5;
        }
        i /= 2;
    }
    y[own()] = i;
}

pub(crate) fn all() -> Vec<KernelDef<(Own<u32>,)>> {
    vec![beyond(), waiting(), counting(), labelled(), skipping(), returning()]
}

/// What counts up to a number that stays, or halves a number, ends.
#[gpumem::kernel]
pub(crate) fn ending(y: Own<u32>) {
    let (mut i, mut step, mut bits) = (0, 128, 77i32);
    while i < y.len() && y[own()] != 7 {
        y[own()] += i as u32;
        i += 1;
    }
    while step > 0 {
        step /= 2;
    }
    while bits > 0 {
        bits >>= 1;
    }
    y[own()] += step + bits as u32;
}
