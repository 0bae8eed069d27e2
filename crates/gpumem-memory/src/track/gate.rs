//! The gate: which work may be enqueued.
//!
//! The driver's stream is reached only through an [`Admitted`], and only [`Timeline::admit`] makes one. So no operation can
//! leave out what is checked there.

use super::{Access, Timeline, Tracked};
use gpumem_core::{Backend, ErrorKind, POISONED, Result};
use std::sync::Arc;

/// What work does with the memory that it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// It writes every byte that it names for writing: a copy or a fill. The memory may belong to several devices.
    Transfer,
    /// As a transfer, with memory of the stream's device alone: an operation of several ranks.
    Collective,
    /// It may read what it writes, or leave it as it is, so nothing that it uses may be poisoned. The memory belongs to the
    /// stream's device: a kernel.
    Launch,
    /// As a launch, with memory of any device: work of another library.
    Foreign,
}

impl Work {
    fn is_of_one_device(self) -> bool {
        matches!(self, Work::Collective | Work::Launch)
    }

    fn may_read_what_it_writes(self) -> bool {
        matches!(self, Work::Launch | Work::Foreign)
    }
}

/// Uses of memory that one piece of work may make of a stream, and the way to enqueue it.
#[derive(Debug)]
#[must_use = "nothing has been enqueued yet"]
pub struct Admitted<'s, 'a, B: Backend> {
    pub(super) timeline: &'s Arc<Timeline<B>>,
    pub(super) work: Work,
    pub(super) operation: &'static str,
    pub(super) accesses: &'s [Access<'a, B>],
}

impl<B: Backend> Timeline<B> {
    /// Checks all uses of memory by one piece of work, together: that the stream and the memory may be used, that the memory
    /// belongs to the device (as the [work](Work) wants it), and that no memory is written by one use that another one names
    /// by a second handle. Poisoned bytes are refused when the work is enqueued.
    /// Returns what is wrong: [`WrongDevice`](ErrorKind::WrongDevice), [`Stale`](ErrorKind::Stale) or
    /// [`Overlap`](ErrorKind::Overlap), say.
    #[inline(always)]
    pub fn admit<'s, 'a>(
        self: &'s Arc<Self>,
        work: Work,
        operation: &'static str,
        accesses: &'s [Access<'a, B>],
    ) -> Result<Admitted<'s, 'a, B>> {
        let is_plain = |memory: &Tracked<B>| {
            Arc::ptr_eq(memory.context(), &self.context) && memory.is_fresh() && !memory.has_other_handles()
        };
        // Arrays of Python have no borrows, and a copy within one allocation is rare.
        let is_within = match (work, accesses) {
            (Work::Transfer, [one, other]) => one.memory.id() == other.memory.id(),
            _ => false,
        };
        if is_within || !(self.is_ready() && accesses.iter().all(|access| is_plain(access.memory))) {
            self.examine(work, operation, accesses)?;
        }
        Ok(Admitted { timeline: self, work, operation, accesses })
    }

    #[cold]
    fn examine(&self, work: Work, operation: &'static str, accesses: &[Access<'_, B>]) -> Result<()> {
        if let Some(recording) = &self.recording {
            self.context.check(operation)?;
            recording.admit(work, operation, accesses)?;
            return refuse_overlap(operation, accesses);
        }
        self.check(operation)?;
        if work.is_of_one_device() {
            accesses.iter().try_for_each(|access| self.check_owns(operation, access.memory))?;
        }
        for Access { memory, .. } in accesses {
            memory.check_beside(&self.context, operation)?;
        }
        refuse_overlap(operation, accesses)
    }

    /// Checks that the memory belongs to the device of the stream, for work on one device only.
    #[inline]
    pub fn check_owns(&self, operation: &'static str, memory: &Tracked<B>) -> Result<()> {
        self.context.check_same(operation, "array", memory.context())
    }
}

/// Refuses uses that may touch the same bytes, one of them writing. The order of submissions does not keep the uses of one
/// piece of work apart. Borrows do, except where an import has made a second handle of the memory.
/// Returns [`Overlap`](ErrorKind::Overlap).
pub fn refuse_overlap<B: Backend>(operation: &'static str, accesses: &[Access<'_, B>]) -> Result<()> {
    for (at, one) in accesses.iter().enumerate() {
        for (next, other) in accesses.iter().enumerate().skip(at + 1) {
            let is_in_place = next == at + 1 && one.is_in_place_with(other);
            if one.clashes_with(other) && !is_in_place {
                let (source, destination) = if other.write { (one, other) } else { (other, one) };
                let (source_bytes, destination_bytes) = (source.extent.clone(), destination.extent.clone());
                let kind = ErrorKind::Overlap { source_bytes, destination_bytes };
                return Err(destination.memory.context().error(operation, kind));
            }
        }
    }
    Ok(())
}

impl<B: Backend> Admitted<'_, '_, B> {
    /// Refuses bytes that failed work was to write, if the work reads them, or may do so.
    #[inline]
    pub fn refuse_poisoned(&self) -> Result<()> {
        if POISONED.is_any() { self.look_for_poison() } else { Ok(()) }
    }

    /// As [`refuse_poisoned`](Self::refuse_poisoned), once everything that the work depends on has been waited for, perhaps by
    /// the host: a device that does not go on after a failure does not judge for itself.
    #[inline]
    pub(super) fn refuse_poisoned_meanwhile(&self) -> Result<()> {
        if POISONED.is_any() && !self.timeline.survives_faults() { self.look_again() } else { Ok(()) }
    }

    #[cold]
    fn look_again(&self) -> Result<()> {
        let reads = |access: &&Access<'_, B>| !access.write || self.work.may_read_what_it_writes();
        let mut reads = self.accesses.iter().filter(reads);
        // Without a look at the logs: the lock of the stream is held, and they were looked at when it began.
        reads.try_for_each(|access| access.memory.find_poison(self.operation, &access.extent))
    }

    #[cold]
    fn look_for_poison(&self) -> Result<()> {
        let reads = |access: &&Access<'_, B>| !access.write || self.work.may_read_what_it_writes();
        let mut reads = self.accesses.iter().filter(reads);
        reads.try_for_each(|access| access.memory.refuse_poisoned(self.operation, &access.extent))
    }
}
