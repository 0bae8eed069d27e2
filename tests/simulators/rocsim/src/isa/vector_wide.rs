//! Vector instructions on integers of 64 bits, of 16 bits, and with carries.

use super::{
    instruction::{Flow, Form, Instruction, Kind, Value, honours},
    lanes::{wide_one, wide_shift, wide_two},
    vector::middle,
    wave::{Lanes, Wave, bits},
};

const ADD: &[Kind] = &[Kind::Out(1), Kind::MaskOut, Kind::B32, Kind::B32];
const ADD_CARRY: &[Kind] = &[Kind::Out(1), Kind::MaskOut, Kind::B32, Kind::B32, Kind::MaskIn];
const MULTIPLY_ADD: &[Kind] = &[Kind::Out(2), Kind::MaskOut, Kind::B32, Kind::B32, Kind::B64];
const SHIFT: &[Kind] = &[Kind::Out(2), Kind::B32, Kind::B64];
const SHIFT_ADD: &[Kind] = &[Kind::Out(2), Kind::B64, Kind::B32, Kind::B64];
const TWO: &[Kind] = &[Kind::Out(1), Kind::B32, Kind::B32];
const THREE: &[Kind] = &[Kind::Out(1), Kind::B32, Kind::B32, Kind::B32];

/// Adds or subtracts with a carry in and out. `f` gives the result and the carry.
#[inline(always)]
fn carry(wave: &mut Wave, i: &Instruction, f: impl Fn(u32, u32, u32) -> (u32, bool)) -> Flow {
    let carries = wave.read_mask(&i.operands[4]);
    let (x, y) = (wave.source(i, 2), wave.source(i, 3));
    let (x, y, mut out, mut over) = (&wave.vectors[x], &wave.vectors[y], [0; 64], [0; 64]);
    for lane in 0..64 {
        let (sum, carry) = f(x[lane], y[lane], (carries >> lane) as u32 & 1);
        out[lane] = sum;
        over[lane] = u8::from(carry);
    }
    let over = bits(&over) & wave.exec();
    wave.put(i.operands[0].vector(), &out);
    wave.write_mask(&i.operands[1], over);
    Flow::Next
}

#[inline(always)]
fn add(x: u32, y: u32, carry: u32) -> (u32, bool) {
    let sum = u64::from(x) + u64::from(y) + u64::from(carry);
    (sum as u32, sum >> 32 != 0)
}

#[inline(always)]
fn subtract(x: u32, y: u32, carry: u32) -> (u32, bool) {
    let difference = u64::from(x).wrapping_sub(u64::from(y)).wrapping_sub(u64::from(carry));
    (difference as u32, difference >> 32 != 0)
}

/// Multiplies numbers of 32 bits and adds one of 64.
#[inline(always)]
fn multiply_add(wave: &mut Wave, i: &Instruction, f: impl Fn(u32, u32, u64) -> (u64, bool)) -> Flow {
    let (x, y) = (wave.source(i, 2), wave.source(i, 3));
    let z = wave.wide_source(&i.operands[4]);
    let (x, y, mut out, mut over) = (&wave.vectors[x], &wave.vectors[y], [0; 64], [0; 64]);
    for lane in 0..64 {
        let (sum, carry) = f(x[lane], y[lane], z[lane]);
        out[lane] = sum;
        over[lane] = u8::from(carry);
    }
    let over = bits(&over) & wave.exec();
    wave.put_wide(i.operands[0].vector(), &out);
    wave.write_mask(&i.operands[1], over);
    Flow::Next
}

/// The lanes of an operand of 16 bits: the half of the register that the instruction chooses.
pub(super) fn half_source(wave: &mut Wave, i: &Instruction, index: usize) -> Lanes {
    let register = wave.source(i, index);
    let shift = if i.modifiers.op_sel[index - 1] { 16 } else { 0 };
    let operand = &i.operands[index];
    let keep = if operand.absolute { 0x7fff } else { 0xffff };
    let flip = if operand.negate { 0x8000 } else { 0 };
    wave.vectors[register].map(|lane| (lane >> shift & keep) ^ flip)
}

