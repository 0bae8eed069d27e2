//! Arithmetic on elements of all ranks, in the order of the ranks.

use half::{bf16, f16};
use std::ffi::c_void;

/// Bytes of an element of a type.
pub(crate) fn size(number: u32) -> usize {
    match number {
        0 | 1 => 1,
        6 | 9 => 2,
        2 | 3 | 7 => 4,
        _ => 8,
    }
}

/// Combines elements of one type.
///
/// # Safety
/// Each source is valid for reads of `count` elements.
unsafe fn fold<T: Copy>(
    sources: &[*const c_void],
    count: usize,
    combine: impl Fn(T, T) -> T,
    finish: impl Fn(T) -> T,
) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(count * size_of::<T>());
    for index in 0..count {
        // SAFETY: the caller's promise.
        let mut values =
            sources.iter().map(|source| unsafe { source.cast::<T>().add(index).read_unaligned() });
        let Some(first) = values.next() else { return bytes };
        let value = finish(values.fold(first, &combine));
        // SAFETY: a number is as many bytes.
        bytes.extend_from_slice(unsafe {
            std::slice::from_raw_parts((&raw const value).cast::<u8>(), size_of::<T>())
        });
    }
    bytes
}

macro_rules! integers {
    ($type:ty, $operation:expr, $sources:expr, $count:expr) => {
        match $operation {
            0 => fold::<$type>($sources, $count, |a, b| a.wrapping_add(b), |a| a),
            1 => fold::<$type>($sources, $count, |a, b| a.wrapping_mul(b), |a| a),
            2 => fold::<$type>($sources, $count, Ord::max, |a| a),
            _ => fold::<$type>($sources, $count, Ord::min, |a| a),
        }
    };
}

macro_rules! floats {
    ($type:ty, $operation:expr, $sources:expr, $count:expr, |$sum:ident, $ranks:ident| $divide:expr) => {{
        let $ranks = $sources.len();
        match $operation {
            0 => fold::<$type>($sources, $count, |a, b| a + b, |a| a),
            1 => fold::<$type>($sources, $count, |a, b| a * b, |a| a),
            2 => fold::<$type>($sources, $count, |a, b| a.max(b), |a| a),
            3 => fold::<$type>($sources, $count, |a, b| a.min(b), |a| a),
            _ => fold::<$type>($sources, $count, |a, b| a + b, |$sum| $divide),
        }
    }};
}

/// Combines `count` elements of all sources.
///
/// # Safety
/// Each source is valid for reads of so many elements of the type.
pub(crate) unsafe fn reduce(number: u32, operation: u32, sources: &[*const c_void], count: usize) -> Vec<u8> {
    // SAFETY: the caller's promise.
    unsafe {
        match number {
            0 => integers!(i8, operation, sources, count),
            1 => integers!(u8, operation, sources, count),
            2 => integers!(i32, operation, sources, count),
            3 => integers!(u32, operation, sources, count),
            4 => integers!(i64, operation, sources, count),
            5 => integers!(u64, operation, sources, count),
            6 => floats!(f16, operation, sources, count, |sum, ranks| f16::from_f32(
                sum.to_f32() / ranks as f32
            )),
            7 => floats!(f32, operation, sources, count, |sum, ranks| sum / ranks as f32),
            8 => floats!(f64, operation, sources, count, |sum, ranks| sum / ranks as f64),
            _ => floats!(bf16, operation, sources, count, |sum, ranks| bf16::from_f32(
                sum.to_f32() / ranks as f32
            )),
        }
    }
}
