//! Vector instructions on integers of 32 bits.

use super::{
    instruction::{Flow, Form, Instruction, Kind, Value},
    lanes::{one, shift, three, two, two_of_lane},
    memory::lanes,
    wave::Wave,
};

const ONE: &[Kind] = &[Kind::Out(1), Kind::B32];
const TWO: &[Kind] = &[Kind::Out(1), Kind::B32, Kind::B32];
const THREE: &[Kind] = &[Kind::Out(1), Kind::B32, Kind::B32, Kind::B32];

macro_rules! one {
    ($f:expr) => {
        Form::new(ONE, |wave, i, _| one(wave, i, $f))
    };
}
macro_rules! two {
    ($f:expr) => {
        Form::new(TWO, |wave, i, _| two(wave, i, $f))
    };
}
macro_rules! shift {
    ($f:expr) => {
        Form::new(TWO, |wave, i, _| shift(wave, i, $f))
    };
}
macro_rules! three {
    ($f:expr) => {
        Form::new(THREE, |wave, i, _| three(wave, i, $f))
    };
}

/// The lower 24 bits.
fn u24(x: u32) -> u32 {
    x & 0xff_ffff
}

/// The lower 24 bits as a signed number.
fn i24(x: u32) -> i32 {
    (x << 8) as i32 >> 8
}

/// The lower `count` bits set.
fn ones(count: u32) -> u32 {
    (1u32 << (count & 31)) - 1
}

fn field(x: u32, start: u32, count: u32) -> u32 {
    x >> (start & 31) & ones(count)
}

fn signed_field(x: u32, start: u32, count: u32) -> u32 {
    match count & 31 {
        0 => 0,
        count => ((field(x, start, count) << (32 - count)) as i32 >> (32 - count)) as u32,
    }
}

