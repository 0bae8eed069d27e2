//! Kernels that between them use all of the subset.
#![allow(clippy::undocumented_unsafe_blocks)] // each work-item writes its own element, or elements that others use after a barrier

pub(crate) mod divisions;
#[allow(dead_code)] // compiled elsewhere
pub(crate) mod endless;
pub(crate) mod features;
pub(crate) mod hygiene;
pub(crate) mod meanings;
#[allow(dead_code)] // launched elsewhere
pub(crate) mod own;

use gpumem::kernel::prelude::*;

/// The parameters of kernels that give one number for each work-item.
pub(crate) type Integers = (SliceMut<i64>,);

#[gpumem::kernel(unsafe)]
pub(crate) fn saxpy(x: Slice<f32>, y: SliceMut<f32>, a: f32) {
    let i = global_id(0);
    if i < y.len() {
        y[i] = a * x[i] + y[i];
    }
}

#[gpumem::kernel(unsafe)]
pub(crate) fn axpb<T: Numeric>(x: Slice<T>, y: SliceMut<T>, a: T) {
    let i = global_id(0);
    if i < y.len() {
        let product = a * x[i];
        y[i] = product + T::ONE;
    }
}

#[gpumem::kernel(unsafe)]
pub(crate) fn matmul<T: Numeric, const TILE: usize>(a: View<T, 2>, b: View<T, 2>, c: ViewMut<T, 2>) {
    let left = shared::<T>([TILE, TILE]);
    let right = shared::<T>([TILE, TILE]);
    let (x, y) = (local_id(0), local_id(1));
    let (row, column, depth) = (global_id(1), global_id(0), a.extent(1));
    let mut sum = T::ZERO;
    for start in (0..depth).step_by(TILE) {
        left[[y, x]] = if row < a.extent(0) && start + x < depth { a[[row, start + x]] } else { T::ZERO };
        right[[y, x]] =
            if start + y < depth && column < b.extent(1) { b[[start + y, column]] } else { T::ZERO };
        barrier(Local);
        for k in 0..TILE {
            sum += left[[y, k]] * right[[k, x]];
        }
        barrier(Local);
    }
    if row < c.extent(0) && column < c.extent(1) {
        c[[row, column]] = sum;
    }
}

#[gpumem::kernel(unsafe)]
pub(crate) fn reduce(x: Slice<f32>, by_tree: SliceMut<f32>, by_wave: SliceMut<f32>) {
    let tree = shared::<f32>([256]);
    let waves = shared::<f32>([8]);
    let (i, local) = (global_id(0), local_id(0));
    let value = if i < x.len() { x[i] } else { 0.0 };
    tree[local] = value;
    barrier(Local);
    let mut step = 128;
    while step > 0 {
        if local < step {
            tree[local] += tree[local + step];
        }
        if step > wave_size() {
            barrier(Local);
        } else {
            wavebarrier();
        }
        step /= 2;
    }
    let sum = wave_sum(value);
    if lane() == 0 {
        waves[wave_id()] = sum;
    }
    barrier(Local);
    if local == 0 {
        by_tree[group_id(0)] = tree[0];
        let mut all = 0.0;
        for wave in 0..256 / wave_size() {
            all += waves[wave];
        }
        by_wave[group_id(0)] = all;
    }
}

#[gpumem::kernel(unsafe)]
pub(crate) fn histogram(values: View<u8, 1>, totals: SliceMut<u32>) {
    let bins = shared::<u32>([256]);
    let local = local_id(0);
    bins[local] = 0;
    barrier(Local);
    for i in (global_id(0)..values.extent(0)).step_by(global_size(0)) {
        bins.atomic_add(values[i] as usize, 1);
    }
    barrier(Local);
    totals.atomic_add(local, bins[local]);
}

#[gpumem::kernel(unsafe)]
pub(crate) fn ranges(out: SliceMut<i64>) {
    let n = global_id(0) as i64;
    let mut sum = 0;
    for i in 0..n {
        sum += i;
    }
    for i in 1..=n {
        sum = sum * 3 % 1009 + i;
    }
    for i in (0..n).rev() {
        sum = sum * 5 % 2003 + i;
    }
    for i in (2..=n).step_by(3) {
        sum = sum * 7 % 3001 + i;
    }
    for i in (0..n).step_by(4) {
        sum += i * i;
    }
    for i in (0..=n).rev().step_by(5) {
        sum = sum * 11 % 4001 + i;
    }
    for i in 250..=255u8 {
        sum += i64::from(i);
    }
    for i in (-128..=-120i8).rev() {
        sum += i64::from(i);
    }
    for _ in 0..3 {
        sum += 1;
    }
    out[global_id(0)] = sum;
}

#[gpumem::kernel(unsafe)]
pub(crate) fn labels(out: SliceMut<i64>) {
    let n = global_id(0) as i64;
    let mut sum = 0;
    'outer: for i in 0..10 {
        let step = i + 1;
        for j in 0..10 {
            if j > i {
                continue 'outer;
            }
            if i * j > n {
                break 'outer;
            }
            let product = step * j;
            sum += product;
        }
        sum += 1000;
    }
    out[global_id(0)] = sum;
}

