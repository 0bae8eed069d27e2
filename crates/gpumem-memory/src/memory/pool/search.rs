//! Serves requests that the free lists cannot serve at once.

use super::{CachedBlock, FreeBlock, MemoryBlock, MemoryRequest, Pool, turns::Turn};
use crate::{
    blocking::may_block,
    memory::pending_accesses::{PendingAccesses, Waited},
};
use gpumem_core::{Backend, Error, ErrorKind, MemoryInfo, Result};

impl<B: Backend> Pool<B> {
    /// Looks for memory from the cheapest place to the dearest.
    #[cold]
    pub(super) fn search(&self, request: &MemoryRequest<'_, B>, local_cache: u16) -> Result<MemoryBlock<B>> {
        let (bytes, align) = (request.bytes as u64, request.align as u64);
        if bytes == 0 || !align.is_power_of_two() {
            let why = "a request has at least one byte, and an alignment that is a power of two";
            return Err(request.core.error(request.operation, ErrorKind::InvalidArgument { why }));
        }
        let take = || {
            // The owner and the block are of one moment: a block of a pool that has forgotten everything is none of its own.
            let mut state = self.state.lock();
            state
                .take(bytes, align, request.ordered_by())
                .map(|found| self.hand_out(state.owner, local_cache, found))
        };
        let gathered = self.gather();
        if (self.collect_done() || gathered)
            && let Some(block) = take()
        {
            return Ok(block);
        }
        // A user whose stream is not known yet may be the one that still uses the block; otherwise the host would have
        // to wait. And what was freed for a request serves it.
        if (request.stream.is_none() || request.takes_in_flight)
            && !request.host_first
            && let Some(block) = self.take_in_flight(request, local_cache)
        {
            return Ok(block);
        }
        if self.poll()
            && let Some(block) = take()
        {
            return Ok(block);
        }
        if request.may_free() {
            self.keep_within_bounds();
        }
        // One request to upstream at a time where threads may wait, so that two of them do not request memory for the same need. The
        // allocator is not locked then.
        let grown = Turn::take(self, request.operation).map_err(|error| request.core.place(error)).and_then(
            |_turn| {
                // Another thread may have grown the pool, or given something back, meanwhile.
                take().map_or_else(|| self.grow(request, local_cache), |block| Ok(Some(block)))
            },
        );
        if let Ok(Some(block)) = grown {
            return Ok(block);
        }
        self.take_without_growth(request, local_cache).ok_or_else(|| {
            self.state.lock().failures += 1;
            grown.err().unwrap_or_else(|| self.exhausted(request))
        })
    }

    /// Returns a block of any idle one, however large, or one that is in flight.
    fn take_without_growth(
        &self,
        request: &MemoryRequest<'_, B>,
        local_cache: u16,
    ) -> Option<MemoryBlock<B>> {
        let take_idle = || {
            let mut state = self.state.lock();
            // The block gets the owner of this moment: under one lock it is that of the free lists.
            let found = state.take_idle(request.bytes as u64, request.align as u64)?;
            Some(self.hand_out(state.owner, local_cache, found))
        };
        take_idle().or_else(|| match request.host_first {
            true => self.take_and_wait(request, local_cache),
            false => self.take_in_flight(request, local_cache),
        })
    }

    fn take_in_flight(&self, request: &MemoryRequest<'_, B>, local_cache: u16) -> Option<MemoryBlock<B>> {
        // As in `search`: owner and block under one lock.
        let mut state = self.lock_gathered();
        let found = state.take_in_flight(request.bytes as u64, request.align as u64)?;
        Some(self.hand_out(state.owner, local_cache, found))
    }

    /// Returns a block that was in flight, after waiting for its uses.
    fn take_and_wait(&self, request: &MemoryRequest<'_, B>, local_cache: u16) -> Option<MemoryBlock<B>> {
        // Not while another pool grows from this one: the request is repeated when that is over.
        if !request.may_free() || may_block(request.operation).is_err() {
            return None;
        }
        let (bytes, align) = (request.bytes as u64, request.align as u64);
        let (owner, FreeBlock { place, uses }) = {
            // Unlocked before the host waits for the uses, which may take long.
            let mut state = self.lock_gathered();
            (state.owner, state.take_in_flight(bytes, align)?)
        };
        if !matches!(uses.wait(), Waited::Over) {
            // The host has waited without the lock; the pool may have forgotten the block, which its owner tells.
            self.state.lock().free(owner, place, uses);
            return None;
        }
        let free = FreeBlock { place, uses: PendingAccesses::none() };
        self.hand_out_unlocked(local_cache, CachedBlock { owner, free })
    }

    pub(super) fn exhausted(&self, request: &MemoryRequest<'_, B>) -> Error {
        // After the last attempt: what is free now may not have been free then, and is only told.
        let state = self.lock_gathered();
        let total = self.options.max_size.unwrap_or(state.reserved);
        let free = total.saturating_sub(state.allocated_bytes() as usize);
        let kind = ErrorKind::out_of_memory(request.bytes, request.kind.name(), MemoryInfo { free, total });
        request.core.error(request.operation, kind)
    }
}
