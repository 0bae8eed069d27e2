//! Vector arithmetic on numbers of 32 bits.

use super::{
    instruction::{Flow, Form, Instruction, Kind, honours},
    mode::Arithmetic,
    soft::{self, F32},
    vector_wide::packed_half,
    wave::{Lanes, Wave},
};

const SIGN: u32 = 1 << 31;
const QUIET: u32 = 1 << 22;
const NAN: u32 = 0x7fc0_0000;
pub(super) const ONE: &[Kind] = &[Kind::Out(1), Kind::F32];
const TWO: &[Kind] = &[Kind::Out(1), Kind::F32, Kind::F32];
pub(super) const THREE: &[Kind] = &[Kind::Out(1), Kind::F32, Kind::F32, Kind::F32];
/// The destination is the third operand.
const ACCUMULATE: &[Kind] = &[Kind::Both(1), Kind::F32, Kind::F32];

fn is_nan(bits: u32) -> bool {
    bits & !SIGN > 0x7f80_0000
}

/// A denormal number as zero.
pub(super) fn flushed(bits: u32) -> u32 {
    if bits & 0x7f80_0000 == 0 { bits & SIGN } else { bits }
}

/// Limits results to 0..1 and multiplies them, where the instruction says so.
#[inline(always)]
pub(super) fn finish(i: &Instruction, out: &mut Lanes) {
    if i.modifiers.clamp || i.modifiers.scale != 0 {
        modify(i, out);
    }
}

#[cold]
fn modify(i: &Instruction, out: &mut Lanes) {
    let factor = [1.0, 2.0, 4.0, 0.5][usize::from(i.modifiers.scale & 3)];
    for lane in out {
        let value = f32::from_bits(*lane) * factor;
        let limited = if value.is_nan() { 0.0 } else { value.clamp(0.0, 1.0) };
        *lane = if i.modifiers.clamp { limited } else { value }.to_bits();
    }
}

/// Puts the instruction set's NaNs in the place of the host's: the first operand's, made quiet, or a positive one.
#[inline(always)]
fn settle_nans(out: &mut Lanes, operands: &[&Lanes]) {
    if out.iter().fold(false, |any, lane| any | is_nan(*lane)) {
        replace_nans(out, operands);
    }
}

#[cold]
fn replace_nans(out: &mut Lanes, operands: &[&Lanes]) {
    for (lane, value) in out.iter_mut().enumerate() {
        if is_nan(*value) {
            let first = operands.iter().map(|lanes| lanes[lane]).find(|bits| is_nan(*bits));
            *value = first.map_or(NAN, |bits| bits | QUIET);
        }
    }
}

/// One operand, computed as the host does, but for denormal numbers that count as zero.
#[inline(always)]
fn one(wave: &mut Wave, i: &Instruction, f: impl Fn(f32) -> f32) -> Flow {
    let x = wave.signed_source(i, 1, SIGN);
    let Arithmetic { flush_in, flush_out, .. } = wave.mode.single;
    let (x, mut out) = (&wave.vectors[x], [0; 64]);
    for lane in 0..64 {
        let value = if flush_in { flushed(x[lane]) } else { x[lane] };
        let result = f(f32::from_bits(value)).to_bits();
        out[lane] = if flush_out { flushed(result) } else { result };
    }
    settle_nans(&mut out, &[x]);
    finish(i, &mut out);
    wave.put(i.operands[0].vector(), &out);
    Flow::Next
}

/// How an instruction computes where the mode is not the host's.
type Soft2 = fn(u64, u64, Arithmetic) -> u64;
type Soft3 = fn(u64, u64, u64, Arithmetic) -> u64;

#[inline(always)]
fn two(wave: &mut Wave, i: &Instruction, f: impl Fn(f32, f32) -> f32, soft: Soft2) -> Flow {
    let (x, y) = (wave.signed_source(i, 1, SIGN), wave.signed_source(i, 2, SIGN));
    let (x, y, mut out) = (&wave.vectors[x], &wave.vectors[y], [0; 64]);
    if wave.mode.single.is_ieee() {
        for lane in 0..64 {
            out[lane] = f(f32::from_bits(x[lane]), f32::from_bits(y[lane])).to_bits();
        }
        settle_nans(&mut out, &[x, y]);
    } else {
        for lane in 0..64 {
            out[lane] = soft(x[lane].into(), y[lane].into(), wave.mode.single) as u32;
        }
    }
    finish(i, &mut out);
    wave.put(i.operands[0].vector(), &out);
    Flow::Next
}

