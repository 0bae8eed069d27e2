//! Statistics of the allocator: totals, the blocks in order, and a check of consistency.

use super::{
    BlockId, FREE, RegionId, SetId, TAGGED, Tlsf,
    class::{Class, LEVELS, SUBS},
    lists::NIL,
};

/// Why an allocator is not consistent. Only tests that plant a fault see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inconsistent(pub String);

/// The state of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockInfo {
    /// Address of the first byte.
    pub start: u64,
    /// Length in bytes.
    pub len: u64,
    /// The set that a free block belongs to; `None` for an allocated block.
    pub free_in: Option<SetId>,
}

/// How many blocks are looked at for the largest.
const LOOK: usize = 64;

impl Tlsf {
    /// Bytes of all regions.
    pub fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// Returns the number of allocated bytes.
    pub fn allocated_bytes(&self) -> u64 {
        self.allocated_bytes
    }

    /// Returns the number of allocated blocks.
    pub fn allocated_blocks(&self) -> usize {
        self.allocated_blocks
    }

    /// Free bytes of a set.
    pub fn free_bytes(&self, set: SetId) -> u64 {
        self.sets.get(set.0 as usize).map_or(0, |lists| lists.bytes)
    }

    /// Free blocks of a set.
    pub fn free_blocks(&self, set: SetId) -> usize {
        self.sets.get(set.0 as usize).map_or(0, |lists| lists.blocks)
    }

    /// No block of the set has a later stamp.
    pub fn latest_stamp(&self, set: SetId) -> u64 {
        self.sets.get(set.0 as usize).map_or(0, |lists| lists.latest)
    }

    /// Returns the length of an allocated block; 0 if the block is not allocated.
    pub fn len_of(&self, block: BlockId) -> u64 {
        if self.is_allocated(block) { self.nodes[block.0 as usize].len() } else { 0 }
    }

    /// Length of the largest free block of a set, exact to 3.2 % where very many have nearly that length.
    pub fn largest_free(&self, set: SetId) -> u64 {
        let Some(lists) = self.sets.get(set.0 as usize) else { return 0 };
        let Some(class) = lists.highest() else { return 0 };
        let mut largest = 0;
        let mut at = lists.head(class);
        for _ in 0..LOOK {
            if at == NIL {
                break;
            }
            let node = &self.nodes[at as usize];
            largest = largest.max(node.len());
            at = node.later;
        }
        largest
    }

    /// The blocks of a region in the order of their addresses.
    pub fn blocks(&self, region: RegionId) -> impl Iterator<Item = BlockInfo> + '_ {
        let mut at = region.0;
        std::iter::from_fn(move || {
            let node = self.nodes.get(at as usize)?;
            let free_in = (node.word & FREE != 0).then(|| self.set_of(at));
            at = node.after;
            Some(BlockInfo { start: node.start, len: node.len(), free_in })
        })
    }

    /// Looks at every block of these regions, which are all that there are.
    ///
    /// # Errors
    /// Returns the first inconsistency.
    pub fn check(&self, regions: &[RegionId]) -> Result<(), Inconsistent> {
        let free = self.check_regions(regions)?;
        free.iter().enumerate().try_for_each(|(set, free)| self.check_lists(set, *free))
    }

    /// Looks at the blocks of the regions by their addresses. Returns the bytes and blocks that are free in each set.
    fn check_regions(&self, regions: &[RegionId]) -> Result<Vec<(u64, usize)>, Inconsistent> {
        let wrong = |what: String| Err(Inconsistent(what));
        let mut free = vec![(0u64, 0usize); self.sets.len()];
        let (mut allocated, mut total) = ((0u64, 0usize), 0u64);
        for region in regions {
            let (mut at, mut before) = (region.0, NIL);
            while at != NIL {
                let Some(node) = self.nodes.get(at as usize) else { return wrong(format!("no node {at}")) };
                // By address: each block knows its neighbours, and none is empty.
                if node.before != before || node.len() == 0 || node.len() % self.granule() != 0 {
                    return wrong(format!("node {at} does not follow {before}: {node:?}"));
                }
                if before != NIL {
                    let left = &self.nodes[before as usize];
                    if left.start + left.len() != node.start {
                        return wrong(format!("a gap or an overlap between {left:?} and {node:?}"));
                    }
                    if left.word & node.word & FREE != 0 && self.set_of(before) == self.set_of(at) {
                        return wrong(format!("{left:?} and {node:?} are free neighbours of one set"));
                    }
                }
                total += node.len();
                if node.word & FREE != 0 {
                    let count = &mut free[self.set_of(at).0 as usize];
                    *count = (count.0 + node.len(), count.1 + 1);
                    if node.word & TAGGED != 0
                        && self.tags[at as usize].stamp > self.latest_stamp(self.set_of(at))
                    {
                        return wrong(format!("the stamp of node {at} is later than that of its set"));
                    }
                } else {
                    allocated = (allocated.0 + node.len(), allocated.1 + 1);
                }
                (before, at) = (at, node.after);
            }
        }
        if (allocated, total) != ((self.allocated_bytes, self.allocated_blocks), self.total_bytes) {
            return wrong(format!(
                "{allocated:?} of {total} allocated, {:?} in the totals",
                (self.allocated_bytes, self.allocated_blocks)
            ));
        }
        Ok(free)
    }

    /// Looks at the lists of a set, which has so many bytes and blocks.
    fn check_lists(&self, set: usize, free: (u64, usize)) -> Result<(), Inconsistent> {
        let wrong = |what: String| Err(Inconsistent(what));
        let (lists, mut listed) = (&self.sets[set], (0, 0));
        for index in 0..LEVELS * SUBS {
            let class = Class { level: index / SUBS, sub: index % SUBS };
            let (mut at, mut earlier) = (lists.head(class), NIL);
            // A bit is set if and only if its list has blocks.
            if (at != NIL) != (lists.at_or_above(class) == Some(class)) {
                return wrong(format!("the bitmaps of set {set} are wrong about {class:?}"));
            }
            while at != NIL {
                let node = &self.nodes[at as usize];
                let is_here = self.class_of(node.len()) == class && self.set_of(at).0 as usize == set;
                if node.word & FREE == 0 || node.earlier != earlier || !is_here {
                    return wrong(format!("node {at} is in the wrong list: {node:?}"));
                }
                listed = (listed.0 + node.len(), listed.1 + 1);
                (earlier, at) = (at, node.later);
            }
        }
        match listed == free && listed == (lists.bytes, lists.blocks) {
            true => Ok(()),
            false => wrong(format!("set {set} lists {listed:?}, and {free:?} is free")),
        }
    }
}
