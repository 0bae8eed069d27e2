//! Numbers: conversions of 16 bits, division, and roundings that every device does in the same way.

use super::{Parameters, Probe, case, items_of, random};
use crate::Case;
use gpumem_core::{Backend, LaunchConfig};
use gpumem_kernel::{KernelDef, WorkItemIds};
use half::{bf16, f16};
use num_complex::Complex;

pub(super) fn cases<B: Backend>() -> Vec<Case<B>> {
    vec![
        case::<FromHalves, B>(),
        case::<ToHalves, B>(),
        case::<Quotients, B>(),
        case::<SingleRoundings, B>(),
        case::<DoubleRoundings, B>(),
    ]
}

/// One work-item for each of the 65536 patterns of 16 bits.
fn all_halves() -> Vec<LaunchConfig> {
    vec![LaunchConfig::linear(256, 256)]
}

fn one_nan(value: f32) -> f32 {
    if value.is_nan() { f32::NAN } else { value }
}

/// Every `f16` and every `bf16` as `f32`.
struct FromHalves;

impl Probe for FromHalves {
    type In = u16;
    type Out = f32;

    fn launches() -> Vec<LaunchConfig> {
        all_halves()
    }

    fn declaration() -> KernelDef<Parameters<Self>> {
        let source = "using namespace gpumem;
GPUMEM_KERNEL from_halves(slice<const u16> x, slice<float> y) {
    u64 i = global_id(0);
    f16 half;
    bf16 upper;
    half.raw = upper.raw = x[i];
    y[i] = half;
    y[x.size() + i] = upper;
}";
        // SAFETY: each work-item writes its own elements.
        unsafe { KernelDef::new("from_halves") }.source(source).host_loop(
            |ids: &WorkItemIds<'_>, (x, y): &Parameters<Self>| {
                let i = ids.global_id(0);
                y.set(i, f16::from_bits(x.get(i)).to_f32());
                y.set(x.len() + i, bf16::from_bits(x.get(i)).to_f32());
            },
        )
    }

    fn input(items: usize) -> Vec<u16> {
        (0..items).map(|bits| bits as u16).collect()
    }

    fn before(items: usize) -> Vec<f32> {
        vec![0.0; 2 * items]
    }

    fn after(input: &[u16], _: &LaunchConfig, _: usize) -> Vec<f32> {
        let halves = input.iter().map(|bits| {
            let (sign, exponent, fraction) = (bits >> 15, i32::from(bits >> 10 & 31), f32::from(bits & 1023));
            let size = match exponent {
                0 => fraction * 2f32.powi(-24),
                31 if fraction == 0.0 => f32::INFINITY,
                31 => f32::NAN,
                _ => (1024.0 + fraction) * 2f32.powi(exponent - 25),
            };
            if sign == 1 { -size } else { size }
        });
        let uppers = input.iter().map(|bits| f32::from_bits(u32::from(*bits) << 16));
        halves.chain(uppers).collect()
    }

    fn normalise(output: &mut [f32]) {
        output.iter_mut().for_each(|value| *value = one_nan(*value));
    }
}

/// `f32` of every size as `f16` and as `bf16`: rounded, too large, too small, halfway.
struct ToHalves;

impl Probe for ToHalves {
    type In = f32;
    type Out = u16;

    fn launches() -> Vec<LaunchConfig> {
        all_halves()
    }

