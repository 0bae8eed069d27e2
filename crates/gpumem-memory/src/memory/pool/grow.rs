//! How a pool gets larger and smaller: pieces from upstream, and back.

use super::{Pool, PoolOptions, state::PoolState};
use crate::{
    memory::{
        DeferredFree, DeviceCore,
        resource::{BlockOrigin, MemoryBlock, MemoryRequest, MemoryResource, wrong_generation},
        serving::panicked,
    },
    user_code,
};
use gpumem_core::{Backend, Error, ErrorKind, MemoryKind, MemoryUse, Result};
use std::{
    mem,
    sync::{Arc, Weak, atomic::Ordering},
    time::Duration,
};

impl<B: Backend> Pool<B> {
    /// Takes a piece from upstream, and serves the request out of it.
    pub(super) fn grow(
        &self,
        request: &MemoryRequest<'_, B>,
        local_cache: u16,
    ) -> Result<Option<MemoryBlock<B>>> {
        let granule = self.options.alignment;
        let Some(least) = request.bytes.checked_next_multiple_of(granule) else {
            return Err(self.exhausted(request));
        };
        let align = request.align.max(granule);
        // First, so that the new chunk finds room, and can take the place of several.
        let gone = if self.options.release_empty_before_grow && request.may_free() {
            self.give_unused_back()
        } else {
            0
        };
        let reserved = self.state.lock().reserved;
        if self.options.max_size.is_some_and(|limit| reserved.saturating_add(least) > limit) {
            return Err(self.exhausted(request));
        }
        let whole = |bytes: usize| bytes.checked_next_multiple_of(granule).unwrap_or(bytes & !(granule - 1));
        let mut wanted = whole(self.options.next_chunk(least, gone, reserved));
        loop {
            match self.upstream.allocate(&request.for_bytes(wanted, align)) {
                Ok(block) => {
                    if request.kind.is_host_accessible() {
                        request
                            .core
                            .deferred_frees
                            .note_idle_host(block.bytes().saturating_sub(request.bytes));
                    }
                    return self.add_chunk(block, request, local_cache, reserved);
                }
                // A smaller piece may still be had, down to what the request needs.
                Err(error) if error.is_out_of_memory() && wanted > least => {
                    wanted = whole((wanted / 2).max(least));
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// `reserved` is what the pool had when the chunk was found to be within the limit.
    fn add_chunk(
        &self,
        mut block: MemoryBlock<B>,
        request: &MemoryRequest<'_, B>,
        local_cache: u16,
        reserved: usize,
    ) -> Result<Option<MemoryBlock<B>>> {
        // Without the lock: it may drop the last reference to a stream, and so to a device.
        block.forget_done_uses();
        // Upstream has been called without it. What is checked must hold until the chunk is in: the pool may forget everything
        // meanwhile.
        let mut state = self.state.lock();
        let BlockOrigin { generation, kind, .. } = block.origin();
        if let Err(error) = self.admit(&state, (generation, kind), request) {
            // Upstream may be a pool of its own, or code of the user.
            drop(state);
            self.upstream.deallocate(block)?;
            return Err(error);
        }
        // A callback has grown the pool beside this thread, or this one is a callback.
        let all = state.reserved.saturating_add(block.bytes());
        if state.reserved > reserved && self.options.max_size.is_some_and(|limit| all > limit) {
            drop(state);
            self.upstream.deallocate(block)?;
            // A smaller one may still fit.
            return self.grow(request, local_cache);
        }
        // Only a weak reference is dropped under the lock, which runs no code.
        state.core = Arc::downgrade(request.core);
        match state.add_chunk(block, request.bytes as u64, request.align as u64) {
            Ok(found) => Ok(found.map(|found| self.hand_out(state.owner, local_cache, found))),
            Err(block) => {
                drop(state);
                self.upstream.deallocate(block)?;
                let why =
                    "the memory that a pool was given is its own, not aligned to its granule, or too large";
                Err(Error::new("", "allocate", ErrorKind::InvalidArgument { why }))
            }
        }
    }

    /// Whether memory may come into the pool: all of it is of one device as it is now, and of one kind.
    pub(super) fn admit(
        &self,
        state: &PoolState<B>,
        (generation, kind): (u64, MemoryKind),
        request: &MemoryRequest<'_, B>,
    ) -> Result<()> {
        let fail = |kind| Err(request.core.error(request.operation, kind));
        if state.chunks() == 0 {
            // Release: with `hand_out`, which may read it without the lock.
            self.generation.store(generation, Ordering::Release);
        }
        // Relaxed: written under the lock that the caller holds.
        if generation != request.core.generation() || generation != self.generation.load(Ordering::Relaxed) {
            return fail(wrong_generation(request.core, generation));
        }
        if kind != request.kind || kind != *self.kind.get_or_init(|| kind) {
            let why = "a pool serves one kind of memory, and the call names another";
            return fail(ErrorKind::InvalidArgument { why });
        }
        Ok(())
    }

    /// Frees unused memory as the options say, before calling the driver.
    pub(super) fn keep_within_bounds(&self) {
        let PoolOptions { max_idle_ratio, idle_timeout, .. } = self.options;
        if max_idle_ratio >= 1.0 && idle_timeout.is_none() {
            return;
        }
        let taken = {
            // Chunks are taken out under the lock, and go to upstream without it.
            let mut state = self.lock_gathered();
            let mut taken = Vec::new();
            if let Some(time) = idle_timeout {
                taken = state.take_unused(0, time);
            }
            if max_idle_ratio < 1.0 {
                let allocated = state.allocated_bytes() + state.in_flight_bytes();
                let most = (allocated as f64 / (1.0 - max_idle_ratio).max(f64::EPSILON)) as usize;
                // A part of `max_idle_ratio` of the reserved memory may be unused.
                let most = if max_idle_ratio <= 0.0 { allocated as usize } else { most };
                taken.extend(state.take_unused(most, Duration::ZERO));
            }
            taken
        };
        give_back(&*self.upstream, taken, &mut told);
    }

    /// Gives pieces back of which nothing is used, if they are more than a sixteenth of the pool. Bytes.
    fn give_unused_back(&self) -> usize {
        let taken = {
            // As in `keep_within_bounds`.
            let mut state = self.lock_gathered();
            match state.unused_bytes() > state.reserved / 16 {
                true => state.take_unused(0, Duration::ZERO),
                false => Vec::new(),
            }
        };
        give_back(&*self.upstream, taken, &mut told)
    }
}

/// Gives pieces back, also after one for which the resource upstream fails or panics. Bytes.
pub(super) fn give_back<B: Backend>(
    upstream: &dyn MemoryResource<B>,
    pieces: Vec<MemoryBlock<B>>,
    failed: &mut dyn FnMut(Error),
) -> usize {
    let mut bytes = 0;
    for block in pieces {
        bytes += block.bytes();
        let freed = user_code::run(|| upstream.deallocate(block));
        if let Err(error) = freed.unwrap_or_else(|message| Err(panicked("deallocate", message))) {
            failed(error);
        }
    }
    bytes
}

impl<B: Backend> Drop for Pool<B> {
    /// Passes the pieces of which nothing is allocated to the queue of their device: a drop calls no driver, and no code of the user.
    fn drop(&mut self) {
        // A forked child does not use the locks of the parent.
        if !self.origin.is_valid() {
            return;
        }
        // Without it the pieces have ended with their device.
        let Some(core) = self.state.get_mut().core.upgrade() else { return };
        self.gather();
        let (blocks, uses) = self.state.get_mut().take_all_free();
        if !blocks.is_empty() {
            let bytes = blocks.iter().map(MemoryBlock::bytes).sum();
            // No allocation has the number 0: what is poisoned of the pieces is cleared when the driver gets them.
            let memory = MemoryUse { owner: 0, start: 0, bytes, write: true, is_foreign: true };
            let upstream = self.upstream.clone();
            let owner = Box::new(Pieces { core: Arc::downgrade(&core), upstream, blocks });
            let generation = *self.generation.get_mut();
            core.deferred_frees.add(DeferredFree::Foreign { owner, uses, memory }, generation);
        }
    }
}

/// Pieces of a pool that is gone. They go back when this is dropped.
struct Pieces<B: Backend> {
    core: Weak<DeviceCore<B>>,
    upstream: Arc<dyn MemoryResource<B>>,
    blocks: Vec<MemoryBlock<B>>,
}

impl<B: Backend> Drop for Pieces<B> {
    fn drop(&mut self) {
        let core = self.core.upgrade();
        let failed = &mut |error| {
            if let Some(core) = &core {
                core.errors.push(core.place(error));
            }
        };
        give_back(&*self.upstream, mem::take(&mut self.blocks), failed);
    }
}

fn told(error: Error) {
    gpumem_core::tell!(error: %error, "a piece of a pool could not be freed");
}