/// `x * y + z`, rounded once.
pub(super) fn fused(x: &Lanes, y: &Lanes, z: &Lanes, arithmetic: Arithmetic) -> Lanes {
    let mut out = [0; 64];
    if !arithmetic.is_ieee() {
        for lane in 0..64 {
            let (x, y, z) = (x[lane].into(), y[lane].into(), z[lane].into());
            out[lane] = soft::fused(F32, x, y, z, arithmetic) as u32;
        }
        return out;
    }
    #[inline(always)]
    fn all(x: &Lanes, y: &Lanes, z: &Lanes, out: &mut Lanes) {
        for lane in 0..64 {
            let [x, y, z] = [x[lane], y[lane], z[lane]].map(f32::from_bits);
            out[lane] = x.mul_add(y, z).to_bits();
        }
    }
    #[target_feature(enable = "avx2,fma")]
    fn all_by_hardware(x: &Lanes, y: &Lanes, z: &Lanes, out: &mut Lanes) {
        all(x, y, z, out);
    }
    if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
        // SAFETY: the processor has the features that the function needs.
        unsafe { all_by_hardware(x, y, z, &mut out) };
    } else {
        all(x, y, z, &mut out);
    }
    settle_nans(&mut out, &[x, y, z]);
    out
}

fn fuse(wave: &mut Wave, i: &Instruction) -> Flow {
    let [x, y, z] = [1, 2, 3].map(|index| wave.signed_source(i, index, SIGN));
    let mut out = fused(&wave.vectors[x], &wave.vectors[y], &wave.vectors[z], wave.mode.single);
    finish(i, &mut out);
    wave.put(i.operands[0].vector(), &out);
    Flow::Next
}

fn fuse_into(wave: &mut Wave, i: &Instruction) -> Flow {
    let [x, y] = [1, 2].map(|index| wave.signed_source(i, index, SIGN));
    let to = i.operands[0].vector();
    let mut out = fused(&wave.vectors[x], &wave.vectors[y], &wave.vectors[to], wave.mode.single);
    finish(i, &mut out);
    wave.put(to, &out);
    Flow::Next
}

/// Multiplies, rounds, adds and rounds. These instructions know no denormal numbers in any mode.
fn multiply_add(x: u32, y: u32, z: u32, arithmetic: Arithmetic) -> u32 {
    let arithmetic = Arithmetic { flush_in: true, flush_out: true, ..arithmetic };
    let product = soft::multiply(F32, x.into(), y.into(), arithmetic);
    soft::add(F32, product, z.into(), arithmetic) as u32
}

/// As [`multiply_add`] where numbers are rounded as the host does.
fn multiply_add_lanes(x: &Lanes, y: &Lanes, z: &Lanes, arithmetic: Arithmetic) -> Lanes {
    let mut out = [0; 64];
    let nearest = arithmetic.rounding == Arithmetic::IEEE.rounding;
    for lane in 0..64 {
        let [a, b, c] = [x[lane], y[lane], z[lane]].map(flushed);
        let product = flushed((f32::from_bits(a) * f32::from_bits(b)).to_bits());
        out[lane] = flushed((f32::from_bits(product) + f32::from_bits(c)).to_bits());
        if !nearest {
            out[lane] = multiply_add(x[lane], y[lane], z[lane], arithmetic);
        }
    }
    settle_nans(&mut out, &[x, y, z]);
    out
}

fn multiply_add_three(wave: &mut Wave, i: &Instruction, third: usize) -> Flow {
    let [x, y] = [1, 2].map(|index| wave.signed_source(i, index, SIGN));
    let z = if third == 0 { i.operands[0].vector() } else { wave.signed_source(i, third, SIGN) };
    let (x, y, z) = (&wave.vectors[x], &wave.vectors[y], &wave.vectors[z]);
    let mut out = multiply_add_lanes(x, y, z, wave.mode.single);
    finish(i, &mut out);
    wave.put(i.operands[0].vector(), &out);
    Flow::Next
}

/// The smaller number, or the one that is a number.
pub(super) fn smaller(x: f32, y: f32) -> f32 {
    if x.is_nan() || y < x || y == x && y.is_sign_negative() { y } else { x }
}

/// The larger number, or the one that is a number.
pub(super) fn larger(x: f32, y: f32) -> f32 {
    if x.is_nan() || y > x || y == x && y.is_sign_positive() { y } else { x }
}

/// Picks one of two numbers; only denormal ones depend on the mode.
fn pick(x: u64, y: u64, arithmetic: Arithmetic, f: fn(f32, f32) -> f32) -> u64 {
    let of = |bits: u64| if arithmetic.flush_in { flushed(bits as u32) } else { bits as u32 };
    f(f32::from_bits(of(x)), f32::from_bits(of(y))).to_bits().into()
}

/// Two operations on pairs of numbers at once.
fn packed(wave: &mut Wave, i: &Instruction, f: fn(&[Lanes; 3], Arithmetic) -> Lanes) -> Flow {
    let half = |wave: &Wave, upper: bool| {
        let m = &i.modifiers;
        let (select, flip) = if upper { (m.op_sel_hi, m.neg_hi) } else { (m.op_sel, m.neg_lo) };
        let operand = |index: usize| {
            let lanes = packed_half(wave, i.operands[index + 1].value, select[index]);
            if flip[index] { lanes.map(|lane| lane ^ SIGN) } else { lanes }
        };
        f(&[operand(0), operand(1), operand(2)], wave.mode.single)
    };
    let (low, high) = (half(wave, false), half(wave, true));
    let register = i.operands[0].vector();
    wave.put(register, &low);
    wave.put(register + 1, &high);
    Flow::Next
}

