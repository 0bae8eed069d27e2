//! Vector arithmetic on numbers of 64 and of 16 bits.

use super::{
    instruction::{Flow, Form, Instruction, Kind, honours},
    lanes::wide_one,
    mode::Arithmetic,
    soft::{self, F16, F64},
    vector_wide::{half_source, put_half},
    wave::Wave,
};

const SIGN: u64 = 1 << 63;
const QUIET: u64 = 1 << 51;
const NAN: u64 = 0x7ff8_0000_0000_0000;
pub(super) const ONE: &[Kind] = &[Kind::Out(2), Kind::F64];
const TWO: &[Kind] = &[Kind::Out(2), Kind::F64, Kind::F64];
pub(super) const THREE: &[Kind] = &[Kind::Out(2), Kind::F64, Kind::F64, Kind::F64];
const ACCUMULATE: &[Kind] = &[Kind::Both(2), Kind::F64, Kind::F64];

fn is_nan(bits: u64) -> bool {
    bits & !SIGN > 0x7ff0_0000_0000_0000
}

fn flushed(bits: u64) -> u64 {
    if bits & 0x7ff0_0000_0000_0000 == 0 { bits & SIGN } else { bits }
}

/// The result, or the instruction set's NaN in the place of the host's.
#[inline(always)]
fn settled(result: f64, operands: &[u64]) -> u64 {
    if !result.is_nan() {
        return result.to_bits();
    }
    operands.iter().find(|bits| is_nan(**bits)).map_or(NAN, |bits| bits | QUIET)
}

#[inline(always)]
fn one(wave: &mut Wave, i: &Instruction, f: impl Fn(f64) -> f64) -> Flow {
    let Arithmetic { flush_in, flush_out, .. } = wave.mode.other;
    wide_one(wave, i, |x| {
        let x = if flush_in { flushed(x) } else { x };
        let out = settled(f(f64::from_bits(x)), &[x]);
        if flush_out { flushed(out) } else { out }
    })
}

/// Limits results to 0..1 and multiplies them, where the instruction says so.
fn finish(i: &Instruction, out: &mut [u64; 64]) {
    if !i.modifiers.clamp && i.modifiers.scale == 0 {
        return;
    }
    let factor = [1.0, 2.0, 4.0, 0.5][usize::from(i.modifiers.scale & 3)];
    for lane in out {
        let value = f64::from_bits(*lane) * factor;
        let limited = if value.is_nan() { 0.0 } else { value.clamp(0.0, 1.0) };
        *lane = if i.modifiers.clamp { limited } else { value }.to_bits();
    }
}

#[inline(always)]
fn two(
    wave: &mut Wave,
    i: &Instruction,
    f: impl Fn(f64, f64) -> f64,
    soft: fn(u64, u64, Arithmetic) -> u64,
) -> Flow {
    let (x, y) = (wave.wide_source(&i.operands[1]), wave.wide_source(&i.operands[2]));
    let (arithmetic, mut out) = (wave.mode.other, [0; 64]);
    for lane in 0..64 {
        out[lane] = if arithmetic.is_ieee() {
            settled(f(f64::from_bits(x[lane]), f64::from_bits(y[lane])), &[x[lane], y[lane]])
        } else {
            soft(x[lane], y[lane], arithmetic)
        };
    }
    finish(i, &mut out);
    wave.put_wide(i.operands[0].vector(), &out);
    Flow::Next
}

/// `x * y + z`, rounded once.
pub(super) fn fused(x: u64, y: u64, z: u64, arithmetic: Arithmetic) -> u64 {
    if !arithmetic.is_ieee() {
        return soft::fused(F64, x, y, z, arithmetic);
    }
    settled(f64::from_bits(x).mul_add(f64::from_bits(y), f64::from_bits(z)), &[x, y, z])
}

fn fuse(wave: &mut Wave, i: &Instruction, third: usize) -> Flow {
    let [x, y, z] = [1, 2, third].map(|index| wave.wide_source(&i.operands[index]));
    let mut out = [0; 64];
    for lane in 0..64 {
        out[lane] = fused(x[lane], y[lane], z[lane], wave.mode.other);
    }
    finish(i, &mut out);
    wave.put_wide(i.operands[0].vector(), &out);
    Flow::Next
}

fn smaller(x: f64, y: f64) -> f64 {
    if x.is_nan() || y < x || y == x && y.is_sign_negative() { y } else { x }
}

fn larger(x: f64, y: f64) -> f64 {
    if x.is_nan() || y > x || y == x && y.is_sign_positive() { y } else { x }
}

