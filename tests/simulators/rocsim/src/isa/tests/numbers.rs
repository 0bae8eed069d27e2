//! Arithmetic by integers against the host's.

use crate::isa::{
    mode::{Arithmetic, Mode, Rounding},
    soft::{self, F16, F32, F64},
};

/// Numbers that look random: every bit pattern is as likely.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }
}

/// Numbers at which something changes.
pub(super) const EDGES32: [u32; 19] = [
    0,
    1,
    2,
    0x7f_ffff,
    0x80_0000,
    0x80_0001,
    0x3f7f_ffff,
    0x3f80_0000,
    0x3f80_0001,
    0x4000_0000,
    0x4040_0000,
    0x0b80_0000,
    0x7e80_0000,
    0x7f00_0000,
    0x7f7f_fffe,
    0x7f7f_ffff,
    0x7f80_0000,
    0x7f80_0001,
    0x7fc0_0000,
];

pub(super) const EDGES64: [u64; 19] = [
    0,
    1,
    2,
    0xf_ffff_ffff_ffff,
    0x10_0000_0000_0000,
    0x10_0000_0000_0001,
    0x3fef_ffff_ffff_ffff,
    0x3ff0_0000_0000_0000,
    0x3ff0_0000_0000_0001,
    0x4000_0000_0000_0000,
    0x4008_0000_0000_0000,
    0x0340_0000_0000_0000,
    0x7fd0_0000_0000_0000,
    0x7fe0_0000_0000_0000,
    0x7fef_ffff_ffff_fffe,
    0x7fef_ffff_ffff_ffff,
    0x7ff0_0000_0000_0000,
    0x7ff0_0000_0000_0001,
    0x7ff8_0000_0000_0000,
];

/// Whether two results are the same; NaNs need not have the same bits.
pub(super) fn same32(x: u32, y: u32) -> bool {
    x == y || f32::from_bits(x).is_nan() && f32::from_bits(y).is_nan()
}

pub(super) fn same64(x: u64, y: u64) -> bool {
    x == y || f64::from_bits(x).is_nan() && f64::from_bits(y).is_nan()
}

fn singles() -> Vec<u32> {
    let mut random = Random(1);
    let edges = EDGES32.iter().flat_map(|bits| [*bits, bits | 1 << 31]);
    edges.chain((0..400).map(|_| random.next() as u32)).collect()
}

fn doubles() -> Vec<u64> {
    let mut random = Random(2);
    let edges = EDGES64.iter().flat_map(|bits| [*bits, bits | 1 << 63]);
    edges.chain((0..400).map(|_| random.next())).collect()
}

#[test]
fn rounding_to_nearest_is_the_hosts() {
    let a = Arithmetic::IEEE;
    for x in singles() {
        for y in singles() {
            let (p, q) = (f32::from_bits(x), f32::from_bits(y));
            let (u, v) = (u64::from(x), u64::from(y));
            assert!(same32(soft::add(F32, u, v, a) as u32, (p + q).to_bits()), "{p:e} + {q:e}");
            assert!(same32(soft::multiply(F32, u, v, a) as u32, (p * q).to_bits()), "{p:e} * {q:e}");
            let z = x.rotate_left(7) ^ y;
            let fused = soft::fused(F32, u, v, z.into(), a) as u32;
            assert!(same32(fused, p.mul_add(q, f32::from_bits(z)).to_bits()), "{x:x} * {y:x} + {z:x}");
        }
    }
    for x in doubles() {
        for y in doubles() {
            let (p, q) = (f64::from_bits(x), f64::from_bits(y));
            assert!(same64(soft::add(F64, x, y, a), (p + q).to_bits()), "{p:e} + {q:e}");
            assert!(same64(soft::multiply(F64, x, y, a), (p * q).to_bits()), "{p:e} * {q:e}");
            // Near the negated product, where most bits cancel.
            for z in [x.rotate_left(7) ^ y, (-(p * q)).to_bits(), (-(p * q)).to_bits() ^ 1] {
                let fused = soft::fused(F64, x, y, z, a);
                assert!(same64(fused, p.mul_add(q, f64::from_bits(z)).to_bits()), "{x:x} * {y:x} + {z:x}");
            }
        }
        let narrow = soft::convert(F64, F32, x, a) as u32;
        assert!(same32(narrow, (f64::from_bits(x) as f32).to_bits()), "{x:x}");
    }
}

