//! Chunks that a pool gives back: those of which nothing is in use, and all where it forgets them.

use super::{Chunk, FreeBlock, MultiStreamBlock, PoolState, StreamSet, tell};
use crate::memory::{pending_accesses::PendingAccesses, resource::MemoryBlock, tlsf::Tlsf};
use gpumem_core::Backend;
use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

/// What a pool had before it forgot everything.
pub(in crate::memory::pool) struct Forgotten<B: Backend> {
    pub(in crate::memory::pool) blocks: Vec<MemoryBlock<B>>,
    _streams: Vec<StreamSet<B>>,
    _parked: VecDeque<MultiStreamBlock<B>>,
    _last_freed: Option<FreeBlock<B>>,
}

impl<B: Backend> PoolState<B> {
    pub(super) fn note_unused_chunks(&mut self) {
        let now = Instant::now();
        for (start, since) in self.newly_empty.drain(..) {
            if let Some((_, chunk)) = self.chunks.range_mut(..=start).next_back() {
                chunk.unused_since = Some(since);
            }
        }
        for chunk in self.chunks.values_mut() {
            match self.allocator.is_region_idle(chunk.region) {
                true => chunk.unused_since = chunk.unused_since.or(Some(now)),
                false => chunk.unused_since = None,
            }
        }
    }

    /// Bytes of chunks of which nothing is allocated or pending.
    pub(in crate::memory::pool) fn unused_bytes(&self) -> usize {
        let unused = self.chunks.values().filter(|chunk| self.allocator.is_region_idle(chunk.region));
        unused.map(|chunk| chunk.block.bytes()).sum()
    }

    /// Takes out chunks of which nothing is pending, and has been allocated for so long, until `keep` bytes or less are reserved.
    pub(in crate::memory::pool) fn take_unused(
        &mut self,
        keep: usize,
        unused_for: Duration,
    ) -> Vec<MemoryBlock<B>> {
        self.note_unused_chunks();
        let now = Instant::now();
        let is_due = |chunk: &Chunk<B>| chunk.is_unused(now, unused_for);
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
            // Something is allocated or pending in it after all.
            if !self.allocator.remove_region(chunk.region) {
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

    /// Takes out every chunk of which nothing is allocated, and the work that may still be using any of them. Nothing is allocated again.
    pub(in crate::memory::pool) fn take_all_free(&mut self) -> (Vec<MemoryBlock<B>>, PendingAccesses<B>) {
        self.flush_last();
        let pending = self.pending_frees();
        self.streams.drain(..).for_each(|stream| self.allocator.make_idle(stream.set));
        for parked in self.parked.drain(..) {
            self.allocator.free(parked.allocated.block, Tlsf::IDLE, 0);
        }
        self.parked_bytes = 0;
        (self.take_unused(0, Duration::ZERO), pending)
    }

    /// Forgets everything; the chunks are the driver's again. The pool's blocks have another number from here on. What is returned is
    /// dropped without the lock: it may have the last references to streams, and so to a device.
    pub(in crate::memory::pool) fn forget(&mut self, owner: u64) -> Forgotten<B> {
        self.owner = owner;
        let granule = self.allocator.granule();
        let chunks = std::mem::take(&mut self.chunks);
        for (start, chunk) in &chunks {
            tell::<B>(*start + chunk.skip as u64, (chunk.block.bytes() - chunk.skip) as u64, true);
        }
        // Numbers of blocks begin anew: the owner tells old blocks from new ones.
        self.allocator = Tlsf::new(granule);
        self.parked_bytes = 0;
        self.reserved = 0;
        Forgotten {
            blocks: chunks.into_values().map(|chunk| chunk.block).collect(),
            _streams: std::mem::take(&mut self.streams),
            _parked: std::mem::take(&mut self.parked),
            _last_freed: self.last_freed.take(),
        }
    }
}
