//! Floating-point arithmetic by integers, for operations that the host does not have: other ways of rounding, denormal
//! numbers that count as zero, and numbers of 16 bits.

use super::mode::{Arithmetic, Rounding};

/// A binary format of IEEE 754.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Format {
    exponent_bits: u32,
    fraction_bits: u32,
}

pub(super) const F16: Format = Format { exponent_bits: 5, fraction_bits: 10 };
pub(super) const F32: Format = Format { exponent_bits: 8, fraction_bits: 23 };
pub(super) const F64: Format = Format { exponent_bits: 11, fraction_bits: 52 };

impl Format {
    fn sign(self) -> u64 {
        1 << (self.exponent_bits + self.fraction_bits)
    }

    fn infinity(self) -> u64 {
        ((1 << self.exponent_bits) - 1) << self.fraction_bits
    }

    fn quiet(self) -> u64 {
        1 << (self.fraction_bits - 1)
    }

    /// The exponent of the last bit of the smallest numbers.
    fn least(self) -> i32 {
        2 - (1 << (self.exponent_bits - 1)) - self.fraction_bits as i32
    }

    fn is_nan(self, bits: u64) -> bool {
        bits & !self.sign() > self.infinity()
    }

    /// The number that says that there is none.
    pub(super) fn nan(self) -> u64 {
        self.infinity() | self.quiet()
    }
}

/// A number as units, each two to the power of the exponent.
#[derive(Debug, Clone, Copy)]
struct Number {
    negative: bool,
    infinite: bool,
    units: u128,
    exponent: i32,
}

impl Number {
    fn is_zero(&self) -> bool {
        !self.infinite && self.units == 0
    }

    /// As units whose highest bit is bit 125, so that two can be added, and bits that are lost do not matter.
    fn normalized(self) -> Self {
        if self.units == 0 {
            return self;
        }
        let shift = self.units.leading_zeros() as i32 - 2;
        Self { units: self.units << shift, exponent: self.exponent - shift, ..self }
    }
}

/// Takes bits apart, which are no NaN.
fn unpack(format: Format, bits: u64, arithmetic: Arithmetic) -> Number {
    let exponent = (bits & format.infinity()) >> format.fraction_bits;
    let fraction = bits & ((1 << format.fraction_bits) - 1);
    let number = Number {
        negative: bits & format.sign() != 0,
        infinite: bits & format.infinity() == format.infinity(),
        units: u128::from(fraction),
        exponent: format.least(),
    };
    match exponent {
        0 if arithmetic.flush_in => Number { units: 0, ..number },
        0 => number,
        _ => Number {
            units: u128::from(fraction | 1 << format.fraction_bits),
            exponent: format.least() + exponent as i32 - 1,
            ..number
        },
    }
}

/// Puts a number together, rounded. The lowest unit also represents all smaller bits.
fn pack(format: Format, number: Number, arithmetic: Arithmetic) -> u64 {
    let Number { negative, infinite, units, exponent } = number;
    let sign = if negative { format.sign() } else { 0 };
    if infinite {
        return sign | format.infinity();
    }
    if units == 0 {
        return sign;
    }
    let highest = 127 - units.leading_zeros() as i32;
    // How many low bits go: all that are beyond the fraction, and below the smallest number.
    let drop = (highest - format.fraction_bits as i32).max(format.least() - exponent);
    let (kept, rest, half) = match drop {
        ..=0 => (units << -drop, 0, 1),
        1..=126 => (units >> drop, units & ((1 << drop) - 1), 1 << (drop - 1)),
        _ => (0, 1, 2),
    };
    let up = match arithmetic.rounding {
        Rounding::NearestEven => rest > half || rest == half && kept & 1 == 1,
        Rounding::Up => rest != 0 && !negative,
        Rounding::Down => rest != 0 && negative,
        Rounding::TowardZero => false,
    };
    let kept = kept as u64 + u64::from(up && drop > 0);
    // The exponent counts from the smallest numbers; the highest bit of the fraction carries into it.
    let steps = i64::from(exponent + drop - format.least());
    let bits = match kept >> format.fraction_bits {
        0 => kept,
        _ => kept.saturating_add((steps.max(0) as u64) << format.fraction_bits),
    };
    if bits >= format.infinity() || steps >= 1 << format.exponent_bits {
        let away = match arithmetic.rounding {
            Rounding::NearestEven => true,
            Rounding::Up => !negative,
            Rounding::Down => negative,
            Rounding::TowardZero => false,
        };
        return sign | if away { format.infinity() } else { format.infinity() - 1 };
    }
    if arithmetic.flush_out && bits & format.infinity() == 0 {
        return sign;
    }
    sign | bits
}

/// The NaN that comes of the first NaN among the operands.
fn first_nan(format: Format, operands: &[u64]) -> Option<u64> {
    operands.iter().find(|bits| format.is_nan(**bits)).map(|bits| bits | format.quiet())
}