/// One operation of two operands on all lanes.
fn lanes_of(x: &Lanes, y: &Lanes, arithmetic: Arithmetic, soft: Soft3, z: u64) -> Lanes {
    let mut out = [0; 64];
    for lane in 0..64 {
        out[lane] = soft(x[lane].into(), y[lane].into(), z, arithmetic) as u32;
    }
    out
}

macro_rules! one {
    ($f:expr) => {
        Form::new(ONE, |wave, i, _| one(wave, i, $f)).honouring(honours::FLOAT)
    };
}
macro_rules! two {
    ($f:expr, $soft:expr) => {
        Form::new(TWO, |wave, i, _| two(wave, i, $f, $soft)).honouring(honours::FLOAT)
    };
}

const NEGATE: u64 = SIGN as u64;

/// The instruction of that name.
pub(super) fn find(name: &str) -> Option<Form> {
    let packed_kinds: &[Kind] = &[Kind::Out(2), Kind::PackedF32, Kind::PackedF32];
    let packed_three: &[Kind] = &[Kind::Out(2), Kind::PackedF32, Kind::PackedF32, Kind::PackedF32];
    Some(match name {
        "v_add_f32" => two!(|x, y| x + y, |x, y, a| soft::add(F32, x, y, a)),
        "v_sub_f32" => two!(|x, y| x - y, |x, y, a| soft::add(F32, x, y ^ NEGATE, a)),
        "v_subrev_f32" => two!(|x, y| y - x, |x, y, a| soft::add(F32, y, x ^ NEGATE, a)),
        "v_mul_f32" => two!(|x, y| x * y, |x, y, a| soft::multiply(F32, x, y, a)),
        "v_min_f32" => two!(smaller, |x, y, a| pick(x, y, a, smaller)),
        "v_max_f32" => two!(larger, |x, y, a| pick(x, y, a, larger)),
        "v_fma_f32" => Form::new(THREE, |wave, i, _| fuse(wave, i)).honouring(honours::FLOAT),
        "v_fmac_f32" => Form::new(ACCUMULATE, |wave, i, _| fuse_into(wave, i)).honouring(honours::FLOAT),
        "v_fmaak_f32" | "v_fmamk_f32" => Form::new(THREE, |wave, i, _| fuse(wave, i)),
        "v_mad_f32" | "v_madak_f32" | "v_madmk_f32" => {
            Form::new(THREE, |wave, i, _| multiply_add_three(wave, i, 3)).honouring(honours::FLOAT)
        }
        "v_mac_f32" => {
            Form::new(ACCUMULATE, |wave, i, _| multiply_add_three(wave, i, 0)).honouring(honours::FLOAT)
        }
        "v_med3_f32" => Form::new(THREE, |wave, i, _| {
            let [x, y, z] = [1, 2, 3].map(|index| wave.signed_source(i, index, SIGN));
            let mut out = [0; 64];
            for (lane, out) in out.iter_mut().enumerate() {
                let [x, y, z] = [x, y, z].map(|register| f32::from_bits(wave.vectors[register][lane]));
                *out = larger(smaller(x, y), smaller(larger(x, y), z)).to_bits();
            }
            finish(i, &mut out);
            wave.put(i.operands[0].vector(), &out);
            Flow::Next
        })
        .honouring(honours::FLOAT),
        "v_rcp_f32" | "v_rcp_iflag_f32" => one!(|x| 1.0 / x),
        "v_sqrt_f32" => one!(f32::sqrt),
        "v_rsq_f32" => one!(|x| 1.0 / x.sqrt()),
        "v_exp_f32" => one!(f32::exp2),
        "v_log_f32" => one!(f32::log2),
        "v_sin_f32" => one!(|x| (f64::from(x) * std::f64::consts::TAU).sin() as f32),
        "v_cos_f32" => one!(|x| (f64::from(x) * std::f64::consts::TAU).cos() as f32),
        "v_trunc_f32" => one!(f32::trunc),
        "v_ceil_f32" => one!(f32::ceil),
        "v_floor_f32" => one!(f32::floor),
        "v_rndne_f32" => one!(f32::round_ties_even),
        "v_fract_f32" => one!(|x| (x - x.floor()).min(1.0 - f32::EPSILON / 2.0)),
        "v_pk_add_f32" => Form::new(packed_kinds, |wave, i, _| {
            packed(wave, i, |[x, y, _], a| lanes_of(x, y, a, |x, y, _, a| soft::add(F32, x, y, a), 0))
        })
        .honouring(honours::HALVES),
        "v_pk_mul_f32" => Form::new(packed_kinds, |wave, i, _| {
            packed(wave, i, |[x, y, _], a| lanes_of(x, y, a, |x, y, _, a| soft::multiply(F32, x, y, a), 0))
        })
        .honouring(honours::HALVES),
        "v_pk_fma_f32" => {
            Form::new(packed_three, |wave, i, _| packed(wave, i, |[x, y, z], a| fused(x, y, z, a)))
                .honouring(honours::HALVES)
        }
        _ => return None,
    })
}
