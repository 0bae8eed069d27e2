//! Conversions of every number of 16 bits, and arithmetic.

use super::{compare, each};
use crate::isa::tests::{
    arithmetic::expected_half,
    numbers::{Random, same32},
    rig::{Arguments, Array, Shape},
};

const EVERY: usize = 1 << 16;

/// The value of a number of 16 bits.
fn value_of_half(bits: u16) -> f32 {
    let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f32::from(bits & 0x3ff));
    match exponent {
        0 => sign * fraction * 2f32.powi(-24),
        31 if fraction == 0.0 => sign * f32::INFINITY,
        31 => f32::NAN,
        _ => sign * (1024.0 + fraction) * 2f32.powi(exponent - 25),
    }
}

/// Numbers in which roundings to 16 bits differ: near numbers of 16 bits, half way between two of them, and any.
fn singles() -> Vec<f32> {
    let number = |i: u32| match i % 4 {
        0 => f32::from_bits(i.wrapping_mul(0x10001) ^ 0x3f80_0000),
        1 => value_of_half(i as u16) * (1.0 + 1.0 / 2048.0),
        2 => f32::from_bits(i << 16 | 0x8000),
        _ => f32::from_bits(i.wrapping_mul(0x9e37_79b9)),
    };
    (0..EVERY as u32).map(number).collect()
}

fn widened(name: &str, expected: impl Fn(u16) -> f32) {
    let every: Vec<u16> = (0..=u16::MAX).collect();
    each(false, |probes| {
        let (from, out) = (Array::new(&every), Array::new(&vec![0f32; EVERY]));
        probes.run(name, &Shape::line(256, 256), Arguments::default().array(&from).array(&out))?;
        for (bits, found) in every.iter().zip(out.get()) {
            let expected = expected(*bits);
            if !same32(found.to_bits(), expected.to_bits()) {
                return Err(format!("{name}: {bits:#x} is {expected:e}, and not {found:e}"));
            }
        }
        Ok(())
    });
}

fn narrowed(name: &str, expected: impl Fn(f32) -> u16) {
    let numbers = singles();
    let expected: Vec<u16> = numbers.iter().map(|number| expected(*number)).collect();
    each(false, |probes| {
        let (from, out) = (Array::new(&numbers), Array::new(&vec![0u16; EVERY]));
        probes.run(name, &Shape::line(256, 256), Arguments::default().array(&from).array(&out))?;
        compare(name, &out.get(), &expected)
    });
}

#[test]
fn every_half_is_widened_and_narrowed() {
    widened("from_half", value_of_half);
    narrowed("to_half", expected_half);
}

#[test]
fn every_bfloat_is_widened_and_narrowed() {
    widened("from_bfloat", |bits| f32::from_bits(u32::from(bits) << 16));
    narrowed("to_bfloat", |number| {
        let bits = number.to_bits();
        match number.is_nan() {
            true => (bits >> 16) as u16 | 0x40,
            false => ((u64::from(bits) + 0x7fff + u64::from(bits >> 16 & 1)) >> 16) as u16,
        }
    });
}

#[test]
fn integers_are_divided() {
    let mut random = Random(3);
    // Of every length, so that quotients are of every length too.
    let a: Vec<u64> = (0..256).map(|i| random.next() >> (i % 63)).collect();
    let b: Vec<u64> = (0..256).map(|i| (random.next() >> (i * 11 % 64)).max(1)).collect();
    let (mut wide, mut narrow) = (vec![], vec![]);
    for (&a, &b) in a.iter().zip(&b) {
        let (p, q) = (a as i64, b as i64);
        wide.extend([a / b, a % b, p.wrapping_div(q) as u64, p.wrapping_rem(q) as u64]);
        let (a, b) = (a as u32, b as u32 | 1);
        let (p, q) = (a as i32, b as i32);
        narrow.extend([a / b, a % b, p.wrapping_div(q) as u32, p.wrapping_rem(q) as u32]);
    }
    each(false, |probes| {
        let (a, b) = (Array::new(&a), Array::new(&b));
        let (wide_out, narrow_out) = (Array::new(&[0u64; 1024]), Array::new(&[0u32; 1024]));
        let arguments = Arguments::default().array(&a).array(&b).array(&wide_out).array(&narrow_out);
        probes.run("divided", &Shape::line(1, 256), arguments)?;
        compare("divided, 64 bits", &wide_out.get(), &wide)?;
        compare("divided, 32 bits", &narrow_out.get(), &narrow)
    });
}

#[test]
fn arithmetic_is_rounded_once_for_each_operation() {
    let mut random = Random(5);
    let mut single = |exponent: i32| (random.next() as u32 as f32 + 1.0) * 2f32.powi(exponent);
    let a: Vec<f32> = (0..256).map(|i| single(i - 170) * 1e-20).collect();
    let b: Vec<f32> = (0..256).map(|i| single(90 - i)).collect();
    let expected: Vec<f32> = a.iter().zip(&b).flat_map(|(a, b)| [a / b, a * b, a + b, a * b - a]).collect();
    assert!(expected.iter().any(|number| number.is_subnormal()));
    each(false, |probes| {
        let (a, b, out) = (Array::new(&a), Array::new(&b), Array::new(&[0f32; 1024]));
        let arguments = Arguments::default().array(&a).array(&b).array(&out);
        probes.run("computed_f32", &Shape::line(1, 256), arguments)?;
        compare("computed_f32", &out.get(), &expected)
    });
    let a: Vec<f64> = (0..256).map(|_| random.next() as f64).collect();
    let b: Vec<f64> = (0..256).map(|_| 1.0 + random.next() as f64).collect();
    let expected: Vec<f64> = a.iter().zip(&b).flat_map(|(a, b)| [a / b, a * b, a + b, a * b - a]).collect();
    each(false, |probes| {
        let (a, b, out) = (Array::new(&a), Array::new(&b), Array::new(&[0f64; 1024]));
        let arguments = Arguments::default().array(&a).array(&b).array(&out);
        probes.run("computed_f64", &Shape::line(1, 256), arguments)?;
        compare("computed_f64", &out.get(), &expected)
    });
}
