//! The shapes of vector instructions: operands of all lanes in, results of the lanes that take part out.

use super::{
    instruction::{Flow, Instruction, Value},
    wave::{Wave, bits},
};

/// One operand of 32 bits.
#[inline(always)]
pub(super) fn one(wave: &mut Wave, i: &Instruction, f: impl Fn(u32) -> u32) -> Flow {
    let x = wave.source(i, 1);
    let (x, mut out) = (&wave.vectors[x], [0; 64]);
    for lane in 0..64 {
        out[lane] = f(x[lane]);
    }
    wave.put(i.operands[0].vector(), &out);
    Flow::Next
}

/// Two operands of 32 bits.
#[inline(always)]
pub(super) fn two(wave: &mut Wave, i: &Instruction, f: impl Fn(u32, u32) -> u32) -> Flow {
    let (x, y) = (wave.source(i, 1), wave.source(i, 2));
    let (x, y, mut out) = (&wave.vectors[x], &wave.vectors[y], [0; 64]);
    for lane in 0..64 {
        out[lane] = f(x[lane], y[lane]);
    }
    wave.put(i.operands[0].vector(), &out);
    Flow::Next
}

/// Three operands of 32 bits.
#[inline(always)]
pub(super) fn three(wave: &mut Wave, i: &Instruction, f: impl Fn(u32, u32, u32) -> u32) -> Flow {
    let (x, y, z) = (wave.source(i, 1), wave.source(i, 2), wave.source(i, 3));
    let (x, y, z, mut out) = (&wave.vectors[x], &wave.vectors[y], &wave.vectors[z], [0; 64]);
    for lane in 0..64 {
        out[lane] = f(x[lane], y[lane], z[lane]);
    }
    wave.put(i.operands[0].vector(), &out);
    Flow::Next
}

/// A shift by the first operand. Most are by the same number in all lanes, which the host does for many at a time.
#[inline(always)]
pub(super) fn shift(wave: &mut Wave, i: &Instruction, f: impl Fn(u32, u32) -> u32) -> Flow {
    if matches!(i.operands[1].value, Value::Vector(_)) {
        return two(wave, i, f);
    }
    let (x, y) = (wave.read(&i.operands[1]), wave.source(i, 2));
    let (y, mut out) = (&wave.vectors[y], [0; 64]);
    for lane in 0..64 {
        out[lane] = f(x, y[lane]);
    }
    wave.put(i.operands[0].vector(), &out);
    Flow::Next
}

/// Two operands of 32 bits, and the number of the lane.
#[inline(always)]
pub(super) fn two_of_lane(wave: &mut Wave, i: &Instruction, f: impl Fn(usize, u32, u32) -> u32) -> Flow {
    let (x, y) = (wave.source(i, 1), wave.source(i, 2));
    let (x, y, mut out) = (&wave.vectors[x], &wave.vectors[y], [0; 64]);
    for lane in 0..64 {
        out[lane] = f(lane, x[lane], y[lane]);
    }
    wave.put(i.operands[0].vector(), &out);
    Flow::Next
}

/// One operand of 64 bits, and a result of 32.
#[inline(always)]
pub(super) fn narrow(wave: &mut Wave, i: &Instruction, f: impl Fn(u64) -> u32) -> Flow {
    let x = wave.wide_source(&i.operands[1]);
    let mut out = [0; 64];
    for lane in 0..64 {
        out[lane] = f(x[lane]);
    }
    wave.put(i.operands[0].vector(), &out);
    Flow::Next
}

/// One operand of 32 bits, and a result of 64.
#[inline(always)]
pub(super) fn widen(wave: &mut Wave, i: &Instruction, f: impl Fn(u32) -> u64) -> Flow {
    let x = wave.signed_source(i, 1, 1 << 31);
    let (x, mut out) = (&wave.vectors[x], [0; 64]);
    for lane in 0..64 {
        out[lane] = f(x[lane]);
    }
    wave.put_wide(i.operands[0].vector(), &out);
    Flow::Next
}

