//! Two-level segregated fit (TLSF) over any range of addresses or offsets.
//!
//! A [`Tlsf`] allocates from the ranges that [`add_region`](Tlsf::add_region) adds, and keeps track of what is
//! allocated and free. It touches none of the bytes, so it serves memory that the host cannot see, and plain offsets.
//! It uses no lock and no driver.
//!
//! * Allocating and freeing cost the same however many blocks there are. Free blocks are in lists by size class, 32 to
//!   each power of two; two levels of bitmaps find the next list that is not empty (Masmano et al., 2004).
//! * Neighbours that are free are one block at once. Nothing has to be compacted later.
//! * **Sets.** Free blocks belong to a set. Set 0 is *idle*: the bytes are not in use. The pool makes a set for each
//!   stream, of blocks that the stream may still be using: the stream itself may reuse them at once, and others skip
//!   them. Only blocks of one set are joined, so a hole that is idle does not have to wait because of its neighbour. A
//!   block of such a set carries a *stamp*; a joint block carries the later one.
//!
//! ```
//! use gpumem_memory::tlsf::Tlsf;
//!
//! let mut tlsf = Tlsf::new(256);
//! tlsf.add_region(0, 1 << 20).unwrap();
//! let a = tlsf.allocate(Tlsf::IDLE, 1000, 256).unwrap();
//! let b = tlsf.allocate(Tlsf::IDLE, 5000, 4096).unwrap();
//! assert_eq!((a.start, a.len), (0, 1024)); // whole granules
//! assert_eq!(b.start % 4096, 0);
//! tlsf.free(a.block, Tlsf::IDLE, 0);
//! assert!(tlsf.free(b.block, Tlsf::IDLE, 0)); // the region is whole again
//! ```

mod class;
mod lists;
mod search;
mod stats;
// Safe code alone: Miri has nothing to find, and takes minutes.
#[cfg(test)]
#[cfg(not(any(miri, loom)))]
mod tests;

pub use stats::{BlockInfo, Inconsistent};

use class::{Class, LARGEST};
use lists::{Lists, NIL};
use search::Wanted;

/// An allocated block, by number. Numbers are reused after the block was freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BlockId(u32);

impl BlockId {
    /// The number.
    #[inline]
    pub fn number(self) -> u32 {
        self.0
    }

    /// The block of a number.
    #[inline]
    pub fn from_number(number: u32) -> Self {
        Self(number)
    }
}

/// A range of addresses that was added, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RegionId(u32);

/// A set of free blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SetId(u32);

/// A block as [`Tlsf::allocate`] returns it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllocatedBlock {
    /// The block, to give it back.
    pub block: BlockId,
    /// Address of its first byte.
    pub start: u64,
    /// Length in bytes: the request, rounded up to whole granules.
    pub len: u64,
    /// The stamp of the free block that it was cut from; 0 in the idle set.
    pub stamp: u64,
}

/// A block, free or allocated: half a cache line.
#[derive(Debug, Clone, Copy)]
struct Node {
    start: u64,
    /// Length in bytes, a multiple of the granule, and the flags below.
    word: u64,
    /// Neighbours by address.
    before: u32,
    after: u32,
    /// Neighbours in a free list. Nodes that are not in use are a list through `later`.
    earlier: u32,
    later: u32,
}

const FREE: u64 = 1;
/// The free block is not in the idle set; `tags` holds its set and stamp.
const TAGGED: u64 = 2;
const FLAGS: u64 = 15;

impl Node {
    #[inline]
    fn len(&self) -> u64 {
        self.word & !FLAGS
    }
}

/// Whether an idle block is all of its region.
fn is_whole(node: &Node) -> bool {
    node.before == NIL && node.after == NIL && node.word & FLAGS == FREE
}

/// Set and stamp of a free block that is not idle.
#[derive(Debug, Clone, Copy, Default)]
struct Tag {
    stamp: u64,
    set: u32,
}

/// The allocator. See the [module](self).
#[derive(Debug)]
pub struct Tlsf {
    shift: u32,
    nodes: Vec<Node>,
    tags: Vec<Tag>,
    /// A list of nodes that are not in use.
    vacant: u32,
    sets: Vec<Lists>,
    unused_sets: Vec<u32>,
    regions: usize,
    allocated_bytes: u64,
    allocated_blocks: usize,
    total_bytes: u64,
    /// Blocks that were looked at.
    #[cfg(test)]
    looks: std::cell::Cell<usize>,
}

