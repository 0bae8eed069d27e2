//! Scalar arithmetic: one value for the whole wave.

use super::{
    instruction::{Flow, Form, Instruction, Kind},
    wave::Wave,
};

const ONE: &[Kind] = &[Kind::Out(1), Kind::B32];
const TWO: &[Kind] = &[Kind::Out(1), Kind::B32, Kind::B32];
const WIDE_ONE: &[Kind] = &[Kind::Out(2), Kind::B64];
const WIDE_TWO: &[Kind] = &[Kind::Out(2), Kind::B64, Kind::B64];
const NARROW: &[Kind] = &[Kind::Out(1), Kind::B64];
const SHIFT: &[Kind] = &[Kind::Out(2), Kind::B64, Kind::B32];
const TEST: &[Kind] = &[Kind::B32, Kind::B32];
const WIDE_TEST: &[Kind] = &[Kind::B64, Kind::B64];
const INTO: &[Kind] = &[Kind::Both(1), Kind::B32];

/// Two operands; the condition code as `f` says, or as it was.
#[inline(always)]
fn two(wave: &mut Wave, i: &Instruction, f: impl Fn(u32, u32) -> (u32, Option<bool>)) -> Flow {
    let (value, condition) = f(wave.read(&i.operands[1]), wave.read(&i.operands[2]));
    wave.write(&i.operands[0], value);
    if let Some(condition) = condition {
        wave.set_scc(condition);
    }
    Flow::Next
}

/// Two operands and the condition code as a carry.
#[inline(always)]
fn carry(wave: &mut Wave, i: &Instruction, f: impl Fn(u64, u64, u64) -> u64) -> Flow {
    let (x, y) = (wave.read(&i.operands[1]), wave.read(&i.operands[2]));
    let value = f(x.into(), y.into(), wave.scc().into());
    wave.write(&i.operands[0], value as u32);
    wave.set_scc(value >> 32 != 0);
    Flow::Next
}

#[inline(always)]
fn one(wave: &mut Wave, i: &Instruction, f: impl Fn(u32) -> (u32, Option<bool>)) -> Flow {
    let (value, condition) = f(wave.read(&i.operands[1]));
    wave.write(&i.operands[0], value);
    if let Some(condition) = condition {
        wave.set_scc(condition);
    }
    Flow::Next
}

#[inline(always)]
fn wide_one(wave: &mut Wave, i: &Instruction, f: impl Fn(u64) -> (u64, Option<bool>)) -> Flow {
    let (value, condition) = f(wave.read_pair(&i.operands[1]));
    wave.write_pair(&i.operands[0], value);
    if let Some(condition) = condition {
        wave.set_scc(condition);
    }
    Flow::Next
}

/// Two operands of 64 bits; the condition says whether the result is something.
#[inline(always)]
fn wide_two(wave: &mut Wave, i: &Instruction, f: impl Fn(u64, u64) -> u64) -> Flow {
    let value = f(wave.read_pair(&i.operands[1]), wave.read_pair(&i.operands[2]));
    wave.write_pair(&i.operands[0], value);
    wave.set_scc(value != 0);
    Flow::Next
}

#[inline(always)]
fn shift(wave: &mut Wave, i: &Instruction, f: impl Fn(u64, u32) -> u64) -> Flow {
    let value = f(wave.read_pair(&i.operands[1]), wave.read(&i.operands[2]) & 63);
    wave.write_pair(&i.operands[0], value);
    wave.set_scc(value != 0);
    Flow::Next
}

#[inline(always)]
fn test(wave: &mut Wave, i: &Instruction, f: impl Fn(u32, u32) -> bool) -> Flow {
    let holds = f(wave.read(&i.operands[0]), wave.read(&i.operands[1]));
    wave.set_scc(holds);
    Flow::Next
}

#[inline(always)]
fn wide_test(wave: &mut Wave, i: &Instruction, f: impl Fn(u64, u64) -> bool) -> Flow {
    let holds = f(wave.read_pair(&i.operands[0]), wave.read_pair(&i.operands[1]));
    wave.set_scc(holds);
    Flow::Next
}

