//! The books of a pool: what it holds, what is free, and for whom.

mod grown;

use super::meetings::Meetings;
use crate::{
    memory::{
        pending::PendingUses,
        resource::MemoryBlock,
        tlsf::{BlockId, Lent, RegionId, SetId, Tlsf},
    },
    order::Timeline,
};
use gpumem_core::Backend;
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Instant,
};

/// Most parked blocks that are looked at for one request.
const LOOK: usize = 16;
/// Most chunks that are remembered to have become empty before the chunks themselves are told.
const MOST_EMPTIED: usize = 64;

/// A piece that the pool has taken from its upstream.
struct Chunk<B: Backend> {
    region: RegionId,
    block: MemoryBlock<B>,
    /// Bytes between the chunk's first byte and the first that is used.
    skip: usize,
    /// Whether it is the one that grows.
    grows: bool,
    /// Since when nothing of it is lent.
    unused_since: Option<Instant>,
}

impl<B: Backend> Chunk<B> {
    /// Whether nothing of it is lent, and has not been since before then.
    fn is_unused(&self, before: Option<Instant>) -> bool {
        self.unused_since.is_some_and(|since| before.is_none_or(|before| since <= before))
    }
}

/// Blocks that one stream may still be using.
struct StreamSet<B: Backend> {
    timeline: Arc<Timeline<B>>,
    set: SetId,
}

/// A free block that several streams may still be using.
struct Parked<B: Backend> {
    lent: Place,
    uses: PendingUses<B>,
}

/// Where a block is. What a lent block is known by outside.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) block: BlockId,
    /// In the pool's own addresses: the host's where it can see the memory.
    pub(super) start: u64,
    pub(super) len: u64,
}

impl Place {
    /// Whether the block starts at a multiple of `align`; no block does for an `align` that is no power of two.
    #[inline]
    pub(super) fn is_at(&self, align: u64) -> bool {
        align.is_power_of_two() && self.start & (align - 1) == 0
    }
}

/// What was found for a request.
pub(super) struct Found<B: Backend> {
    pub(super) place: Place,
    pub(super) uses: PendingUses<B>,
}

/// On lines of its own: what stands beside it in the pool is read by threads that do not come here.
#[repr(align(128))]
pub(super) struct Central<B: Backend> {
    books: Tlsf,
    chunks: BTreeMap<u64, Chunk<B>>,
    streams: Vec<StreamSet<B>>,
    parked: VecDeque<Parked<B>>,
    parked_bytes: u64,
    /// Where blocks came back whose chunk was unused then, and when.
    emptied: Vec<(u64, Instant)>,
    /// What came back last. A program that makes and drops arrays of one size gets it again without the books; whoever
    /// wants anything else has it put into them first, so that they are always whole when they are read. Since when it has
    /// been unused is not noted: its piece counts as unused from the moment that the block is put into the books.
    last: Option<Found<B>>,
    pub(super) reserved: usize,
    pub(super) peak_reserved: usize,
    pub(super) allocations: u64,
    pub(super) failures: u64,
    pub(super) meetings: Meetings,
    /// Streams whose last use is done: dropped without the lock, because that may drop memory in turn.
    dead: Vec<Arc<Timeline<B>>>,
}

impl<B: Backend> Central<B> {
    pub(super) fn new(granule: usize) -> Self {
        Self {
            books: Tlsf::new(granule as u64),
            chunks: BTreeMap::new(),
            streams: Vec::new(),
            parked: VecDeque::new(),
            parked_bytes: 0,
            emptied: Vec::new(),
            last: None,
            reserved: 0,
            peak_reserved: 0,
            allocations: 0,
            failures: 0,
            meetings: Meetings::default(),
            dead: Vec::new(),
        }
    }

