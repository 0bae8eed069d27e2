//! Kernels with every operator and method of every number.
#![allow(clippy::undocumented_unsafe_blocks)] // each work-item writes its own element, or elements that others use after a barrier

pub(crate) mod casts;
pub(crate) mod edges;

use gpumem::kernel::prelude::*;
use half::{bf16, f16};

/// All operators on one type of integers; the types of their operands are the element's.
macro_rules! integers {
    ($name:ident $type:ident) => {
        #[gpumem::kernel(unsafe)]
        pub(crate) fn $name(a: Slice<$type>, b: Slice<$type>, out: ViewMut<$type, 2>, bits: ViewMut<u32, 2>) {
            let i = global_id(0);
            if i < a.len() {
                let (x, y) = (a[i], b[i]);
                out[[0, i]] = x.wrapping_add(y);
                out[[1, i]] = x.wrapping_sub(y);
                out[[2, i]] = x.wrapping_mul(y);
                out[[3, i]] = x.saturating_add(y);
                out[[4, i]] = x.saturating_sub(y);
                out[[5, i]] = x & y;
                out[[6, i]] = x | y;
                out[[7, i]] = x ^ y;
                out[[8, i]] = !x;
                out[[9, i]] = x.min(y);
                out[[10, i]] = x.max(y);
                out[[11, i]] = x.rotate_left(3);
                out[[12, i]] = x.rotate_right(i as u32);
                out[[13, i]] = x.wrapping_neg();
                out[[14, i]] = x >> (i as u32 % $type::BITS);
                out[[15, i]] = x << (i as u32 % $type::BITS);
                if y > 1 {
                    out[[16, i]] = x / y;
                    out[[17, i]] = x % y;
                }
                let mut z = x;
                z &= 15;
                z += 2;
                z *= 3;
                z -= 1;
                z /= 2;
                z %= 7;
                z <<= 2u32;
                z >>= 1u32;
                z |= 1;
                z ^= 3;
                out[[18, i]] = z;
                out[[19, i]] ^= x;
                out[[20, i]] = x.abs_diff(y) as $type;
                out[[21, i]] = x.swap_bytes();
                out[[22, i]] = x.reverse_bits();
                out[[23, i]] = x.wrapping_shl(y as u32);
                out[[24, i]] = x.wrapping_shr(y as u32);
                if y > 1 {
                    out[[25, i]] = x.rem_euclid(y);
                    out[[26, i]] = x.div_euclid(y);
                }
                out[[27, i]] = x.times(y);
                bits[[4, i]] = x.count_zeros();
                bits[[5, i]] = x.leading_ones();
                bits[[6, i]] = x.trailing_ones();
                bits[[0, i]] = x.count_ones();
                bits[[1, i]] = x.leading_zeros();
                bits[[2, i]] = x.trailing_zeros();
                bits[[3, i]] = if x < y {
                    1
                } else if x == y {
                    2
                } else {
                    3
                };
            }
        }
    };
}
integers!(integers_i8 i8);
integers!(integers_u8 u8);
integers!(integers_i16 i16);
integers!(integers_u16 u16);
integers!(integers_i32 i32);
integers!(integers_u32 u32);
integers!(integers_i64 i64);
integers!(integers_u64 u64);

/// Methods of signed integers.
macro_rules! signed {
    ($name:ident $type:ident) => {
        #[gpumem::kernel(unsafe)]
        pub(crate) fn $name(a: Slice<$type>, b: Slice<$type>, out: ViewMut<$type, 2>, bits: ViewMut<u32, 2>) {
            let i = global_id(0);
            if i < a.len() {
                let (x, y) = (a[i], b[i]);
                out[[0, i]] = x.signum();
                out[[1, i]] = x.wrapping_abs();
                out[[2, i]] = x.unsigned_abs() as $type;
                if y < -1 {
                    out[[3, i]] = x.rem_euclid(y);
                    out[[4, i]] = x.div_euclid(y);
                }
                bits[[0, i]] = if x.is_positive() { 1 } else { 2 };
                bits[[1, i]] = if x.is_negative() { 1 } else { 2 };
                bits[[2, i]] = (x.abs_diff(y) >> 1u32) as u32;
            }
        }
    };
}
signed!(signed_i8 i8);
signed!(signed_i16 i16);
signed!(signed_i32 i32);
signed!(signed_i64 i64);

