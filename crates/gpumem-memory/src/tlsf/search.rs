//! Which free block serves a request: a bounded search, however many there are.

use super::{
    Node, SetId, Tlsf,
    class::{Class, LARGEST},
    lists::{Lists, NIL},
};

/// How many blocks of the class just below are looked at before a larger block is cut.
const PEEK: usize = 2;
/// How many are looked at when there is no larger block.
const RESCUE: usize = 32;

/// A request that a free block must hold.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    /// Bytes with room for aligning them.
    pub(super) needed: u64,
    /// Bytes.
    pub(super) bytes: u64,
    pub(super) align: u64,
    /// Bytes of the largest block that may be cut for it.
    pub(super) most: u64,
}

impl Wanted {
    #[inline]
    pub(super) fn fits(&self, node: &Node) -> bool {
        let len = node.len();
        len >= self.bytes + (node.start.wrapping_neg() & (self.align - 1)) && len <= self.most
    }
}

impl Tlsf {
    /// Turns a request into what a free block must hold; `None` for an invalid request.
    #[inline]
    pub(super) fn wanted(&self, bytes: u64, align: u64, most: u64) -> Option<Wanted> {
        let granule = self.granule();
        if bytes == 0 || !align.is_power_of_two() {
            return None;
        }
        let bytes = bytes.checked_add(granule - 1)? & !(granule - 1);
        // Enough for every place that the block may start at.
        let slack = align.saturating_sub(granule);
        let needed = bytes.checked_add(slack)?;
        if needed >> self.shift > LARGEST {
            return None;
        }
        if self.nodes.len() >= NIL as usize - 2 {
            // Cutting takes up to two numbers more, and must not fail half-way.
            return None;
        }
        Some(Wanted { needed, bytes, align, most })
    }

    /// Finds a free block that holds the request.
    #[inline]
    pub(super) fn find(&self, set: SetId, wanted: Wanted) -> Option<u32> {
        let lists = self.sets.get(set.0 as usize)?;
        let granules = wanted.needed >> self.shift;
        // Blocks just large enough, which rounding up would miss: holes of the same request are among them.
        let (floor, ceiling) = (Class::of(wanted.bytes >> self.shift), Class::holding(granules));
        if let Some(node) = self.first_of(lists, floor, wanted, PEEK) {
            return Some(node);
        }
        let mut class = ceiling;
        for _ in 0..PEEK {
            let Some(found) = lists.at_or_above(class) else { break };
            if let Some(node) = self.first_of(lists, found, wanted, PEEK) {
                return Some(node);
            }
            // Nothing that was looked at here may be cut: the next class up.
            let Some(next) = found.next() else { break };
            class = next;
        }
        // What is large enough by luck: of the same class, or on the way to one of which every block is, because it
        // happens to start at a good place.
        let mut class = floor;
        let mut left = RESCUE;
        while left > 0
            && let Some(at) = lists.at_or_above(class)
            && at.index() <= ceiling.index()
        {
            let most = if at == ceiling || at == floor { left } else { PEEK };
            if let Some(node) = self.first_of(lists, at, wanted, most) {
                return Some(node);
            }
            left -= most.min(left);
            if wanted.needed == wanted.bytes {
                break;
            }
            let Some(next) = at.next() else { break };
            class = next;
        }
        None
    }

    #[inline]
    fn first_of(&self, lists: &Lists, class: Class, wanted: Wanted, most: usize) -> Option<u32> {
        let mut at = lists.head(class);
        for _ in 0..most {
            if at == NIL {
                return None;
            }
            #[cfg(test)]
            self.looks.set(self.looks.get() + 1);
            let node = &self.nodes[at as usize];
            if wanted.fits(node) {
                return Some(at);
            }
            at = node.later;
        }
        None
    }
}
