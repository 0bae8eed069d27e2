//! The piece that grows in place.

use super::{Chunk, PoolState, base, tell};
use crate::memory::{
    pending_accesses::PendingAccesses,
    resource::{BlockOrigin, MemoryBlock, ResourceId},
};
use gpumem_core::{Backend, MemoryKind};
use std::time::Instant;

impl<B: Backend> PoolState<B> {
    /// Bytes that the piece that grows lacks at its end for a block of so many bytes; of `None` for one that there is not
    /// yet, and that will begin at `start`. None if the block would be too large for any.
    pub(in crate::memory::pool) fn missing(&mut self, start: u64, bytes: u64, align: u64) -> Option<usize> {
        self.flush_last();
        let bytes = bytes.checked_next_multiple_of(self.allocator.granule())?;
        let end = self.grown().map_or(start, |chunk| base(&chunk.block) + chunk.block.bytes() as u64);
        let (tail, len) = self.allocator.tail().unwrap_or((end, 0));
        let gap = tail.wrapping_neg() & (align.max(1) - 1);
        usize::try_from(bytes.checked_add(gap)?.saturating_sub(len)).ok()
    }

    /// Takes the piece that grows over, all of it idle; or notes that it has become longer. Whether the allocator could take
    /// it.
    pub(in crate::memory::pool) fn grow_to(&mut self, address: u64, bytes: usize, generation: u64) -> bool {
        self.flush_last();
        let old = self.grown().map_or(0, |chunk| chunk.block.bytes());
        let more = bytes.saturating_sub(old);
        if old > 0 {
            if !self.allocator.grow(more as u64) {
                return false;
            }
            if let Some(chunk) = self.grown_mut() {
                chunk.block.set_bytes(bytes);
            }
        } else {
            let Some(region) = self.allocator.add_growing(address, bytes as u64) else { return false };
            let resource_id =
                BlockOrigin { resource: ResourceId::new(), generation, kind: MemoryKind::Device };
            // SAFETY: memory of the device that is the pool's alone, as its owner promises; it is never lent as a whole.
            let block =
                unsafe { MemoryBlock::of_pool((address, 0, bytes), 0, resource_id, PendingAccesses::none()) };
            let chunk = Chunk { region, block, skip: 0, grows: true, unused_since: Some(Instant::now()) };
            self.chunks.insert(address, chunk);
        }
        self.reserved += more;
        self.peak_reserved = self.peak_reserved.max(self.reserved);
        tell::<B>(address + old as u64, more as u64, false);
        true
    }

    /// The length that the piece that grows could be cut to, so that the pool keeps `keep` bytes or more: where the first
    /// byte is that is neither lent nor pending, and nothing of this behind it.
    pub(in crate::memory::pool) fn needed(
        &mut self,
        keep: usize,
        unused_before: Option<Instant>,
    ) -> Option<usize> {
        self.flush_last();
        self.note_unused_chunks();
        let chunk = self.grown()?;
        if unused_before.is_some() && !chunk.is_unused(unused_before) {
            return None;
        }
        let (tail, _) = self.allocator.tail()?;
        let surplus = self.reserved.saturating_sub(keep);
        let used = tail.wrapping_sub(chunk.block.address()) as usize;
        Some(used.max(chunk.block.bytes().saturating_sub(surplus)))
    }

    /// Takes what is behind `bytes` bytes of the piece that grows out of the allocator. Whether it was idle.
    pub(in crate::memory::pool) fn cut_to(&mut self, bytes: usize) -> bool {
        let Some(chunk) = self.grown() else { return false };
        let (region, start, old) = (chunk.region, chunk.block.address(), chunk.block.bytes());
        let less = old.saturating_sub(bytes);
        let is_cut = match bytes {
            0 => self.allocator.remove_region(region),
            _ => self.allocator.shrink(less as u64),
        };
        if !is_cut {
            return false;
        }
        tell::<B>(start + bytes as u64, less as u64, true);
        self.reserved -= less;
        if bytes == 0 {
            self.chunks.remove(&start);
        } else if let Some(chunk) = self.grown_mut() {
            chunk.block.set_bytes(bytes);
        }
        true
    }

    /// Bytes of the piece that grows.
    pub(in crate::memory::pool) fn grown_bytes(&self) -> usize {
        self.grown().map_or(0, |chunk| chunk.block.bytes())
    }

    fn grown(&self) -> Option<&Chunk<B>> {
        self.chunks.values().find(|chunk| chunk.grows)
    }

    fn grown_mut(&mut self) -> Option<&mut Chunk<B>> {
        self.chunks.values_mut().find(|chunk| chunk.grows)
    }
}
