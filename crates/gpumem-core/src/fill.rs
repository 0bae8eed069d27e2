//! Filling memory with a repeated value.

/// A value that is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pattern {
    /// One byte.
    U8(u8),
    /// Two bytes; the address is a multiple of 2.
    U16(u16),
    /// Four bytes; the address is a multiple of 4.
    U32(u32),
}

impl Pattern {
    /// The shortest pattern that, repeated, gives `value`, or `None` if its period is longer than four bytes.
    ///
    /// The period divides the length of the value, so a repetition of the value is a repetition of the pattern.
    #[inline]
    pub fn of(value: &[u8]) -> Option<Self> {
        let repeats = |period: usize| {
            !value.is_empty()
                && value.len().is_multiple_of(period)
                && value.chunks_exact(period).all(|chunk| chunk == &value[..period])
        };
        if repeats(1) {
            return Some(Pattern::U8(value[0]));
        }
        if repeats(2) {
            return Some(Pattern::U16(u16::from_ne_bytes([value[0], value[1]])));
        }
        if repeats(4) {
            return Some(Pattern::U32(u32::from_ne_bytes([value[0], value[1], value[2], value[3]])));
        }
        None
    }

    /// Length of the pattern in bytes: 1, 2 or 4.
    #[inline]
    pub fn bytes(self) -> usize {
        match self {
            Pattern::U8(_) => 1,
            Pattern::U16(_) => 2,
            Pattern::U32(_) => 4,
        }
    }
}

/// A fill of `rows` runs of `count` patterns each (CUDA: `cuMemsetD*`, `cuMemsetD2D*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fill {
    /// Device address of the first byte.
    pub address: u64,
    /// The repeated value.
    pub pattern: Pattern,
    /// Patterns in a row, at least 1.
    pub count: usize,
    /// Rows, at least 1.
    pub rows: usize,
    /// Bytes from one row to the next, a multiple of the pattern's length. Ignored where there is only one row.
    pub pitch: usize,
}

#[cfg(test)]
mod tests {
    use super::Pattern;

    #[test]
    fn the_shortest_period_is_found() {
        assert_eq!(Pattern::of(&0u64.to_ne_bytes()), Some(Pattern::U8(0)));
        assert_eq!(Pattern::of(&[1, 2, 1, 2]), Some(Pattern::U16(u16::from_ne_bytes([1, 2]))));
        assert_eq!(Pattern::of(&1.5f32.to_ne_bytes()), Some(Pattern::U32(1.5f32.to_bits())));
        assert_eq!(Pattern::of(&1.1f64.to_ne_bytes()), None);
        assert_eq!(Pattern::of(&[1, 2, 3]), None);
        assert_eq!(Pattern::of(&[]), None);
    }
}
