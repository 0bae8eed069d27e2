//! The steps of AMD's division: both operands are scaled so that no step is denormal, the quotient is refined and
//! scaled back, and special values are put in place. As AMD's instruction set documents describe them.

use super::{
    double, float,
    instruction::{Flow, Form, Instruction, Kind, honours},
    mode::Arithmetic,
    soft::{self, F16, F32, F64, Format},
    text::scalar,
    wave::{Wave, bits},
};

/// The differences between the widths of numbers.
struct Width {
    format: Format,
    /// Bits of the fraction.
    fraction: u32,
    /// The exponent of infinities and NaN.
    full: i32,
    /// How far apart exponents are when the quotient comes near the largest number.
    far: i32,
    /// The power of two by which operands are scaled.
    power: i32,
    /// A difference of exponents with which the quotient has become zero.
    vanished: i32,
}

/// Half precision is divided in single precision, so nothing is scaled, and only special values are put in place.
const HALF: Width = Width { format: F16, fraction: 10, full: 31, far: 31, power: 0, vanished: -31 };
const SINGLE: Width = Width { format: F32, fraction: 23, full: 255, far: 96, power: 64, vanished: -150 };
const DOUBLE: Width = Width { format: F64, fraction: 52, full: 2047, far: 768, power: 128, vanished: -1075 };

impl Width {
    fn sign(&self) -> u64 {
        (self.full as u64 + 1) << self.fraction
    }

    fn infinity(&self) -> u64 {
        (self.full as u64) << self.fraction
    }

    fn exponent(&self, x: u64) -> i32 {
        (x >> self.fraction) as i32 & self.full
    }

    fn is_zero(&self, x: u64) -> bool {
        x & !self.sign() == 0
    }

    fn is_infinite(&self, x: u64) -> bool {
        x & !self.sign() == self.infinity()
    }

    fn is_nan(&self, x: u64) -> bool {
        x & !self.sign() > self.infinity()
    }

    fn is_denormal(&self, x: u64) -> bool {
        self.exponent(x) == 0 && !self.is_zero(x)
    }

    /// The host's quotient, by which the scale is chosen.
    fn quotient(&self, x: u64, y: u64) -> u64 {
        if self.fraction == 23 {
            (f32::from_bits(x as u32) / f32::from_bits(y as u32)).to_bits().into()
        } else {
            (f64::from_bits(x) / f64::from_bits(y)).to_bits()
        }
    }

    fn one(&self) -> u64 {
        (self.full as u64 / 2) << self.fraction
    }

    fn scaled(&self, x: u64, power: i32) -> u64 {
        soft::scale(self.format, x, power, Arithmetic::IEEE)
    }

    /// The operand `x`, which is the denominator or the numerator, scaled; and whether the quotient must be scaled back.
    fn scale(&self, x: u64, denominator: u64, numerator: u64) -> (u64, bool) {
        let is_denominator = x == denominator;
        let reciprocal_is_denormal = self.is_denormal(self.quotient(self.one(), denominator));
        let quotient_is_denormal = self.is_denormal(self.quotient(numerator, denominator));
        if self.is_zero(denominator) || self.is_zero(numerator) {
            (self.format.nan(), false)
        } else if self.exponent(numerator) - self.exponent(denominator) >= self.far {
            // The quotient comes near the largest number.
            (if is_denominator { self.scaled(x, self.power) } else { x }, true)
        } else if self.is_denormal(denominator) {
            (self.scaled(x, self.power), false)
        } else if reciprocal_is_denormal && quotient_is_denormal {
            // AMD's documents scale up here, which would make the denominator infinite.
            (if is_denominator { self.scaled(x, -self.power) } else { x }, true)
        } else if reciprocal_is_denormal {
            (self.scaled(x, -self.power), false)
        } else if quotient_is_denormal {
            (if x == numerator { self.scaled(x, self.power) } else { x }, true)
        } else if self.exponent(numerator) <= self.fraction as i32 {
            // The numerator is tiny.
            (self.scaled(x, self.power), false)
        } else {
            (x, false)
        }
    }

    /// By how much the refined quotient `x` is scaled back: up if it was made small, and down if it was made large.
    fn back(&self, x: u64) -> i32 {
        if self.exponent(x) > self.full / 2 { self.power } else { -self.power }
    }

    /// The quotient, or the special value where there is none.
    fn fix(&self, quotient: u64, denominator: u64, numerator: u64) -> u64 {
        let sign = (denominator ^ numerator) & self.sign();
        let quiet = |nan: u64| nan | self.format.nan();
        if self.is_nan(numerator) {
            quiet(numerator)
        } else if self.is_nan(denominator) {
            quiet(denominator)
        } else if self.is_zero(denominator) && self.is_zero(numerator)
            || self.is_infinite(denominator) && self.is_infinite(numerator)
        {
            self.format.nan() | self.sign()
        } else if self.is_zero(denominator) || self.is_infinite(numerator) {
            sign | self.infinity()
        } else if self.is_infinite(denominator)
            || self.is_zero(numerator)
            || self.exponent(numerator) - self.exponent(denominator) < self.vanished
        {
            sign
        } else if self.is_nan(quotient) {
            // A step has become infinite on the way to a quotient that is too large.
            sign | self.infinity()
        } else {
            sign | quotient & !self.sign()
        }
    }
}