    /// Takes a piece from upstream, all of it idle, and lends of it what it was asked for. Comes back if it cannot be used.
    pub(super) fn add_chunk(
        &mut self,
        block: MemoryBlock<B>,
        bytes: u64,
        align: u64,
    ) -> Result<Option<Found<B>>, MemoryBlock<B>> {
        let base = base(&block);
        let granule = self.books.granule();
        let skip = (base.wrapping_neg() & (granule - 1)) as usize;
        let usable = block.bytes().saturating_sub(skip);
        let Some(region) = self.books.add_region(base + skip as u64, usable as u64) else {
            return Err(block);
        };
        self.reserved += block.bytes();
        self.peak_reserved = self.peak_reserved.max(self.reserved);
        tell::<B>(base + skip as u64, usable as u64, false);
        self.chunks
            .insert(base, Chunk { region, block, skip, grows: false, unused_since: Some(Instant::now()) });
        let lent = self.books.allocate_in(region, bytes, align);
        Ok(lent.map(|lent| self.found(lent, PendingUses::none())))
    }

    /// The chunk that holds an address of the pool.
    fn chunk(&self, start: u64) -> Option<&Chunk<B>> {
        self.chunks.range(..=start).next_back().map(|(_, chunk)| chunk)
    }

    /// The device's address.
    pub(super) fn address(&self, start: u64) -> u64 {
        self.chunk(start)
            .map_or(start, |chunk| chunk.block.address().wrapping_add(start - base(&chunk.block)))
    }

    /// The piece that holds an address of the pool.
    pub(super) fn chunk_of(&self, start: u64) -> Option<&MemoryBlock<B>> {
        self.chunk(start).map(|chunk| &chunk.block)
    }

    fn set_of(&mut self, timeline: &Arc<Timeline<B>>) -> SetId {
        if let Some(found) = self.streams.iter().find(|stream| stream.timeline.id() == timeline.id()) {
            return found.set;
        }
        let set = self.books.add_set();
        self.streams.push(StreamSet { timeline: timeline.clone(), set });
        set
    }

    /// Takes a block back, with what may still be using it.
    #[inline]
    pub(super) fn free(&mut self, place: Place, uses: PendingUses<B>) {
        if B::IS_WATCHED && uses.is_empty() {
            tell::<B>(place.start, place.len, false);
        }
        if let Some(before) = self.last.replace(Found { place, uses }) {
            self.enter(before.place, before.uses);
        }
    }

    /// Puts what came back last into the books. To be called before anything reads them.
    #[inline]
    pub(super) fn complete(&mut self) {
        if let Some(last) = self.last.take() {
            self.enter(last.place, last.uses);
        }
    }

    #[inline]
    fn enter(&mut self, place: Place, uses: PendingUses<B>) {
        match uses.as_slice() {
            [] => self.free_idle(place),
            [(timeline, ticket)] => {
                let (set, ticket) = (self.set_of(timeline), *ticket);
                self.books.free(place.block, set, ticket);
            }
            _ => {
                self.parked_bytes += place.len;
                self.parked.push_back(Parked { lent: place, uses });
            }
        }
    }

    #[inline]
    fn free_idle(&mut self, place: Place) {
        tell::<B>(place.start, place.len, false);
        if self.books.free(place.block, Tlsf::IDLE, 0) {
            // Finding the chunk takes longer than reading the clock, and can wait.
            self.emptied.push((place.start, Instant::now()));
            if self.emptied.len() >= MOST_EMPTIED {
                self.note_unused_chunks();
            }
        }
    }

    /// A block that may be used at once: idle, or only still used by `stream`, which is going to use it.
    #[inline]
    pub(super) fn take(
        &mut self,
        bytes: u64,
        align: u64,
        stream: Option<&Arc<Timeline<B>>>,
    ) -> Option<Found<B>> {
        let len = bytes.checked_next_multiple_of(self.books.granule())?;
        let serves = |last: &mut Found<B>| {
            last.place.len == len && last.place.is_at(align) && last.uses.permit(stream)
        };
        if let Some(last) = self.last.take_if(serves) {
            self.allocations += 1;
            tell::<B>(last.place.start, last.place.len, true);
            return Some(last);
        }
        self.complete();
        if let Some(timeline) = stream
            && let Some(set) =
                self.streams.iter().find(|have| have.timeline.id() == timeline.id()).map(|have| have.set)
            && let Some(lent) = self.books.allocate(set, bytes, align)
        {
            let uses = match timeline.has_passed(lent.stamp) {
                true => PendingUses::none(),
                false => PendingUses::one(timeline, lent.stamp),
            };
            return Some(self.found(lent, uses));
        }
        let lent = self.books.allocate(Tlsf::IDLE, bytes, align)?;
        Some(self.found(lent, PendingUses::none()))
    }