/// The operators that overflow, which a debug build of the host reports: for device code only.
macro_rules! overflowing {
    ($name:ident $type:ident) => {
        #[gpumem::kernel(unsafe)]
        pub(crate) fn $name(a: Slice<$type>, b: Slice<$type>, out: ViewMut<$type, 2>, bits: ViewMut<u32, 2>) {
            let i = global_id(0);
            if i < a.len() {
                let (x, y) = (a[i], b[i]);
                out[[0, i]] = x + y;
                out[[1, i]] = x - y;
                out[[2, i]] = x * y;
                out[[3, i]] = x << y;
                out[[4, i]] = x >> y;
                out[[5, i]] = $type::MAX - x + 1 - (y - x) * 3;
                let mut z = x;
                z += y;
                z *= y;
                z -= 100;
                z <<= y;
                out[[6, i]] = z;
                out[[7, i]] += $type::MAX;
                out[[7, i]] += y;
                bits[[0, i]] = 1u32 << (y as i32);
            }
        }
    };
}
overflowing!(overflowing_i8 i8);
overflowing!(overflowing_u8 u8);
overflowing!(overflowing_i16 i16);
overflowing!(overflowing_u16 u16);
overflowing!(overflowing_i32 i32);
overflowing!(overflowing_u32 u32);
overflowing!(overflowing_i64 i64);
overflowing!(overflowing_u64 u64);

/// How many rows the kernels of [`integers`] and [`floats`] write.
pub(crate) const ROWS: usize = 28;

/// How many rows of bits the kernels of [`integers`] and [`signed`] write.
pub(crate) const BITS: usize = 7;

macro_rules! floats {
    ($name:ident $type:ident) => {
        #[gpumem::kernel(unsafe)]
        pub(crate) fn $name(
            a: Slice<$type>,
            b: Slice<$type>,
            out: ViewMut<$type, 2>,
            near: ViewMut<$type, 2>,
        ) {
            let i = global_id(0);
            if i < a.len() {
                let (x, y) = (a[i], b[i]);
                out[[0, i]] = x + y;
                out[[1, i]] = x - y;
                out[[2, i]] = x * y;
                out[[3, i]] = x / y;
                out[[4, i]] = x % y;
                out[[5, i]] = -x;
                out[[6, i]] = x.sqrt();
                out[[7, i]] = x.mul_add(y, 1.5);
                out[[8, i]] = x.floor();
                out[[9, i]] = x.ceil();
                out[[10, i]] = x.trunc();
                out[[11, i]] = x.round();
                out[[12, i]] = x.abs();
                out[[13, i]] = x.copysign(y);
                out[[14, i]] = x * y + 1.0;
                out[[15, i]] = if x.is_nan() || y.is_infinite() { 1.0 } else { x.recip() };
                out[[16, i]] = x.fract();
                out[[17, i]] = $type::from_bits(x.to_bits());
                out[[18, i]] = x.clamp(-2.0, 2.5);
                let mut z = x;
                z += 1.0;
                z -= y;
                z *= 0.5;
                z /= 3.0;
                z %= 1.25;
                out[[19, i]] = z;
                out[[20, i]] = x.signum();
                out[[21, i]] = x.rem_euclid(y);
                out[[22, i]] = x.div_euclid(y);
                out[[23, i]] = if x.is_sign_negative() { 1.0 } else { 2.0 };
                out[[24, i]] = if y.is_sign_positive() { 1.0 } else { 2.0 };
                out[[25, i]] = x.min(y);
                out[[26, i]] = x.max(y);
                out[[27, i]] = x.times(y);
                near[[0, i]] = x.min(y) + x.max(y);
                near[[1, i]] = x.sin() + x.cos() + x.tan() + x.asin() + x.acos() + x.atan() + x.atan2(y);
                near[[2, i]] = x.exp() + x.exp2() + x.exp_m1() + x.ln() + x.ln_1p() + x.log2() + x.log10();
                near[[3, i]] = x.sinh() + x.cosh() + x.tanh() + x.asinh() + x.acosh() + x.atanh();
                near[[4, i]] = x.powf(y) + x.powi(3) + x.cbrt() + x.hypot(y);
            }
        }
    };
}
floats!(floats_f32 f32);
floats!(floats_f64 f64);

/// Casts between all kinds of numbers.
#[gpumem::kernel(unsafe)]
pub(crate) fn casts(
    x: Slice<f32>,
    d: Slice<f64>,
    n: Slice<i64>,
    out: ViewMut<i64, 2>,
    floats: ViewMut<f64, 2>,
) {
    let i = global_id(0);
    if i < x.len() {
        out[[0, i]] = i64::from(x[i] as i8);
        out[[1, i]] = i64::from(x[i] as u8);
        out[[2, i]] = i64::from(x[i] as i16);
        out[[3, i]] = i64::from(x[i] as u16);
        out[[4, i]] = i64::from(x[i] as i32);
        out[[5, i]] = i64::from(x[i] as u32);
        out[[6, i]] = x[i] as i64;
        out[[7, i]] = x[i] as u64 as i64;
        out[[8, i]] = d[i] as i32 as i64;
        out[[9, i]] = d[i] as u32 as i64;
        out[[10, i]] = d[i] as i64;
        out[[11, i]] = d[i] as u64 as i64;
        out[[12, i]] = n[i] as i8 as i64;
        out[[13, i]] = n[i] as u8 as i64;
        out[[14, i]] = n[i] as i16 as i64;
        out[[15, i]] = n[i] as u32 as i64;
        out[[16, i]] = n[i] as usize as i64;
        out[[17, i]] = (n[i] > 3) as i64;
        out[[18, i]] = d[i] as i8 as u64 as i64;
        out[[19, i]] = x[i] as usize as i64;
        floats[[0, i]] = n[i] as f32 as f64;
        floats[[1, i]] = n[i] as f64;
        floats[[2, i]] = n[i] as u64 as f32 as f64;
        floats[[3, i]] = d[i] as f32 as f64;
        floats[[4, i]] = f64::from(x[i]);
        floats[[5, i]] = n[i] as i32 as f32 as f64;
    }
}