/// Writes results of 16 bits. Until gfx9 the other half becomes zero, from gfx10 on it stays as it was.
pub(super) fn put_half(wave: &mut Wave, i: &Instruction, count: usize, out: &Lanes) {
    let register = i.operands[0].vector();
    let (upper, keeps) = (i.modifiers.op_sel[count], wave.keeps_upper_half);
    let old = &wave.vectors[register];
    let mut new = [0; 64];
    for lane in 0..64 {
        new[lane] = match (upper, keeps) {
            (true, _) => old[lane] & 0xffff | out[lane] << 16,
            (false, true) => old[lane] & 0xffff_0000 | out[lane] & 0xffff,
            (false, false) => out[lane] & 0xffff,
        };
    }
    wave.put(register, &new);
}

#[inline(always)]
fn half_two(wave: &mut Wave, i: &Instruction, f: impl Fn(u16, u16) -> u16) -> Flow {
    let (x, y, mut out) = (half_source(wave, i, 1), half_source(wave, i, 2), [0; 64]);
    for lane in 0..64 {
        out[lane] = u32::from(f(x[lane] as u16, y[lane] as u16));
    }
    put_half(wave, i, 2, &out);
    Flow::Next
}

/// Shifts a number of 64 bits by up to 7 bits, and adds another.
fn shift_add(wave: &mut Wave, i: &Instruction) -> Flow {
    let (x, z) = (wave.wide_source(&i.operands[1]), wave.wide_source(&i.operands[3]));
    let shift = wave.source(i, 2);
    let (shift, mut out) = (&wave.vectors[shift], [0; 64]);
    for lane in 0..64 {
        out[lane] = (x[lane] << (shift[lane] & 7)).wrapping_add(z[lane]);
    }
    wave.put_wide(i.operands[0].vector(), &out);
    Flow::Next
}

fn half_one(wave: &mut Wave, i: &Instruction, f: impl Fn(u16) -> u16) -> Flow {
    let out = half_source(wave, i, 1).map(|x| u32::from(f(x as u16)));
    put_half(wave, i, 1, &out);
    Flow::Next
}

/// An operation on two pairs of numbers of 16 bits, each pair in one register.
fn half_pairs(wave: &mut Wave, i: &Instruction, f: impl Fn(u16, u16) -> u16) -> Flow {
    let (x, y) = (wave.source(i, 1), wave.source(i, 2));
    let (x, y, m) = (&wave.vectors[x], &wave.vectors[y], &i.modifiers);
    let half = |lane: u32, upper: bool| (lane >> if upper { 16 } else { 0 }) as u16;
    let mut out = [0; 64];
    for lane in 0..64 {
        let both = |select: &[bool; 4]| u32::from(f(half(x[lane], select[0]), half(y[lane], select[1])));
        out[lane] = both(&m.op_sel) | both(&m.op_sel_hi) << 16;
    }
    wave.put(i.operands[0].vector(), &out);
    Flow::Next
}

/// An operation on three numbers of 16 bits.
fn half_three(wave: &mut Wave, i: &Instruction, f: impl Fn(u16, u16, u16) -> u16) -> Flow {
    let (x, y, z) = (half_source(wave, i, 1), half_source(wave, i, 2), half_source(wave, i, 3));
    let mut out = [0; 64];
    for lane in 0..64 {
        out[lane] = f(x[lane] as u16, y[lane] as u16, z[lane] as u16).into();
    }
    put_half(wave, i, 3, &out);
    Flow::Next
}

/// Puts two registers together, each of which is one of a pair.
fn packed_move(wave: &mut Wave, i: &Instruction) -> Flow {
    let [_, x, y, ..] = i.operands;
    let (low, high) = (
        packed_half(wave, x.value, i.modifiers.op_sel[0]),
        packed_half(wave, y.value, i.modifiers.op_sel[1]),
    );
    let register = i.operands[0].vector();
    wave.put(register, &low);
    wave.put(register + 1, &high);
    Flow::Next
}