fn pick(x: u64, y: u64, arithmetic: Arithmetic, f: fn(f64, f64) -> f64) -> u64 {
    let of = |bits| f64::from_bits(if arithmetic.flush_in { flushed(bits) } else { bits });
    f(of(x), of(y)).to_bits()
}

/// An operation of so many operands of 16 bits.
fn half<const OPERANDS: usize>(
    wave: &mut Wave,
    i: &Instruction,
    f: fn([u64; OPERANDS], Arithmetic) -> u64,
) -> Flow {
    let operands: [_; OPERANDS] = std::array::from_fn(|index| half_source(wave, i, index + 1));
    let mut out = [0; 64];
    for (lane, out) in out.iter_mut().enumerate() {
        *out = f(operands.map(|lanes| lanes[lane].into()), wave.mode.other) as u32;
    }
    put_half(wave, i, OPERANDS, &out);
    Flow::Next
}

/// Picks one of two numbers of 16 bits, by a rule for those of 32.
fn half_pick([x, y]: [u64; 2], a: Arithmetic, f: fn(f32, f32) -> f32) -> u64 {
    let [x, y] = [x, y].map(|bits| f32::from_bits(soft::convert(F16, soft::F32, bits, a) as u32));
    soft::convert(soft::F32, F16, f(x, y).to_bits().into(), a)
}

macro_rules! one {
    ($f:expr) => {
        Form::new(ONE, |wave, i, _| one(wave, i, $f)).honouring(honours::SIGNS)
    };
}
macro_rules! two {
    ($f:expr, $soft:expr) => {
        Form::new(TWO, |wave, i, _| two(wave, i, $f, $soft)).honouring(honours::FLOAT)
    };
}
macro_rules! half {
    ($kinds:expr, $f:expr) => {
        Form::new($kinds, |wave, i, _| half(wave, i, $f)).honouring(honours::SIGNS | honours::HALVES)
    };
}

const HALF_TWO: &[Kind] = &[Kind::Out(1), Kind::F16, Kind::F16];
const HALF_THREE: &[Kind] = &[Kind::Out(1), Kind::F16, Kind::F16, Kind::F16];
const HALF_SIGN: u64 = 1 << 15;

/// The instruction of that name.
pub(super) fn find(name: &str) -> Option<Form> {
    Some(match name {
        "v_add_f64" => two!(|x, y| x + y, |x, y, a| soft::add(F64, x, y, a)),
        "v_mul_f64" => two!(|x, y| x * y, |x, y, a| soft::multiply(F64, x, y, a)),
        "v_min_f64" => two!(smaller, |x, y, a| pick(x, y, a, smaller)),
        "v_max_f64" => two!(larger, |x, y, a| pick(x, y, a, larger)),
        "v_fma_f64" => Form::new(THREE, |wave, i, _| fuse(wave, i, 3)).honouring(honours::FLOAT),
        "v_fmac_f64" => Form::new(ACCUMULATE, |wave, i, _| fuse(wave, i, 0)).honouring(honours::FLOAT),
        "v_rcp_f64" => one!(|x| 1.0 / x),
        "v_rsq_f64" => one!(|x| 1.0 / x.sqrt()),
        "v_sqrt_f64" => one!(f64::sqrt),
        "v_trunc_f64" => one!(f64::trunc),
        "v_floor_f64" => one!(f64::floor),
        "v_ceil_f64" => one!(f64::ceil),
        "v_rndne_f64" => one!(f64::round_ties_even),
        "v_fract_f64" => one!(|x| (x - x.floor()).min(1.0 - f64::EPSILON / 2.0)),
        "v_add_f16" => half!(HALF_TWO, |[x, y], a| soft::add(F16, x, y, a)),
        "v_sub_f16" => half!(HALF_TWO, |[x, y], a| soft::add(F16, x, y ^ HALF_SIGN, a)),
        "v_subrev_f16" => half!(HALF_TWO, |[x, y], a| soft::add(F16, y, x ^ HALF_SIGN, a)),
        "v_mul_f16" => half!(HALF_TWO, |[x, y], a| soft::multiply(F16, x, y, a)),
        "v_fma_f16" => half!(HALF_THREE, |[x, y, z], a| soft::fused(F16, x, y, z, a)),
        "v_div_fixup_f16" => half!(HALF_THREE, |operands, _| super::division::fix_half(operands)),
        "v_min_f16" => half!(HALF_TWO, |xy, a| half_pick(xy, a, super::float::smaller)),
        "v_max_f16" => half!(HALF_TWO, |xy, a| half_pick(xy, a, super::float::larger)),
        _ => return None,
    })
}
