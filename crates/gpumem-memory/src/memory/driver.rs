//! Memory straight from the driver.

use super::resource::{
    MemoryBlock, MemoryRequest, MemoryResource, MemoryStatistics, ResourceId, wrong_generation,
};
use crate::memory::{DeviceCore, deferred_free::DeferredFree};
use gpumem_core::{
    AllocationRequest, Backend, DeviceBuffer as _, DriverDevice, Error, ErrorKind, MemoryKind, POISONED,
    Result,
};
use std::{
    fmt, mem,
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
    sync::{Arc, Weak},
};

/// The driver as a [`MemoryResource`]: every block is one driver call, and freeing one may wait for the device. It is
/// below every other resource.
pub struct DriverMemory<B: Backend> {
    core: Weak<DeviceCore<B>>,
    id: ResourceId,
    stats: Arc<DriverStats>,
}

/// Counts of the driver's allocations and frees.
#[derive(Debug, Default)]
pub struct DriverStats {
    allocated: AtomicUsize,
    peak: AtomicUsize,
    blocks: AtomicUsize,
    allocations: AtomicU64,
    failures: AtomicU64,
}

// Relaxed throughout: numbers of reports. No memory is reached because of one, and each is exact by itself.
impl DriverStats {
    fn note_allocated<B: Backend>(&self, core: &DeviceCore<B>, kind: MemoryKind, bytes: usize) {
        core.counters.count_allocation();
        // Only device memory is late: other kinds are the host's.
        if kind == MemoryKind::Device {
            core.late.note_allocated(bytes);
        }
        // Relaxed, all of them: numbers for a look, each exact by itself.
        self.allocations.fetch_add(1, Ordering::Relaxed);
        self.blocks.fetch_add(1, Ordering::Relaxed);
        let allocated = self.allocated.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        self.peak.fetch_max(allocated, Ordering::Relaxed);
        core.recorder.reserved(kind, bytes as i64);
    }

    fn forget(&self, bytes: usize) {
        // A caller may have said before that the driver has taken everything.
        let less = |count: &AtomicUsize, by: usize| {
            let _ = count
                // Relaxed: as in `add`.
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| Some(count.saturating_sub(by)));
        };
        less(&self.blocks, 1);
        less(&self.allocated, bytes);
    }

    fn fail(&self) {
        // Relaxed: as in `add`.
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    /// Gives a block of this generation, whose uses are over, to the driver.
    pub(super) fn release<B: Backend>(&self, core: &DeviceCore<B>, mut block: MemoryBlock<B>) -> Result<()> {
        let Some(buffer) = block.buffer.take() else { return Ok(()) };
        let (kind, bytes) = (buffer.kind(), block.bytes());
        self.forget(bytes);
        core.recorder.reserved(kind, -(bytes as i64));
        if POISONED.is_any() {
            // The driver may give the addresses to others.
            let start = block.address();
            // SAFETY: the library does not read the block again.
            unsafe { POISONED.clear(&(start..start.saturating_add(block.bytes() as u64))) };
        }
        // SAFETY: the buffer was made by this device in this generation, and its uses are over.
        match unsafe { core.raw.release(*buffer) } {
            Ok(()) => {
                core.counters.count_release();
                if kind == MemoryKind::Device {
                    core.late.note_released(bytes);
                }
                Ok(())
            }
            Err((buffer, error)) => {
                // Whether it is free now is unknown: freeing it again could free another allocation.
                mem::forget(buffer);
                core.note_loss(Err(error))
            }
        }
    }
}

impl<B: Backend> DriverMemory<B> {
    #[doc(hidden)]
    pub fn new(core: &Arc<DeviceCore<B>>) -> Self {
        Self { core: Arc::downgrade(core), id: ResourceId::new(), stats: Arc::default() }
    }

    /// Counts a buffer of the backend as allocated.
    #[doc(hidden)]
    pub fn adopt(&self, core: &DeviceCore<B>, buffer: B::Buffer) -> MemoryBlock<B> {
        let block: MemoryBlock<B> = MemoryBlock::of_buffer(buffer, self.id, core);
        self.stats.note_allocated(core, block.kind(), block.bytes());
        block
    }

    fn core(&self, operation: &'static str) -> Result<Arc<DeviceCore<B>>> {
        let why = "the device is closed";
        let closed = || Error::new("", operation, ErrorKind::InvalidArgument { why });
        let core = self.core.upgrade().ok_or_else(closed)?;
        core.check_process(operation)?;
        Ok(core)
    }
}

impl<B: Backend> MemoryResource<B> for DriverMemory<B> {
    fn name(&self) -> &'static str {
        "driver"
    }

    fn allocate(&self, request: &MemoryRequest<'_, B>) -> Result<MemoryBlock<B>> {
        let core = self.core(request.operation)?;
        if request.bytes == 0
            || !request.align.is_power_of_two()
            || matches!(request.kind, MemoryKind::Registered(_))
        {
            let why = "a request has at least one byte, an alignment that is a power of two, and a kind to allocate";
            return Err(request.core.error(request.operation, ErrorKind::InvalidArgument { why }));
        }
        let generation = request.core.generation();
        if generation != core.generation() {
            let kind = wrong_generation(&core, generation);
            return Err(request.core.error(request.operation, kind));
        }
        let wanted = AllocationRequest { bytes: request.bytes, align: request.align, kind: request.kind };
        // SAFETY: at least one byte, an alignment that is a power of two; arrays are written before they are read.
        let outcome = unsafe { core.raw.allocate(&wanted) };
        let buffer = core.note_loss(outcome).inspect_err(|_| self.stats.fail())?;
        Ok(self.adopt(&core, buffer))
    }

    fn deallocate(&self, mut block: MemoryBlock<B>) -> Result<()> {
        if block.resource() != self.id {
            let why = "the block was allocated by another memory resource";
            return Err(Error::new("", "release", ErrorKind::InvalidArgument { why }));
        }
        let Ok(core) = self.core("release") else {
            // Whether the driver still knows it is unknown.
            mem::forget(block.buffer.take());
            return Ok(());
        };
        let generation = block.origin().generation;
        if generation != core.generation() {
            // The reset has taken it already.
            mem::forget(block.buffer.take());
            return Ok(());
        }
        if block.uses().is_over() {
            return self.stats.release(&core, block);
        }
        // Waits for the uses. Where nothing can wait now, a later call does.
        let item = DeferredFree::Driver { block, stats: self.stats.clone() };
        core.deferred_frees.free_now(&core, item, generation)
    }

    fn forget(&self) {
        // Relaxed: blocks from before the reset are not counted down any more.
        self.stats.allocated.store(0, Ordering::Relaxed);
        self.stats.blocks.store(0, Ordering::Relaxed);
    }

    fn statistics(&self) -> MemoryStatistics {
        let DriverStats { allocated, peak, blocks, allocations, failures } = &*self.stats;
        // Relaxed: two of them may be of different moments.
        let (allocated, peak) = (allocated.load(Ordering::Relaxed), peak.load(Ordering::Relaxed));
        MemoryStatistics {
            reserved: allocated,
            peak_reserved: peak,
            allocated,
            peak_allocated: Some(peak),
            blocks: blocks.load(Ordering::Relaxed),
            allocations: allocations.load(Ordering::Relaxed),
            failures: failures.load(Ordering::Relaxed),
            ..MemoryStatistics::default()
        }
    }
}

impl<B: Backend> fmt::Debug for DriverMemory<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DriverMemory").field("tally", &self.stats).finish_non_exhaustive()
    }
}
