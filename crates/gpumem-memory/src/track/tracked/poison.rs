//! Bytes that failed work was to write: which uses are refused, and until when.

use super::{AccessLog, DeviceContext, Timeline, Tracked};
use gpumem_core::{Backend, DriverDevice, ErrorKind, Failure, MemoryUse, POISONED, Result};
use std::{ops::Range, sync::Arc};

impl<B: Backend> Tracked<B> {
    /// Describes a use of these bytes to a backend.
    #[inline]
    pub fn used(&self, extent: &Range<usize>, write: bool) -> MemoryUse {
        MemoryUse {
            owner: self.id,
            start: self.address.wrapping_add(extent.start as u64),
            bytes: extent.len(),
            write,
            is_foreign: !self.is_owned(),
        }
    }

    /// Refuses bytes that failed work was to write. The caller has waited for the work that writes them.
    #[inline]
    pub fn check_written(&self, operation: &'static str, extent: &Range<usize>) -> Result<()> {
        if DeviceContext::<B>::has_aborted() {
            // The wait may have been for work that was aborted meanwhile.
            drop(self.lock_log());
        }
        if POISONED.is_any() { self.find_poison(operation, extent) } else { Ok(()) }
    }

    /// As [`check_written`](Self::check_written), for work that is about to be enqueued. Where something that is under way
    /// may write the bytes anew, a device that goes on after a failure judges for itself when the turn of the work comes.
    #[cold]
    pub(crate) fn refuse_poisoned(&self, operation: &'static str, extent: &Range<usize>) -> Result<()> {
        self.find_poison(operation, extent).or_else(|error| {
            let judges = self.context.raw.capabilities().survives_faults;
            // Not under the table's lock: the driver is asked.
            if judges && self.is_being_written(extent) {
                return Ok(());
            }
            // It may have been written between the two questions.
            if judges { self.find_poison(operation, extent) } else { Err(error) }
        })
    }

    /// Whether work that writes the bytes may be under way, asking the driver. Never blocks.
    fn is_being_written(&self, extent: &Range<usize>) -> bool {
        let writers: Vec<_> = {
            let log = self.log();
            log.conflicts(extent, false).map(|entry| (entry.by.clone(), entry.submission)).collect()
        };
        writers.iter().any(|(timeline, submission)| matches!(timeline.poll(*submission), Ok(false)))
    }

    /// Poisons what aborted work was to write. The driver calls it a success, so it is looked for before each use of the memory.
    #[cold]
    pub(in crate::track) fn poison_aborted(&self, log: &mut AccessLog<Arc<Timeline<B>>>) {
        log.void_writes(|by, submission, extent| {
            let error = (!by.survives_faults()).then(|| by.failed.find(submission..=submission)).flatten();
            let Some(error) = error else { return false };
            let failure = match error.kind() {
                ErrorKind::Collective(failure) => {
                    Failure::of_collective(by.context.name(), (**failure).clone())
                }
                kind => Failure::new(error.operation(), by.context.name(), kind.to_string()),
            };
            // SAFETY: the work was to write these bytes of the memory, which is their owner.
            unsafe { POISONED.poison(&self.used(extent, true), &Arc::new(failure)) };
            true
        });
    }

    #[cold]
    pub(in crate::track) fn find_poison(&self, operation: &'static str, extent: &Range<usize>) -> Result<()> {
        let Some((bytes, failure)) = POISONED.find(&self.used(extent, false)) else { return Ok(()) };
        let within = |address: u64| address.wrapping_sub(self.address) as usize;
        let bytes = within(bytes.start)..within(bytes.end);
        Err(self.context.error(operation, ErrorKind::Poisoned { bytes, failure }))
    }

    /// Whether failed work was to write any of the bytes.
    pub fn is_poisoned(&self, extent: &Range<usize>) -> bool {
        POISONED.is_any() && POISONED.find(&self.used(extent, false)).is_some()
    }

    /// Notes that nothing reads what the memory holds: each use writes first what it reads.
    #[inline]
    pub fn forget_contents(&self) {
        if DeviceContext::<B>::has_aborted() {
            // The log has it poisoned, if it is to be.
            drop(self.lock_log());
        }
        self.forget_poison();
    }

    /// Clears the poison: the host writes all of the memory next, or it is not used again.
    #[inline]
    pub fn forget_poison(&self) {
        if POISONED.is_any() {
            let all = self.used(&(0..self.len), false);
            // SAFETY: the host writes them next, or nothing reads them again.
            unsafe { POISONED.forget(all.owner, &all.range()) };
        }
    }
}