/// The lower or upper register of a pair. A constant is the same in both.
pub(super) fn packed_half(wave: &Wave, value: Value, upper: bool) -> Lanes {
    match value {
        Value::Vector(register) => wave.vectors[usize::from(register) + usize::from(upper)],
        Value::Scalar(register) => [wave.scalars[usize::from(register.wrapping_add(u8::from(upper)))]; 64],
        Value::Constant(value) => [value as u32; 64],
        _ => [0; 64],
    }
}

macro_rules! shift {
    ($f:expr) => {
        Form::new(SHIFT, |wave, i, _| wide_shift(wave, i, $f))
    };
}
macro_rules! half {
    ($f:expr) => {
        Form::new(TWO, |wave, i, _| half_two(wave, i, $f)).honouring(honours::HALVES)
    };
}

/// Bits, of which constants are numbers of 16 bits.
macro_rules! half_one {
    ($f:expr) => {
        Form::new(&[Kind::Out(1), Kind::F16], |wave, i, _| half_one(wave, i, $f)).honouring(honours::HALVES)
    };
}
macro_rules! half_bits {
    ($f:expr) => {
        Form::new(&[Kind::Out(1), Kind::F16, Kind::F16], |wave, i, _| half_two(wave, i, $f))
            .honouring(honours::HALVES)
    };
}

macro_rules! half_pairs {
    ($f:expr) => {
        Form::new(TWO, |wave, i, _| half_pairs(wave, i, $f)).honouring(honours::HALVES)
    };
}
macro_rules! half_three {
    ($f:expr) => {
        Form::new(THREE, |wave, i, _| half_three(wave, i, $f)).honouring(honours::HALVES)
    };
}

