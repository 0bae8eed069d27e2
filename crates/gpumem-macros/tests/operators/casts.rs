//! Casts between every two types of numbers.
#![allow(clippy::undocumented_unsafe_blocks, clippy::unnecessary_cast)] // each work-item writes its own column; the same for all types

use gpumem::kernel::prelude::*;
use half::{bf16, f16};

/// How many types a number is cast to.
pub(crate) const TARGETS: usize = 12;

/// Kernels that cast elements of a type, as another one, to all numbers; and what Rust makes of an element.
macro_rules! casts {
    ($($name:ident $expected:ident $element:ident $type:ident;)*) => {$(
        #[gpumem::kernel(unsafe)]
        pub(crate) fn $name(a: Slice<$element>, out: ViewMut<u64, 2>) {
            let i = global_id(0);
            if i < a.len() {
                let x = a[i] as $type;
                out[[0, i]] = x as i8 as u64;
                out[[1, i]] = x as u8 as u64;
                out[[2, i]] = x as i16 as u64;
                out[[3, i]] = x as u16 as u64;
                out[[4, i]] = x as i32 as u64;
                out[[5, i]] = x as u32 as u64;
                out[[6, i]] = x as i64 as u64;
                out[[7, i]] = x as u64;
                out[[8, i]] = x as isize as u64;
                out[[9, i]] = x as usize as u64;
                out[[10, i]] = (x as f32).to_bits() as u64;
                out[[11, i]] = (x as f64).to_bits();
            }
        }

        pub(crate) fn $expected(element: $element) -> [u64; TARGETS] {
            let x = element as $type;
            [
                x as i8 as u64,
                x as u8 as u64,
                x as i16 as u64,
                x as u16 as u64,
                x as i32 as u64,
                x as u32 as u64,
                x as i64 as u64,
                x as u64,
                x as isize as u64,
                x as usize as u64,
                (x as f32).to_bits().into(),
                (x as f64).to_bits(),
            ]
        }
    )*};
}
casts! {
    casts_i8 from_i8 i8 i8;
    casts_u8 from_u8 u8 u8;
    casts_i16 from_i16 i16 i16;
    casts_u16 from_u16 u16 u16;
    casts_i32 from_i32 i32 i32;
    casts_u32 from_u32 u32 u32;
    casts_i64 from_i64 i64 i64;
    casts_u64 from_u64 u64 u64;
    casts_isize from_isize i64 isize;
    casts_usize from_usize u64 usize;
    casts_f32 from_f32 f32 f32;
    casts_f64 from_f64 f64 f64;
}

/// Casts of truth values to all integers.
#[gpumem::kernel(unsafe)]
pub(crate) fn casts_bool(a: Slice<i8>, out: ViewMut<u64, 2>) {
    let i = global_id(0);
    if i < a.len() {
        let x = a[i] > 0;
        out[[0, i]] = x as i8 as u64;
        out[[1, i]] = x as u8 as u64;
        out[[2, i]] = x as i16 as u64;
        out[[3, i]] = x as u16 as u64;
        out[[4, i]] = x as i32 as u64;
        out[[5, i]] = x as u32 as u64;
        out[[6, i]] = x as i64 as u64;
        out[[7, i]] = x as u64;
        out[[8, i]] = x as isize as u64;
        out[[9, i]] = x as usize as u64;
    }
}

pub(crate) fn from_bool(value: i8) -> [u64; TARGETS] {
    let one = u64::from(value > 0);
    [one, one, one, one, one, one, one, one, one, one, 0, 0]
}

/// All comparisons, a bit for each.
macro_rules! comparisons {
    ($($name:ident $expected:ident $type:ident;)*) => {$(
        #[gpumem::kernel(unsafe)]
        pub(crate) fn $name(a: Slice<$type>, b: Slice<$type>, out: SliceMut<u32>) {
            let i = global_id(0);
            if i < a.len() {
                let (x, y) = (a[i], b[i]);
                let mut bits = (x < y) as u32;
                bits |= ((x <= y) as u32) << 1;
                bits |= ((x > y) as u32) << 2;
                bits |= ((x >= y) as u32) << 3;
                bits |= ((x == y) as u32) << 4;
                bits |= ((x != y) as u32) << 5;
                out[i] = bits;
            }
        }

        pub(crate) fn $expected((x, y): ($type, $type)) -> u32 {
            let all = [x < y, x <= y, x > y, x >= y, x == y, x != y];
            all.into_iter().rev().fold(0, |bits, holds| bits << 1 | u32::from(holds))
        }
    )*};
}
comparisons! {
    compare_i8 compared_i8 i8;
    compare_u8 compared_u8 u8;
    compare_i16 compared_i16 i16;
    compare_u16 compared_u16 u16;
    compare_i32 compared_i32 i32;
    compare_u32 compared_u32 u32;
    compare_i64 compared_i64 i64;
    compare_u64 compared_u64 u64;
    compare_f32 compared_f32 f32;
    compare_f64 compared_f64 f64;
    compare_f16 compared_f16 f16;
    compare_bf16 compared_bf16 bf16;
}

/// To single precision and back.
#[gpumem::kernel(unsafe)]
pub(crate) fn widened<T: super::Half>(a: Slice<T>, wide: SliceMut<f32>, back: SliceMut<T>) {
    let i = global_id(0);
    if i < a.len() {
        let x = a[i].to_f32();
        wide[i] = x;
        back[i] = T::from_f32(x);
    }
}

/// From single precision.
#[gpumem::kernel(unsafe)]
pub(crate) fn rounded<T: super::Half>(a: Slice<f32>, out: SliceMut<T>) {
    let i = global_id(0);
    if i < a.len() {
        out[i] = T::from_f32(a[i]);
    }
}