/// One operand and a result of 64 bits.
#[inline(always)]
pub(super) fn wide_one(wave: &mut Wave, i: &Instruction, f: impl Fn(u64) -> u64) -> Flow {
    let out = wave.wide_source(&i.operands[1]).map(f);
    wave.put_wide(i.operands[0].vector(), &out);
    Flow::Next
}

/// Two operands and a result of 64 bits.
#[inline(always)]
pub(super) fn wide_two(wave: &mut Wave, i: &Instruction, f: impl Fn(u64, u64) -> u64) -> Flow {
    let (x, y) = (wave.wide_source(&i.operands[1]), wave.wide_source(&i.operands[2]));
    let mut out = [0; 64];
    for lane in 0..64 {
        out[lane] = f(x[lane], y[lane]);
    }
    wave.put_wide(i.operands[0].vector(), &out);
    Flow::Next
}

/// Three operands and a result of 64 bits; the third is in the place of that number.
#[inline(always)]
pub(super) fn wide_three(
    wave: &mut Wave,
    i: &Instruction,
    third: usize,
    f: impl Fn(u64, u64, u64) -> u64,
) -> Flow {
    let (x, y) = (wave.wide_source(&i.operands[1]), wave.wide_source(&i.operands[2]));
    let z = wave.wide_source(&i.operands[third]);
    let mut out = [0; 64];
    for lane in 0..64 {
        out[lane] = f(x[lane], y[lane], z[lane]);
    }
    wave.put_wide(i.operands[0].vector(), &out);
    Flow::Next
}

/// A number of 32 bits, then one of 64 bits, and a result of 64: shifts.
#[inline(always)]
pub(super) fn wide_shift(wave: &mut Wave, i: &Instruction, f: impl Fn(u32, u64) -> u64) -> Flow {
    if !matches!(i.operands[1].value, Value::Vector(_)) {
        let x = wave.read(&i.operands[1]);
        let out = wave.wide_source(&i.operands[2]).map(|y| f(x, y));
        wave.put_wide(i.operands[0].vector(), &out);
        return Flow::Next;
    }
    let (x, y) = (wave.source(i, 1), wave.wide_source(&i.operands[2]));
    let (x, mut out) = (&wave.vectors[x], [0; 64]);
    for lane in 0..64 {
        out[lane] = f(x[lane], y[lane]);
    }
    wave.put_wide(i.operands[0].vector(), &out);
    Flow::Next
}

/// Two operands from the place `first` on, and a bit for each lane.
#[inline(always)]
pub(super) fn test(wave: &mut Wave, i: &Instruction, first: usize, f: impl Fn(u32, u32) -> bool) -> u64 {
    let (x, y) = (wave.source(i, first), wave.source(i, first + 1));
    test_registers(wave, x, y, f)
}

/// Two vector registers, and a bit for each lane.
#[inline(always)]
pub(super) fn test_registers(wave: &Wave, x: usize, y: usize, f: impl Fn(u32, u32) -> bool) -> u64 {
    let (x, y, mut out) = (&wave.vectors[x], &wave.vectors[y], [0; 64]);
    for lane in 0..64 {
        out[lane] = u8::from(f(x[lane], y[lane]));
    }
    bits(&out)
}

/// Two operands of 64 bits from the place `first` on, and a bit for each lane.
#[inline(always)]
pub(super) fn wide_test(wave: &Wave, i: &Instruction, first: usize, f: impl Fn(u64, u64) -> bool) -> u64 {
    let (x, y) = (wave.wide_source(&i.operands[first]), wave.wide_source(&i.operands[first + 1]));
    let mut out = [0; 64];
    for lane in 0..64 {
        out[lane] = u8::from(f(x[lane], y[lane]));
    }
    bits(&out)
}