/// The value, and whether it is something.
fn some(value: u32) -> (u32, Option<bool>) {
    (value, Some(value != 0))
}

fn wide_some(value: u64) -> (u64, Option<bool>) {
    (value, Some(value != 0))
}

/// Bits of `x`: where they start and how many they are is in `y`.
fn field(x: u32, y: u32) -> u32 {
    let (start, count) = (y & 31, (y >> 16 & 0x7f).min(32));
    if count == 32 { x >> start } else { x >> start & ((1 << count) - 1) }
}

fn signed_field(x: u32, y: u32) -> u32 {
    match (y >> 16 & 0x7f).min(32) {
        0 => 0,
        count => ((field(x, y) << (32 - count)) as i32 >> (32 - count)) as u32,
    }
}

fn wide_field(x: u64, y: u32) -> u64 {
    let (start, count) = (y & 63, (y >> 16 & 0x7f).min(64));
    if count == 64 { x >> start } else { x >> start & ((1 << count) - 1) }
}

fn signed_wide_field(x: u64, y: u32) -> u64 {
    match (y >> 16 & 0x7f).min(64) {
        0 => 0,
        count => ((wide_field(x, y) << (64 - count)) as i64 >> (64 - count)) as u64,
    }
}

fn shifted_sum(x: u32, y: u32, shift: u32) -> (u32, Option<bool>) {
    let sum = (u64::from(x) << shift) + u64::from(y);
    (sum as u32, Some(sum >> 32 != 0))
}

macro_rules! two {
    ($f:expr) => {
        Form::new(TWO, |wave, i, _| two(wave, i, $f))
    };
}
macro_rules! one {
    ($f:expr) => {
        Form::new(ONE, |wave, i, _| one(wave, i, $f))
    };
}
macro_rules! wide_one {
    ($f:expr) => {
        Form::new(WIDE_ONE, |wave, i, _| wide_one(wave, i, $f))
    };
}
macro_rules! wide_two {
    ($f:expr) => {
        Form::new(WIDE_TWO, |wave, i, _| wide_two(wave, i, $f))
    };
}
/// Leaves the condition as it was.
macro_rules! wide_alone {
    ($f:expr) => {
        Form::new(WIDE_TWO, |wave, i, _| {
            let f: fn(u64, u64) -> u64 = $f;
            let value = f(wave.read_pair(&i.operands[1]), wave.read_pair(&i.operands[2]));
            wave.write_pair(&i.operands[0], value);
            Flow::Next
        })
    };
}
macro_rules! shift {
    ($f:expr) => {
        Form::new(SHIFT, |wave, i, _| shift(wave, i, $f))
    };
}
macro_rules! narrow {
    ($f:expr) => {
        Form::new(NARROW, |wave, i, _| {
            let (value, condition) = $f(wave.read_pair(&i.operands[1]));
            wave.write(&i.operands[0], value);
            if let Some(condition) = condition {
                wave.set_scc(condition);
            }
            Flow::Next
        })
    };
}
macro_rules! test {
    ($f:expr) => {
        Form::new(TEST, |wave, i, _| test(wave, i, $f))
    };
}

/// The instruction of that name.
pub(super) fn find(name: &str) -> Option<Form> {
    arithmetic(name).or_else(|| bits(name)).or_else(|| comparison(name))
}

