//! The distributions of random numbers, of fixed seeds. A device's bits are those of the host, so the host stands for all.
#![allow(clippy::unwrap_used, reason = "tests")]

use gpumem_core::ErrorKind;
use gpumem_ops::{ArrayOps, Philox, RandomFloat};
use gpumem_runtime::{Device, Stream};

type Host = gpumem_host::Host;

/// Miri takes a second for some hundred numbers.
const LEN: usize = if cfg!(miri) { 400 } else { 200_000 };

fn stream() -> Stream<Host> {
    Device::<Host>::open("host").unwrap().stream().unwrap()
}

/// Uniform numbers, or normal ones, as `f64`.
fn numbers<T: RandomFloat + gpumem_ops::CastTo<f64>>(seed: u64, is_normal: bool) -> Vec<f64> {
    let (stream, random) = (stream(), Philox::new(seed));
    let array = match is_normal {
        false => random.uniform::<T, _, _>(&stream, LEN).unwrap(),
        true => random.normal::<T, _, _>(&stream, LEN).unwrap(),
    };
    array.cast::<f64>().unwrap().copy_to_host().unwrap().to_vec()
}

/// The mean of a power, which differs from the expected one by at most 5 standard errors.
fn check_moment(numbers: &[f64], power: i32, expected: f64, deviation: f64) {
    let mean = numbers.iter().map(|x| x.powi(power)).sum::<f64>() / LEN as f64;
    let error = (mean - expected).abs() / (deviation / (LEN as f64).sqrt());
    assert!(error < 5.0, "moment {power}: {mean} is {error} standard errors from {expected}");
}

/// Pearson's statistic of counts that are all expected to be the same, within 5 standard deviations of its mean.
fn check_counts(counts: &[u32]) {
    let all: u32 = counts.iter().sum();
    let expected = f64::from(all) / counts.len() as f64;
    let statistic: f64 = counts.iter().map(|count| (f64::from(*count) - expected).powi(2) / expected).sum();
    let free = counts.len() as f64 - 1.0;
    let distance = (statistic - free).abs() / (2.0 * free).sqrt();
    assert!(distance < 5.0, "{statistic} is {distance} deviations from {free}");
}

/// How many numbers lie in each of the ranges of equal probability.
fn counts(fractions: impl Iterator<Item = f64>, ranges: usize) -> Vec<u32> {
    let mut counts = vec![0; ranges];
    fractions.for_each(|x| counts[(x * ranges as f64) as usize] += 1);
    counts
}

fn check_uniform(numbers: &[f64]) {
    assert!(numbers.iter().all(|x| (0.0..1.0).contains(x)));
    // The moment k of a uniform number is 1 / (k + 1), and its square 1 / (2k + 1).
    for power in 1..5 {
        let (first, second) = (1.0 / f64::from(power + 1), 1.0 / f64::from(2 * power + 1));
        check_moment(numbers, power, first, (second - first * first).sqrt());
    }
    let ranges = if cfg!(miri) { 10 } else { 1000 };
    check_counts(&counts(numbers.iter().copied(), ranges));
    // Neighbours are independent, and so are the lower bits.
    let side = if cfg!(miri) { 4 } else { 32 };
    let cell = |x: f64| (x * f64::from(side)).floor();
    let pairs = numbers.chunks_exact(2).map(|pair| (cell(pair[0]) + pair[1]) / f64::from(side));
    check_counts(&counts(pairs, (side * side) as usize));
    let lower = if cfg!(miri) { 8 } else { 64 };
    check_counts(&counts(numbers.iter().map(|x| (x * 65_536.0).fract()), lower));
}

#[test]
fn uniform_numbers_are_uniform() {
    check_uniform(&numbers::<f32>(1, false));
    check_uniform(&numbers::<f64>(2, false));
}

/// The distribution function of the normal distribution, by Marsaglia's series.
fn distribution(x: f64) -> f64 {
    let (mut sum, mut term) = (x, x);
    for k in 1..200 {
        term *= x * x / f64::from(2 * k + 1);
        sum += term;
    }
    0.5 + sum * (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt()
}

fn check_normal(numbers: &[f64]) {
    for (power, expected, square) in
        [(1, 0.0, 1.0), (2, 1.0, 3.0), (3, 0.0, 15.0), (4, 3.0, 105.0), (5, 0.0, 945.0), (6, 15.0, 10_395.0)]
    {
        check_moment(numbers, power, expected, f64::sqrt(square - expected * expected));
    }
    let ranges = if cfg!(miri) { 10 } else { 500 };
    check_counts(&counts(numbers.iter().map(|x| distribution(*x)), ranges));
}

#[test]
fn normal_numbers_are_normal() {
    check_normal(&numbers::<f32>(3, true));
    check_normal(&numbers::<f64>(4, true));
}

#[test]
fn sequences_are_not_correlated() {
    let stream = stream();
    let numbers = |sequence| {
        let array = Philox::new(1).sequence(sequence).normal::<f64, _, _>(&stream, LEN).unwrap();
        array.copy_to_host().unwrap()
    };
    let (first, second) = (numbers(0), numbers(1));
    let products = (&first * &second).to_vec();
    check_moment(&products, 1, 0.0, 1.0);
}

#[test]
fn an_array_of_another_device_is_refused_whatever_its_layout() {
    let other = Device::<Host>::from_raw(Host::open_with(&gpumem_host::HostOptions::new()).unwrap());
    let mut array = other.to_device(&[0.5_f32; 8]).unwrap();
    for step in [1, 2] {
        let mut part = array.slice_mut(ndarray::s![..;step]).unwrap();
        let error = Philox::new(7).fill_uniform(&stream(), &mut part).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::WrongDevice { .. }), "step {step}: {error}");
    }
    assert_eq!(array.copy_to_host().unwrap().to_vec(), [0.5; 8]);
}
