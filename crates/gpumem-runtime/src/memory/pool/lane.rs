//! Blocks that a stream, or a thread, has just given back: so that threads do not meet on the lock of the books.
//!
//! A lane is used only while it is *hot*: a lane becomes hot when somebody meets others at the books, and cools down while
//! it is used. A program of one thread never has a hot lane; all its blocks go to the books at once, where they are
//! joined with their neighbours.

use super::central::{Found, Place};
use crate::{memory::pending::PendingUses, sync::ShortMutex};
use gpumem_core::Backend;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// How many blocks a lane takes before the books are tried again.
const HOT: u32 = 4096;
/// Lists of a lane, by size.
const BINS: usize = 16;
/// Blocks of a list.
const DEPTH: usize = 8;
/// Larger blocks go to the books.
pub(super) const LARGEST: u64 = 1 << 20;
/// Bytes of a lane.
const BYTES: u64 = 16 << 20;

/// Shared by nobody but those of one stream or thread; on lines of its own.
#[repr(align(128))]
pub(super) struct Lane<B: Backend> {
    heat: AtomicU32,
    blocks: AtomicUsize,
    cache: ShortMutex<Cache<B>>,
}

struct Cache<B: Backend> {
    bins: [Vec<Found<B>>; BINS],
    bytes: u64,
    served: u64,
}

#[inline]
fn bin(len: u64) -> usize {
    // Sizes of one class differ by less than a part in 32; which of them share a bin does not matter.
    ((len >> 4).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 60) as usize
}

impl<B: Backend> Lane<B> {
    pub(super) fn new() -> Self {
        Self {
            heat: AtomicU32::new(0),
            blocks: AtomicUsize::new(0),
            cache: ShortMutex::new(Cache { bins: std::array::from_fn(|_| Vec::new()), bytes: 0, served: 0 }),
        }
    }

    /// Somebody has met others at the books.
    pub(super) fn warm_up(&self) {
        self.heat.store(HOT, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn is_hot(&self) -> bool {
        self.heat.load(Ordering::Relaxed) > 0
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
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
    ) -> Option<Found<B>> {
        let mut cache = self.cache.lock();
        let bin = &mut cache.bins[bin(len)];
        let found = bin.last_mut()?;
        found.uses.forget_done();
        let may_wait = match stream {
            Some(stream) => found.uses.are_only_of(stream),
            // Whoever uses it first waits, on the device.
            None => !host_first || found.uses.is_empty(),
        };
        if found.place.len != len || !found.place.is_at(align) || !may_wait {
            return None;
        }
        let found = bin.pop();
        cache.bytes -= len;
        cache.served += 1;
        self.blocks.fetch_sub(1, Ordering::Relaxed);
        found
    }

    /// Keeps a block. Comes back if the lane is full, or cold.
    #[inline]
    pub(super) fn put(&self, place: Place, uses: PendingUses<B>) -> Result<(), Found<B>> {
        let heat = self.heat.load(Ordering::Relaxed);
        if heat == 0 || place.len > LARGEST {
            return Err(Found { place, uses });
        }
        self.heat.store(heat - 1, Ordering::Relaxed);
        let mut cache = self.cache.lock();
        let full = cache.bytes + place.len > BYTES;
        let bin = &mut cache.bins[bin(place.len)];
        if full || bin.len() >= DEPTH {
            return Err(Found { place, uses });
        }
        bin.push(Found { place, uses });
        cache.bytes += place.len;
        self.blocks.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Takes everything out.
    pub(super) fn drain(&self) -> Vec<Found<B>> {
        if self.is_empty() {
            return Vec::new();
        }
        let mut cache = self.cache.lock();
        cache.bytes = 0;
        let all: Vec<_> = cache.bins.iter_mut().flat_map(std::mem::take).collect();
        self.blocks.fetch_sub(all.len(), Ordering::Relaxed);
        all
    }

    pub(super) fn bytes(&self) -> u64 {
        if self.is_empty() { 0 } else { self.cache.lock().bytes }
    }

    /// Requests that the lane has served.
    pub(super) fn served(&self) -> u64 {
        self.cache.lock().served
    }

    pub(super) fn blocks(&self) -> usize {
        self.blocks.load(Ordering::Relaxed)
    }
}

/// A number for the calling thread; threads that start one after the other have different ones.
#[inline]
pub(super) fn thread_number() -> usize {
    use std::cell::Cell;
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    // At the very end of a thread its variables are gone.
    NUMBER
        .try_with(|number| {
            if number.get() == usize::MAX {
                number.set(NEXT.fetch_add(1, Ordering::Relaxed));
            }
            number.get()
        })
        .unwrap_or(0)
}