#[gpumem::kernel(unsafe)]
pub(crate) fn values(out: SliceMut<i64>) {
    let i = global_id(0);
    if i >= out.len() {
        return;
    }
    let n = i as i64;
    let square = {
        let copy = n;
        copy * n
    };
    let kind = match n % 7 {
        0 => 100,
        1 | 2 => {
            let base = 200;
            base + square
        }
        3..=4 => 300,
        k if k > 5 => 400 + k,
        _ => 500,
    };
    let mut candidate = 0;
    let root = loop {
        if candidate * candidate >= n {
            break candidate;
        }
        candidate += 1;
    };
    let sign = if n > 32 {
        let minus = -1;
        minus
    } else if n == 32 {
        0
    } else {
        1
    };
    let by_bool = match n % 2 == 0 && n > 4 {
        true => 7,
        false => 9,
    };
    let mut more = 0;
    match n {
        61.. => more = 5,
        _ => {}
    }
    out[i] = kind + root * 10 + sign + by_bool + more;
}

#[gpumem::kernel(unsafe)]
pub(crate) fn shapes(out: SliceMut<i64>) {
    let n = global_id(0) as i64;
    let (a, b) = (n + 1, n * 2);
    let (a, b) = (b, a);
    let pair = (a, b as f32);
    let mut window = [0; 5];
    for k in 0..5usize {
        window[k] = a * k as i64;
    }
    window[2] += b;
    let mut grid = local::<i64>([2, 3]);
    for row in 0..2 {
        for column in 0..3 {
            grid[[row, column]] = row as i64 * 10 + column as i64;
        }
    }
    let corner = [1, 2];
    grid[corner] -= -(-n);
    let mut turns = 0;
    while {
        let next = turns + 1;
        next < 4
    } {
        turns += 1;
        if turns == 2 {
            continue;
        }
        grid[[0, 0]] += turns;
    }
    let later;
    if n > 5 {
        later = 3;
    } else {
        later = 4;
    }
    let mut total = 0;
    for k in 0..window.len() {
        total += window[k];
    }
    let (first, second) = pair;
    let total = total + grid[corner] + n + grid[[0, 0]] - 4
        + later
        + first
        + second as i64
        + [5, 6, 7][(n % 3) as usize];
    let mut changed = (total, 1u8);
    changed.0 += 1000;
    let _unused = changed.1;
    out[global_id(0)] = changed.0;
}

#[gpumem::kernel(unsafe)]
pub(crate) fn cpp_words(out: SliceMut<i64>) {
    let float = global_id(0) as i64;
    let template = 1;
    let array = 2;
    let barrier = 3;
    let lane = 4;
    let int = 5;
    out[global_id(0)] = float + template + array + barrier + lane + int;
}

/// Three atomic additions in one expression, followed by a read.
#[gpumem::kernel(unsafe)]
pub(crate) fn order(out: SliceMut<u32>) {
    out[0] = out.atomic_add(3, 1) * 1000 + out.atomic_add(3, 2) * 100 + out.atomic_add(3, 0) * 10 + out[3];
}

const WEIGHTS: [f32; 3] = [1.5, 2.5, 4.0];

#[gpumem::kernel(unsafe)]
pub(crate) fn constants<const N: usize>(out: SliceMut<f32>) {
    let i = global_id(0);
    out[i] = WEIGHTS[i % WEIGHTS.len()] * N as f32 + const { (7 * 7) as f32 } + f32::EPSILON;
}

pub(crate) const PAST_THE_END: u32 = line!() + 3;
#[gpumem::kernel(unsafe)]
pub(crate) fn past_the_end(out: SliceMut<i64>) {
    out[global_id(0)] = 1;
}

#[gpumem::kernel(unsafe)]
pub(crate) fn outside_of_a_local_array(out: SliceMut<i64>) {
    let mut grid = local::<i64>([2, 3]);
    let column = global_id(0) % 4;
    grid[[1, column]] = 1;
    out[global_id(0)] = grid[[0, 0]];
}

#[gpumem::kernel(unsafe)]
pub(crate) fn asserts(out: SliceMut<i64>) {
    let i = global_id(0);
    assert!(i < 33, "too far");
    out[i] = 1;
}

#[gpumem::kernel(unsafe)]
pub(crate) fn race(out: SliceMut<i64>) {
    let tile = shared::<i64>([32]);
    let local = local_id(0);
    tile[local] = 1;
    out[global_id(0)] = tile[local.saturating_sub(1)];
}

const TILE: usize = 16;

/// Positions that fit 32 bits, and what does not: products, differences below zero, counters that grow.
// SAFETY: each work-item writes its own element.
#[gpumem::kernel(unsafe)]
pub fn positions(out: SliceMut<i64>) {
    let tile = shared::<i64>([2, TILE]);
    let (local, group) = (local_id(0), group_id(0));
    let (y, x) = (local / TILE, local % TILE);
    tile[[y, x]] = local as i64;
    barrier(Local);
    let beyond = (local + 1) * 1_000_000_000 * 1_000;
    let below = local.wrapping_sub(100);
    let mut grown = local + 4_000_000_000;
    grown += 4_000_000_000;
    let mut step = TILE;
    let mut sum = 0i64;
    while step > 0 {
        sum += tile[[y, (x + step) % TILE]] * step as i64;
        step /= 2;
    }
    for at in (local..TILE * 4).step_by(TILE - 3) {
        sum += at as i64;
    }
    for at in (x..TILE * 2).step_by(TILE) {
        sum += tile[[at / TILE, at % TILE]];
    }
    for at in 4_294_967_290..4_294_967_290 + group + 8 {
        sum += at as i64;
    }
    let narrow = (beyond as u32 ^ below as u32) as i64;
    out[global_id(0)] = sum + narrow + (beyond >> 3) as i64 + grown.wrapping_add(below) as i64;
}
