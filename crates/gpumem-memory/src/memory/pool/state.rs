//! The state of a pool: its chunks, and its free blocks by stream.

mod unused;

use super::{PoolOptions, contention::ContentionCounter};
use crate::{
    memory::{
        DeviceCore,
        pending_accesses::PendingAccesses,
        resource::MemoryBlock,
        tlsf::{AllocatedBlock, BlockId, RegionId, SetId, Tlsf},
    },
    track::Timeline,
};
use gpumem_core::Backend;
use std::{
    collections::{BTreeMap, VecDeque},
    mem,
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

/// Most parked blocks that are looked at for one request.
const LOOK: usize = 16;
/// Most chunks that are remembered to have become empty before the chunks themselves are told.
const MAX_NEWLY_EMPTY: usize = 64;

/// A piece that the pool has taken from its upstream.
struct Chunk<B: Backend> {
    region: RegionId,
    block: MemoryBlock<B>,
    /// Bytes between the chunk's first byte and the first that is used.
    skip: usize,
    /// Since when nothing of it is allocated.
    unused_since: Option<Instant>,
}

impl<B: Backend> Chunk<B> {
    /// Its last byte in the pool's own addresses.
    fn last(&self) -> u64 {
        base(&self.block).saturating_add((self.block.bytes() as u64).saturating_sub(1))
    }

    /// Whether nothing of it has been allocated for so long, up to `now`.
    fn is_unused(&self, now: Instant, unused_for: Duration) -> bool {
        self.unused_since.is_some_and(|since| now.saturating_duration_since(since) >= unused_for)
    }
}

/// How the device and the host address a chunk.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Addressing {
    /// From the pool's own addresses to the device's.
    shift: u64,
    is_seen_by_host: bool,
}

impl Addressing {
    fn of<B: Backend>(block: &MemoryBlock<B>) -> Self {
        Self { shift: block.address().wrapping_sub(base(block)), is_seen_by_host: block.host().is_some() }
    }
}

/// Blocks that one stream may still be using.
struct StreamSet<B: Backend> {
    timeline: Arc<Timeline<B>>,
    set: SetId,
}

/// A free block that several streams may still be using.
struct MultiStreamBlock<B: Backend> {
    allocated: BlockRef,
    uses: PendingAccesses<B>,
}

/// The position of a block, which identifies an allocated block outside.
#[derive(Debug, Clone, Copy)]
pub(super) struct BlockRef {
    pub(super) block: BlockId,
    /// The device's address.
    pub(super) address: u64,
    /// The host's address; 0 if the host cannot see the memory.
    pub(super) host: u64,
    pub(super) len: u64,
}

impl BlockRef {
    /// The first byte in the pool's own addresses: the host's where it can see the memory.
    #[inline]
    pub(super) fn start(&self) -> u64 {
        if self.host == 0 { self.address } else { self.host }
    }

    /// Whether the block starts at a multiple of `align`; no block does for an `align` that is no power of two.
    #[inline]
    pub(super) fn is_at(&self, align: u64) -> bool {
        align.is_power_of_two() && self.start() & (align - 1) == 0
    }
}

/// The block found for a request.
pub(super) struct FreeBlock<B: Backend> {
    pub(super) place: BlockRef,
    pub(super) uses: PendingAccesses<B>,
}

