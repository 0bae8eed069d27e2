//! What kernels do not know, and what the attribute says to write instead.

use gpumem::kernel::prelude::*;

#[gpumem::kernel(unsafe)]
fn closure(y: SliceMut<f32>) {
    let f = |v: f32| v + 1.0;
    y[0] = 1.0;
}

#[gpumem::kernel(unsafe)]
fn all_of_them(y: SliceMut<f32>, n: u32) {
    let r = &y;
    let text = "words";
    let v = y[0]?;
    y[0] = helper(1.0);
    y[0] = 1.0f32.gamma();
    println!("{}", 1);
    for x in y {}
    if let 3 = n {}
    let tile = shared::<f32>([n]);
    barrier(n);
    let p = Point { x: 1.0 };
    'a: loop {
        break 'b;
    }
    y[0] = (1..2);
    unsafe {}
    async {};
    y[0].re = 1.0;
    return 1.0;
    let copy = tile;
    let z = y;
    fn inner() {}
}

fn main() {}
