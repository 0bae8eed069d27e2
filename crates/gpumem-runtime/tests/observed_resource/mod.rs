//! A model of a pool: its pieces from the driver, and its allocated blocks.

use gpumem_core::{Error, Result};
use gpumem_host::Host;
use gpumem_runtime::memory::{MemoryBlock, MemoryRequest, MemoryResource, MemoryStatistics, Trim};
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
};

/// Ranges by the address of their first byte.
type Ranges = BTreeMap<u64, u64>;

/// Between the pool and the driver: the pieces that the pool has.
#[derive(Debug)]
pub(crate) struct Chunks {
    upstream: Arc<dyn MemoryResource<Host>>,
    have: Arc<Mutex<Ranges>>,
    peak: Arc<AtomicUsize>,
}

impl Chunks {
    pub(crate) fn over(upstream: Arc<dyn MemoryResource<Host>>) -> Self {
        Self { upstream, have: Arc::default(), peak: Arc::default() }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.have.lock().unwrap().values().sum::<u64>() as usize
    }
}

impl MemoryResource<Host> for Chunks {
    fn name(&self) -> &'static str {
        "chunks"
    }

    fn allocate(&self, request: &MemoryRequest<'_, Host>) -> Result<MemoryBlock<Host>> {
        let block = self.upstream.allocate(request)?;
        self.have.lock().unwrap().insert(block.address(), block.bytes() as u64);
        self.peak.fetch_max(self.bytes(), Ordering::Relaxed);
        Ok(block)
    }

    fn deallocate(&self, block: MemoryBlock<Host>) -> Result<()> {
        let was = self.have.lock().unwrap().remove(&block.address());
        assert_eq!(was, Some(block.bytes() as u64), "a piece that the pool does not have");
        self.upstream.deallocate(block)
    }

    fn forget(&self) {
        self.have.lock().unwrap().clear();
    }

    fn statistics(&self) -> MemoryStatistics {
        self.upstream.statistics()
    }
}

/// Between the arrays and the pool: the allocated blocks.
#[derive(Debug)]
pub(crate) struct Observed {
    pool: Arc<dyn MemoryResource<Host>>,
    chunks: Arc<Chunks>,
    granule: u64,
    allocated: Mutex<Ranges>,
    served: AtomicU64,
    align: AtomicUsize,
    /// A planted fault: the pending uses of a block are forgotten when it is freed.
    forgets: AtomicBool,
}

impl Observed {
    pub(crate) fn over(pool: Arc<dyn MemoryResource<Host>>, chunks: Arc<Chunks>, granule: usize) -> Self {
        Self {
            pool,
            chunks,
            granule: granule as u64,
            allocated: Mutex::default(),
            served: AtomicU64::new(0),
            align: AtomicUsize::new(16),
            forgets: AtomicBool::new(false),
        }
    }

    pub(crate) fn chunks(&self) -> &Chunks {
        &self.chunks
    }

    /// The alignment that requests have from now on.
    pub(crate) fn align_next(&self, align: usize) {
        self.align.store(align, Ordering::Relaxed);
    }

    /// Plants the fault.
    pub(crate) fn forget_uses(&self) {
        self.forgets.store(true, Ordering::Relaxed);
    }

    /// The free parts of the pieces, as (start, length).
    fn gaps(&self) -> Vec<(u64, u64)> {
        let (chunks, allocated) = (self.chunks.have.lock().unwrap(), self.allocated.lock().unwrap());
        let mut gaps = Vec::new();
        for (start, len) in &*chunks {
            let mut at = *start;
            for (block, bytes) in allocated.range(*start..*start + *len) {
                gaps.push((at, block - at));
                at = block + bytes;
            }
            gaps.push((at, start + len - at));
        }
        gaps.retain(|(_, len)| *len > 0);
        gaps
    }

