//! The mode register: rounding and denormal numbers.

/// How results that cannot be represented are rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Rounding {
    #[default]
    NearestEven,
    Up,
    Down,
    TowardZero,
}

impl Rounding {
    fn from_bits(bits: u32) -> Self {
        match bits & 3 {
            0 => Rounding::NearestEven,
            1 => Rounding::Up,
            2 => Rounding::Down,
            _ => Rounding::TowardZero,
        }
    }
}

/// How numbers of one width are computed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Arithmetic {
    pub(super) rounding: Rounding,
    /// Denormal operands count as zero.
    pub(super) flush_in: bool,
    /// Denormal results become zero.
    pub(super) flush_out: bool,
}

impl Arithmetic {
    /// As the host computes.
    pub(super) const IEEE: Self = Self { rounding: Rounding::NearestEven, flush_in: false, flush_out: false };

    pub(super) fn is_ieee(self) -> bool {
        self == Self::IEEE
    }

    fn from_bits(rounding: u32, denormals: u32) -> Self {
        let rounding = Rounding::from_bits(rounding);
        // 0 flushes both, 1 allows them as operands, 2 as results, 3 allows both.
        Self { rounding, flush_in: denormals & 1 == 0, flush_out: denormals & 2 == 0 }
    }
}

/// The mode register.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Mode {
    bits: u32,
    /// Numbers of 32 bits.
    pub(super) single: Arithmetic,
    /// Numbers of 16 and 64 bits.
    pub(super) other: Arithmetic,
}

impl Mode {
    /// The mode with these bits: rounding in 0 to 3, denormals in 4 to 7, the others as they are.
    pub(super) fn from_bits(bits: u32) -> Self {
        Self {
            bits,
            single: Arithmetic::from_bits(bits, bits >> 4),
            other: Arithmetic::from_bits(bits >> 2, bits >> 6),
        }
    }

    pub(super) fn bits(self) -> u32 {
        self.bits
    }
}