impl Tlsf {
    /// The set of blocks that are not in use.
    pub const IDLE: SetId = SetId(0);

    /// Makes an allocator without a region. Every block starts at a multiple of `granule` bytes from the start of its
    /// region, and is a multiple of it long. `granule` is raised to a power of two of at least 16.
    pub fn new(granule: u64) -> Self {
        let shift = granule.clamp(16, 1 << 32).next_power_of_two().trailing_zeros();
        Self {
            shift,
            nodes: Vec::new(),
            tags: Vec::new(),
            vacant: NIL,
            sets: vec![Lists::new()],
            unused_sets: Vec::new(),
            regions: 0,
            allocated_bytes: 0,
            allocated_blocks: 0,
            total_bytes: 0,
            #[cfg(test)]
            looks: std::cell::Cell::new(0),
        }
    }

    /// Bytes of a granule.
    #[inline]
    pub fn granule(&self) -> u64 {
        1 << self.shift
    }

    /// Adds a range of addresses, all of it idle. Bytes after the last whole granule are not used.
    ///
    /// `None` if `start` is not a multiple of the granule, if there is no whole granule, or if the range is too large
    /// (2⁴⁶ granules) or reaches beyond the last address. Ranges must not overlap.
    pub fn add_region(&mut self, start: u64, len: u64) -> Option<RegionId> {
        let len = len & !(self.granule() - 1);
        let fits = start & (self.granule() - 1) == 0 && start.checked_add(len).is_some();
        if !fits || len == 0 || len >> self.shift > LARGEST {
            return None;
        }
        let node = self.node(Node { start, word: len, before: NIL, after: NIL, earlier: NIL, later: NIL })?;
        self.regions += 1;
        self.total_bytes += len;
        self.insert(node, Self::IDLE, 0);
        Some(RegionId(node))
    }

    /// Takes a range out again, if all of it is one idle block. Whether it was.
    pub fn remove_region(&mut self, region: RegionId) -> bool {
        let Some(node) = self.nodes.get(region.0 as usize).copied() else { return false };
        if !is_whole(&node) {
            return false;
        }
        self.unlink(region.0);
        self.vacate(region.0);
        self.regions -= 1;
        self.total_bytes -= node.len();
        true
    }

    /// Whether the range is one idle block.
    pub fn is_region_idle(&self, region: RegionId) -> bool {
        self.nodes.get(region.0 as usize).is_some_and(is_whole)
    }

    /// A new set of free blocks.
    pub fn add_set(&mut self) -> SetId {
        if let Some(set) = self.unused_sets.pop() {
            return SetId(set);
        }
        self.sets.push(Lists::new());
        SetId(self.sets.len() as u32 - 1)
    }

    /// Removes a set; its number is reused. Returns whether it was empty and not the idle set.
    pub fn remove_set(&mut self, set: SetId) -> bool {
        let is_empty = self.sets.get(set.0 as usize).is_some_and(|lists| lists.blocks == 0);
        if !is_empty || set == Self::IDLE || self.unused_sets.contains(&set.0) {
            return false;
        }
        self.sets[set.0 as usize].latest = 0;
        self.unused_sets.push(set.0);
        true
    }

    /// Allocates `bytes` bytes at a multiple of `align` from the free blocks of a set. Returns `None` if no block fits,
    /// if `bytes` is 0, or if `align` is no power of two.
    #[inline]
    pub fn allocate(&mut self, set: SetId, bytes: u64, align: u64) -> Option<AllocatedBlock> {
        self.allocate_up_to(set, bytes, align, u64::MAX)
    }

    /// As [`allocate`](Self::allocate), out of blocks of at most `most` bytes only. Larger ones are left whole.
    #[inline]
    pub fn allocate_up_to(
        &mut self,
        set: SetId,
        bytes: u64,
        align: u64,
        most: u64,
    ) -> Option<AllocatedBlock> {
        let wanted = self.wanted(bytes, align, most)?;
        let node = self.find(set, wanted)?;
        self.carve(node, set, wanted)
    }

