//! A pool that grows where it ends: one range of addresses instead of pieces.
//!
//! The driver is called under the lock of those who grow and trim, and not under that of the allocator: a drop never waits for
//! it.

use super::Pool;
use crate::memory::{
    expandable::ExpandableMemory,
    resource::{MemoryBlock, MemoryRequest},
};
use gpumem_core::{Backend, Error, MemoryKind, Result};
use std::{mem, sync::atomic::Ordering, time::Instant};

/// How often memory may be taken away by other threads before a request gets a piece of its own.
const TRIES: usize = 4;

/// The memory that grows.
#[derive(Debug, Default)]
pub(super) enum ExpandableSegment {
    /// There is none, and none was requested.
    #[default]
    Unknown,
    Is(Box<dyn ExpandableMemory>),
    /// Upstream has none, or none that fits.
    Refused,
}

impl<B: Backend> Pool<B> {
    /// Grows in place, and serves the request. `None` where the pool must take a piece.
    pub(super) fn expand(
        &self,
        grown: &mut ExpandableSegment,
        request: &MemoryRequest<'_, B>,
        local_cache: u16,
    ) -> Result<Option<MemoryBlock<B>>> {
        if !self.options.expandable {
            return Ok(None);
        }
        if let ExpandableSegment::Unknown = grown {
            *grown = self.ask(request);
        }
        let ExpandableSegment::Is(memory) = grown else { return Ok(None) };
        for _ in 0..TRIES {
            if !self.lengthen(&mut **memory, request)? {
                break;
            }
            let mut state = self.state.lock();
            let generation = memory.generation().unwrap_or_else(|| request.core.generation());
            self.admit(&state, (generation, MemoryKind::Device), request)?;
            self.note_shift(&state, 0, false);
            if !state.grow_to(memory.address(), memory.bytes(), generation) {
                // The allocator is full. Memory it does not know goes back.
                let known = state.grown_bytes();
                drop(state);
                memory.cut(known)?;
                break;
            }
            let (bytes, align) = (request.bytes as u64, request.align as u64);
            if let Some(found) = state.take(bytes, align, request.ordered_by()) {
                return Ok(Some(self.hand_out(Some(&state), local_cache, found)));
            }
        }
        if memory.bytes() == 0 {
            // Addresses without memory are of no use to anybody.
            if let ExpandableSegment::Is(memory) = mem::take(grown) {
                memory.give_back()?;
            }
        }
        Ok(None)
    }

    fn ask(&self, request: &MemoryRequest<'_, B>) -> ExpandableSegment {
        match self.upstream.expandable(request) {
            // Blocks begin at multiples of the granule.
            Ok(memory) if memory.page().is_multiple_of(self.options.alignment) => {
                ExpandableSegment::Is(memory)
            }
            Ok(memory) => {
                if let Err(error) = memory.give_back() {
                    tracing::error!(%error, "addresses could not be given back");
                }
                ExpandableSegment::Refused
            }
            Err(error) => {
                tracing::debug!(%error, "a pool takes pieces, because it cannot grow in place");
                ExpandableSegment::Refused
            }
        }
    }

    /// Makes the memory so much longer that it serves the request. Whether there are as many addresses, and the pool may
    /// take as much.
    fn lengthen(&self, memory: &mut dyn ExpandableMemory, request: &MemoryRequest<'_, B>) -> Result<bool> {
        let page = memory.page();
        let (missing, reserved) = {
            let mut state = self.state.lock();
            let missing = state.missing(memory.address(), request.bytes as u64, request.align as u64);
            (missing, state.reserved)
        };
        let limit = self.options.max_size.unwrap_or(usize::MAX).saturating_sub(reserved);
        let room = memory.capacity().saturating_sub(memory.bytes()).min(limit);
        let missing = missing.and_then(|bytes| bytes.max(1).checked_next_multiple_of(page));
        let Some(missing) = missing.filter(|missing| *missing <= room) else { return Ok(false) };
        let step = self.options.next_step(missing, reserved).checked_next_multiple_of(page);
        let mut step = step.unwrap_or(missing).min(room - room % page);
        loop {
            match memory.grow(step) {
                Ok(()) => return Ok(true),
                Err(error) if error.is_out_of_memory() && step > missing => {
                    step = (step / 2 - step / 2 % page).max(missing);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Gives back what is idle at the end of the memory that grows. Bytes.
    pub(super) fn trim_expandable(
        &self,
        keep: usize,
        unused_before: Option<Instant>,
        failed: &mut dyn FnMut(Error),
    ) -> usize {
        // Inside its own upstream, the pool is about to get larger.
        let held = self.growing.lock();
        let Ok(mut grown) = held.try_borrow_mut() else { return 0 };
        let ExpandableSegment::Is(memory) = &mut *grown else { return 0 };
        let before = memory.bytes();
        let length = {
            let mut state = self.state.lock();
            let Some(needed) = state.needed(keep, unused_before) else { return 0 };
            let length = memory.cut_at(needed);
            if length >= before || !state.cut_to(length) {
                return 0;
            }
            length
        };
        if let Err(error) = memory.cut(length) {
            failed(error);
            if memory.bytes() > length && !self.grow_back(memory.address(), memory.bytes()) {
                tracing::error!(
                    bytes = memory.bytes() - length,
                    "memory that could not be given back is leaked"
                );
            }
        }
        let after = memory.bytes();
        if after == 0
            && let ExpandableSegment::Is(memory) = mem::take(&mut *grown)
            && let Err(error) = memory.give_back()
        {
            failed(error);
        }
        before - after
    }

    /// Takes memory into the allocator again that has not gone.
    fn grow_back(&self, address: u64, bytes: usize) -> bool {
        self.state.lock().grow_to(address, bytes, self.generation.load(Ordering::Relaxed))
    }

    /// Forgets the memory without a driver call: the driver has it again.
    pub(super) fn forget_expandable(&self) {
        if let Ok(mut grown) = self.growing.lock().try_borrow_mut() {
            mem::forget(mem::take(&mut *grown));
        }
    }
}