    fn declaration() -> KernelDef<Parameters<Self>> {
        let source = "using namespace gpumem;
GPUMEM_KERNEL to_halves(slice<const float> x, slice<u16> y) {
    u64 i = global_id(0);
    y[i] = f16(x[i]).raw;
    y[x.size() + i] = bf16(x[i]).raw;
}";
        // SAFETY: each work-item writes its own elements.
        unsafe { KernelDef::new("to_halves") }.source(source).host_loop(
            |ids: &WorkItemIds<'_>, (x, y): &Parameters<Self>| {
                let i = ids.global_id(0);
                y.set(i, f16::from_f32(x.get(i)).to_bits());
                y.set(x.len() + i, bf16::from_f32(x.get(i)).to_bits());
            },
        )
    }

    fn input(items: usize) -> Vec<f32> {
        // A quarter lies halfway between two `f16`, a quarter between two `bf16`, the rest anywhere.
        let bits = |(upper, random): (u32, u64)| match upper % 4 {
            0 => upper << 16 | 0x1000 | (random as u32 & 0xe000),
            1 => upper << 16 | 0x8000,
            _ => upper << 16 | (random as u32 & 0xffff),
        };
        (0u32..).zip(random(items)).map(|pair| f32::from_bits(bits(pair))).collect()
    }

    fn before(items: usize) -> Vec<u16> {
        vec![0; 2 * items]
    }

    fn after(input: &[f32], _: &LaunchConfig, _: usize) -> Vec<u16> {
        let halves = input.iter().map(|value| f16::from_f32(*value).to_bits());
        let uppers = input.iter().map(|value| bf16::from_f32(*value).to_bits());
        halves.chain(uppers).collect()
    }

    fn normalise(output: &mut [u16]) {
        let half = output.len() / 2;
        let (halves, uppers) = output.split_at_mut(half);
        halves.iter_mut().filter(|bits| **bits & 0x7fff > 0x7c00).for_each(|bits| *bits = 0x7e00);
        uppers.iter_mut().filter(|bits| **bits & 0x7fff > 0x7f80).for_each(|bits| *bits = 0x7fc0);
    }
}

/// Quotients and remainders of integers and of floating-point numbers.
struct Quotients;

/// The results for one pair.
const ANSWERS: usize = 8;

impl Probe for Quotients {
    type In = u64;
    type Out = u64;

    fn launches() -> Vec<LaunchConfig> {
        vec![LaunchConfig::linear(8, 64)]
    }

    fn declaration() -> KernelDef<Parameters<Self>> {
        let source = "using namespace gpumem;
GPUMEM_KERNEL quotients(slice<const u64> x, slice<u64> y) {
    u64 i = global_id(0), a = x[2 * i], b = x[2 * i + 1];
    y[8 * i] = a / b;
    y[8 * i + 1] = a % b;
    y[8 * i + 2] = (u64)((i64)a / (i64)b);
    y[8 * i + 3] = (u64)((i64)a % (i64)b);
    y[8 * i + 4] = (u32)(a >> 7) / (u32)(b | 1);
    y[8 * i + 5] = (u64)(i64)((i32)(a >> 7) % (i32)(b | 3));
    y[8 * i + 6] = detail::bits<u32>((float)(i64)a / (float)(i64)b);
    y[8 * i + 7] = detail::bits<u64>((double)(i64)a / (double)(i64)b);
}";
        // SAFETY: each work-item writes its own elements.
        unsafe { KernelDef::new("quotients") }.source(source).host_loop(
            |ids: &WorkItemIds<'_>, (x, y): &Parameters<Self>| {
                let i = ids.global_id(0);
                let (a, b) = (x.get(2 * i), x.get(2 * i + 1));
                let signed = (a as i64, b as i64);
                y.set(ANSWERS * i, a / b);
                y.set(ANSWERS * i + 1, a % b);
                y.set(ANSWERS * i + 2, (signed.0 / signed.1) as u64);
                y.set(ANSWERS * i + 3, (signed.0 % signed.1) as u64);
                y.set(ANSWERS * i + 4, u64::from((a >> 7) as u32 / (b | 1) as u32));
                y.set(ANSWERS * i + 5, i64::from((a >> 7) as i32 % (b | 3) as i32) as u64);
                y.set(ANSWERS * i + 6, u64::from((signed.0 as f32 / signed.1 as f32).to_bits()));
                y.set(ANSWERS * i + 7, (signed.0 as f64 / signed.1 as f64).to_bits());
            },
        )
    }

    fn input(items: usize) -> Vec<u64> {
        // Divisors of every length, never 0 and never -1.
        let pair =
            |(at, random): (u32, u64)| [random, (random.rotate_left(29) >> (at % 61)).max(2) & !(1 << 32)];
        (0u32..).zip(random(items)).flat_map(pair).map(|number| number.max(1)).collect()
    }

    fn before(items: usize) -> Vec<u64> {
        vec![0; ANSWERS * items]
    }

    fn after(input: &[u64], _: &LaunchConfig, _: usize) -> Vec<u64> {
        // By wider arithmetic, and by multiplication.
        let of = |pair: &[u64]| {
            let (a, b) = (i128::from(pair[0]), i128::from(pair[1]));
            let (c, d) = (i128::from(pair[0] as i64), i128::from(pair[1] as i64));
            let (e, f) = (i128::from((pair[0] >> 7) as u32), i128::from((pair[1] | 1) as u32));
            let (g, h) = (i128::from((pair[0] >> 7) as i32), i128::from((pair[1] | 3) as i32));
            let float = pair[0] as i64 as f32 / pair[1] as i64 as f32;
            let double = pair[0] as i64 as f64 / pair[1] as i64 as f64;
            let integers = [a / b, a - a / b * b, c / d, c - c / d * d, e / f, g - g / h * h];
            integers
                .map(|number| number as u64)
                .into_iter()
                .chain([u64::from(float.to_bits()), double.to_bits()])
        };
        input.chunks(2).flat_map(of).collect()
    }
}