    #[inline]
    fn found(&mut self, lent: Lent, uses: PendingUses<B>) -> Found<B> {
        self.allocations += 1;
        tell::<B>(lent.start, lent.len, true);
        Found { place: Place { block: lent.block, start: lent.start, len: lent.len }, uses }
    }

    /// As [`take`](Self::take), and also blocks that other streams may still be using. Whoever uses one waits for them.
    pub(super) fn take_in_flight(&mut self, bytes: u64, align: u64) -> Option<Found<B>> {
        // The stream that has freed most may be the one that goes on with it.
        for index in 0..self.streams.len() {
            let set = self.streams[index].set;
            if let Some(lent) = self.books.allocate(set, bytes, align) {
                let timeline = self.streams[index].timeline.clone();
                return Some(self.found(lent, PendingUses::one(&timeline, lent.stamp)));
            }
        }
        let fits = |parked: &Parked<B>| {
            let place = parked.lent;
            place.len >= bytes && place.len / 2 <= bytes && place.is_at(align)
        };
        let first = self.parked.len().saturating_sub(LOOK);
        let index = (first..self.parked.len()).rev().find(|index| fits(&self.parked[*index]))?;
        let parked = self.parked.remove(index)?;
        self.parked_bytes -= parked.lent.len;
        self.allocations += 1;
        Some(Found { place: parked.lent, uses: parked.uses })
    }

    /// Makes idle what is known to be done. No driver call. Whether anything was.
    pub(super) fn settle(&mut self) -> bool {
        let mut any = false;
        let mut index = 0;
        while index < self.streams.len() {
            let (set, passed) = {
                let stream = &self.streams[index];
                (stream.set, stream.timeline.has_passed(self.books.latest_stamp(stream.set)))
            };
            if !passed {
                index += 1;
                continue;
            }
            any |= self.books.free_blocks(set) > 0;
            self.idle_set(set);
            // A set that is empty goes: streams come and go.
            self.books.remove_set(set);
            self.dead.push(self.streams.swap_remove(index).timeline);
        }
        for _ in 0..self.parked.len() {
            let Some(mut parked) = self.parked.pop_front() else { break };
            let dead = &mut self.dead;
            parked.uses.retain(|(timeline, ticket)| {
                let passed = timeline.has_passed(*ticket);
                if passed {
                    dead.push(timeline.clone());
                }
                !passed
            });
            if parked.uses.as_slice().len() > 1 {
                self.parked.push_back(parked);
                continue;
            }
            any = true;
            self.parked_bytes -= parked.lent.len;
            self.enter(parked.lent, parked.uses);
        }
        if any {
            self.note_unused_chunks();
        }
        any
    }

    /// What must be dropped without the lock.
    pub(super) fn take_dead(&mut self) -> Vec<Arc<Timeline<B>>> {
        std::mem::take(&mut self.dead)
    }

    fn idle_set(&mut self, set: SetId) {
        if B::IS_WATCHED {
            let regions: Vec<_> = self.chunks.values().map(|chunk| chunk.region).collect();
            for region in regions {
                for entry in self.books.blocks(region).filter(|entry| entry.free_in == Some(set)) {
                    tell::<B>(entry.start, entry.len, false);
                }
            }
        }
        self.books.make_idle(set);
    }

    fn note_unused_chunks(&mut self) {
        let now = Instant::now();
        for (start, since) in self.emptied.drain(..) {
            if let Some((_, chunk)) = self.chunks.range_mut(..=start).next_back() {
                chunk.unused_since = Some(since);
            }
        }
        for chunk in self.chunks.values_mut() {
            match self.books.is_region_idle(chunk.region) {
                true => chunk.unused_since = chunk.unused_since.or(Some(now)),
                false => chunk.unused_since = None,
            }
        }
    }