/// The instruction of that name.
pub(super) fn find(name: &str) -> Option<Form> {
    Some(match name {
        "v_add_co_u32" => Form::new(ADD, |wave, i, _| carry(wave, i, add)),
        "v_sub_co_u32" => Form::new(ADD, |wave, i, _| carry(wave, i, subtract)),
        "v_subrev_co_u32" => Form::new(ADD, |wave, i, _| carry(wave, i, |x, y, c| subtract(y, x, c))),
        "v_addc_co_u32" | "v_add_co_ci_u32" => Form::new(ADD_CARRY, |wave, i, _| carry(wave, i, add)),
        "v_subb_co_u32" | "v_sub_co_ci_u32" => Form::new(ADD_CARRY, |wave, i, _| carry(wave, i, subtract)),
        "v_subbrev_co_u32" | "v_subrev_co_ci_u32" => {
            Form::new(ADD_CARRY, |wave, i, _| carry(wave, i, |x, y, c| subtract(y, x, c)))
        }
        "v_mad_u64_u32" => Form::new(MULTIPLY_ADD, |wave, i, _| {
            multiply_add(wave, i, |x, y, z| (u64::from(x) * u64::from(y)).overflowing_add(z))
        }),
        "v_mad_i64_i32" => Form::new(MULTIPLY_ADD, |wave, i, _| {
            multiply_add(wave, i, |x, y, z| {
                let (sum, over) = (i64::from(x as i32) * i64::from(y as i32)).overflowing_add(z as i64);
                (sum as u64, over)
            })
        }),
        "v_lshlrev_b64" => shift!(|x, y| y << (x & 63)),
        "v_lshrrev_b64" => shift!(|x, y| y >> (x & 63)),
        "v_ashrrev_i64" => shift!(|x, y| (y as i64 >> (x & 63)) as u64),
        "v_mov_b64" => Form::new(&[Kind::Out(2), Kind::B64], |wave, i, _| wide_one(wave, i, |x| x)),
        "v_lshl_add_u64" => Form::new(SHIFT_ADD, |wave, i, _| shift_add(wave, i)),
        "v_mov_b16" => half_one!(|x| x),
        "v_not_b16" => half_one!(|x| !x),
        "v_cndmask_b16" => Form::new(&[Kind::Out(1), Kind::F16, Kind::F16, Kind::MaskIn], |wave, i, _| {
            let mask = wave.read_mask(&i.operands[3]);
            let (x, y, mut out) = (half_source(wave, i, 1), half_source(wave, i, 2), [0; 64]);
            for lane in 0..64 {
                out[lane] = if mask >> lane & 1 == 0 { x[lane] } else { y[lane] };
            }
            put_half(wave, i, 3, &out);
            Flow::Next
        })
        .honouring(honours::HALVES | honours::SIGNS),
        "v_and_b16" => half_bits!(|x, y| x & y),
        "v_or_b16" => half_bits!(|x, y| x | y),
        "v_xor_b16" => half_bits!(|x, y| x ^ y),
        "v_and_b64" => {
            Form::new(&[Kind::Out(2), Kind::B64, Kind::B64], |wave, i, _| wide_two(wave, i, |x, y| x & y))
        }
        "v_pk_mov_b32" => Form::new(&[Kind::Out(2), Kind::B64, Kind::B64], |wave, i, _| packed_move(wave, i))
            .honouring(honours::HALVES),
        "v_pk_lshlrev_b16" => half_pairs!(|x, y| y << (x & 15)),
        "v_pk_lshrrev_b16" => half_pairs!(|x, y| y >> (x & 15)),
        "v_pk_ashrrev_i16" => half_pairs!(|x, y| (y as i16 >> (x & 15)) as u16),
        "v_add_u16" | "v_add_nc_u16" => half!(|x, y| x.wrapping_add(y)),
        "v_sub_u16" | "v_sub_nc_u16" => half!(|x, y| x.wrapping_sub(y)),
        "v_subrev_u16" => half!(|x, y| y.wrapping_sub(x)),
        "v_mul_lo_u16" => half!(|x, y| x.wrapping_mul(y)),
        "v_min_u16" => half!(|x, y| x.min(y)),
        "v_max_u16" => half!(|x, y| x.max(y)),
        "v_min_i16" => half!(|x, y| (x as i16).min(y as i16) as u16),
        "v_max_i16" => half!(|x, y| (x as i16).max(y as i16) as u16),
        "v_lshlrev_b16" => half!(|x, y| y << (x & 15)),
        "v_lshrrev_b16" => half!(|x, y| y >> (x & 15)),
        "v_ashrrev_i16" => half!(|x, y| (y as i16 >> (x & 15)) as u16),
        "v_mad_u16" | "v_mad_legacy_u16" => half_three!(|x, y, z| x.wrapping_mul(y).wrapping_add(z)),
        "v_min3_u16" => half_three!(|x, y, z| x.min(y).min(z)),
        "v_max3_u16" => half_three!(|x, y, z| x.max(y).max(z)),
        "v_med3_u16" => half_three!(middle),
        "v_min3_i16" => half_three!(|x, y, z| (x as i16).min(y as i16).min(z as i16) as u16),
        "v_max3_i16" => half_three!(|x, y, z| (x as i16).max(y as i16).max(z as i16) as u16),
        "v_med3_i16" => half_three!(|x, y, z| middle(x as i16, y as i16, z as i16) as u16),
        _ => return None,
    })
}

/// The instruction of 16 bits of that name whose result stays in range instead of wrapping.
pub(super) fn find_clamped(name: &str) -> Option<Form> {
    Some(match name {
        "v_add_u16" | "v_add_nc_u16" => half!(|x, y| x.saturating_add(y)),
        "v_sub_u16" | "v_sub_nc_u16" => half!(|x, y| x.saturating_sub(y)),
        "v_subrev_u16" => half!(|x, y| y.saturating_sub(x)),
        "v_add_i16" | "v_add_nc_i16" => half!(|x, y| (x as i16).saturating_add(y as i16) as u16),
        "v_sub_i16" | "v_sub_nc_i16" => half!(|x, y| (x as i16).saturating_sub(y as i16) as u16),
        _ => return None,
    })
}