/// On separate cache lines: threads that do not come here read the fields next to it.
#[repr(align(128))]
pub(super) struct PoolState<B: Backend> {
    /// The number of the pool in its blocks. A block with another one is from before the pool forgot everything, and none of the
    /// allocator's.
    pub(super) owner: u64,
    allocator: Tlsf,
    options: PoolOptions,
    chunks: BTreeMap<u64, Chunk<B>>,
    /// Of every chunk, if it is the same.
    addressing: Option<Addressing>,
    streams: Vec<StreamSet<B>>,
    parked: VecDeque<MultiStreamBlock<B>>,
    parked_bytes: u64,
    /// Chunks that became unused, with the time.
    newly_empty: Vec<(u64, Instant)>,
    /// The last freed block. A program that makes and drops arrays of one size gets it again without the allocator. Any
    /// other request puts it into the free lists first, so that they are always complete when they are read. Its piece
    /// counts as unused from that moment.
    last_freed: Option<FreeBlock<B>>,
    pub(super) reserved: usize,
    pub(super) peak_reserved: usize,
    pub(super) allocations: u64,
    pub(super) failures: u64,
    pub(super) contention: ContentionCounter,
    /// The device of the chunks.
    pub(super) core: Weak<DeviceCore<B>>,
    /// Streams whose last use is done: dropped without the lock, because that may drop memory in turn.
    retired_timelines: Vec<Arc<Timeline<B>>>,
}

impl<B: Backend> PoolState<B> {
    pub(super) fn new(options: PoolOptions, owner: u64) -> Self {
        Self {
            owner,
            allocator: Tlsf::new(options.alignment as u64),
            options,
            chunks: BTreeMap::new(),
            addressing: None,
            streams: Vec::new(),
            parked: VecDeque::new(),
            parked_bytes: 0,
            newly_empty: Vec::new(),
            last_freed: None,
            reserved: 0,
            peak_reserved: 0,
            allocations: 0,
            failures: 0,
            contention: ContentionCounter::default(),
            core: Weak::new(),
            retired_timelines: Vec::new(),
        }
    }

    /// Takes a piece from upstream, and allocates the requested part of it. Work that may still be using the piece is
    /// pending for each of its parts. The piece comes back if it cannot be used.
    pub(super) fn add_chunk(
        &mut self,
        mut block: MemoryBlock<B>,
        bytes: u64,
        align: u64,
    ) -> Result<Option<FreeBlock<B>>, MemoryBlock<B>> {
        let base = base(&block);
        let granule = self.allocator.granule();
        let skip = (base.wrapping_neg() & (granule - 1)) as usize;
        let usable = block.bytes().saturating_sub(skip);
        let last = base.saturating_add((block.bytes() as u64).saturating_sub(1));
        // Chunks do not overlap, so the one that starts last before the end is the only one to ask.
        if self.chunk(last).is_some_and(|before| before.last() >= base) {
            // Memory of the pool itself, which upstream has taken from it.
            return Err(block);
        }
        let Some(region) = self.allocator.add_region(base + skip as u64, usable as u64) else {
            return Err(block);
        };
        // Counted with what is skipped at its beginning: upstream gets that back too.
        self.reserved += block.bytes();
        self.peak_reserved = self.peak_reserved.max(self.reserved);
        let uses = block.take_uses();
        if uses.is_empty() {
            tell::<B>(base + skip as u64, usable as u64, false);
        }
        let addressing = Addressing::of(&block);
        let is_same = self.chunks.is_empty() || self.addressing == Some(addressing);
        self.addressing = is_same.then_some(addressing);
        self.chunks.insert(base, Chunk { region, block, skip, unused_since: Some(Instant::now()) });
        let allocated = self.allocator.allocate_in(region, bytes, align);
        let found = allocated.map(|allocated| self.found(allocated, uses.copied()));
        if !uses.is_empty() {
            for rest in self.allocator.allocate_rest(region) {
                let place = self.placed(rest);
                self.enter(place, uses.copied());
            }
        }
        Ok(found)
    }

    /// The chunk that holds an address of the pool.
    fn chunk(&self, start: u64) -> Option<&Chunk<B>> {
        self.chunks.range(..=start).next_back().map(|(_, chunk)| chunk)
    }

    /// A block of the allocator with its addresses.
    #[inline]
    fn placed(&self, AllocatedBlock { block, start, len, .. }: AllocatedBlock) -> BlockRef {
        let Addressing { shift, is_seen_by_host } =
            self.addressing.unwrap_or_else(|| self.addressing_at(start));
        let host = if is_seen_by_host { start } else { 0 };
        BlockRef { block, address: start.wrapping_add(shift), host, len }
    }