fn arithmetic(name: &str) -> Option<Form> {
    Some(match name {
        "s_add_u32" => two!(|x, y| {
            let (sum, carry) = x.overflowing_add(y);
            (sum, Some(carry))
        }),
        "s_add_i32" => two!(|x, y| {
            let (sum, over) = (x as i32).overflowing_add(y as i32);
            (sum as u32, Some(over))
        }),
        "s_sub_u32" => two!(|x, y| {
            let (difference, borrow) = x.overflowing_sub(y);
            (difference, Some(borrow))
        }),
        "s_sub_i32" => two!(|x, y| {
            let (difference, over) = (x as i32).overflowing_sub(y as i32);
            (difference as u32, Some(over))
        }),
        "s_addc_u32" => Form::new(TWO, |wave, i, _| carry(wave, i, |x, y, c| x + y + c)),
        "s_subb_u32" => {
            Form::new(TWO, |wave, i, _| carry(wave, i, |x, y, c| x.wrapping_sub(y).wrapping_sub(c)))
        }
        "s_add_nc_u64" => wide_alone!(|x, y| x.wrapping_add(y)),
        "s_sub_nc_u64" => wide_alone!(|x, y| x.wrapping_sub(y)),
        "s_mul_u64" => wide_alone!(|x, y| x.wrapping_mul(y)),
        "s_mul_i32" => two!(|x, y| (x.wrapping_mul(y), None)),
        "s_mul_hi_u32" => two!(|x, y| (((u64::from(x) * u64::from(y)) >> 32) as u32, None)),
        "s_mul_hi_i32" => {
            two!(|x, y| (((i64::from(x as i32) * i64::from(y as i32)) >> 32) as u32, None))
        }
        "s_min_u32" => two!(|x, y| (x.min(y), Some(x < y))),
        "s_max_u32" => two!(|x, y| (x.max(y), Some(x > y))),
        "s_min_i32" => two!(|x, y| ((x as i32).min(y as i32) as u32, Some((x as i32) < (y as i32)))),
        "s_max_i32" => two!(|x, y| ((x as i32).max(y as i32) as u32, Some(x as i32 > y as i32))),
        "s_absdiff_i32" => two!(|x, y| some((x as i32).wrapping_sub(y as i32).unsigned_abs())),
        "s_abs_i32" => one!(|x| some((x as i32).unsigned_abs())),
        "s_lshl1_add_u32" => two!(|x, y| shifted_sum(x, y, 1)),
        "s_lshl2_add_u32" => two!(|x, y| shifted_sum(x, y, 2)),
        "s_lshl3_add_u32" => two!(|x, y| shifted_sum(x, y, 3)),
        "s_lshl4_add_u32" => two!(|x, y| shifted_sum(x, y, 4)),
        // The constants of these have 16 bits and a sign, and are printed without it.
        "s_movk_i32" => one!(|x| (i32::from(x as i16) as u32, None)),
        "s_addk_i32" => Form::new(INTO, |wave, i, _| {
            let constant = i32::from(wave.read(&i.operands[1]) as i16);
            let (sum, over) = (wave.read(&i.operands[0]) as i32).overflowing_add(constant);
            wave.write(&i.operands[0], sum as u32);
            wave.set_scc(over);
            Flow::Next
        }),
        "s_mulk_i32" => Form::new(INTO, |wave, i, _| {
            let constant = i32::from(wave.read(&i.operands[1]) as i16);
            let product = (wave.read(&i.operands[0]) as i32).wrapping_mul(constant);
            wave.write(&i.operands[0], product as u32);
            Flow::Next
        }),
        "s_cmovk_i32" => Form::new(INTO, |wave, i, _| {
            if wave.scc() {
                let constant = i32::from(wave.read(&i.operands[1]) as i16);
                wave.write(&i.operands[0], constant as u32);
            }
            Flow::Next
        }),
        _ => return None,
    })
}

