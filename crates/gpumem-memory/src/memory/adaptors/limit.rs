//! A limit.

use crate::memory::{MemoryBlock, MemoryRequest, MemoryResource, MemoryStatistics};
use gpumem_core::{Backend, ErrorKind, MemoryInfo, Result};
use std::{
    mem,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

/// Allocates no more than so many bytes at once. Around a pool it limits the memory of arrays; around the driver and
/// inside a pool, the memory of the pool.
/// ```
/// # use {gpumem_core::MemoryKind, gpumem_runtime::memory::LimitingResource, std::sync::Arc};
/// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
/// let pool = device.memory_resource(MemoryKind::Device)?;
/// device.set_memory_resource(MemoryKind::Device, Arc::new(LimitingResource::new(pool, 1 << 20)))?;
/// assert!(device.device_array::<u8, _>(1 << 19).is_ok());
/// assert!(device.device_array::<u8, _>(1 << 21).is_err());
/// # Ok::<(), gpumem_core::Error>(())
/// ```
#[derive(Debug)]
pub struct LimitingResource<B: Backend> {
    upstream: Arc<dyn MemoryResource<B>>,
    limit: usize,
    /// Taken before memory is requested, so that threads together never pass the limit. It guards no other memory, which would
    /// need an order; one variable has one order of its own.
    allocated: AtomicUsize,
}

impl<B: Backend> LimitingResource<B> {
    /// Puts a limit of `bytes` bytes around `upstream`.
    pub fn new(upstream: Arc<dyn MemoryResource<B>>, bytes: usize) -> Self {
        Self { upstream, limit: bytes, allocated: AtomicUsize::new(0) }
    }
}

impl<B: Backend> LimitingResource<B> {
    /// Counts bytes as freed. More than the allocated bytes come back from another resource, or where all was forgotten meanwhile.
    fn gone(&self, bytes: usize) {
        let less = |allocated: usize| Some(allocated.saturating_sub(bytes));
        // Relaxed: see the field.
        let _ = self.allocated.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }
}

/// Bytes that a request has taken, until it has a block.
struct Taken<'a, B: Backend> {
    of: &'a LimitingResource<B>,
    bytes: usize,
}

impl<B: Backend> Drop for Taken<'_, B> {
    fn drop(&mut self) {
        self.of.gone(self.bytes);
    }
}

impl<B: Backend> MemoryResource<B> for LimitingResource<B> {
    fn name(&self) -> &'static str {
        "limit"
    }

    fn allocate(&self, request: &MemoryRequest<'_, B>) -> Result<MemoryBlock<B>> {
        let take = |allocated: usize| {
            allocated.checked_add(request.bytes).filter(|allocated| *allocated <= self.limit)
        };
        // Relaxed: two requests at once are still one after the other on this variable, so together they stay below the limit.
        if let Err(allocated) = self.allocated.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) {
            let memory = MemoryInfo { free: self.limit.saturating_sub(allocated), total: self.limit };
            let kind = ErrorKind::out_of_memory(request.bytes, request.kind.name(), memory);
            return Err(request.core.error(request.operation, kind));
        }
        // Also where upstream panics.
        let taken = Taken { of: self, bytes: request.bytes };
        let block = self.upstream.allocate(request)?;
        mem::forget(taken);
        // Its real size counts, because that is what comes back: a little more than requested, or less from a wrong resource. Less
        // wraps, as the addition does.
        self.allocated.fetch_add(block.bytes().wrapping_sub(request.bytes), Ordering::Relaxed);
        Ok(block)
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
        // Release: who allocates after the reset finds the limit whole.
        self.allocated.store(0, Ordering::Release);
        self.upstream.forget();
    }

    fn statistics(&self) -> MemoryStatistics {
        // Relaxed: a number for a look.
        MemoryStatistics { allocated: self.allocated.load(Ordering::Relaxed), ..self.upstream.statistics() }
    }

    super::pass_on!();
}