/// A half-precision type, as kernels use it.
pub(crate) trait Half: Numeric + std::ops::Neg<Output = Self> {
    fn from_f32(value: f32) -> Self;
    fn to_f32(self) -> f32;
}

impl Half for f16 {
    fn from_f32(value: f32) -> Self {
        f16::from_f32(value)
    }
    fn to_f32(self) -> f32 {
        f16::to_f32(self)
    }
}

impl Half for bf16 {
    fn from_f32(value: f32) -> Self {
        bf16::from_f32(value)
    }
    fn to_f32(self) -> f32 {
        bf16::to_f32(self)
    }
}

#[gpumem::kernel(unsafe)]
pub(crate) fn halves<T: Half>(a: Slice<T>, b: Slice<T>, out: ViewMut<T, 2>, wide: SliceMut<f32>) {
    let i = global_id(0);
    let tile = shared::<T>([64]);
    tile[local_id(0)] = a[i];
    barrier(Local);
    let (x, y) = (tile[local_id(0)], b[i]);
    out[[0, i]] = x + y;
    out[[1, i]] = x - y;
    out[[2, i]] = x * y;
    out[[3, i]] = x / y;
    out[[4, i]] = x % y;
    out[[5, i]] = -x;
    let mut sum = x;
    sum += y;
    out[[6, i]] = sum + y + x.times(y);
    out[[7, i]] = if x < y { x } else { T::from_f32(0.1) };
    out[[8, i]] += x;
    wide[i] = x.to_f32();
}

#[gpumem::device]
fn column(all: View<i64, 2>, i: usize) -> i64 {
    (all[[0, i]] ^ all[[1, i]] >> 1) ^ (all.extent(0) * 1000 + all.extent(1)) as i64
}

#[gpumem::device]
fn column_of_any(all: ViewMut<i64, 2>, i: usize) -> i64 {
    column(all, i)
}

/// Functions that read, of a view that is written.
#[gpumem::kernel(unsafe)]
pub(crate) fn read_views(a: Slice<i64>, b: Slice<i64>, out: ViewMut<i64, 2>, bits: ViewMut<u32, 2>) {
    let i = global_id(0);
    if i < a.len() {
        out[[0, i]] = a[i];
        out[[1, i]] = b[i];
        out[[2, i]] = column(out, i);
        out[[3, i]] = column_of_any(out, i) ^ 1;
        bits[[0, i]] = out[[3, i]] as u32;
    }
}

/// All operations of waves, and ids on three axes.
#[gpumem::kernel(unsafe)]
pub(crate) fn waves(out: ViewMut<u32, 2>, wide: ViewMut<f64, 1>) {
    let all = dynamic_shared::<u32>();
    let window = local::<u32>([2]);
    let i = group_linear() * group_size(0) * group_size(1) * group_size(2) + local_linear();
    let own = (i * 7 % 13) as u32 + window[1];
    all[local_linear()] = own;
    out[[0, i]] = shuffle(own, 3);
    out[[1, i]] = shuffle_up(own, 2) + shuffle_down(own, 1) * 100;
    out[[2, i]] = shuffle_xor(own, 5);
    out[[3, i]] = wave_sum(own);
    out[[4, i]] = wave_min(own) + 100 * wave_max(own);
    out[[5, i]] = wave_scan(own);
    out[[6, i]] = if wave_any(own > 11) { 1 } else { 0 } + if wave_all(own > 0) { 2 } else { 0 };
    out[[7, i]] = (wave_ballot(own.is_multiple_of(2)) % 1_000_003) as u32;
    out[[8, i]] = (wave_items() * 10_000 + lane() * 100 + wave_id()) as u32;
    let mut axes = 0;
    for axis in 0..4 {
        axes = axes * 10 + local_id(axis) + group_id(axis) + group_size(axis) + groups(axis);
        axes += global_id(axis) + global_size(axis);
    }
    out[[9, i]] = axes as u32;
    memory_fence();
    wavebarrier();
    barrier(Both);
    out[[10, i]] = all[(local_linear() + 1) % (group_size(0) * group_size(1) * group_size(2))];
    wide[i] = wave_sum(i as f64 * 0.125);
}
