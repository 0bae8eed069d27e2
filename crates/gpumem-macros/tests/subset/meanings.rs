//! Kernels whose meaning is one that only rustc knows: types that it infers, places that a pattern names, the order of operands.
//! Each stands beside what it gives for a work-item.

use gpumem::kernel::prelude::*;

/// The type of a `const` block is that of its place.
#[gpumem::kernel(unsafe)]
pub(crate) fn const_blocks(out: SliceMut<i64>) {
    let i = global_id(0);
    let large: u64 = const { 3_000_000_000 };
    let scaled = i as f32 * 1.3f32 * const { 0.1 };
    let tenth = 0.1f32;
    let is_alike = tenth == const { 0.1 };
    let byte: u8 = const { 200 };
    out[i] = large as i64 + scaled.to_bits() as i64 + is_alike as i64 * 7 + byte as i64;
}

/// Literals that are too large for their types wrap, where their lint allows them.
#[allow(overflowing_literals)]
#[gpumem::kernel(unsafe)]
pub(crate) fn long_literals(out: SliceMut<i64>) {
    let i = global_id(0);
    let least = -2_147_483_648i32;
    out[i] = 5_000_000_000i32 as i64 + (7_000_000_000u32 / 2) as i64 + 300u8 as i64 + least as i64 + i as i64;
}

/// An axis beyond all others has the id 0, however many digits it has.
#[gpumem::kernel(unsafe)]
pub(crate) fn far_axes(out: SliceMut<i64>) {
    out[global_id(0)] = local_id(4_294_967_296) as i64 + 10 * local_id(2_147_483_648) as i64;
}

/// A name in `|` for one part.
#[gpumem::kernel(unsafe)]
pub(crate) fn one_part(out: SliceMut<i64>) {
    let i = global_id(0) as i64;
    out[global_id(0)] = match (i % 3, i % 4) {
        (a, 1) | (a, 2) if a > 0 => a * 10,
        (1, b) | (0, b) => b,
        _ => -1,
    };
}

trait Floor {
    const WIDTH: i64;

    /// As a method of floats, and of another type.
    fn floor(self) -> f64;
}

impl Floor for f32 {
    const WIDTH: i64 = 4;

    fn floor(self) -> f64 {
        1.0
    }
}

impl Floor for f64 {
    const WIDTH: i64 = 8;

    fn floor(self) -> f64 {
        1.0
    }
}

#[gpumem::device]
fn size<T: Numeric + Floor>(_value: T) -> i64 {
    T::WIDTH
}

#[gpumem::device]
fn lowered<T: Numeric + Floor>(value: T) -> i64 {
    size(value.floor())
}

#[gpumem::kernel(unsafe)]
pub(crate) fn methods(out: SliceMut<i64>) {
    out[global_id(0)] = lowered(1.5f32) * 10 + lowered(1.5f64);
}

#[gpumem::device]
fn raised(x: SliceMut<i64>, i: usize) -> [i64; 2] {
    x[i] += 10;
    [x[i], x[i] + 1]
}

/// A function that writes, beside what it writes.
#[gpumem::kernel(unsafe)]
pub(crate) fn in_order(out: SliceMut<i64>) {
    let i = global_id(0);
    out[i] = i as i64;
    let sum = out[i] * 1000 + raised(out, i)[1] + out[i] * 1_000_000;
    let len = [out.atomic_add(i, 5), 2].len() as i64;
    out[i] = sum + len * 3 + out[i];
}

/// An element of an array in a tuple.
#[gpumem::kernel(unsafe)]
pub(crate) fn in_tuples(out: SliceMut<i64>) {
    let i = global_id(0);
    let mut pair = (i as i64, [3i64, 4]);
    pair.1[1] = pair.0 * 2;
    pair.1[0] += 1;
    out[i] = pair.1[0] + pair.1[1];
}

/// Each kernel, and what it gives for a work-item.
#[allow(dead_code)] // not every test program runs all of them
#[allow(clippy::type_complexity)]
pub(crate) fn pairs() -> Vec<(gpumem::kernel::KernelDef<super::Integers>, fn(i64) -> i64)> {
    vec![
        (const_blocks(), |i| 3_000_000_000 + i64::from((i as f32 * 1.3f32 * 0.1).to_bits()) + 7 + 200),
        (long_literals(), |i| 705_032_704 + 1_352_516_352 + 44 - 2_147_483_648 + i),
        (far_axes(), |_| 0),
        (one_part(), |i| match (i % 3, i % 4) {
            (a, 1) | (a, 2) if a > 0 => a * 10,
            (1, b) | (0, b) => b,
            _ => -1,
        }),
        (methods(), |_| 48),
        (in_order(), |i| i * 1000 + i + 11 + (i + 10) * 1_000_000 + 6 + i + 15),
        (in_tuples(), |i| 4 + i * 2),
    ]
}
