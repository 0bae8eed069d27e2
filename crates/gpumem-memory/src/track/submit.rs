//! Enqueuing work in the right order.

use super::{
    Timeline, Tracked,
    locked_logs::{LockedLog, LockedLogs},
    queue::Queue,
};
use gpumem_core::{Backend, Error, ErrorKind, MemoryUse, MemoryUses, POISONED, Result, with_uses};
use std::{ops::Range, sync::Arc};

/// A use of memory by work that is about to be enqueued.
#[derive(Debug, Clone)]
pub struct Access<'a, B: Backend> {
    /// The memory.
    pub memory: &'a Tracked<B>,
    /// Bytes of the allocation.
    pub extent: Range<usize>,
    /// Whether the work writes it.
    pub write: bool,
}

impl<'a, B: Backend> Access<'a, B> {
    /// Makes an access that reads.
    pub fn read(memory: &'a Tracked<B>, extent: Range<usize>) -> Self {
        Self { memory, extent, write: false }
    }

    /// Makes an access that writes.
    pub fn write(memory: &'a Tracked<B>, extent: Range<usize>) -> Self {
        Self { memory, extent, write: true }
    }
}

/// The uses of work, in the form for backends.
pub struct Uses<'a, 'b, B: Backend>(/** The accesses. */ pub &'a [Access<'b, B>]);

impl<B: Backend> MemoryUses for Uses<'_, '_, B> {
    fn each(&self, found: &mut dyn FnMut(&MemoryUse)) {
        for Access { memory, extent, write } in self.0 {
            found(&memory.used(extent, *write));
        }
    }
}

/// Work that has been enqueued.
#[derive(Debug)]
pub struct Submitted<R> {
    pub submission: u64,
    pub value: R,
}

impl<B: Backend> Timeline<B> {
    /// Checks that the memory belongs to the device of the stream, for work on one device only.
    #[inline]
    pub fn check_owns(&self, operation: &'static str, memory: &Tracked<B>) -> Result<()> {
        if memory.context().is_same(&self.context) { Ok(()) } else { self.does_not_own(operation, memory) }
    }

    #[cold]
    fn does_not_own(&self, operation: &'static str, memory: &Tracked<B>) -> Result<()> {
        let (has, wants) = (memory.context().name(), self.context.name());
        Err(self.context.error(operation, ErrorKind::WrongDevice { what: "array", has, wants }))
    }

    /// Tells whether the stream and the memory may be used, and all is of one device. If not, the checks below return
    /// the error.
    #[inline]
    pub fn is_ready_for(&self, accesses: &[Access<'_, B>]) -> bool {
        let is_own = |memory: &Tracked<B>| Arc::ptr_eq(memory.context(), &self.context) && memory.is_fresh();
        self.is_ready() && accesses.iter().all(|access| is_own(access.memory))
    }

    /// Whether the stream and the memory may be used.
    #[inline]
    fn check_all(&self, operation: &'static str, accesses: &[Access<'_, B>]) -> Result<()> {
        if self.is_ready_for(accesses) { Ok(()) } else { self.check_each(operation, accesses) }
    }