    /// The pool's numbers are the model's.
    pub(crate) fn counts_right(&self) {
        let (seen, chunks) = (self.pool.statistics(), self.chunks.bytes());
        let allocated = self.allocated.lock().unwrap();
        assert_eq!((seen.blocks, seen.allocated as u64), (allocated.len(), allocated.values().sum()));
        assert_eq!((seen.reserved, seen.peak_reserved), (chunks, self.chunks.peak.load(Ordering::Relaxed)));
        assert_eq!(seen.allocations, self.served.load(Ordering::Relaxed));
        assert!(seen.allocated + seen.in_flight <= seen.reserved, "{seen:?}");
        assert!(seen.largest_free <= seen.reserved - seen.allocated, "{seen:?}");
    }

    /// Asserts that no block is in flight, and that free neighbours are one block.
    pub(crate) fn is_joined(&self) {
        let (seen, gaps) = (self.pool.statistics(), self.gaps());
        let largest = gaps.iter().map(|(_, len)| *len).max().unwrap_or(0);
        assert_eq!((seen.in_flight, seen.largest_free as u64), (0, largest), "{gaps:?}");
        assert_eq!(gaps.iter().map(|(_, len)| *len).sum::<u64>() as usize, seen.reserved - seen.allocated);
    }

    /// The pool was right to refuse: there is no gap that constant time must find, and no room to grow.
    pub(crate) fn could_not_serve(&self, bytes: usize, align: usize, limit: usize) {
        let len = (bytes as u64).next_multiple_of(self.granule);
        let needed = len + (align as u64).saturating_sub(self.granule);
        // A class of sizes spans a part in 32, and at least a granule.
        let certain = needed + needed / 16 + self.granule;
        let fits = self.gaps().into_iter().find(|(_, gap)| *gap >= certain);
        assert_eq!(fits, None, "{bytes} bytes at a multiple of {align}");
        assert!(
            self.chunks.bytes() as u64 + len > limit as u64,
            "the pool could have grown for {bytes} bytes"
        );
    }
}

impl MemoryResource<Host> for Observed {
    fn name(&self) -> &'static str {
        "observed"
    }

    fn allocate(&self, request: &MemoryRequest<'_, Host>) -> Result<MemoryBlock<Host>> {
        let align = self.align.load(Ordering::Relaxed).max(request.align);
        let block = self.pool.allocate(&request.for_bytes(request.bytes, align))?;
        let (start, len) = (block.address(), block.bytes() as u64);
        assert_eq!(len, (request.bytes as u64).next_multiple_of(self.granule));
        assert!(start.is_multiple_of(align as u64), "{start:#x} is not at a multiple of {align}");
        let chunk = self.chunks.have.lock().unwrap().range(..=start).next_back().map(|(at, len)| at + len);
        assert!(chunk.is_some_and(|end| start + len <= end), "{len} bytes at {start:#x} lie in no piece");
        let mut allocated = self.allocated.lock().unwrap();
        let before = allocated.range(..=start).next_back().map(|(at, len)| at + len);
        let after = allocated.range(start..).next().map(|(at, _)| *at);
        assert!(before.is_none_or(|end| end <= start) && after.is_none_or(|at| start + len <= at), "overlap");
        allocated.insert(start, len);
        self.served.fetch_add(1, Ordering::Relaxed);
        Ok(block)
    }

    fn recycle(&self, block: MemoryBlock<Host>) -> Result<(), MemoryBlock<Host>> {
        let was = self.allocated.lock().unwrap().remove(&block.address());
        assert_eq!(was, Some(block.bytes() as u64), "a block that is not allocated is freed");
        self.pool.recycle(match self.forgets.load(Ordering::Relaxed) {
            false => block,
            // SAFETY: deliberately not: work may still be using it.
            true => unsafe { block.without_uses() },
        })
    }

    fn deallocate(&self, block: MemoryBlock<Host>) -> Result<()> {
        self.pool.deallocate(block)
    }

    fn trim(&self, how: Trim, failed: &mut dyn FnMut(Error)) -> usize {
        self.pool.trim(how, failed)
    }

    fn forget(&self) {
        self.allocated.lock().unwrap().clear();
        self.pool.forget();
    }

    fn statistics(&self) -> MemoryStatistics {
        self.pool.statistics()
    }

    fn upstream(&self) -> Option<&dyn MemoryResource<Host>> {
        Some(&*self.pool)
    }
}