    #[cold]
    fn addressing_at(&self, start: u64) -> Addressing {
        self.chunk(start).map_or_else(Addressing::default, |chunk| Addressing::of(&chunk.block))
    }

    /// The piece that holds an address of the pool.
    pub(super) fn chunk_of(&self, start: u64) -> Option<&MemoryBlock<B>> {
        self.chunk(start).map(|chunk| &chunk.block)
    }

    fn set_of(&mut self, timeline: &Arc<Timeline<B>>) -> SetId {
        if let Some(found) = self.streams.iter().find(|stream| stream.timeline.id() == timeline.id()) {
            return found.set;
        }
        let set = self.allocator.add_set();
        // The reference keeps the stream until its last use of the set is done.
        self.streams.push(StreamSet { timeline: timeline.clone(), set });
        set
    }

    /// Frees a block with that number of the pool, and with its pending uses. One that the pool has forgotten stays with the
    /// driver.
    #[inline(always)]
    pub(super) fn free(&mut self, owner: u64, place: BlockRef, uses: PendingAccesses<B>) {
        if owner != self.owner {
            // Kept to be dropped without the lock.
            uses.for_each(|timeline, _| self.retired_timelines.push(timeline));
            return;
        }
        if B::WANTS_POISONING && uses.is_empty() {
            tell::<B>(place.start(), place.len, false);
        }
        if self.last_freed.is_some() {
            self.complete_now();
        }
        // There is nothing to drop.
        mem::forget(self.last_freed.replace(FreeBlock { place, uses }));
    }

    /// Puts the last freed block into the free lists. Call it before they are read.
    #[inline]
    pub(super) fn flush_last(&mut self) {
        if let Some(last) = self.last_freed.take() {
            self.enter(last.place, last.uses);
        }
    }

    #[inline(never)]
    fn complete_now(&mut self) {
        self.flush_last();
    }

    #[inline]
    fn enter(&mut self, place: BlockRef, uses: PendingAccesses<B>) {
        match uses.as_slice() {
            [] => self.free_idle(place),
            [(timeline, submission)] => {
                let (set, submission) = (self.set_of(timeline), *submission);
                self.allocator.free(place.block, set, submission);
            }
            _ => {
                self.parked_bytes += place.len;
                self.parked.push_back(MultiStreamBlock { allocated: place, uses });
            }
        }
    }

    #[inline]
    fn free_idle(&mut self, place: BlockRef) {
        tell::<B>(place.start(), place.len, false);
        if self.allocator.free(place.block, Tlsf::IDLE, 0) {
            // Finding the chunk takes longer than reading the clock, and can wait.
            self.newly_empty.push((place.start(), Instant::now()));
            if self.newly_empty.len() >= MAX_NEWLY_EMPTY {
                self.note_unused_chunks();
            }
        }
    }

    /// A block that may be used at once: idle, or only still used by `stream`, which is going to use it.
    pub(super) fn take(
        &mut self,
        bytes: u64,
        align: u64,
        stream: Option<&Arc<Timeline<B>>>,
    ) -> Option<FreeBlock<B>> {
        self.take_last(bytes, align, stream).or_else(|| self.take_from_allocator(bytes, align, stream))
    }

    /// As [`take`](Self::take), for the last freed block without uses. Apart, so that none are moved: nearly every array that is
    /// made in a loop comes here.
    #[inline(always)]
    pub(super) fn take_last_idle(&mut self, bytes: u64, align: u64) -> Option<BlockRef> {
        let len = bytes.checked_next_multiple_of(self.allocator.granule())?;
        let last = self.last_freed.as_ref()?;
        let place = last.place;
        if place.len != len || !place.is_at(align) || !last.uses.is_empty() {
            return None;
        }
        // There is nothing to drop.
        mem::forget(self.last_freed.take());
        self.allocations += 1;
        tell::<B>(place.start(), place.len, true);
        Some(place)
    }