/// The results for three numbers: the product and the sum rounded separately, both rounded once, and a complex product.
const ROUNDINGS: usize = 4;

macro_rules! roundings {
    ($probe:ident, $name:literal, $float:ty, $device:literal, $fma:literal) => {
        /// `a * b + c` with inexact numbers: two roundings where it is written so, and one for the operation that has one.
        struct $probe;

        impl $probe {
            fn of(a: $float, b: $float, c: $float) -> [$float; ROUNDINGS] {
                let product = Complex::new(a, b) * Complex::new(c, a);
                [a * b + c, a.mul_add(b, c), product.re, product.im]
            }
        }

        impl Probe for $probe {
            type In = $float;
            type Out = $float;

            fn launches() -> Vec<LaunchConfig> {
                vec![LaunchConfig::linear(16, 64)]
            }

            fn declaration() -> KernelDef<Parameters<Self>> {
                let source = concat!(
                    "using namespace gpumem;
GPUMEM_KERNEL ",
                    $name,
                    "(slice<const ",
                    $device,
                    "> x, slice<",
                    $device,
                    "> y) {
    u64 i = global_id(0);
    ",
                    $device,
                    " a = x[3 * i], b = x[3 * i + 1], c = x[3 * i + 2];
    y[4 * i] = a * b + c;
    y[4 * i + 1] = ",
                    $fma,
                    "(a, b, c);
    complex<",
                    $device,
                    "> product = complex<",
                    $device,
                    ">(a, b) * complex<",
                    $device,
                    ">(c, a);
    y[4 * i + 2] = product.re;
    y[4 * i + 3] = product.im;
}"
                );
                // SAFETY: each work-item writes its own elements.
                unsafe { KernelDef::new($name) }.source(source).host_loop(
                    |ids: &WorkItemIds<'_>, (x, y): &Parameters<Self>| {
                        let i = ids.global_id(0);
                        let found = Self::of(x.get(3 * i), x.get(3 * i + 1), x.get(3 * i + 2));
                        found
                            .into_iter()
                            .enumerate()
                            .for_each(|(at, value)| y.set(ROUNDINGS * i + at, value));
                    },
                )
            }

            fn input(items: usize) -> Vec<$float> {
                random(3 * items).map(|number| (number >> 11) as $float / 7.0e15 as $float - 0.5).collect()
            }

            fn before(items: usize) -> Vec<$float> {
                vec![0.0; ROUNDINGS * items]
            }

            fn after(input: &[$float], dims: &LaunchConfig, _: usize) -> Vec<$float> {
                let all: Vec<_> = input.chunks(3).map(|x| Self::of(x[0], x[1], x[2])).collect();
                let differ = all.iter().filter(|[apart, at_once, ..]| apart != at_once).count();
                assert!(differ > items_of(dims) / 10, "the inputs are inexact: {differ} differ");
                all.concat()
            }
        }
    };
}
roundings!(SingleRoundings, "single_roundings", f32, "float", "fmaf");
roundings!(DoubleRoundings, "double_roundings", f64, "double", "fma");
