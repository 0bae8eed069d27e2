//! Random numbers that are functions of a counter: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
//! 2011), and the uniform and normal numbers that its words give. All that is computed with floats is what IEEE 754 defines
//! exactly, so that every device has the same bits.

use crate::kernel::{DeviceType, Numeric, SliceMut, UnaryFunction};
use gpumem_core::Element;
use gpumem_macros::{device, kernel};

/// The kernel, for groups along x that cover the blocks of `N` numbers in which those of `out` lie. Element `i` of `out` is
/// number `position + i` of the sequence.
// SAFETY: each work-item writes the elements of its own block.
#[kernel(unsafe, crate = crate)]
pub(crate) fn random<T, const N: usize, F>(out: SliceMut<T>, seed: u64, sequence: u64, position: u64)
where
    T: Element + DeviceType,
    F: UnaryFunction<[u32; 4], Output = [T; N]> + 'static,
{
    let numbers = N as u64;
    let block = (position / numbers + global_id(0) as u64) & (u64::MAX / numbers);
    let words = philox(
        [block as u32, (block >> 32) as u32, sequence as u32, (sequence >> 32) as u32],
        [seed as u32, (seed >> 32) as u32],
    );
    let values = F(words);
    // Of the first block, `out` may have the last numbers alone.
    let before = (position % numbers) as usize;
    let first = global_id(0) * N;
    for k in 0..N {
        if first + k >= before && first + k - before < out.len() {
            out[first + k - before] = values[k];
        }
    }
}

/// The words that Philox4x32-10 makes of a counter.
#[device(crate = crate)]
pub(crate) fn philox(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let mut words = counter;
    let mut keys = key;
    for _ in 0..10 {
        let left = u64::from(words[0]) * 0xd251_1f53;
        let right = u64::from(words[2]) * 0xcd9e_8d57;
        words[0] = (right >> 32) as u32 ^ words[1] ^ keys[0];
        words[1] = right as u32;
        words[2] = (left >> 32) as u32 ^ words[3] ^ keys[1];
        words[3] = left as u32;
        keys[0] = keys[0].wrapping_add(0x9e37_79b9);
        keys[1] = keys[1].wrapping_add(0xbb67_ae85);
    }
    words
}

/// The upper 24 bits of each word, as a fraction.
#[device(crate = crate)]
pub(crate) fn uniform_f32(words: [u32; 4]) -> [f32; 4] {
    let mut values = [0.0f32; 4];
    for k in 0..4 {
        values[k] = (words[k] >> 8) as f32 * (1.0 / 16_777_216.0);
    }
    values
}

/// The upper 53 bits of each pair of words, as a fraction.
#[device(crate = crate)]
pub(crate) fn uniform_f64(words: [u32; 4]) -> [f64; 2] {
    let mut values = [0.0f64; 2];
    for k in 0..2 {
        values[k] = (pair(words[2 * k], words[2 * k + 1]) >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0);
    }
    values
}

/// The first word has the lower bits.
#[device(crate = crate)]
fn pair(low: u32, high: u32) -> u64 {
    (u64::from(high) << 32) | u64::from(low)
}

#[device(crate = crate)]
pub(crate) fn normal_f32(words: [u32; 4]) -> [f32; 4] {
    let mut values = [0.0f32; 4];
    for k in 0..4 {
        values[k] = quantile_f32(words[k]);
    }
    values
}

#[device(crate = crate)]
pub(crate) fn normal_f64(words: [u32; 4]) -> [f64; 2] {
    let mut values = [0.0f64; 2];
    for k in 0..2 {
        values[k] = quantile_f64(pair(words[2 * k], words[2 * k + 1]));
    }
    values
}

/// Wichura's rational functions ("The percentage points of the normal distribution", 1988: AS 241): the coefficients above and below
/// the line, of the highest power first. `PPND7` in the middle and in the tails.
const MIDDLE_F32: [[f32; 4]; 2] =
    [[59.109_375, 159.291_13, 50.434_27, 3.387_132_6], [67.187_56, 78.757_76, 17.895_17, 1.0]];
const TAIL_F32: [[f32; 4]; 2] =
    [[0.170_238_21, 1.306_728_5, 2.756_815_4, 1.423_437_2], [0.0, 0.120_211_33, 0.737_001_6, 1.0]];