    /// As [`take`](Self::take), for the last freed block.
    fn take_last(
        &mut self,
        bytes: u64,
        align: u64,
        stream: Option<&Arc<Timeline<B>>>,
    ) -> Option<FreeBlock<B>> {
        let len = bytes.checked_next_multiple_of(self.allocator.granule())?;
        let serves = |last: &mut FreeBlock<B>| {
            last.place.len == len && last.place.is_at(align) && last.uses.permit(stream)
        };
        let last = self.last_freed.take_if(serves)?;
        self.allocations += 1;
        tell::<B>(last.place.start(), last.place.len, true);
        Some(last)
    }

    /// As [`take`](Self::take), for other blocks.
    fn take_from_allocator(
        &mut self,
        bytes: u64,
        align: u64,
        stream: Option<&Arc<Timeline<B>>>,
    ) -> Option<FreeBlock<B>> {
        self.flush_last();
        let most = self.options.largest_cut(bytes);
        if let Some(timeline) = stream
            && let Some(set) =
                self.streams.iter().find(|have| have.timeline.id() == timeline.id()).map(|have| have.set)
            && let Some(allocated) = self.allocator.allocate_up_to(set, bytes, align, most)
        {
            // The stamp is the latest use of any part that was joined: never too early.
            let uses = match timeline.is_complete(allocated.stamp) {
                true => PendingAccesses::none(),
                false => PendingAccesses::one(timeline, allocated.stamp),
            };
            return Some(self.found(allocated, uses));
        }
        let allocated = self.allocator.allocate_up_to(Tlsf::IDLE, bytes, align, most)?;
        Some(self.found(allocated, PendingAccesses::none()))
    }

    /// A block of any idle one, however large: for when the pool cannot grow.
    pub(super) fn take_idle(&mut self, bytes: u64, align: u64) -> Option<FreeBlock<B>> {
        self.flush_last();
        let allocated = self.allocator.allocate(Tlsf::IDLE, bytes, align)?;
        Some(self.found(allocated, PendingAccesses::none()))
    }

    #[inline]
    fn found(&mut self, allocated: AllocatedBlock, uses: PendingAccesses<B>) -> FreeBlock<B> {
        self.allocations += 1;
        tell::<B>(allocated.start, allocated.len, true);
        FreeBlock { place: self.placed(allocated), uses }
    }

    /// As [`take`](Self::take), and also blocks that other streams may still be using. The new user waits for them, on
    /// the device.
    pub(super) fn take_in_flight(&mut self, bytes: u64, align: u64) -> Option<FreeBlock<B>> {
        // The stream that has freed most may be the one that goes on with it.
        for index in 0..self.streams.len() {
            let set = self.streams[index].set;
            if let Some(allocated) = self.allocator.allocate(set, bytes, align) {
                let timeline = self.streams[index].timeline.clone();
                return Some(self.found(allocated, PendingAccesses::one(&timeline, allocated.stamp)));
            }
        }
        let fits = |parked: &MultiStreamBlock<B>| {
            let place = parked.allocated;
            place.len >= bytes && place.len / 2 <= bytes && place.is_at(align)
        };
        let first = self.parked.len().saturating_sub(LOOK);
        let index = (first..self.parked.len()).rev().find(|index| fits(&self.parked[*index]))?;
        let parked = self.parked.remove(index)?;
        self.parked_bytes -= parked.allocated.len;
        self.allocations += 1;
        Some(FreeBlock { place: parked.allocated, uses: parked.uses })
    }