fn bits(name: &str) -> Option<Form> {
    Some(match name {
        "s_mov_b32" => one!(|x| (x, None)),
        "s_mov_b64" => wide_one!(|x| (x, None)),
        "s_cmov_b32" => Form::new(INTO, |wave, i, _| {
            let value = wave.read(&i.operands[usize::from(wave.scc())]);
            wave.write(&i.operands[0], value);
            Flow::Next
        }),
        "s_cselect_b32" => Form::new(TWO, |wave, i, _| {
            let value = wave.read(&i.operands[if wave.scc() { 1 } else { 2 }]);
            wave.write(&i.operands[0], value);
            Flow::Next
        }),
        "s_cselect_b64" => Form::new(WIDE_TWO, |wave, i, _| {
            let value = wave.read_pair(&i.operands[if wave.scc() { 1 } else { 2 }]);
            wave.write_pair(&i.operands[0], value);
            Flow::Next
        }),
        "s_and_b32" => two!(|x, y| some(x & y)),
        "s_or_b32" => two!(|x, y| some(x | y)),
        "s_xor_b32" => two!(|x, y| some(x ^ y)),
        "s_andn2_b32" => two!(|x, y| some(x & !y)),
        "s_orn2_b32" => two!(|x, y| some(x | !y)),
        "s_nand_b32" => two!(|x, y| some(!(x & y))),
        "s_nor_b32" => two!(|x, y| some(!(x | y))),
        "s_xnor_b32" => two!(|x, y| some(!(x ^ y))),
        "s_and_b64" => wide_two!(|x, y| x & y),
        "s_or_b64" => wide_two!(|x, y| x | y),
        "s_xor_b64" => wide_two!(|x, y| x ^ y),
        "s_andn2_b64" => wide_two!(|x, y| x & !y),
        "s_orn2_b64" => wide_two!(|x, y| x | !y),
        "s_nand_b64" => wide_two!(|x, y| !(x & y)),
        "s_nor_b64" => wide_two!(|x, y| !(x | y)),
        "s_xnor_b64" => wide_two!(|x, y| !(x ^ y)),
        "s_not_b32" => one!(|x| some(!x)),
        "s_not_b64" => wide_one!(|x| wide_some(!x)),
        "s_brev_b32" => one!(|x| (x.reverse_bits(), None)),
        "s_brev_b64" => wide_one!(|x| (x.reverse_bits(), None)),
        "s_bcnt0_i32_b32" => one!(|x| some(x.count_zeros())),
        "s_bcnt0_i32_b64" => narrow!(|x: u64| some(x.count_zeros())),
        "s_bcnt1_i32_b32" => one!(|x| some(x.count_ones())),
        "s_bcnt1_i32_b64" => narrow!(|x: u64| some(x.count_ones())),
        "s_ff1_i32_b32" => one!(|x| (if x == 0 { u32::MAX } else { x.trailing_zeros() }, None)),
        "s_ff1_i32_b64" => narrow!(|x: u64| (if x == 0 { u32::MAX } else { x.trailing_zeros() }, None)),
        "s_flbit_i32_b32" => one!(|x| (if x == 0 { u32::MAX } else { x.leading_zeros() }, None)),
        "s_flbit_i32_b64" => narrow!(|x: u64| (if x == 0 { u32::MAX } else { x.leading_zeros() }, None)),
        "s_sext_i32_i8" => one!(|x| (i32::from(x as i8) as u32, None)),
        "s_sext_i32_i16" => one!(|x| (i32::from(x as i16) as u32, None)),
        "s_bitset0_b32" => Form::new(INTO, |wave, i, _| {
            let value = wave.read(&i.operands[0]) & !(1 << (wave.read(&i.operands[1]) & 31));
            wave.write(&i.operands[0], value);
            Flow::Next
        }),
        "s_bitset1_b32" => Form::new(INTO, |wave, i, _| {
            let value = wave.read(&i.operands[0]) | 1 << (wave.read(&i.operands[1]) & 31);
            wave.write(&i.operands[0], value);
            Flow::Next
        }),
        "s_lshl_b32" => two!(|x, y| some(x << (y & 31))),
        "s_lshr_b32" => two!(|x, y| some(x >> (y & 31))),
        "s_ashr_i32" => two!(|x, y| some((x as i32 >> (y & 31)) as u32)),
        "s_lshl_b64" => shift!(|x, y| x << y),
        "s_lshr_b64" => shift!(|x, y| x >> y),
        "s_ashr_i64" => shift!(|x, y| (x as i64 >> y) as u64),
        "s_bfe_u32" => two!(|x, y| some(field(x, y))),
        "s_bfe_i32" => two!(|x, y| some(signed_field(x, y))),
        "s_bfe_u64" => Form::new(SHIFT, |wave, i, _| {
            let value = wide_field(wave.read_pair(&i.operands[1]), wave.read(&i.operands[2]));
            wave.write_pair(&i.operands[0], value);
            wave.set_scc(value != 0);
            Flow::Next
        }),
        "s_bfe_i64" => Form::new(SHIFT, |wave, i, _| {
            let value = signed_wide_field(wave.read_pair(&i.operands[1]), wave.read(&i.operands[2]));
            wave.write_pair(&i.operands[0], value);
            wave.set_scc(value != 0);
            Flow::Next
        }),
        "s_bfm_b32" => two!(|x, y| (((1u32 << (x & 31)) - 1) << (y & 31), None)),
        "s_pack_ll_b32_b16" => two!(|x, y| (x & 0xffff | y << 16, None)),
        "s_pack_lh_b32_b16" => two!(|x, y| (x & 0xffff | y & 0xffff_0000, None)),
        "s_pack_hh_b32_b16" => two!(|x, y| (x >> 16 | y & 0xffff_0000, None)),
        _ => return None,
    })
}

