//! Conversions between numbers, and taking them apart.

use super::{
    instruction::{Flow, Form, Instruction, Kind, honours},
    lanes::{narrow, widen},
    mode::Arithmetic,
    soft::{self, F16, F32, F64},
    vector_wide::{half_source, put_half},
    wave::Wave,
};

const INTEGER: &[Kind] = &[Kind::Out(1), Kind::B32];
const SINGLE: &[Kind] = &[Kind::Out(1), Kind::F32];
const FROM_DOUBLE: &[Kind] = &[Kind::Out(1), Kind::F64];

/// From an integer of 32 bits to a number.
#[inline(always)]
fn from_integer(wave: &mut Wave, i: &Instruction, f: impl Fn(u32) -> i64) -> Flow {
    let (x, arithmetic) = (wave.source(i, 1), wave.mode.single);
    let (x, mut out) = (&wave.vectors[x], [0; 64]);
    for lane in 0..64 {
        let exact = f(x[lane]);
        out[lane] = if arithmetic.is_ieee() {
            (exact as f32).to_bits()
        } else {
            soft::convert(F64, F32, (exact as f64).to_bits(), arithmetic) as u32
        };
    }
    super::float::finish(i, &mut out);
    wave.put(i.operands[0].vector(), &out);
    Flow::Next
}

/// From a number to an integer.
#[inline(always)]
fn to_integer(wave: &mut Wave, i: &Instruction, f: impl Fn(f32) -> u32) -> Flow {
    let x = wave.signed_source(i, 1, 1 << 31);
    let (x, mut out) = (&wave.vectors[x], [0; 64]);
    for lane in 0..64 {
        out[lane] = f(f32::from_bits(x[lane]));
    }
    wave.put(i.operands[0].vector(), &out);
    Flow::Next
}

/// From a wider or narrower format to numbers of 32 bits.
fn to_single(wave: &mut Wave, i: &Instruction) -> Flow {
    let arithmetic = Arithmetic {
        flush_in: wave.mode.other.flush_in,
        flush_out: wave.mode.single.flush_out,
        rounding: wave.mode.single.rounding,
    };
    let x = wave.wide_source(&i.operands[1]);
    let mut out = x.map(|x| {
        let is_plain = arithmetic.is_ieee() && !f64::from_bits(x).is_nan();
        if is_plain {
            (f64::from_bits(x) as f32).to_bits()
        } else {
            soft::convert(F64, F32, x, arithmetic) as u32
        }
    });
    super::float::finish(i, &mut out);
    wave.put(i.operands[0].vector(), &out);
    Flow::Next
}

fn to_double(wave: &mut Wave, i: &Instruction) -> Flow {
    let arithmetic = Arithmetic { flush_in: wave.mode.single.flush_in, ..Arithmetic::IEEE };
    widen(wave, i, |x| soft::convert(F32, F64, x.into(), arithmetic))
}

fn half_to_single(wave: &mut Wave, i: &Instruction) -> Flow {
    let arithmetic = Arithmetic { flush_in: wave.mode.other.flush_in, ..Arithmetic::IEEE };
    let mut out = half_source(wave, i, 1).map(|x| soft::convert(F16, F32, x.into(), arithmetic) as u32);
    super::float::finish(i, &mut out);
    wave.put(i.operands[0].vector(), &out);
    Flow::Next
}

fn single_to_half(wave: &mut Wave, i: &Instruction) -> Flow {
    let arithmetic = Arithmetic { flush_in: wave.mode.single.flush_in, ..wave.mode.other };
    let register = wave.signed_source(i, 1, 1 << 31);
    let out = wave.vectors[register].map(|x| soft::convert(F32, F16, x.into(), arithmetic) as u32);
    put_half(wave, i, 1, &out);
    Flow::Next
}

/// From a number of 16 bits to an integer of 16 bits.
fn half_to_integer(wave: &mut Wave, i: &Instruction, f: impl Fn(f32) -> u16) -> Flow {
    let single = |x: u32| f32::from_bits(soft::convert(F16, F32, x.into(), Arithmetic::IEEE) as u32);
    let out = half_source(wave, i, 1).map(|x| f(single(x)).into());
    put_half(wave, i, 1, &out);
    Flow::Next
}

/// From an integer of 16 bits, which a number of 32 bits holds exactly, to a number of 16 bits.
fn integer_to_half(wave: &mut Wave, i: &Instruction, f: impl Fn(u16) -> f32) -> Flow {
    let arithmetic = wave.mode.other;
    let half = |x: u32| soft::convert(F32, F16, f(x as u16).to_bits().into(), arithmetic) as u32;
    let out = half_source(wave, i, 1).map(half);
    put_half(wave, i, 1, &out);
    Flow::Next
}

/// The exponent of a number between one half and one, and that number's bits; no exponent for zero and NaN.
fn split(x: f64) -> (f64, i32) {
    if x == 0.0 || !x.is_finite() {
        return (x, 0);
    }
    // Denormal numbers are made normal first.
    let (x, shift) = if x.is_subnormal() { (x * 2f64.powi(54), -54) } else { (x, 0) };
    let bits = x.to_bits();
    let exponent = (bits >> 52 & 0x7ff) as i32 - 1022;
    (f64::from_bits(bits & !(0x7ff << 52) | 1022 << 52), exponent + shift)
}

