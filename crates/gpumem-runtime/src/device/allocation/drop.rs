//! The end of an allocation: returns its block, and drops the rest.

use super::{Allocation, ColdFields, Owner, Release, TAKEN, exported, is_seen_by_host};
use crate::device::AllocationRef;
use gpumem_core::{Backend, ErrorKind, Result};
use gpumem_memory::{
    memory::{DeferredFree, MemoryBlock, PendingAccesses, Serving},
    user_code,
};
use std::{mem, ptr, sync::atomic::Ordering};

impl<B: Backend> Allocation<B> {
    /// Gives the memory back now instead of when it is dropped.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub(crate) fn free(mut self) -> Result<()> {
        match self.detach() {
            Some((item, generation)) => self.core().deferred_frees.free_now(self.core(), item, generation),
            None => Ok(()),
        }
    }

    /// Takes the memory out. Returns what the queue must free; blocks of a pool are already returned to it.
    fn detach(&mut self) -> Option<(DeferredFree<B>, u64)> {
        if !self.context().origin.is_valid() {
            // In a forked child, or at the end of the process: the driver's objects must not be used any more.
            mem::forget((self.block.take(), self.extra.take()));
            return None;
        }
        match *self.block {
            Some(_) if self.resource != TAKEN => self.detach_block(),
            _ => self.detach_owner(),
        }
    }

    /// Returns a block to the resource that allocated it. It stays where it is until then, because each move costs time
    /// for every dropped array.
    #[inline]
    fn detach_block(&mut self) -> Option<(DeferredFree<B>, u64)> {
        let core = &**self.owner_ref.core();
        if is_seen_by_host(self.tracked.kind()) {
            core.deferred_frees.note_idle_host(self.tracked.len());
            if matches!(self.owner_ref, Owner::Device(_)) {
                core.host_memory.fetch_sub(1, Ordering::AcqRel);
            }
        }
        match self.extra.take() {
            None => core.recorder.freed(self.id(), self.kind(), self.len()),
            Some(extra) => self.end_extra(&extra),
        }
        let resource = core.memory.get(self.resource)?;
        if self.generation() != core.generation() {
            // The reset has taken it.
            resource.note_lost_block();
            self.forget_poison();
            self.forget_exported();
            mem::forget(self.block.take());
            return None;
        }
        let log = self.tracked.log_mut();
        let block = self.block.as_mut()?;
        log.drain_pending(|timeline, submission| block.add_use(timeline, submission));
        if block.uses().is_empty() {
            // Work that reads it would still have to know.
            self.forget_poison();
        }
        let number = mem::replace(&mut self.resource, TAKEN);
        // `Option::take` would move the block twice.
        // SAFETY: it is read once, as the number says from now on, and not dropped where it is.
        let block = unsafe { ptr::read(self.block.as_ref()?) };
        let block = match resource {
            Serving::Own(resource) => resource.recycle(block),
            foreign => {
                // Before the user's resource may give the block out again.
                self.forget_exported();
                foreign.recycle(&core.errors, block)
            }
        };
        let block = block.err()?;
        // No pool has it: only a block of the driver's is exported.
        self.forget_exported();
        Some((DeferredFree::Memory { block, resource: number }, self.generation()))
    }

    fn forget_exported(&self) {
        if self.is_shared() {
            exported::forget(self.id());
        }
    }

    /// Ends the parts of a block that few allocations have.
    #[cold]
    #[inline(never)]
    fn end_extra(&self, extra: &ColdFields) {
        if !extra.opened {
            self.context().recorder.freed(self.id(), self.kind(), self.len());
        }
        if let Some(name) = &extra.name {
            self.core().names.remove(name, self.len(), self.block.as_ref().map_or(0, MemoryBlock::bytes));
        }
    }

    /// Drops the owner of foreign memory.
    fn detach_owner(&mut self) -> Option<(DeferredFree<B>, u64)> {
        let core = &**self.owner_ref.core();
        let extra = self.extra.take()?;
        if let Some(name) = &extra.name {
            core.names.remove(name, self.tracked.len(), 0);
        }
        let (owner, release, imported_after) = (extra.owner?, extra.release, extra.imported_after);
        let log = self.tracked.log_mut();
        let mut uses = PendingAccesses::none();
        log.drain_all(|timeline, pending| {
            // The owner looks after the work that it enqueued before the import. The library's uses have waited for it.
            if timeline.is_foreign_snapshot() {
                core.foreign_timelines.keep(timeline);
            } else if let Some(submission) = pending
                && Some((timeline.id(), submission)) != imported_after
            {
                uses.add_owned(timeline, submission);
            }
        });
        if uses.is_empty() {
            self.forget_poison();
        }
        let item = match release {
            Release::Program => DeferredFree::Module { module: owner, uses },
            // The library has no pending uses: the owner is dropped at once.
            Release::AtOnce if uses.is_empty() => {
                if let Err(message) = user_code::run(|| drop(owner)) {
                    let kind = ErrorKind::UserCodePanicked { what: "the owner of imported memory", message };
                    core.errors.push(core.error("drop", kind));
                }
                return None;
            }
            _ => DeferredFree::Foreign { owner, uses, memory: self.used(&(0..self.len()), false) },
        };
        Some((item, self.generation()))
    }
}

impl<B: Backend> Drop for Allocation<B> {
    fn drop(&mut self) {
        if let Some((item, generation)) = self.detach() {
            self.core().deferred_frees.add(item, generation);
        }
    }
}

/// Gives memory back now, unless it is still referenced elsewhere, such as a transfer that is on its way.
///
/// # Errors
/// Returns the driver's error.
pub(crate) fn free<B: Backend>(memory: AllocationRef<B>) -> Result<()> {
    match AllocationRef::try_unwrap(memory) {
        Ok(memory) => memory.free(),
        Err(_) => Ok(()),
    }
}
