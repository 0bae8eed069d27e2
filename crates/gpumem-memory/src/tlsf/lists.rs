//! Segregated free lists of one set of blocks.

use super::class::{Class, LEVELS, SUBS};

/// No block.
pub(super) const NIL: u32 = u32::MAX;

/// Heads of the free lists of all classes, with two levels of bitmaps that say which are not empty.
#[derive(Debug)]
pub(super) struct Lists {
    levels: u64,
    subs: [u32; LEVELS],
    heads: Box<[u32]>,
    /// Bytes in the lists.
    pub(super) bytes: u64,
    /// Blocks in the lists.
    pub(super) blocks: usize,
    /// No block of the lists has a later stamp. Only grows while there are any.
    pub(super) latest: u64,
}

impl Lists {
    pub(super) fn new() -> Self {
        let heads = vec![NIL; LEVELS * SUBS].into_boxed_slice();
        Self { levels: 0, subs: [0; LEVELS], heads, bytes: 0, blocks: 0, latest: 0 }
    }

    /// The first block of a class, or [`NIL`].
    #[inline]
    pub(super) fn head(&self, class: Class) -> u32 {
        self.heads[class.index()]
    }

    /// Changes the first block of a class.
    #[inline]
    pub(super) fn set_head(&mut self, class: Class, head: u32) {
        self.heads[class.index()] = head;
        if head == NIL {
            self.subs[class.level] &= !(1 << class.sub);
            if self.subs[class.level] == 0 {
                self.levels &= !(1 << class.level);
            }
        } else {
            self.subs[class.level] |= 1 << class.sub;
            self.levels |= 1 << class.level;
        }
    }

    /// The lowest class that is not empty, from `class` upward.
    #[inline]
    pub(super) fn at_or_above(&self, class: Class) -> Option<Class> {
        let here = self.subs[class.level] & (u32::MAX << class.sub);
        if here != 0 {
            return Some(Class { level: class.level, sub: here.trailing_zeros() as usize });
        }
        let above = self.levels & (u64::MAX << class.level << 1);
        if above == 0 {
            return None;
        }
        let level = above.trailing_zeros() as usize;
        Some(Class { level, sub: self.subs[level].trailing_zeros() as usize })
    }

    /// The highest class that is not empty.
    pub(super) fn highest(&self) -> Option<Class> {
        let level = self.levels.checked_ilog2()? as usize;
        Some(Class { level, sub: self.subs[level].ilog2() as usize })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_class_is_found_in_every_level() {
        let mut lists = Lists::new();
        let classes: Vec<Class> = [1, 31, 32, 33, 1000, 1 << 20, 3 << 40].map(Class::of).to_vec();
        for (number, class) in classes.iter().enumerate() {
            lists.set_head(*class, number as u32);
        }
        for pair in classes.windows(2) {
            assert_eq!(lists.at_or_above(pair[0]), Some(pair[0]));
            lists.set_head(pair[0], NIL);
            assert_eq!(lists.at_or_above(pair[0]), Some(pair[1]));
            assert_eq!(lists.highest(), classes.last().copied());
        }
        lists.set_head(classes[6], NIL);
        assert_eq!((lists.at_or_above(classes[0]), lists.highest()), (None, None));
    }
}