    /// Makes finished blocks idle. No driver call. Returns whether there were any.
    pub(super) fn collect_done(&mut self) -> bool {
        let mut any = false;
        let mut index = 0;
        while index < self.streams.len() {
            let (set, passed) = {
                let stream = &self.streams[index];
                // The set as a whole: its blocks are joined, and have one stamp for all.
                (stream.set, stream.timeline.is_complete(self.allocator.latest_stamp(stream.set)))
            };
            if !passed {
                index += 1;
                continue;
            }
            any |= self.allocator.free_blocks(set) > 0;
            self.idle_set(set);
            // A set that is empty goes: streams come and go.
            self.allocator.remove_set(set);
            self.retired_timelines.push(self.streams.swap_remove(index).timeline);
        }
        // Once around: those that stay go to the back, and are not looked at twice.
        for _ in 0..self.parked.len() {
            let Some(mut parked) = self.parked.pop_front() else { break };
            let retired_timelines = &mut self.retired_timelines;
            parked.uses.retain(|(timeline, submission)| {
                let passed = timeline.is_complete(*submission);
                if passed {
                    retired_timelines.push(timeline.clone());
                }
                !passed
            });
            if parked.uses.as_slice().len() > 1 {
                self.parked.push_back(parked);
                continue;
            }
            any = true;
            self.parked_bytes -= parked.allocated.len;
            // One stream is left, or none: a set takes it, and it can be joined with its neighbours.
            self.enter(parked.allocated, parked.uses);
        }
        if any {
            self.note_unused_chunks();
        }
        any
    }

    /// Values that must be dropped without the lock.
    pub(super) fn take_retired(&mut self) -> Vec<Arc<Timeline<B>>> {
        std::mem::take(&mut self.retired_timelines)
    }

    fn idle_set(&mut self, set: SetId) {
        if B::WANTS_POISONING {
            let regions: Vec<_> = self.chunks.values().map(|chunk| chunk.region).collect();
            for region in regions {
                for entry in self.allocator.blocks(region).filter(|entry| entry.free_in == Some(set)) {
                    tell::<B>(entry.start, entry.len, false);
                }
            }
        }
        self.allocator.make_idle(set);
    }

    /// Pending uses of free blocks: the last use of each stream.
    pub(super) fn pending_frees(&self) -> PendingAccesses<B> {
        let mut pending = PendingAccesses::none();
        for stream in &self.streams {
            pending.add(&stream.timeline, self.allocator.latest_stamp(stream.set));
        }
        for parked in &self.parked {
            parked.uses.iter().for_each(|(timeline, submission)| pending.add(timeline, *submission));
        }
        pending.forget_done();
        pending
    }

    // ---- numbers --------------------------------------------------------------------------------------------------

    pub(super) fn allocated_bytes(&self) -> u64 {
        self.allocator.allocated_bytes() - self.parked_bytes
    }

    pub(super) fn allocated_blocks(&self) -> usize {
        self.allocator.allocated_blocks() - self.parked.len()
    }

    pub(super) fn in_flight_bytes(&self) -> u64 {
        self.parked_bytes
            + self.streams.iter().map(|stream| self.allocator.free_bytes(stream.set)).sum::<u64>()
    }

    pub(super) fn largest_free(&self) -> u64 {
        let sets = self.streams.iter().map(|stream| stream.set).chain([Tlsf::IDLE]);
        let parked = self.parked.iter().map(|parked| parked.allocated.len);
        sets.map(|set| self.allocator.largest_free(set)).chain(parked).max().unwrap_or(0)
    }

    pub(super) fn chunks(&self) -> usize {
        self.chunks.len()
    }
}

/// Tells memory checkers about a part of a chunk of the pool. Bytes that are not allocated must not be in
/// use.
#[inline]
pub(super) fn tell<B: Backend>(start: u64, len: u64, allocated: bool) {
    if B::WANTS_POISONING {
        // SAFETY: the range lies in a chunk of the pool, and bytes that are not allocated are not in use.
        unsafe { B::set_poisoned(start, len as usize, allocated) };
    }
}

/// The first byte in the pool's own addresses.
fn base<B: Backend>(block: &MemoryBlock<B>) -> u64 {
    block.host().map_or(block.address(), |host| host.as_ptr() as u64)
}