/// `PPND16` in the middle, in the tails, and far out.
const MIDDLE_F64: [[f64; 8]; 2] = [
    [
        2_509.080_928_730_122_7,
        33_430.575_583_588_13,
        67_265.770_927_008_7,
        45_921.953_931_549_87,
        13_731.693_765_509_46,
        1_971.590_950_306_551_3,
        133.141_667_891_784_38,
        3.387_132_872_796_366_5,
    ],
    [
        5_226.495_278_852_854,
        28_729.085_735_721_943,
        39_307.895_800_092_71,
        21_213.794_301_586_597,
        5_394.196_021_424_751,
        687.187_007_492_057_9,
        42.313_330_701_600_91,
        1.0,
    ],
];
const TAIL_F64: [[f64; 8]; 2] = [
    [
        0.000_774_545_014_278_341_4,
        0.022_723_844_989_269_184,
        0.241_780_725_177_450_6,
        1.270_458_252_452_368_4,
        3.647_848_324_763_204_5,
        5.769_497_221_460_691,
        4.630_337_846_156_546,
        1.423_437_110_749_683_5,
    ],
    [
        1.050_750_071_644_416_9e-9,
        0.000_547_593_808_499_534_5,
        0.015_198_666_563_616_457,
        0.148_103_976_427_480_08,
        0.689_767_334_985_1,
        1.676_384_830_183_803_8,
        2.053_191_626_637_759,
        1.0,
    ],
];
const FAR_F64: [[f64; 8]; 2] = [
    [
        2.010_334_399_292_288_1e-7,
        2.711_555_568_743_487_6e-5,
        0.001_242_660_947_388_078_4,
        0.026_532_189_526_576_124,
        0.296_560_571_828_504_87,
        1.784_826_539_917_291_3,
        5.463_784_911_164_114,
        6.657_904_643_501_103,
    ],
    [
        2.044_263_103_389_939_7e-15,
        1.421_511_758_316_446e-7,
        1.846_318_317_510_054_8e-5,
        0.000_786_869_131_145_613_3,
        0.014_875_361_290_850_615,
        0.136_929_880_922_735_8,
        0.599_832_206_555_888,
        1.0,
    ],
];
/// The series of the inverse hyperbolic tangent.
const ATANH_F32: [f32; 5] = [1.0 / 9.0, 1.0 / 7.0, 0.2, 1.0 / 3.0, 1.0];
const ATANH_F64: [f64; 12] = [
    1.0 / 23.0,
    1.0 / 21.0,
    1.0 / 19.0,
    1.0 / 17.0,
    1.0 / 15.0,
    1.0 / 13.0,
    1.0 / 11.0,
    1.0 / 9.0,
    1.0 / 7.0,
    0.2,
    1.0 / 3.0,
    1.0,
];

/// A polynomial, the coefficient of the highest power first.
#[device(crate = crate)]
fn polynomial<T: Numeric, const N: usize>(coefficients: [T; N], x: T) -> T {
    let mut value = coefficients[0];
    for k in 1..N {
        value = value * x + coefficients[k];
    }
    value
}

#[device(crate = crate)]
fn rational<T: Numeric, const N: usize>(coefficients: [[T; N]; 2], x: T) -> T {
    polynomial::<T, N>(coefficients[0], x) / polynomial::<T, N>(coefficients[1], x)
}

/// The number below which a normal one is with the probability `0.5 + (word + 0.5) / 2^32`, of the word as a signed number: it
/// counts from the middle, so that both tails have its full resolution.
#[device(crate = crate)]
pub(crate) fn quantile_f32(word: u32) -> f32 {
    let is_negative = word >> 31 == 1;
    let distance = if is_negative { !word } else { word };
    let q = (distance as f32 + 0.5) * (1.0 / 4_294_967_296.0);
    let value = if q <= 0.425 {
        q * rational::<f32, 4>(MIDDLE_F32, 0.180625 - q * q)
    } else {
        // The probability of the tail, which is at least 2^-33.
        let tail = ((0x7fff_ffff - distance) as f32 + 0.5) * (1.0 / 4_294_967_296.0);
        rational::<f32, 4>(TAIL_F32, negative_ln_f32(tail).sqrt() - 1.6)
    };
    if is_negative { -value } else { value }
}

/// As [`quantile_f32`], with the probability `0.5 + (word + 0.5) / 2^64`.
#[device(crate = crate)]
pub(crate) fn quantile_f64(word: u64) -> f64 {
    let is_negative = word >> 63 == 1;
    let distance = if is_negative { !word } else { word };
    let q = (distance as f64 + 0.5) * (1.0 / 18_446_744_073_709_551_616.0);
    let value = if q <= 0.425 {
        q * rational::<f64, 8>(MIDDLE_F64, 0.180625 - q * q)
    } else {
        let tail = ((0x7fff_ffff_ffff_ffff - distance) as f64 + 0.5) * (1.0 / 18_446_744_073_709_551_616.0);
        let r = negative_ln_f64(tail).sqrt();
        if r <= 5.0 { rational::<f64, 8>(TAIL_F64, r - 1.6) } else { rational::<f64, 8>(FAR_F64, r - 5.0) }
    };
    if is_negative { -value } else { value }
}

/// The negative logarithm of a number below 1. `ln` differs between devices.
#[device(crate = crate)]
fn negative_ln_f32(x: f32) -> f32 {
    let bits = x.to_bits();
    // The mantissa is from 0.75 to 1.5.
    let halved = (bits >> 22) & 1;
    let m = f32::from_bits((bits & 0x7f_ffff) | ((127 - halved) << 23));
    let power = (127 - halved - (bits >> 23)) as f32;
    let s = (m - 1.0) / (m + 1.0);
    power * std::f32::consts::LN_2 - 2.0 * s * polynomial::<f32, 5>(ATANH_F32, s * s)
}

/// As [`negative_ln_f32`].
#[device(crate = crate)]
fn negative_ln_f64(x: f64) -> f64 {
    let bits = x.to_bits();
    let halved = (bits >> 51) & 1;
    let m = f64::from_bits((bits & 0xf_ffff_ffff_ffff) | ((1023 - halved) << 52));
    let power = (1023 - halved - (bits >> 52)) as f64;
    let s = (m - 1.0) / (m + 1.0);
    power * std::f64::consts::LN_2 - 2.0 * s * polynomial::<f64, 12>(ATANH_F64, s * s)
}
