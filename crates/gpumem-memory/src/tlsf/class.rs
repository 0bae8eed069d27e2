//! Size classes: 32 to each power of two.
//!
//! Sizes are counted in granules. Below 32 granules every size is a class of its own; above, a class spans one part in
//! 32, so that rounding a request up to the next class costs at most 3.2 %.

/// Second-level classes to a power of two, as a power of two.
const SUB_BITS: u32 = 5;
/// Second-level classes to a power of two: the bits of a bitmap.
pub(super) const SUBS: usize = 1 << SUB_BITS;
/// Most bits of a size in granules.
const SIZE_BITS: u32 = 47;
/// First-level classes.
pub(super) const LEVELS: usize = (SIZE_BITS - SUB_BITS + 1) as usize;
/// Largest size in granules, so that rounding up never leaves the table.
pub(super) const LARGEST: u64 = 1 << (SIZE_BITS - 1);

/// A size class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Class {
    pub(super) level: usize,
    pub(super) sub: usize,
}

impl Class {
    /// The class that a block of so many granules belongs to: no block of a higher class is smaller.
    #[inline]
    pub(super) fn of(granules: u64) -> Self {
        if granules < SUBS as u64 {
            return Self { level: 0, sub: granules as usize };
        }
        let top = 63 - granules.leading_zeros();
        let level = (top - SUB_BITS + 1) as usize;
        Self { level, sub: (granules >> (top - SUB_BITS)) as usize & (SUBS - 1) }
    }

    /// The lowest class of which every block holds so many granules.
    #[inline]
    pub(super) fn holding(granules: u64) -> Self {
        if granules < SUBS as u64 {
            return Self::of(granules);
        }
        let top = 63 - granules.leading_zeros();
        Self::of(granules + (1 << (top - SUB_BITS)) - 1)
    }

    /// The class just above.
    #[inline]
    pub(super) fn next(self) -> Option<Self> {
        let next = self.index() + 1;
        let (level, sub) = (next / SUBS, next % SUBS);
        (level < LEVELS).then_some(Self { level, sub })
    }

    /// Position in a table of all classes.
    #[inline]
    pub(super) fn index(self) -> usize {
        self.level * SUBS + self.sub
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The smallest size of a class.
    fn smallest(class: Class) -> u64 {
        match class.level {
            0 => class.sub as u64,
            level => (SUBS as u64 + class.sub as u64) << (level - 1),
        }
    }

    #[test]
    fn classes_are_in_the_order_of_sizes() {
        // Interpreted, all of them take long; nothing in it is unsafe.
        let sizes = (1..5000u64)
            .step_by(if cfg!(miri) { 97 } else { 1 })
            .chain((5..46).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << bit) + 1, 3 << (bit - 1)]));
        let mut sizes: Vec<u64> = sizes.filter(|size| *size <= LARGEST).collect();
        sizes.sort_unstable();
        for pair in sizes.windows(2) {
            assert!(Class::of(pair[0]).index() <= Class::of(pair[1]).index());
        }
        for size in sizes {
            let (floor, ceiling) = (Class::of(size), Class::holding(size));
            assert!(smallest(floor) <= size, "{size}");
            assert!(smallest(ceiling) >= size, "every block of the class holds {size}");
            assert!(smallest(ceiling) <= size + size / 32, "no more than one part in 32 is lost for {size}");
            assert!(ceiling.level < LEVELS && ceiling.sub < SUBS);
        }
    }
}