fn scale_single(wave: &mut Wave, i: &Instruction) -> Flow {
    let (x, power) = (wave.signed_source(i, 1, 1 << 31), wave.source(i, 2));
    let (x, power, mut out) = (&wave.vectors[x], &wave.vectors[power], [0; 64]);
    for lane in 0..64 {
        out[lane] = soft::scale(F32, x[lane].into(), power[lane] as i32, wave.mode.single) as u32;
    }
    super::float::finish(i, &mut out);
    wave.put(i.operands[0].vector(), &out);
    Flow::Next
}

fn scale_double(wave: &mut Wave, i: &Instruction) -> Flow {
    let power = wave.source(i, 2);
    let x = wave.wide_source(&i.operands[1]);
    let (power, mut out) = (&wave.vectors[power], [0; 64]);
    for lane in 0..64 {
        out[lane] = soft::scale(F64, x[lane], power[lane] as i32, wave.mode.other);
    }
    wave.put_wide(i.operands[0].vector(), &out);
    Flow::Next
}

macro_rules! from_integer {
    ($f:expr) => {
        Form::new(INTEGER, |wave, i, _| from_integer(wave, i, $f)).honouring(honours::CLAMP | honours::SCALE)
    };
}
macro_rules! to_integer {
    ($f:expr) => {
        Form::new(SINGLE, |wave, i, _| to_integer(wave, i, $f)).honouring(honours::SIGNS)
    };
}
macro_rules! narrow {
    ($f:expr) => {
        Form::new(FROM_DOUBLE, |wave, i, _| narrow(wave, i, |x| $f(f64::from_bits(x))))
            .honouring(honours::SIGNS)
    };
}

macro_rules! half_to_integer {
    ($f:expr) => {
        Form::new(&[Kind::Out(1), Kind::F16], |wave, i, _| half_to_integer(wave, i, $f))
            .honouring(honours::SIGNS | honours::HALVES)
    };
}
macro_rules! integer_to_half {
    ($f:expr) => {
        Form::new(INTEGER, |wave, i, _| integer_to_half(wave, i, $f)).honouring(honours::HALVES)
    };
}

/// The instruction of that name.
pub(super) fn find(name: &str) -> Option<Form> {
    let double = &[Kind::Out(2), Kind::B32];
    Some(match name {
        "v_cvt_f32_u32" => from_integer!(i64::from),
        "v_cvt_f32_i32" => from_integer!(|x| i64::from(x as i32)),
        "v_cvt_f32_ubyte0" => from_integer!(|x| i64::from(x & 0xff)),
        "v_cvt_f32_ubyte1" => from_integer!(|x| i64::from(x >> 8 & 0xff)),
        "v_cvt_f32_ubyte2" => from_integer!(|x| i64::from(x >> 16 & 0xff)),
        "v_cvt_f32_ubyte3" => from_integer!(|x| i64::from(x >> 24)),
        // Conversions to integers saturate, and NaN becomes zero: as Rust's do.
        "v_cvt_u32_f32" => to_integer!(|x| x as u32),
        "v_cvt_i32_f32" => to_integer!(|x| x as i32 as u32),
        "v_cvt_flr_i32_f32" => to_integer!(|x: f32| x.floor() as i32 as u32),
        "v_cvt_rpi_i32_f32" => to_integer!(|x: f32| (f64::from(x) + 0.5).floor() as i32 as u32),
        "v_cvt_u32_f64" => narrow!(|x: f64| x as u32),
        "v_cvt_i32_f64" => narrow!(|x: f64| x as i32 as u32),
        "v_cvt_f64_u32" => Form::new(double, |wave, i, _| widen(wave, i, |x| f64::from(x).to_bits())),
        "v_cvt_f64_i32" => Form::new(double, |wave, i, _| widen(wave, i, |x| f64::from(x as i32).to_bits())),
        "v_cvt_f64_f32" => {
            Form::new(&[Kind::Out(2), Kind::F32], |wave, i, _| to_double(wave, i)).honouring(honours::SIGNS)
        }
        "v_cvt_f32_f64" => Form::new(FROM_DOUBLE, |wave, i, _| to_single(wave, i)).honouring(honours::FLOAT),
        "v_cvt_f32_f16" => Form::new(&[Kind::Out(1), Kind::F16], |wave, i, _| half_to_single(wave, i))
            .honouring(honours::FLOAT | honours::HALVES),
        "v_cvt_f16_f32" => Form::new(SINGLE, |wave, i, _| single_to_half(wave, i))
            .honouring(honours::SIGNS | honours::HALVES),
        "v_cvt_u16_f16" => half_to_integer!(|x| x as u16),
        "v_cvt_i16_f16" => half_to_integer!(|x| x as i16 as u16),
        "v_cvt_f16_u16" => integer_to_half!(f32::from),
        "v_cvt_f16_i16" => integer_to_half!(|x| f32::from(x as i16)),
        "v_frexp_exp_i32_f32" => to_integer!(|x| split(x.into()).1 as u32),
        "v_frexp_exp_i32_f64" => narrow!(|x| split(x).1 as u32),
        "v_frexp_mant_f32" => to_integer!(|x| (split(x.into()).0 as f32).to_bits()),
        "v_frexp_mant_f64" => Form::new(super::double::ONE, |wave, i, _| {
            super::lanes::wide_one(wave, i, |x| split(f64::from_bits(x)).0.to_bits())
        })
        .honouring(honours::SIGNS),
        "v_ldexp_f32" => Form::new(&[Kind::Out(1), Kind::F32, Kind::B32], |wave, i, _| scale_single(wave, i))
            .honouring(honours::FLOAT),
        "v_ldexp_f64" => Form::new(&[Kind::Out(2), Kind::F64, Kind::B32], |wave, i, _| scale_double(wave, i))
            .honouring(honours::SIGNS),
        _ => return None,
    })
}