fn join(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

/// Picks four bytes out of eight, or constants.
fn permute(x: u32, y: u32, choice: u32) -> u32 {
    let bytes = join(x, y).to_le_bytes();
    let sign = |byte: u8| if byte & 0x80 == 0 { 0 } else { 0xff };
    let pick = |choice: u8| match choice {
        0..=7 => bytes[usize::from(choice)],
        8..=11 => sign(bytes[usize::from(choice - 8) * 2 + 1]),
        12 => 0,
        _ => 0xff,
    };
    u32::from_le_bytes(choice.to_le_bytes().map(pick))
}

pub(super) fn middle<T: Ord>(x: T, y: T, z: T) -> T {
    let (low, high) = if x < y { (x, y) } else { (y, x) };
    if z < low { low } else { z.min(high) }
}

/// The instruction of that name.
pub(super) fn find(name: &str) -> Option<Form> {
    if let Some(form) = find_lanes(name) {
        return Some(form);
    }
    Some(match name {
        "v_mov_b32" | "v_accvgpr_read_b32" | "v_accvgpr_write_b32" | "v_accvgpr_mov_b32" => one!(|x| x),
        "v_not_b32" => one!(|x| !x),
        "v_bfrev_b32" => one!(|x| x.reverse_bits()),
        "v_ffbh_u32" => one!(|x| if x == 0 { u32::MAX } else { x.leading_zeros() }),
        "v_ffbl_b32" => one!(|x| if x == 0 { u32::MAX } else { x.trailing_zeros() }),
        "v_ffbh_i32" => one!(|x| {
            let same = (x ^ ((x as i32) >> 31) as u32).leading_zeros();
            if same == 32 { u32::MAX } else { same }
        }),
        "v_add_u32" | "v_add_nc_u32" | "v_add_i32" | "v_add_nc_i32" => two!(|x, y| x.wrapping_add(y)),
        "v_sub_u32" | "v_sub_nc_u32" | "v_sub_i32" | "v_sub_nc_i32" => two!(|x, y| x.wrapping_sub(y)),
        "v_subrev_u32" | "v_subrev_nc_u32" => two!(|x, y| y.wrapping_sub(x)),
        "v_mul_lo_u32" => two!(|x, y| x.wrapping_mul(y)),
        "v_mul_hi_u32" => two!(|x, y| ((u64::from(x) * u64::from(y)) >> 32) as u32),
        "v_mul_hi_i32" => two!(|x, y| ((i64::from(x as i32) * i64::from(y as i32)) >> 32) as u32),
        "v_mul_u32_u24" => two!(|x, y| u24(x).wrapping_mul(u24(y))),
        "v_mul_i32_i24" => two!(|x, y| i24(x).wrapping_mul(i24(y)) as u32),
        "v_mul_hi_u32_u24" => two!(|x, y| ((u64::from(u24(x)) * u64::from(u24(y))) >> 32) as u32),
        "v_mul_hi_i32_i24" => two!(|x, y| ((i64::from(i24(x)) * i64::from(i24(y))) >> 32) as u32),
        "v_and_b32" => two!(|x, y| x & y),
        "v_or_b32" => two!(|x, y| x | y),
        "v_xor_b32" => two!(|x, y| x ^ y),
        "v_xnor_b32" => two!(|x, y| !(x ^ y)),
        "v_lshlrev_b32" => shift!(|x, y| y << (x & 31)),
        "v_lshrrev_b32" => shift!(|x, y| y >> (x & 31)),
        "v_ashrrev_i32" => shift!(|x, y| (y as i32 >> (x & 31)) as u32),
        "v_min_u32" => two!(|x, y| x.min(y)),
        "v_max_u32" => two!(|x, y| x.max(y)),
        "v_min_i32" => two!(|x, y| (x as i32).min(y as i32) as u32),
        "v_max_i32" => two!(|x, y| (x as i32).max(y as i32) as u32),
        "v_bcnt_u32_b32" => two!(|x, y| x.count_ones().wrapping_add(y)),
        "v_bfm_b32" => two!(|x, y| ones(x) << (y & 31)),
        "v_add3_u32" => three!(|x, y, z| x.wrapping_add(y).wrapping_add(z)),
        "v_lshl_add_u32" => three!(|x, y, z| (x << (y & 31)).wrapping_add(z)),
        "v_add_lshl_u32" => three!(|x, y, z| x.wrapping_add(y) << (z & 31)),
        "v_lshl_or_b32" => three!(|x, y, z| x << (y & 31) | z),
        "v_and_or_b32" => three!(|x, y, z| x & y | z),
        "v_or3_b32" => three!(|x, y, z| x | y | z),
        "v_xor3_b32" => three!(|x, y, z| x ^ y ^ z),
        "v_xad_u32" => three!(|x, y, z| (x ^ y).wrapping_add(z)),
        "v_bfe_u32" => three!(field),
        "v_bfe_i32" => three!(signed_field),
        "v_bfi_b32" => three!(|x, y, z| x & y | !x & z),
        "v_alignbit_b32" => three!(|x, y, z| (join(x, y) >> (z & 31)) as u32),
        "v_alignbyte_b32" => three!(|x, y, z| (join(x, y) >> (8 * (z & 3))) as u32),
        "v_perm_b32" => three!(permute),
        "v_mad_u32_u24" => three!(|x, y, z| u24(x).wrapping_mul(u24(y)).wrapping_add(z)),
        "v_mad_i32_i24" => three!(|x, y, z| (i24(x).wrapping_mul(i24(y)) as u32).wrapping_add(z)),
        "v_min3_u32" => three!(|x, y, z| x.min(y).min(z)),
        "v_max3_u32" => three!(|x, y, z| x.max(y).max(z)),
        "v_min3_i32" => three!(|x, y, z| (x as i32).min(y as i32).min(z as i32) as u32),
        "v_max3_i32" => three!(|x, y, z| (x as i32).max(y as i32).max(z as i32) as u32),
        "v_med3_u32" => three!(middle),
        "v_med3_i32" => three!(|x, y, z| middle(x as i32, y as i32, z as i32) as u32),
        "v_sad_u32" => three!(|x, y, z| x.abs_diff(y).wrapping_add(z)),
        _ => return None,
    })
}

/// The instruction of that name whose result stays in range instead of wrapping.
pub(super) fn find_clamped(name: &str) -> Option<Form> {
    Some(match name {
        "v_add_u32" | "v_add_nc_u32" => two!(|x, y| x.saturating_add(y)),
        "v_sub_u32" | "v_sub_nc_u32" => two!(|x, y| x.saturating_sub(y)),
        "v_subrev_u32" | "v_subrev_nc_u32" => two!(|x, y| y.saturating_sub(x)),
        "v_add_i32" | "v_add_nc_i32" => two!(|x, y| (x as i32).saturating_add(y as i32) as u32),
        "v_sub_i32" | "v_sub_nc_i32" => two!(|x, y| (x as i32).saturating_sub(y as i32) as u32),
        _ => return None,
    })
}

/// Instructions that look at more than their own lane.
fn find_lanes(name: &str) -> Option<Form> {
    Some(match name {
        "v_nop" => Form::new(&[], |_, _, _| Flow::Next),
        "v_cndmask_b32" => Form::new(&[Kind::Out(1), Kind::F32, Kind::F32, Kind::MaskIn], |wave, i, _| {
            let mask = wave.read_mask(&i.operands[3]);
            let (x, y) = (wave.signed_source(i, 1, 1 << 31), wave.signed_source(i, 2, 1 << 31));
            let (x, y, mut out) = (&wave.vectors[x], &wave.vectors[y], [0; 64]);
            for lane in 0..64 {
                out[lane] = if mask >> lane & 1 == 0 { x[lane] } else { y[lane] };
            }
            wave.put(i.operands[0].vector(), &out);
            Flow::Next
        })
        .honouring(super::instruction::honours::SIGNS),
        "v_readfirstlane_b32" => Form::new(ONE, |wave, i, _| {
            let value = match wave.exec() {
                // With no lane at all it is the first one's.
                0 => match i.operands[1].value {
                    Value::Vector(register) => wave.vectors[usize::from(register)][0],
                    _ => wave.read(&i.operands[1]),
                },
                _ => wave.read(&i.operands[1]),
            };
            wave.write(&i.operands[0], value);
            Flow::Next
        }),
        "v_readlane_b32" => Form::new(TWO, |wave, i, _| {
            let lane = (wave.read(&i.operands[2]) & (wave.size - 1)) as usize;
            let value = wave.vectors[i.operands[1].vector()][lane];
            wave.write(&i.operands[0], value);
            Flow::Next
        }),
        "v_writelane_b32" => Form::new(&[Kind::Both(1), Kind::B32, Kind::B32], |wave, i, _| {
            let lane = (wave.read(&i.operands[2]) & (wave.size - 1)) as usize;
            wave.vectors[i.operands[0].vector()][lane] = wave.read(&i.operands[1]);
            Flow::Next
        }),
        "v_mbcnt_lo_u32_b32" => Form::new(TWO, |wave, i, _| {
            two_of_lane(wave, i, |lane, x, y| {
                let below = if lane >= 32 { u32::MAX } else { ones(lane as u32) };
                (x & below).count_ones().wrapping_add(y)
            })
        }),
        "v_mbcnt_hi_u32_b32" => Form::new(TWO, |wave, i, _| {
            two_of_lane(wave, i, |lane, x, y| {
                let below = if lane < 32 { 0 } else { ones(lane as u32 - 32) };
                (x & below).count_ones().wrapping_add(y)
            })
        }),
        "ds_bpermute_b32" => Form::new(TWO, |wave, i, _| permute_lanes(wave, i, true))
            .honouring(super::instruction::honours::MEMORY),
        "ds_permute_b32" => Form::new(TWO, |wave, i, _| permute_lanes(wave, i, false))
            .honouring(super::instruction::honours::MEMORY),
        _ => return None,
    })
}

/// Reads from the lane that each lane names, or sends there. Lanes that do not take part give zero.
fn permute_lanes(wave: &mut Wave, i: &Instruction, reads: bool) -> Flow {
    let (choice, data) = (wave.source(i, 1), wave.source(i, 2));
    let (choice, data) = (&wave.vectors[choice], &wave.vectors[data]);
    let (exec, offset) = (wave.exec(), i.modifiers.offset as u32);
    let other = |lane: usize| (choice[lane].wrapping_add(offset) >> 2 & (wave.size - 1)) as usize;
    let mut out = [0; 64];
    for lane in lanes(exec) {
        match reads {
            true if exec >> other(lane) & 1 == 1 => out[lane] = data[other(lane)],
            true => {}
            false => out[other(lane)] = data[lane],
        }
    }
    wave.put(i.operands[0].vector(), &out);
    Flow::Next
}