    /// As [`allocate`](Self::allocate), from a region that is one idle block. A caller that adds a region for a request
    /// allocates from it this way.
    pub fn allocate_in(&mut self, region: RegionId, bytes: u64, align: u64) -> Option<AllocatedBlock> {
        let wanted = self.wanted(bytes, align, u64::MAX)?;
        if !self.is_region_idle(region) || !wanted.fits(&self.nodes[region.0 as usize]) {
            return None;
        }
        self.carve(region.0, Self::IDLE, wanted)
    }

    /// Allocates every idle block of a region as it is, for a caller that frees each into another set.
    pub fn allocate_rest(&mut self, region: RegionId) -> Vec<AllocatedBlock> {
        let mut rest = Vec::new();
        let mut next = region.0;
        while let Some(node) = self.nodes.get(next as usize).copied() {
            if node.word & FLAGS == FREE {
                self.unlink(next);
                self.allocated_bytes += node.len();
                self.allocated_blocks += 1;
                rest.push(AllocatedBlock {
                    block: BlockId(next),
                    start: node.start,
                    len: node.len(),
                    stamp: 0,
                });
            }
            next = node.after;
        }
        rest
    }

    /// Allocates a request from a free block that holds it, and leaves the rest free.
    #[inline]
    fn carve(
        &mut self,
        node: u32,
        set: SetId,
        Wanted { bytes, align, .. }: Wanted,
    ) -> Option<AllocatedBlock> {
        let found = self.nodes[node as usize];
        let stamp = self.stamp_of(node);
        self.unlink(node);
        let gap = found.start.wrapping_neg() & (align - 1);
        let mut allocated = node;
        if gap > 0 {
            allocated = self.split(node, gap)?;
            self.insert_alone(node, set, stamp);
        }
        if self.nodes[allocated as usize].len() > bytes {
            let rest = self.split(allocated, bytes)?;
            self.insert_alone(rest, set, stamp);
        }
        self.allocated_bytes += bytes;
        self.allocated_blocks += 1;
        Some(AllocatedBlock { block: BlockId(allocated), start: found.start + gap, len: bytes, stamp })
    }

    /// Takes a block back into a set. Returns whether its region is one idle block now. A block that is not allocated is left
    /// as it is.
    #[inline]
    pub fn free(&mut self, block: BlockId, set: SetId, stamp: u64) -> bool {
        let is_allocated = self.is_allocated(block);
        debug_assert!(is_allocated, "a block that is not allocated is freed");
        if !is_allocated || set.0 as usize >= self.sets.len() {
            return false;
        }
        let len = self.nodes[block.0 as usize].len();
        self.allocated_bytes -= len;
        self.allocated_blocks -= 1;
        let node = self.insert(block.0, set, stamp);
        let node = &self.nodes[node as usize];
        set == Self::IDLE && node.before == NIL && node.after == NIL
    }

    /// Moves every block of a set to the idle set, joining neighbours. Takes time in the number of these blocks.
    pub fn make_idle(&mut self, set: SetId) {
        if set == Self::IDLE {
            return;
        }
        while let Some(class) = self.sets.get(set.0 as usize).and_then(Lists::highest) {
            let node = self.sets[set.0 as usize].head(class);
            self.unlink(node);
            self.insert(node, Self::IDLE, 0);
        }
        if let Some(lists) = self.sets.get_mut(set.0 as usize) {
            lists.latest = 0;
        }
    }

    // ---- helpers --------------------------------------------------------------------------------------------------

    #[inline]
    fn stamp_of(&self, node: u32) -> u64 {
        match self.nodes[node as usize].word & TAGGED {
            0 => 0,
            _ => self.tags[node as usize].stamp,
        }
    }

    #[inline]
    fn set_of(&self, node: u32) -> SetId {
        match self.nodes[node as usize].word & TAGGED {
            0 => Self::IDLE,
            _ => SetId(self.tags[node as usize].set),
        }
    }

    #[inline]
    fn class_of(&self, len: u64) -> Class {
        Class::of(len >> self.shift)
    }

