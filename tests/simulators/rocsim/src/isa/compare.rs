//! Vector comparisons.
#![allow(
    clippy::neg_cmp_op_on_partial_ord,
    clippy::double_comparisons,
    reason = "the relations differ in what they say of NaNs"
)]

use super::{
    instruction::{Flow, Form, Instruction, Kind, Op, honours},
    lanes::{test, test_registers, wide_test},
    soft,
    vector_wide::half_source,
    wave::{Wave, bits},
};

/// Writes the outcome of a comparison, and makes it the execution mask where the instruction does.
#[inline(always)]
fn outcome<const EXEC: bool>(wave: &mut Wave, i: &Instruction, found: u64) -> Flow {
    let found = found & wave.exec();
    wave.write_mask(&i.operands[0], found);
    if EXEC {
        wave.set_exec(found);
    }
    Flow::Next
}

/// The relations, each as a test of two values.
macro_rules! relation {
    ($name:expr, $apply:ident, $exec:ident, $($relation:literal $test:expr,)*) => {
        match $name {
            $($relation => $apply!($exec, $test),)*
            _ => return None,
        }
    };
}

macro_rules! integers {
    ($name:expr, $apply:ident, $exec:ident) => {
        relation!(
            $name,
            $apply,
            $exec,
            "lt" | x,
            y | x < y,
            "eq" | x,
            y | x == y,
            "le" | x,
            y | x <= y,
            "gt" | x,
            y | x > y,
            "ne" | x,
            y | x != y,
            "lg" | x,
            y | x != y,
            "ge" | x,
            y | x >= y,
        )
    };
}

macro_rules! floats {
    ($name:expr, $apply:ident, $exec:ident) => {
        relation!(
            $name,
            $apply,
            $exec,
            "lt" | x,
            y | x < y,
            "eq" | x,
            y | x == y,
            "le" | x,
            y | x <= y,
            "gt" | x,
            y | x > y,
            "lg" | x,
            y | x < y || x > y,
            "ge" | x,
            y | x >= y,
            "o" | x,
            y | x.partial_cmp(&y).is_some(),
            "u" | x,
            y | x.partial_cmp(&y).is_none(),
            "nge" | x,
            y | !(x >= y),
            "nlg" | x,
            y | !(x < y || x > y),
            "ngt" | x,
            y | !(x > y),
            "nle" | x,
            y | !(x <= y),
            "neq" | x,
            y | x != y,
            "nlt" | x,
            y | !(x < y),
        )
    };
}

macro_rules! u32s {
    ($exec:ident, $test:expr) => {
        |wave, i, _| {
            let holds: fn(u32, u32) -> bool = $test;
            let found = test(wave, i, 1, |x, y| holds(x, y));
            outcome::<$exec>(wave, i, found)
        }
    };
}
macro_rules! i32s {
    ($exec:ident, $test:expr) => {
        |wave, i, _| {
            let found = test(wave, i, 1, |x, y| with::<i32>($test)(x as i32, y as i32));
            outcome::<$exec>(wave, i, found)
        }
    };
}
macro_rules! u64s {
    ($exec:ident, $test:expr) => {
        |wave, i, _| {
            let found = wide_test(wave, i, 1, |x, y| with::<u64>($test)(x, y));
            outcome::<$exec>(wave, i, found)
        }
    };
}
macro_rules! i64s {
    ($exec:ident, $test:expr) => {
        |wave, i, _| {
            let found = wide_test(wave, i, 1, |x, y| with::<i64>($test)(x as i64, y as i64));
            outcome::<$exec>(wave, i, found)
        }
    };
}
macro_rules! u16s {
    ($exec:ident, $test:expr) => {
        |wave, i, _| {
            let found = halves(wave, i, |x, y| with::<u16>($test)(x, y));
            outcome::<$exec>(wave, i, found)
        }
    };
}
macro_rules! i16s {
    ($exec:ident, $test:expr) => {
        |wave, i, _| {
            let found = halves(wave, i, |x, y| with::<i16>($test)(x as i16, y as i16));
            outcome::<$exec>(wave, i, found)
        }
    };
}
macro_rules! f32s {
    ($exec:ident, $test:expr) => {
        |wave, i, _| {
            let (x, y) = (wave.signed_source(i, 1, 1 << 31), wave.signed_source(i, 2, 1 << 31));
            let flush = wave.mode.single.flush_in;
            let found =
                test_registers(wave, x, y, |x, y| with::<f32>($test)(single(x, flush), single(y, flush)));
            outcome::<$exec>(wave, i, found)
        }
    };
}
macro_rules! f64s {
    ($exec:ident, $test:expr) => {
        |wave, i, _| {
            let flush = wave.mode.other.flush_in;
            let found = wide_test(wave, i, 1, |x, y| with::<f64>($test)(double(x, flush), double(y, flush)));
            outcome::<$exec>(wave, i, found)
        }
    };
}
macro_rules! f16s {
    ($exec:ident, $test:expr) => {
        |wave, i, _| {
            let found = halves(wave, i, |x, y| with::<f32>($test)(half(x), half(y)));
            outcome::<$exec>(wave, i, found)
        }
    };
}

/// Fixes the type of a test's operands.
#[inline(always)]
fn with<T>(test: fn(T, T) -> bool) -> fn(T, T) -> bool {
    test
}