fn scale_single(wave: &mut Wave, i: &Instruction) -> Flow {
    let [x, y, z] = [2, 3, 4].map(|index| wave.signed_source(i, index, 1 << 31));
    let (mut out, mut marks) = ([0; 64], [0; 64]);
    for lane in 0..64 {
        let [x, y, z] = [x, y, z].map(|register| u64::from(wave.vectors[register][lane]));
        let (scaled, mark) = SINGLE.scale(x, y, z);
        (out[lane], marks[lane]) = (scaled as u32, u8::from(mark));
    }
    let mask = bits(&marks) & wave.exec();
    wave.put(i.operands[0].vector(), &out);
    wave.write_mask(&i.operands[1], mask);
    Flow::Next
}

fn scale_double(wave: &mut Wave, i: &Instruction) -> Flow {
    let [x, y, z] = [2, 3, 4].map(|index| wave.wide_source(&i.operands[index]));
    let (mut out, mut marks) = ([0; 64], [0; 64]);
    for lane in 0..64 {
        let (scaled, mark) = DOUBLE.scale(x[lane], y[lane], z[lane]);
        (out[lane], marks[lane]) = (scaled, u8::from(mark));
    }
    let mask = bits(&marks) & wave.exec();
    wave.put_wide(i.operands[0].vector(), &out);
    wave.write_mask(&i.operands[1], mask);
    Flow::Next
}

/// The last step of the refinement, exact before it is scaled back and rounded.
fn refined(width: &Width, [x, y, z]: [u64; 3], scale_back: bool, arithmetic: Arithmetic) -> u64 {
    let plain = |arithmetic| {
        if width.fraction == 23 {
            soft::fused(F32, x, y, z, arithmetic)
        } else {
            double::fused(x, y, z, arithmetic)
        }
    };
    if !scale_back {
        return plain(arithmetic);
    }
    soft::fused_and_scaled(width.format, [x, y, z], width.back(z), arithmetic)
}

fn refine_single(wave: &mut Wave, i: &Instruction) -> Flow {
    let [x, y, z] = [1, 2, 3].map(|index| wave.signed_source(i, index, 1 << 31));
    let marks = wave.mask_register(scalar::VCC);
    let mut out = [0; 64];
    for (lane, out) in out.iter_mut().enumerate() {
        let operands = [x, y, z].map(|register| u64::from(wave.vectors[register][lane]));
        *out = refined(&SINGLE, operands, marks >> lane & 1 == 1, wave.mode.single) as u32;
    }
    float::finish(i, &mut out);
    wave.put(i.operands[0].vector(), &out);
    Flow::Next
}

fn refine_double(wave: &mut Wave, i: &Instruction) -> Flow {
    let [x, y, z] = [1, 2, 3].map(|index| wave.wide_source(&i.operands[index]));
    let marks = wave.mask_register(scalar::VCC);
    let mut out = [0; 64];
    for lane in 0..64 {
        let operands = [x[lane], y[lane], z[lane]];
        out[lane] = refined(&DOUBLE, operands, marks >> lane & 1 == 1, wave.mode.other);
    }
    wave.put_wide(i.operands[0].vector(), &out);
    Flow::Next
}

fn fix_single(wave: &mut Wave, i: &Instruction) -> Flow {
    let [x, y, z] = [1, 2, 3].map(|index| wave.signed_source(i, index, 1 << 31));
    let mut out = [0; 64];
    for (lane, out) in out.iter_mut().enumerate() {
        let [x, y, z] = [x, y, z].map(|register| u64::from(wave.vectors[register][lane]));
        *out = SINGLE.fix(x, y, z) as u32;
    }
    float::finish(i, &mut out);
    wave.put(i.operands[0].vector(), &out);
    Flow::Next
}

fn fix_double(wave: &mut Wave, i: &Instruction) -> Flow {
    super::lanes::wide_three(wave, i, 3, |x, y, z| DOUBLE.fix(x, y, z))
}

/// The quotient in half precision, or the special value where there is none.
pub(super) fn fix_half([quotient, denominator, numerator]: [u64; 3]) -> u64 {
    HALF.fix(quotient, denominator, numerator)
}

/// The instruction of that name.
pub(super) fn find(name: &str) -> Option<Form> {
    let scale_single_kinds: &[Kind] = &[Kind::Out(1), Kind::MaskOut, Kind::F32, Kind::F32, Kind::F32];
    let scale_double_kinds: &[Kind] = &[Kind::Out(2), Kind::MaskOut, Kind::F64, Kind::F64, Kind::F64];
    let form = match name {
        "v_div_scale_f32" => Form::new(scale_single_kinds, |wave, i, _| scale_single(wave, i)),
        "v_div_scale_f64" => Form::new(scale_double_kinds, |wave, i, _| scale_double(wave, i)),
        "v_div_fmas_f32" => Form::new(float::THREE, |wave, i, _| refine_single(wave, i)),
        "v_div_fmas_f64" => Form::new(double::THREE, |wave, i, _| refine_double(wave, i)),
        "v_div_fixup_f32" => Form::new(float::THREE, |wave, i, _| fix_single(wave, i)),
        "v_div_fixup_f64" => Form::new(double::THREE, |wave, i, _| fix_double(wave, i)),
        _ => return None,
    };
    Some(form.honouring(honours::SIGNS))
}
