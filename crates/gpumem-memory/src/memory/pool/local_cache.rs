//! Blocks that a stream, or a thread, has just freed: so that threads do not contend for the lock of the allocator.
//!
//! A local cache is used only while it is enabled: contention for the allocator enables it for a number of uses. A
//! program of one thread never has an enabled local cache; all its blocks go to the allocator at once, where they are
//! joined with their neighbours.

use super::state::FreeBlock;
use crate::sync::{Rank, ShortMutex};
use gpumem_core::Backend;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// How many blocks a local cache takes before the allocator is tried again.
const ENABLED_USES: u32 = 4096;
/// Lists of a local cache, by size.
const BINS: usize = 16;
/// Blocks of a list.
const DEPTH: usize = 8;
/// Larger blocks go to the allocator.
pub(super) const LARGEST: u64 = 1 << 20;
/// Bytes of a local cache.
const BYTES: u64 = 16 << 20;

/// Shared by the users of one stream or thread; on separate cache lines.
#[repr(align(128))]
pub(super) struct LocalCache<B: Backend> {
    /// Relaxed: threads may lose each other's decrements, and the cache is then used a little longer.
    uses_left: AtomicU32,
    /// How many blocks there are, written under the lock. Relaxed: who reads too few goes to the allocator, who reads too many
    /// finds out under the lock.
    blocks: AtomicUsize,
    cache: ShortMutex<Bins<B>>,
}

/// A free block with the number of the pool at the time: the pool may have forgotten everything since.
pub(super) struct CachedBlock<B: Backend> {
    pub(super) owner: u64,
    pub(super) free: FreeBlock<B>,
}

struct Bins<B: Backend> {
    bins: [Vec<CachedBlock<B>>; BINS],
    bytes: u64,
    served: u64,
}

#[inline]
fn bin(len: u64) -> usize {
    // Sizes of one class differ by less than a part in 32; which of them share a bin does not matter.
    ((len >> 4).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 60) as usize
}

impl<B: Backend> LocalCache<B> {
    pub(super) fn new() -> Self {
        let bins = Bins { bins: std::array::from_fn(|_| Vec::new()), bytes: 0, served: 0 };
        Self {
            uses_left: AtomicU32::new(0),
            blocks: AtomicUsize::new(0),
            cache: ShortMutex::new(Rank::LocalCache, bins),
        }
    }

    /// Enables the cache for a number of uses: the allocator is contended.
    pub(super) fn enable(&self) {
        // Relaxed: other threads may find it out a few blocks later.
        self.uses_left.store(ENABLED_USES, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn is_enabled(&self) -> bool {
        // Relaxed: see the field.
        self.uses_left.load(Ordering::Relaxed) > 0
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        // Relaxed: see the field.
        self.blocks.load(Ordering::Relaxed) == 0
    }

    /// A block of exactly that length that may be used at once.
    #[inline]
    pub(super) fn take(
        &self,
        len: u64,
        align: u64,
        stream: Option<u64>,
        host_first: bool,
    ) -> Option<CachedBlock<B>> {
        // Apart from the lock of the pool, which it is there to spare.
        let mut cache = self.cache.lock();
        let bin = &mut cache.bins[bin(len)];
        let found = &bin.last()?.free;
        let may_wait = match stream {
            Some(stream) => found.uses.are_only_of(stream),
            // The first user waits, on the device.
            None => !host_first || found.uses.is_over(),
        };
        if found.place.len != len || !found.place.is_at(align) || !may_wait {
            return None;
        }
        let mut found = bin.pop()?;
        cache.bytes -= len;
        cache.served += 1;
        // Relaxed: the lock orders writers.
        self.blocks.fetch_sub(1, Ordering::Relaxed);
        drop(cache);
        // Without the lock: it may drop the last reference to a stream, and so to a device.
        found.free.uses.forget_done();
        Some(found)
    }

    /// Keeps a block. Returns it if the local cache is full or not enabled.
    #[inline]
    pub(super) fn put(&self, block: CachedBlock<B>) -> Result<(), CachedBlock<B>> {
        // Relaxed: a lost decrement is a use more.
        let (uses_left, len) = (self.uses_left.load(Ordering::Relaxed), block.free.place.len);
        if uses_left == 0 || len > LARGEST {
            return Err(block);
        }
        // Relaxed: two threads may store the same number, and the cache lives a use longer.
        self.uses_left.store(uses_left - 1, Ordering::Relaxed);
        // Never with the lock of the pool: the caller takes that only if this fails.
        let mut cache = self.cache.lock();
        let full = cache.bytes + len > BYTES;
        let bin = &mut cache.bins[bin(len)];
        if full || bin.len() >= DEPTH {
            return Err(block);
        }
        bin.push(block);
        cache.bytes += len;
        // Relaxed: as in `take`.
        self.blocks.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Takes everything out.
    pub(super) fn drain(&self) -> Vec<CachedBlock<B>> {
        if self.is_empty() {
            return Vec::new();
        }
        // The caller locks the pool only afterwards: a pool asks its caches under its own lock.
        let mut cache = self.cache.lock();
        cache.bytes = 0;
        let all: Vec<_> = cache.bins.iter_mut().flat_map(std::mem::take).collect();
        // Relaxed: as in `take`.
        self.blocks.fetch_sub(all.len(), Ordering::Relaxed);
        all
    }

    pub(super) fn bytes(&self) -> u64 {
        // Before the lock of the pool, which `statistics` takes afterwards.
        if self.is_empty() { 0 } else { self.cache.lock().bytes }
    }

    /// Requests that the local cache has served.
    pub(super) fn served(&self) -> u64 {
        // Within the lock of the pool, which comes first.
        self.cache.lock().served
    }

    pub(super) fn blocks(&self) -> usize {
        // Relaxed: a number for a report.
        self.blocks.load(Ordering::Relaxed)
    }
}

/// A number for the calling thread; threads that start one after the other have different ones.
#[inline]
pub(super) fn thread_number() -> usize {
    use std::cell::Cell;
    // Relaxed: the numbers only have to differ.
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    // At the very end of a thread its variables are gone.
    NUMBER
        .try_with(|number| {
            if number.get() == usize::MAX {
                // Relaxed: as for `NEXT`.
                number.set(NEXT.fetch_add(1, Ordering::Relaxed));
            }
            number.get()
        })
        .unwrap_or(0)
}
