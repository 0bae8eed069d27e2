//! Exact counting.

use crate::memory::{MemoryBlock, MemoryRequest, MemoryResource, MemoryStatistics};
use gpumem_core::{Backend, Result};
use std::sync::{
    Arc,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

/// Counts every request and every byte, with the peak of allocated bytes. A pool alone does not: threads would contend
/// for these counts.
/// ```
/// # use {gpumem_core::MemoryKind, gpumem_runtime::memory::{MemoryResource, StatisticsResource}, std::sync::Arc};
/// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
/// let pool = device.memory_resource(MemoryKind::Device)?;
/// let counting = Arc::new(StatisticsResource::new(pool));
/// device.set_memory_resource(MemoryKind::Device, counting.clone())?;
/// drop(device.device_array::<f32, _>(1000)?);
/// assert_eq!(counting.statistics().allocations, 1);
/// # Ok::<(), gpumem_core::Error>(())
/// ```
// Relaxed throughout: numbers for a look. Each is exact by itself; two that are read together may be of different moments.
#[derive(Debug)]
pub struct StatisticsResource<B: Backend> {
    upstream: Arc<dyn MemoryResource<B>>,
    allocated: AtomicUsize,
    peak: AtomicUsize,
    blocks: AtomicUsize,
    allocations: AtomicU64,
    failures: AtomicU64,
}

impl<B: Backend> StatisticsResource<B> {
    /// Counts around `upstream`.
    pub fn new(upstream: Arc<dyn MemoryResource<B>>) -> Self {
        Self {
            upstream,
            allocated: AtomicUsize::new(0),
            peak: AtomicUsize::new(0),
            blocks: AtomicUsize::new(0),
            allocations: AtomicU64::new(0),
            failures: AtomicU64::new(0),
        }
    }

    /// Sets the peak to the present value, to measure a new phase.
    pub fn reset_peak(&self) {
        self.peak.store(self.allocated.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    fn gone(&self, bytes: usize) {
        // More than are allocated come back only by mistake: from another resource.
        let less = |count: &AtomicUsize, by: usize| {
            let _ = count
                // Relaxed: numbers for a look, as everywhere here.
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| Some(count.saturating_sub(by)));
        };
        less(&self.allocated, bytes);
        less(&self.blocks, 1);
    }
}

impl<B: Backend> MemoryResource<B> for StatisticsResource<B> {
    fn name(&self) -> &'static str {
        "statistics"
    }

    fn allocate(&self, request: &MemoryRequest<'_, B>) -> Result<MemoryBlock<B>> {
        let outcome = self.upstream.allocate(request);
        match &outcome {
            Ok(block) => {
                self.allocations.fetch_add(1, Ordering::Relaxed);
                self.blocks.fetch_add(1, Ordering::Relaxed);
                let allocated =
                    self.allocated.fetch_add(block.bytes(), Ordering::Relaxed).saturating_add(block.bytes());
                self.peak.fetch_max(allocated, Ordering::Relaxed);
            }
            Err(_) => {
                self.failures.fetch_add(1, Ordering::Relaxed);
            }
        }
        outcome
    }

    fn recycle(&self, block: MemoryBlock<B>) -> Result<(), MemoryBlock<B>> {
        let bytes = block.bytes();
        self.upstream.recycle(block)?;
        self.gone(bytes);
        Ok(())
    }

    fn deallocate(&self, block: MemoryBlock<B>) -> Result<()> {
        let bytes = block.bytes();
        // A block that upstream refuses is still allocated, or another resource's.
        self.upstream.deallocate(block)?;
        self.gone(bytes);
        Ok(())
    }

    fn forget(&self) {
        self.allocated.store(0, Ordering::Relaxed);
        self.blocks.store(0, Ordering::Relaxed);
        self.upstream.forget();
    }

    fn statistics(&self) -> MemoryStatistics {
        MemoryStatistics {
            allocated: self.allocated.load(Ordering::Relaxed),
            peak_allocated: Some(self.peak.load(Ordering::Relaxed)),
            blocks: self.blocks.load(Ordering::Relaxed),
            allocations: self.allocations.load(Ordering::Relaxed),
            failures: self.failures.load(Ordering::Relaxed),
            ..self.upstream.statistics()
        }
    }

    super::pass_on!();
}