fn comparison(name: &str) -> Option<Form> {
    Some(match name {
        "s_cmp_eq_i32" | "s_cmp_eq_u32" => test!(|x, y| x == y),
        "s_cmp_lg_i32" | "s_cmp_lg_u32" => test!(|x, y| x != y),
        "s_cmp_gt_i32" => test!(|x, y| x as i32 > y as i32),
        "s_cmp_ge_i32" => test!(|x, y| x as i32 >= y as i32),
        "s_cmp_lt_i32" => test!(|x, y| (x as i32) < y as i32),
        "s_cmp_le_i32" => test!(|x, y| x as i32 <= y as i32),
        "s_cmp_gt_u32" => test!(|x, y| x > y),
        "s_cmp_ge_u32" => test!(|x, y| x >= y),
        "s_cmp_lt_u32" => test!(|x, y| x < y),
        "s_cmp_le_u32" => test!(|x, y| x <= y),
        "s_cmp_eq_u64" => Form::new(WIDE_TEST, |wave, i, _| wide_test(wave, i, |x, y| x == y)),
        "s_cmp_lg_u64" => Form::new(WIDE_TEST, |wave, i, _| wide_test(wave, i, |x, y| x != y)),
        // Constants of 16 bits, with a sign for signed comparisons.
        "s_cmpk_eq_u32" => test!(|x, y| x == y & 0xffff),
        "s_cmpk_lg_u32" => test!(|x, y| x != y & 0xffff),
        "s_cmpk_gt_u32" => test!(|x, y| x > y & 0xffff),
        "s_cmpk_ge_u32" => test!(|x, y| x >= y & 0xffff),
        "s_cmpk_lt_u32" => test!(|x, y| x < y & 0xffff),
        "s_cmpk_le_u32" => test!(|x, y| x <= y & 0xffff),
        "s_cmpk_eq_i32" => test!(|x, y| x as i32 == i32::from(y as i16)),
        "s_cmpk_lg_i32" => test!(|x, y| x as i32 != i32::from(y as i16)),
        "s_cmpk_gt_i32" => test!(|x, y| x as i32 > i32::from(y as i16)),
        "s_cmpk_ge_i32" => test!(|x, y| x as i32 >= i32::from(y as i16)),
        "s_cmpk_lt_i32" => test!(|x, y| (x as i32) < i32::from(y as i16)),
        "s_cmpk_le_i32" => test!(|x, y| x as i32 <= i32::from(y as i16)),
        "s_bitcmp0_b32" => test!(|x, y| x >> (y & 31) & 1 == 0),
        "s_bitcmp1_b32" => test!(|x, y| x >> (y & 31) & 1 == 1),
        _ => return None,
    })
}
