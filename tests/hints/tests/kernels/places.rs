//! Values that Rust would write to a copy of, and C++ to the variable that they come from.

use gpumem::kernel::prelude::*;

type Pair = (f32, [f32; 2]);
const PAIR: Pair = (1.0, [2.0; 2]);

#[gpumem::device]
fn same(x: Pair) -> Pair {
    x
}

#[gpumem::kernel(unsafe)]
fn elements(y: SliceMut<Pair>, c: bool) {
    let (mut a, mut b) = ((1.0f32, [1.0f32; 2]), (2.0f32, [2.0f32; 2]));
    let (mut rows, mut n) = ([[1.0f32; 2]; 2], 0);
    (if c { a } else { b }).1[0] = 5.0;
    ({ a }).1[0] = 5.0;
    ({
        n += 1;
        a
    })
    .1[1] += 1.0;
    (match n {
        0 => a,
        _ => b,
    })
    .1[0] = 5.0;
    (loop {
        break a;
    })
    .1[0] = 5.0;
    same(a).1[0] = 5.0;
    (a, b).0.1[0] = 5.0;
    [a, b][0].1[0] += 5.0;
    (if c { rows } else { rows })[0] = [5.0; 2];
    ({ rows })[0][1] = 5.0;
    (if c { rows } else { rows })[0][1] += 5.0;
    PAIR.1[0] = 5.0;
}

#[gpumem::kernel(unsafe)]
fn fields(y: SliceMut<Pair>, c: bool) {
    let (mut a, mut b) = ((1.0f32, [1.0f32; 2]), (2.0f32, [2.0f32; 2]));
    (if c { a } else { b }).0 = 5.0;
    ({ a }).0 += 5.0;
    ({ y[0] }).0 = 5.0;
    ({ y[0] }).1[0] = 5.0;
    ({ a.1 })[0] += 5.0;
    same(a).0 = 5.0;
    PAIR.0 = 5.0;
    PAIR.0 += 5.0;
}

fn main() {}