    /// Returns what is wrong with the stream or the memory, apart from belonging to another device.
    #[cold]
    fn check_each(&self, operation: &'static str, accesses: &[Access<'_, B>]) -> Result<()> {
        self.check(operation)?;
        accesses.iter().try_for_each(|access| access.memory.check(operation))
    }

    /// Enqueues work that uses memory, after everything that it conflicts with on any stream.
    ///
    /// # Errors
    /// Returns the error of the driver or of `enqueue`. By the time an error is returned nothing of the work is
    /// running any more.
    #[inline]
    pub fn submit<R>(
        self: &Arc<Self>,
        operation: &'static str,
        accesses: &[Access<'_, B>],
        enqueue: impl FnOnce(&B::Stream) -> Result<R>,
    ) -> Result<Submitted<R>> {
        self.submit_as(operation, accesses, |raw, _| enqueue(raw))
    }

    /// As [`submit`](Self::submit), with the submission index that the work gets. It is given out under the
    /// stream's lock.
    #[inline]
    pub fn submit_as<R>(
        self: &Arc<Self>,
        operation: &'static str,
        accesses: &[Access<'_, B>],
        enqueue: impl FnOnce(&B::Stream, u64) -> Result<R>,
    ) -> Result<Submitted<R>> {
        self.check_all(operation, accesses)?;
        self.submit_checked(operation, accesses, enqueue)
    }

    /// As [`submit_as`](Self::submit_as), for a stream and memory that [may be used](Self::is_ready_for).
    #[inline(always)]
    pub fn submit_checked<R>(
        self: &Arc<Self>,
        operation: &'static str,
        accesses: &[Access<'_, B>],
        enqueue: impl FnOnce(&B::Stream, u64) -> Result<R>,
    ) -> Result<Submitted<R>> {
        if POISONED.is_any() {
            self.refuse_poisoned_sources(operation, accesses)?;
        }
        let admitted = self.begin_submission(operation, accesses)?;
        let (submission, is_lent) = (admitted.submission, admitted.is_lent);
        let uses = Uses(accesses);
        let told: Option<&dyn MemoryUses> = if self.survives_faults() { Some(&uses) } else { None };
        // SAFETY: the caller has listed all memory that the work uses in the accesses.
        let enqueue = |raw: &_, submission| unsafe { with_uses(told, || enqueue(raw, submission)) };
        let result = self.enqueue(admitted, operation, enqueue);
        let result =
            if is_lent { self.make_borrowers_wait(accesses, submission).and(result) } else { result };
        match result {
            Ok(value) => Ok(Submitted { submission, value }),
            Err(error) => Err(self.wait_first(submission, error.in_operation(operation))),
        }
    }

    /// Refuses work that reads bytes that failed work was to write.
    #[cold]
    pub fn refuse_poisoned_sources(&self, operation: &'static str, accesses: &[Access<'_, B>]) -> Result<()> {
        let mut reads = accesses.iter().filter(|access| !access.write);
        reads.try_for_each(|access| access.memory.refuse_poisoned(operation, &access.extent))
    }

    /// Refuses work that uses bytes that failed work was to write, if it may read the bytes that it writes: a kernel,
    /// or another library.
    #[inline]
    pub fn refuse_poisoned(&self, operation: &'static str, accesses: &[Access<'_, B>]) -> Result<()> {
        if POISONED.is_any() { self.refuse_all_poisoned(operation, accesses) } else { Ok(()) }
    }

    #[cold]
    fn refuse_all_poisoned(&self, operation: &'static str, accesses: &[Access<'_, B>]) -> Result<()> {
        accesses.iter().try_for_each(|access| access.memory.refuse_poisoned(operation, &access.extent))
    }

    #[cold]
    fn make_borrowers_wait(&self, accesses: &[Access<'_, B>], submission: u64) -> Result<()> {
        accesses.iter().try_for_each(|access| access.memory.make_borrowers_wait(self, submission))
    }

    /// Makes the stream wait for everything that the uses conflict with, for work that is enqueued and
    /// [submitted](Self::submit) later. The caller sees to it that no other conflicting use comes between.
    ///
    /// # Errors
    /// Returns the error of the driver or of `look`, which is called before anything is enqueued.
    pub fn prepare<R>(
        &self,
        operation: &'static str,
        accesses: &[Access<'_, B>],
        look: impl FnOnce(&B::Stream) -> Result<R>,
    ) -> Result<R> {
        self.prepare_with(operation, accesses, |queue| self.with_raw_locked(queue, operation, look))
    }

    /// As [`prepare`](Self::prepare), for work that may wait for other devices or processes. First it records an event, with
    /// which other streams can wait for the work so far, and not for this work too. If `last` is the last submission, no
    /// event is needed.
    ///
    /// # Errors
    /// As for [`prepare`](Self::prepare). Nothing has been enqueued but an event and waits then.
    pub fn prepare_after<R>(
        &self,
        last: Option<u64>,
        operation: &'static str,
        accesses: &[Access<'_, B>],
        look: impl FnOnce(&B::Stream) -> Result<R>,
    ) -> Result<R> {
        self.prepare_with(operation, accesses, |queue| {
            let seen = self.with_raw_locked(queue, operation, look)?;
            let submission = queue.submission;
            if last != Some(submission) && !self.is_complete(submission) && !queue.events.has(submission) {
                self.record(queue)?;
            }
            Ok(seen)
        })
    }

    /// Calls `begin`, and makes the stream wait for everything that the uses conflict with.
    fn prepare_with<R>(
        &self,
        operation: &'static str,
        accesses: &[Access<'_, B>],
        begin: impl FnOnce(&mut Queue<B>) -> Result<R>,
    ) -> Result<R> {
        self.check_all(operation, accesses)?;
        match accesses {
            [only] => return self.begin_and_wait(operation, LockedLogs(&mut [LockedLog::one(only)]), begin),
            [first, second] => {
                if let Some(mut both) = LockedLog::two(first, second) {
                    return self.begin_and_wait(operation, LockedLogs(&mut both), begin);
                }
            }
            _ => {}
        }
        self.begin_and_wait(operation, LockedLogs(&mut LockedLog::all(accesses)), begin)
    }

    /// Law 8: part of a failed operation may be under way, so the call waits for its memory before it returns the error.
    #[cold]
    fn wait_first(&self, submission: u64, error: Error) -> Error {
        let wait_outcome = self.wait_host(submission);
        if let Err(second) = wait_outcome.result
            && !wait_outcome.done
        {
            self.context.errors.push(second);
        }
        error
    }
}

impl<B: Backend> std::fmt::Debug for Uses<'_, '_, B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Uses").finish_non_exhaustive()
    }
}