fn sum(format: Format, x: Number, y: Number, arithmetic: Arithmetic) -> u64 {
    if x.infinite || y.infinite {
        return match (x.infinite, y.infinite) {
            (true, true) if x.negative != y.negative => format.nan(),
            (true, _) => pack(format, x, arithmetic),
            _ => pack(format, y, arithmetic),
        };
    }
    if x.is_zero() && y.is_zero() {
        let down = arithmetic.rounding == Rounding::Down;
        let negative = if down { x.negative || y.negative } else { x.negative && y.negative };
        return pack(format, Number { negative, ..x }, arithmetic);
    }
    let (x, y) = (x.normalized(), y.normalized());
    let y_is_larger = x.is_zero() || !y.is_zero() && (y.exponent, y.units) > (x.exponent, x.units);
    let (large, small) = if y_is_larger { (y, x) } else { (x, y) };
    let distance = (large.exponent - small.exponent).clamp(0, 127) as u32;
    // Bits that are shifted out set the lowest bit.
    let lost = small.units & ((1 << distance) - 1) != 0;
    let aligned = small.units >> distance | u128::from(lost);
    let units = if large.negative == small.negative || small.is_zero() {
        large.units + aligned
    } else {
        large.units - aligned
    };
    let negative = if units == 0 { arithmetic.rounding == Rounding::Down } else { large.negative };
    pack(format, Number { negative, units, ..large }, arithmetic)
}

fn product(x: Number, y: Number) -> Number {
    Number {
        negative: x.negative != y.negative,
        infinite: x.infinite || y.infinite,
        units: x.units * y.units,
        exponent: x.exponent + y.exponent,
    }
}

/// `x + y`.
pub(super) fn add(format: Format, x: u64, y: u64, arithmetic: Arithmetic) -> u64 {
    first_nan(format, &[x, y]).unwrap_or_else(|| {
        sum(format, unpack(format, x, arithmetic), unpack(format, y, arithmetic), arithmetic)
    })
}

/// `x * y`.
pub(super) fn multiply(format: Format, x: u64, y: u64, arithmetic: Arithmetic) -> u64 {
    if let Some(nan) = first_nan(format, &[x, y]) {
        return nan;
    }
    let (x, y) = (unpack(format, x, arithmetic), unpack(format, y, arithmetic));
    if x.infinite && y.is_zero() || x.is_zero() && y.infinite {
        return format.nan();
    }
    pack(format, product(x, y), arithmetic)
}

/// `x * y + z`, rounded once.
pub(super) fn fused(format: Format, x: u64, y: u64, z: u64, arithmetic: Arithmetic) -> u64 {
    if let Some(nan) = first_nan(format, &[x, y, z]) {
        return nan;
    }
    let [x, y, z] = [x, y, z].map(|bits| unpack(format, bits, arithmetic));
    if x.infinite && y.is_zero() || x.is_zero() && y.infinite {
        return format.nan();
    }
    sum(format, product(x, y), z, arithmetic)
}

/// `x * y + z` times two to the power of `power`, rounded once.
pub(super) fn fused_and_scaled(
    format: Format,
    operands: [u64; 3],
    power: i32,
    arithmetic: Arithmetic,
) -> u64 {
    if let Some(nan) = first_nan(format, &operands) {
        return nan;
    }
    let [x, y, z] = operands.map(|bits| unpack(format, bits, arithmetic));
    if x.infinite && y.is_zero() || x.is_zero() && y.infinite {
        return format.nan();
    }
    let moved = |number: Number| Number { exponent: number.exponent + power, ..number };
    sum(format, moved(product(x, y)), moved(z), arithmetic)
}

/// The number in another format. `arithmetic` is how the narrower one of them is computed with.
pub(super) fn convert(from: Format, to: Format, x: u64, arithmetic: Arithmetic) -> u64 {
    if from.is_nan(x) {
        let sign = if x & from.sign() != 0 { to.sign() } else { 0 };
        let fraction = x & ((1 << from.fraction_bits) - 1);
        let fraction = match to.fraction_bits.checked_sub(from.fraction_bits) {
            Some(more) => fraction << more,
            None => fraction >> (from.fraction_bits - to.fraction_bits),
        };
        return sign | to.nan() | fraction;
    }
    pack(to, unpack(from, x, arithmetic), arithmetic)
}

/// `x` times two to the power of `power`.
pub(super) fn scale(format: Format, x: u64, power: i32, arithmetic: Arithmetic) -> u64 {
    if format.is_nan(x) {
        return x | format.quiet();
    }
    let number = unpack(format, x, arithmetic);
    // Beyond this every number has become zero or infinite.
    let power = power.clamp(-5000, 5000);
    pack(format, Number { exponent: number.exponent + power, ..number }, arithmetic)
}
