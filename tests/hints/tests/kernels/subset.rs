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
    y[0] = 1.0f32.gamma();
    println!("{}", 1);
    for x in y {}
    if let 3 = n {}
    let tile = shared::<f32>([n]);
    barrier(n);
    'a: loop {
        break 'b;
    }
    y[0] = (1..2);
    unsafe {}
    async {};
    return 1.0;
    let copy = tile;
    let z = y;
    fn inner() {}
    y.atomic_swap(0, 1.0);
    y.atomic_add(0);
    let s = wave_reduce(1.0);
    let s = wave_reduce(1.0, |a, b| {
        let c = a;
        c + b
    });
    let s = wave_reduce(1.0, |(a, b), c| a);
    let s = wave_reduce(1, |a, b| a + b * lane());
    let t = Point { x: 1.0, .. };
    match n {
        Some(1) => {}
        _ => {}
    }
    match (n, n) {
        (1, ..) => {}
        _ => {}
    }
    let deep = local::<f32>([1, 1, 1, 1, 1, 1, 1]);
    let a = local::<f32>([2]);
    shared(1);
    n(1);
    let (a, b) = (shared::<f32>([2]), local::<f32>([2]));
    let none = shared::<f32>([]);
}

#[gpumem::kernel(unsafe)]
fn conversion(y: SliceMut<u32>) {
    y[0] = global_id(0).try_into().unwrap();
}

#[gpumem::kernel]
fn parts(y: Own<i32>) {
    y[own()] = match (y[own()], 2) {
        (a, 1) | (1, a) => a,
        _ => 0,
    };
}

#[gpumem::kernel]
fn parts_of_all(y: Own<i32>) {
    y[own()] = match (y[own()], 2) {
        (1, a) | (a, _) => a,
    };
}

#[gpumem::kernel(unsafe)]
fn indices(y: SliceMut<[i32; 2]>) {
    let mut i = 0;
    let part = y[i][{
        i += 1;
        0
    }];
    let part = y[y[0][0] as usize][y[1][{
        i += 1;
        1
    }] as usize];
}

#[gpumem::kernel(unsafe)]
fn reductions(y: SliceMut<u64>) {
    let by = local_id(0) as u64;
    let sum = wave_reduce(1, |a, b| a * by + b);
    y[global_id(0)] = sum;
}

#[gpumem::kernel(unsafe)]
fn reductions_within(y: SliceMut<u64>, mut by: u64) {
    y[global_id(0)] = wave_reduce(1, |a, b| a * by + b);
    let most = global_size(0) as u64;
    for k in 0..most {
        y[global_id(0)] = wave_reduce(1, |a, b| (a * k + b) % most);
    }
}

const ROW: [u32; 2] = [1, 2];

#[gpumem::kernel(unsafe)]
fn rows(y: SliceMut<u32>, n: u32) {
    y[0] = match [n, 2] {
        ROW => 1,
        _ => 2,
    };
}

#[gpumem::kernel(unsafe)]
fn guards(y: SliceMut<u32>, n: u32) {
    match n {
        1 | _ if y.atomic_add(0, 1) > 5 => {}
        _ => {}
    }
    let _x = match (n, n) {
        (1 | 2, 3) if y.atomic_add(0, 1) > 5 => 1,
        _ => 2,
    };
}

fn main() {}