#[test]
fn every_half_survives_and_conversions_round() {
    for bits in 0..=u16::MAX {
        let wide = soft::convert(F16, F32, bits.into(), Arithmetic::IEEE);
        let back = soft::convert(F32, F16, wide, Arithmetic::IEEE) as u16;
        let is_nan = bits & 0x7fff > 0x7c00;
        assert_eq!(back, if is_nan { bits | 0x200 } else { bits }, "{bits:x}");
    }
    let half = |x: f32| soft::convert(F32, F16, x.to_bits().into(), Arithmetic::IEEE);
    assert_eq!(half(65504.0), 0x7bff);
    assert_eq!(half(65519.0), 0x7bff);
    assert_eq!(half(65520.0), 0x7c00);
    assert_eq!(half(2f32.powi(-25)), 0, "a tie goes to the even one");
    assert_eq!(half(2f32.powi(-25) * 1.001), 1);
    assert_eq!(half(1.0 + 2f32.powi(-11)), 0x3c00);
    assert_eq!(half(1.0 + 3.0 * 2f32.powi(-11)), 0x3c02);
}

#[test]
fn directed_rounding_encloses_the_exact_result() {
    let with = |rounding| Arithmetic { rounding, ..Arithmetic::IEEE };
    let value = |bits: u64| f64::from(f32::from_bits(bits as u32));
    let mut inexact = 0;
    for x in singles() {
        for y in singles().into_iter().step_by(7) {
            // Exact in 64 bits.
            let exact = value(x.into()) * value(y.into());
            if exact.is_nan() {
                continue;
            }
            let of = |rounding| value(soft::multiply(F32, x.into(), y.into(), with(rounding)));
            let (down, up) = (of(Rounding::Down), of(Rounding::Up));
            assert!(down <= exact && exact <= up, "{down:e} {exact:e} {up:e}");
            let zero = of(Rounding::TowardZero);
            assert_eq!(zero, if exact.is_sign_negative() { up } else { down });
            let nearest = of(Rounding::NearestEven);
            assert!(nearest == down || nearest == up);
            inexact += u32::from(down < up);
        }
    }
    assert!(inexact > 1000);
    // The sum of a number and its negative is a negative zero only when rounding down.
    let one = u64::from(1f32.to_bits());
    let zero = |rounding| soft::add(F32, one, one | 1 << 31, with(rounding));
    assert_eq!((zero(Rounding::Down), zero(Rounding::Up)), (1 << 31, 0));
}

#[test]
fn denormal_numbers_are_flushed_where_the_mode_says_so() {
    let modes = [0, 1, 2, 3].map(|bits| Mode::from_bits(bits << 4).single);
    let (tiny, half) = (3u64, u64::from(0.5f32.to_bits()));
    let normal = u64::from(f32::MIN_POSITIVE.to_bits());
    // Denormal operand, normal result is impossible here: zero if it is flushed on either side.
    assert_eq!(modes.map(|a| soft::add(F32, tiny, tiny, a)), [0, 0, 0, 6]);
    // Normal operands, denormal result.
    assert_eq!(modes.map(|a| soft::multiply(F32, normal, half, a)), [0, 0, normal / 2, normal / 2]);
    // Denormal operand, normal result.
    let large = u64::from(2f32.powi(100).to_bits());
    assert_eq!(modes.map(|a| soft::multiply(F32, tiny, large, a) != 0), [false, true, false, true]);
    assert_eq!(Mode::from_bits(0xf0).single, Arithmetic::IEEE);
    assert_eq!(Mode::from_bits(0xf0).other, Arithmetic::IEEE);
}