    /// Cuts a block in two; the first keeps its number, and the second is returned. Neither is in a list.
    fn split(&mut self, node: u32, first: u64) -> Option<u32> {
        let whole = self.nodes[node as usize];
        let rest = Node {
            start: whole.start + first,
            word: whole.len() - first,
            before: node,
            after: whole.after,
            earlier: NIL,
            later: NIL,
        };
        let number = self.node(rest)?;
        self.nodes[node as usize].word = first;
        self.nodes[node as usize].after = number;
        if whole.after != NIL {
            self.nodes[whole.after as usize].before = number;
        }
        Some(number)
    }

    /// Joins `second` into `first`, its neighbour. Neither is in a list.
    fn join(&mut self, first: u32, second: u32) {
        let gone = self.nodes[second as usize];
        let len = self.nodes[first as usize].len() + gone.len();
        self.nodes[first as usize].word = len;
        self.nodes[first as usize].after = gone.after;
        if gone.after != NIL {
            self.nodes[gone.after as usize].before = first;
        }
        self.vacate(second);
    }

    /// Makes a block free, joined with its neighbours of the same set. The block that holds it now.
    #[inline]
    fn insert(&mut self, mut node: u32, set: SetId, mut stamp: u64) -> u32 {
        let Node { before, after, .. } = self.nodes[node as usize];
        if before != NIL && self.nodes[before as usize].word & FREE != 0 && self.set_of(before) == set {
            stamp = stamp.max(self.stamp_of(before));
            self.unlink(before);
            self.join(before, node);
            node = before;
        }
        if after != NIL && self.nodes[after as usize].word & FREE != 0 && self.set_of(after) == set {
            stamp = stamp.max(self.stamp_of(after));
            self.unlink(after);
            self.join(node, after);
        }
        self.insert_alone(node, set, stamp);
        node
    }

    /// Makes a block free whose neighbours are of other sets, or allocated.
    #[inline]
    fn insert_alone(&mut self, node: u32, set: SetId, stamp: u64) {
        let len = self.nodes[node as usize].len();
        let class = self.class_of(len);
        let lists = &mut self.sets[set.0 as usize];
        let head = lists.head(class);
        lists.set_head(class, node);
        lists.bytes += len;
        lists.blocks += 1;
        let mut word = len | FREE;
        if set != Self::IDLE {
            word |= TAGGED;
            lists.latest = lists.latest.max(stamp);
            self.tags[node as usize] = Tag { stamp, set: set.0 };
        }
        let entry = &mut self.nodes[node as usize];
        entry.word = word;
        entry.earlier = NIL;
        entry.later = head;
        if head != NIL {
            self.nodes[head as usize].earlier = node;
        }
    }

    /// Takes a free block out of its list; it counts as allocated until it is inserted again.
    #[inline]
    fn unlink(&mut self, node: u32) {
        let set = self.set_of(node);
        let entry = self.nodes[node as usize];
        let len = entry.len();
        let lists = &mut self.sets[set.0 as usize];
        lists.bytes -= len;
        lists.blocks -= 1;
        if entry.earlier == NIL {
            lists.set_head(Class::of(len >> self.shift), entry.later);
        } else {
            self.nodes[entry.earlier as usize].later = entry.later;
        }
        if entry.later != NIL {
            self.nodes[entry.later as usize].earlier = entry.earlier;
        }
        self.nodes[node as usize].word = len;
    }

    /// A place for a node; `None` when there are 2³² - 1.
    #[inline]
    fn node(&mut self, node: Node) -> Option<u32> {
        if self.vacant != NIL {
            let number = self.vacant;
            self.vacant = self.nodes[number as usize].later;
            self.nodes[number as usize] = node;
            return Some(number);
        }
        let number = u32::try_from(self.nodes.len()).ok().filter(|number| *number < NIL)?;
        self.nodes.push(node);
        self.tags.push(Tag::default());
        Some(number)
    }

    #[inline]
    fn vacate(&mut self, node: u32) {
        // A length of zero is no block: a double free is detected.
        self.nodes[node as usize] =
            Node { start: 0, word: 0, before: NIL, after: NIL, earlier: NIL, later: self.vacant };
        self.vacant = node;
    }

    #[inline]
    fn is_allocated(&self, block: BlockId) -> bool {
        self.nodes.get(block.0 as usize).is_some_and(|node| node.word & FLAGS == 0 && node.word != 0)
    }
}