#[inline(always)]
fn single(bits: u32, flush: bool) -> f32 {
    f32::from_bits(if flush && bits & 0x7f80_0000 == 0 { bits & 0x8000_0000 } else { bits })
}

#[inline(always)]
fn double(bits: u64, flush: bool) -> f64 {
    f64::from_bits(if flush && bits & 0x7ff0_0000_0000_0000 == 0 { bits & 1 << 63 } else { bits })
}

fn half(bits: u16) -> f32 {
    f32::from_bits(soft::convert(soft::F16, soft::F32, bits.into(), super::mode::Arithmetic::IEEE) as u32)
}

fn halves(wave: &mut Wave, i: &Instruction, holds: impl Fn(u16, u16) -> bool) -> u64 {
    let (x, y, mut out) = (half_source(wave, i, 1), half_source(wave, i, 2), [0; 64]);
    for lane in 0..64 {
        out[lane] = u8::from(holds(x[lane] as u16, y[lane] as u16));
    }
    bits(&out)
}

/// The bit by which a class of numbers is asked for: NaNs, then from negative infinity up to positive infinity.
fn class(negative: bool, exponent_zero: bool, exponent_full: bool, fraction: u64, quiet: u64) -> u32 {
    let below = |class: u32| if negative { class } else { 11 - class };
    match (exponent_full, exponent_zero, fraction) {
        (true, _, 0) => below(2),
        (true, _, fraction) => u32::from(fraction & quiet != 0),
        (_, true, 0) => below(5),
        (_, true, _) => below(4),
        _ => below(3),
    }
}

fn class_single(x: u32) -> u32 {
    let exponent = x >> 23 & 0xff;
    class(x >> 31 != 0, exponent == 0, exponent == 0xff, u64::from(x & 0x7f_ffff), 1 << 22)
}

fn class_double(x: u64) -> u32 {
    let exponent = x >> 52 & 0x7ff;
    class(x >> 63 != 0, exponent == 0, exponent == 0x7ff, x & ((1 << 52) - 1), 1 << 51)
}

fn class_single_test<const EXEC: bool>(wave: &mut Wave, i: &Instruction) -> Flow {
    let (x, y) = (wave.signed_source(i, 1, 1 << 31), wave.source(i, 2));
    let found = test_registers(wave, x, y, |x, classes| classes >> class_single(x) & 1 == 1);
    outcome::<EXEC>(wave, i, found)
}

fn class_double_test<const EXEC: bool>(wave: &mut Wave, i: &Instruction) -> Flow {
    let classes = wave.source(i, 2);
    let (x, classes, mut out) = (wave.wide_source(&i.operands[1]), &wave.vectors[classes], [0; 64]);
    for lane in 0..64 {
        out[lane] = (classes[lane] >> class_double(x[lane])) as u8 & 1;
    }
    let found = bits(&out);
    outcome::<EXEC>(wave, i, found)
}

/// The operation for a relation and a type.
fn operation<const EXEC: bool>(relation: &str, kind: &str) -> Option<Op> {
    Some(match kind {
        "u32" => integers!(relation, u32s, EXEC),
        "i32" => integers!(relation, i32s, EXEC),
        "u64" => integers!(relation, u64s, EXEC),
        "i64" => integers!(relation, i64s, EXEC),
        "u16" => integers!(relation, u16s, EXEC),
        "i16" => integers!(relation, i16s, EXEC),
        "f32" if relation == "class" => |wave, i, _| class_single_test::<EXEC>(wave, i),
        "f64" if relation == "class" => |wave, i, _| class_double_test::<EXEC>(wave, i),
        "f32" => floats!(relation, f32s, EXEC),
        "f64" => floats!(relation, f64s, EXEC),
        "f16" => floats!(relation, f16s, EXEC),
        _ => return None,
    })
}

/// The comparison of that name.
pub(super) fn find(name: &str) -> Option<Form> {
    let (exec, rest) = match name.strip_prefix("v_cmpx_") {
        Some(rest) => (true, rest),
        None => (false, name.strip_prefix("v_cmp_")?),
    };
    let (relation, kind) = rest.rsplit_once('_')?;
    let op = if exec { operation::<true>(relation, kind) } else { operation::<false>(relation, kind) }?;
    let kinds: &[Kind] = match (relation, kind) {
        ("class", "f32") => &[Kind::MaskOut, Kind::F32, Kind::B32],
        ("class", _) => &[Kind::MaskOut, Kind::F64, Kind::B32],
        (_, "f32") => &[Kind::MaskOut, Kind::F32, Kind::F32],
        (_, "f64") => &[Kind::MaskOut, Kind::F64, Kind::F64],
        (_, "u64" | "i64") => &[Kind::MaskOut, Kind::B64, Kind::B64],
        (_, "f16") => &[Kind::MaskOut, Kind::F16, Kind::F16],
        _ => &[Kind::MaskOut, Kind::B32, Kind::B32],
    };
    let honours = match kind {
        "f32" | "f64" => honours::SIGNS,
        "f16" => honours::SIGNS | honours::HALVES,
        "u16" | "i16" => honours::HALVES,
        _ => honours::NOTHING,
    };
    Some(Form::new(kinds, op).honouring(honours))
}
