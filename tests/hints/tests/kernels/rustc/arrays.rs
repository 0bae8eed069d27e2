//! Arrays as values. What is done with them could change its order on a GPU, and a part of an element be read as a whole.

use gpumem::kernel::{codegen::DeviceType, prelude::*};

type Any = SliceMut<u32>;
type Reference<'a> = &'a SliceMut<u32>;

#[gpumem::device]
fn bump(y: SliceMut<u32>, i: usize) -> u32 {
    y[i] = y[i] + 1;
    y[i]
}

#[gpumem::kernel(unsafe)]
fn kept(y: Any) {
    let z = y;
    y[0] = bump(z, 0) - bump(z, 0);
}

#[gpumem::kernel(unsafe)]
fn kept_later(y: Any) {
    let z;
    z = y;
    y[0] = bump(z, 0);
}

#[gpumem::kernel(unsafe)]
fn changed(mut y: Any) {
    y[0] = bump(y, 0);
}

#[gpumem::kernel(unsafe)]
fn chosen(y: Any, w: Any) {
    y[0] = bump(if y[1] > 0 { y } else { w }, 0);
}

#[gpumem::kernel(unsafe)]
fn matched(y: Any, w: Any) {
    y[0] = bump(
        match y[1] {
            0 => y,
            _ => w,
        },
        0,
    );
}

#[gpumem::kernel(unsafe)]
fn in_a_block(y: Any) {
    y[0] = ({ y })[1];
}

#[gpumem::kernel(unsafe)]
fn in_a_tuple(y: Any) {
    y[0] = bump((y, 1).0, 0);
}

#[gpumem::kernel(unsafe)]
fn in_an_array(y: Any) {
    y[0] = bump([y][0], 0);
}

#[gpumem::kernel(unsafe)]
fn in_a_guard(y: Any) {
    match y {
        z if bump(z, 0) > 1 => y[0] = 1,
        _ => {}
    }
}

#[gpumem::device]
fn same<T: DeviceType>(value: T) -> T {
    value
}

#[gpumem::kernel(unsafe)]
fn returned(y: Any) {
    y[0] = bump(same(y), 0);
}

#[gpumem::device]
fn by_another_name(y: Reference) -> u32 {
    bump(y, 0)
}

fn main() {}