    /// What may still be using free blocks: the last use of each stream.
    pub(super) fn pending(&self) -> PendingUses<B> {
        let mut pending = PendingUses::none();
        for stream in &self.streams {
            pending.add(&stream.timeline, self.books.latest_stamp(stream.set));
        }
        for parked in &self.parked {
            parked.uses.iter().for_each(|(timeline, ticket)| pending.add(timeline, *ticket));
        }
        pending.forget_done();
        pending
    }

    /// Bytes of chunks of which nothing is lent or pending.
    pub(super) fn unused_bytes(&self) -> usize {
        let unused =
            self.chunks.values().filter(|chunk| !chunk.grows && self.books.is_region_idle(chunk.region));
        unused.map(|chunk| chunk.block.bytes()).sum()
    }

    /// Takes out chunks of which nothing is lent or pending, until `keep` bytes or less are reserved.
    pub(super) fn take_unused(&mut self, keep: usize, unused_before: Option<Instant>) -> Vec<MemoryBlock<B>> {
        self.note_unused_chunks();
        let is_due = |chunk: &Chunk<B>| !chunk.grows && chunk.is_unused(unused_before);
        let mut taken = Vec::new();
        let due: Vec<u64> =
            self.chunks.iter().filter(|(_, chunk)| is_due(chunk)).map(|(base, _)| *base).collect();
        // The newest pieces are the largest: they go first.
        for base in due.into_iter().rev() {
            if self.reserved <= keep {
                break;
            }
            let Some(chunk) = self.chunks.get(&base) else { continue };
            let (start, len) = (base + chunk.skip as u64, (chunk.block.bytes() - chunk.skip) as u64);
            if !self.books.remove_region(chunk.region) {
                continue;
            }
            tell::<B>(start, len, true);
            if let Some(chunk) = self.chunks.remove(&base) {
                self.reserved -= chunk.block.bytes();
                taken.push(chunk.block);
            }
        }
        taken
    }

    /// Forgets everything; the chunks are the driver's again.
    pub(super) fn forget(&mut self) -> Vec<MemoryBlock<B>> {
        let granule = self.books.granule();
        let chunks = std::mem::take(&mut self.chunks);
        for (start, chunk) in &chunks {
            tell::<B>(*start + chunk.skip as u64, (chunk.block.bytes() - chunk.skip) as u64, true);
        }
        self.last = None;
        self.books = Tlsf::new(granule);
        self.streams.clear();
        self.parked.clear();
        self.parked_bytes = 0;
        self.reserved = 0;
        chunks.into_values().map(|chunk| chunk.block).collect()
    }

    // ---- numbers --------------------------------------------------------------------------------------------------

    pub(super) fn lent_bytes(&self) -> u64 {
        self.books.lent_bytes() - self.parked_bytes
    }

    pub(super) fn lent_blocks(&self) -> usize {
        self.books.lent_blocks() - self.parked.len()
    }

    pub(super) fn in_flight_bytes(&self) -> u64 {
        self.parked_bytes + self.streams.iter().map(|stream| self.books.free_bytes(stream.set)).sum::<u64>()
    }

    pub(super) fn largest_free(&self) -> u64 {
        let sets = self.streams.iter().map(|stream| stream.set).chain([Tlsf::IDLE]);
        let parked = self.parked.iter().map(|parked| parked.lent.len);
        sets.map(|set| self.books.largest_free(set)).chain(parked).max().unwrap_or(0)
    }

    pub(super) fn chunks(&self) -> usize {
        self.chunks.len()
    }
}

/// Tells memory checkers about a part of a chunk of the pool. What is not lent nobody may be using any more.
#[inline]
pub(super) fn tell<B: Backend>(start: u64, len: u64, lent: bool) {
    if B::IS_WATCHED {
        // SAFETY: the range lies in a chunk of the pool, and what is not lent nobody uses any more.
        unsafe { B::watch(start, len as usize, lent) };
    }
}

/// The first byte in the pool's own addresses.
fn base<B: Backend>(block: &MemoryBlock<B>) -> u64 {
    block.host().map_or(block.address(), |host| host.as_ptr() as u64)
}
