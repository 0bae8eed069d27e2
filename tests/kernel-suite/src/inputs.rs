//! Numbers to compute with, the same in every run.

use ndarray::{Array, Array1, Dimension, ShapeBuilder};

/// Small whole numbers from -`most` to `most`: their products and sums are exact in `f32`.
pub(crate) fn whole<Sh: ShapeBuilder<Dim = D>, D: Dimension>(shape: Sh, most: i32) -> Array<f32, D> {
    let mut state = 1u32;
    Array::from_shape_simple_fn(shape, || (next(&mut state) % (2 * most as u32 + 1)) as f32 - most as f32)
}

/// Any bytes.
pub(crate) fn bytes<Sh: ShapeBuilder<Dim = D>, D: Dimension>(shape: Sh) -> Array<u8, D> {
    let mut state = 2u32;
    Array::from_shape_simple_fn(shape, || next(&mut state) as u8)
}

/// Any words.
pub(crate) fn words(len: usize) -> Array1<u32> {
    let mut state = 3u32;
    Array1::from_shape_simple_fn(len, || next(&mut state).wrapping_mul(0x9e37_79b9))
}

/// The high bits of a linear congruence, which do not repeat soon.
fn next(state: &mut u32) -> u32 {
    *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    *state >> 8
}
