//! Enqueuing work in the right order.

use super::{
    Access, Admitted, Calls, Sink, Timeline, Uses, Work,
    locked_logs::{LockedLog, LockedLogs},
    queue::Queue,
};
use gpumem_core::{
    Backend, CopyRegion, Error, ErrorKind, Failure, MemoryUses, NotRecorded, POISONED, RawStream, Result,
    Stream as _, SubmissionId, with_uses,
};
use smallvec::SmallVec;
use std::sync::Arc;

const CAPTURED: &str = "work on a stream that another library captures, whose graph does not keep what the work uses (record it \
                        with `Device::record`)";

const CAPTURED_BORROWER: &str =
    "work on memory that is lent to a stream that another library captures, which cannot wait for it";

#[derive(Debug)]
pub struct Submitted<R> {
    pub submission: u64,
    /// What the call that enqueued it returned.
    pub value: R,
}

impl<B: Backend> Timeline<B> {
    /// Enqueues a [transfer](Work::Transfer), after everything that it conflicts with on any stream.
    /// Returns the errors of [`admit`](Self::admit) and of [`Admitted::submit`].
    #[inline]
    pub fn submit<R>(
        self: &Arc<Self>,
        operation: &'static str,
        accesses: &[Access<'_, B>],
        enqueue: impl FnOnce(&Sink<'_, B>) -> Result<R>,
    ) -> Result<Submitted<R>> {
        self.admit(Work::Transfer, operation, accesses)?.submit(|sink, _| enqueue(sink))
    }

    /// Notes that a call has failed after part of its work had been enqueued: the contents of what it was to write are unknown. They
    /// are poisoned in the order of work: work that was enqueued before neither clears the poison nor is refused for it.
    /// Returns the submission index of that, 0 if they are poisoned already. Placeholder memory of a recording has no bytes: nothing
    /// is noted of it, which nothing would take away again.
    #[cold]
    pub fn poison(self: &Arc<Self>, operation: &'static str, torn: &[Access<'_, B>], error: &Error) -> u64 {
        if self.is_recording() {
            return 0;
        }
        let failure = match error.kind() {
            ErrorKind::Poisoned { failure, .. } => failure.clone(),
            kind => Arc::new(Failure::new(operation, self.context.name(), kind.to_string())),
        };
        let uses: SmallVec<[_; 2]> =
            torn.iter().map(|access| access.memory.used(&access.extent, true)).collect();
        // SAFETY: the extents are the allocations' own, which the access logs keep alive and ordered.
        let enqueue = |sink: &Sink<'_, B>| unsafe { sink.stream(operation)?.poison(&uses, &failure) };
        let Ok(submitted) = self.submit(operation, torn, enqueue) else {
            // The stream runs no work any more.
            // SAFETY: as above.
            uses.iter().for_each(|used| unsafe { POISONED.poison(used, &failure) });
            return 0;
        };
        submitted.submission
    }

    /// Notes that work has failed after part of it had been enqueued: the contents of what it was to write are unknown.
    /// A caller that has cancelled it knows.
    #[cold]
    pub fn note_torn(self: &Arc<Self>, operation: &'static str, accesses: &[Access<'_, B>], error: &Error) {
        let is_kept = |access: &&Access<'_, B>| access.write && !access.is_scratch;
        let written: SmallVec<[_; 4]> = accesses.iter().filter(is_kept).cloned().collect();
        if !written.is_empty() && !matches!(error.kind(), ErrorKind::Cancelled) {
            let poisoned = self.poison(operation, &written, error);
            // Law 8: wait first, report after. In a callback later work is ordered after it all the same.
            let _ = self.wait_host(poisoned);
        }
    }

    #[cold]
    fn make_borrowers_wait(&self, accesses: &[Access<'_, B>], submission: u64) -> Result<()> {
        accesses.iter().try_for_each(|access| access.memory.make_borrowers_wait(self, submission))
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

impl<'s, 'a, B: Backend> Admitted<'s, 'a, B> {
    /// Enqueues the work, after everything that it conflicts with on any stream. `enqueue` gets the submission index of the
    /// work too, which is given out under the stream's lock.
    /// Returns the error of the driver or of `enqueue`, [`Poisoned`](ErrorKind::Poisoned), and
    /// [`Unsupported`](ErrorKind::Unsupported) if another library captures the stream. By the time an error is returned nothing of
    /// the work is running any more, and what was to be written is poisoned if part of the work had been enqueued.
    #[inline(always)]
    pub fn submit<R>(self, enqueue: impl FnOnce(&Sink<'_, B>, u64) -> Result<R>) -> Result<Submitted<R>> {
        if self.timeline.is_recording() {
            return self.record(enqueue);
        }
        // Before anything is enqueued or noted.
        self.refuse_poisoned()?;
        self.enqueue(enqueue)
    }

    #[inline(always)]
    fn enqueue<R>(&self, enqueue: impl FnOnce(&Sink<'_, B>, u64) -> Result<R>) -> Result<Submitted<R>> {
        self.enqueue_if(|| self.refuse_poisoned_meanwhile(), enqueue)
    }

    /// As [`enqueue`](Self::enqueue), if `check` allows it once everything that the work depends on has been waited for.
    #[inline(always)]
    fn enqueue_if<R>(
        &self,
        check: impl FnOnce() -> Result<()>,
        enqueue: impl FnOnce(&Sink<'_, B>, u64) -> Result<R>,
    ) -> Result<Submitted<R>> {
        let Self { timeline, operation, accesses, .. } = *self;
        let begun = timeline.begin_submission(operation, accesses)?;
        let (submission, is_lent) = (begun.submission, begun.is_lent);
        let uses = Uses { accesses, submission: SubmissionId { stream: timeline.id(), submission } };
        let told: Option<&dyn MemoryUses> = if timeline.survives_faults() { Some(&uses) } else { None };
        let calls = Calls::new(&timeline.counters);
        let enqueue = |raw: &_, submission| {
            check()?;
            // SAFETY: the caller has listed all memory that the work uses in the accesses.
            unsafe { with_uses(told, || enqueue(&Sink::Stream(raw, &calls), submission)) }
        };
        // The queue is unlocked when this returns.
        let result = timeline.enqueue(begun, operation, enqueue);
        let result =
            if is_lent { timeline.make_borrowers_wait(accesses, submission).and(result) } else { result };
        match result {
            Ok(value) => Ok(Submitted { submission, value }),
            Err(error) => {
                let error = timeline.wait_first(submission, error.in_operation(operation));
                if calls.has_begun() {
                    timeline.note_torn(operation, accesses, &error);
                }
                Err(error)
            }
        }
    }

    /// Lends the driver's stream for work that others enqueue: makes the stream wait for everything that the uses conflict
    /// with. Until [`LentStream::note`] conflicting uses by other streams are refused.
    /// Returns the error of the driver, [`Poisoned`](ErrorKind::Poisoned), [`Overlap`](ErrorKind::Overlap) if a
    /// conflicting use is announced, and [`Unsupported`](ErrorKind::Unsupported) if another library captures the stream.
    pub fn lend(self) -> Result<LentStream<'s, 'a, B>> {
        self.lend_with(|timeline, queue| {
            timeline.with_raw_locked(queue, self.operation, |raw| Ok(raw.lent()))
        })
    }

    /// As [`lend`](Self::lend), for work that may wait for other devices or processes. First it records an event, with
    /// which other streams can wait for the work so far, and not for this work too. If `last` is the last submission, no
    /// event is needed.
    #[inline]
    pub fn lend_after(self, last: Option<u64>) -> Result<LentStream<'s, 'a, B>> {
        self.lend_with(|timeline, queue| {
            let handle = timeline.with_raw_locked(queue, self.operation, |raw| Ok(raw.lent()))?;
            let submission = queue.submission;
            if last != Some(submission) && !timeline.is_complete(submission) && !queue.events.has(submission)
            {
                timeline.record(queue)?;
            }
            Ok(handle)
        })
    }

    /// Calls `begin`, and makes the stream wait for everything that the uses conflict with.
    #[inline]
    fn lend_with(
        &self,
        begin: impl Fn(&Arc<Timeline<B>>, &mut Queue<B>) -> Result<RawStream>,
    ) -> Result<LentStream<'s, 'a, B>> {
        let Self { timeline, work, operation, accesses } = *self;
        if timeline.is_recording() {
            return Err(timeline.unusable(operation, NotRecorded::ForeignWork));
        }
        self.refuse_poisoned()?;
        let wait = |logs: LockedLogs<'_, '_, B>| {
            let handle = timeline.begin_and_wait(operation, logs, |queue| begin(timeline, queue))?;
            let announces = accesses.iter().any(|access| access.memory.may_be_used_by_others());
            if announces {
                accesses.iter().for_each(|access| access.memory.announce(timeline, access));
            }
            Ok(LentStream { admitted: Admitted { timeline, work, operation, accesses }, handle, announces })
        };
        let lent = timeline.after_host_waits(operation, |since| {
            let both = match accesses {
                [first, second] => LockedLog::two(timeline, operation, [first, second], since)?,
                _ => None,
            };
            match (accesses, both) {
                ([only], _) => wait(LockedLogs(&mut [LockedLog::one(timeline, operation, only, since)?])),
                (_, Some(mut both)) => wait(LockedLogs(&mut both)),
                (_, None) => wait(LockedLogs(&mut LockedLog::all(timeline, operation, accesses, since)?)),
            }
        })?;
        // The host may have waited for work that failed.
        self.refuse_poisoned_meanwhile()?;
        Ok(lent)
    }

    /// Copies at once, on this thread, to or from one allocation or between two, if the backend can do so now and nothing has to be
    /// waited for; `false` if not.
    ///
    /// # Safety
    /// As for [`Stream::try_copy_sync`](gpumem_core::Stream::try_copy_sync), for a stream that nothing else is enqueued
    /// on meanwhile. The region has no bytes of the library but those of the accesses.
    #[inline(always)]
    pub unsafe fn try_copy_sync(self, region: &CopyRegion) -> bool {
        let Self { timeline, operation, accesses, .. } = self;
        // The way through the stream looks at what failed work was to write, and notes what is written anew.
        if POISONED.is_any() {
            return false;
        }
        let copy = |logs: LockedLogs<'_, '_, B>| {
            // The logs are locked until the copy is done: no use of the memory can be enqueued meanwhile, so there is nothing to
            // note in them.
            logs.are_free(timeline)
                && timeline
                    // SAFETY: the caller's promise.
                    .with_raw(operation, |raw| Ok(unsafe { raw.try_copy_sync(region) }))
                    .unwrap_or(false)
        };
        // The way through the stream returns the error of an announced use.
        let copied = match accesses {
            [only] => {
                LockedLog::one(timeline, operation, only, 0).is_ok_and(|one| copy(LockedLogs(&mut [one])))
            }
            [first, second] => LockedLog::two(timeline, operation, [first, second], 0)
                .is_ok_and(|both| both.is_some_and(|mut both| copy(LockedLogs(&mut both)))),
            _ => false,
        };
        if copied {
            timeline.counters.count_copy();
            for Access { memory, extent, write, .. } in accesses {
                memory.record_use(extent, *write, operation, (0, 0));
            }
        }
        copied
    }
}

/// The driver's stream while others enqueue one piece of work on it.
#[derive(Debug)]
#[must_use = "the uses of the memory have yet to be noted"]
pub struct LentStream<'s, 'a, B: Backend> {
    admitted: Admitted<'s, 'a, B>,
    pub handle: RawStream,
    /// Whether the uses have been announced.
    announces: bool,
}

impl<'s, 'a, B: Backend> LentStream<'s, 'a, B> {
    pub fn accesses(&self) -> &'s [Access<'a, B>] {
        self.admitted.accesses
    }

    /// Notes the uses of the work, which has been enqueued, or part of it. They stay announced until this is dropped. Returns its
    /// submission index.
    /// Returns the error of the driver, that of a device that has been reset meanwhile, and [`Poisoned`](ErrorKind::Poisoned) if what
    /// the work reads turns out to be. The work has taken place all the same, so what it was to write is poisoned then.
    #[inline]
    pub fn note(&self) -> Result<u64> {
        let noted = self.admitted.enqueue_if(|| Ok(()), |_, _| Ok(()));
        let noted = noted.and_then(|noted| self.admitted.refuse_poisoned_meanwhile().map(|()| noted));
        noted.map(|noted| noted.submission).inspect_err(|error| self.poison(error))
    }

    #[cold]
    fn poison(&self, error: &Error) {
        let Admitted { timeline, operation, accesses, .. } = self.admitted;
        // The work may be under way, and may be in no log: its memory is not given to others before the stream has passed it. What
        // cannot be noted is of a device that is gone.
        for Access { memory, extent, .. } in accesses {
            let _ = memory.note_work_on(operation, extent, timeline);
        }
        let written: SmallVec<[_; 4]> = accesses.iter().filter(|access| access.write).cloned().collect();
        timeline.poison(operation, &written, error);
    }
}

impl<B: Backend> Drop for LentStream<'_, '_, B> {
    fn drop(&mut self) {
        let Admitted { timeline, accesses, .. } = self.admitted;
        if self.announces {
            accesses.iter().for_each(|access| access.memory.withdraw(timeline, access));
        }
    }
}

impl<B: Backend> Timeline<B> {
    /// Refuses a stream that another library captures into a graph of its own.
    /// Returns [`Unsupported`](ErrorKind::Unsupported).
    pub fn refuse_capture(&self, operation: &'static str) -> Result<()> {
        self.with_raw(operation, |raw| self.check_not_captured(operation, raw))
    }

    /// Returns the first of these submissions, by timeline and index, for which the stream has been made to wait, or for later work
    /// of that timeline.
    pub fn waits_for_one_of(&self, mut all: impl Iterator<Item = (u64, u64)>) -> Option<(u64, u64)> {
        // A leaf, for a look at the waits that are remembered.
        let waits = self.waits.lock();
        all.find(|(timeline, submission)| waits.has(*timeline, *submission))
    }

    /// As [`refuse_capture`](Self::refuse_capture), for the stream of a borrower, which is to wait for the work. One that no work can be
    /// enqueued on any more is not made to wait.
    pub(super) fn refuse_captured_borrower(&self, operation: &'static str) -> Result<()> {
        if self.is_whole_device || self.is_stale() {
            return Ok(());
        }
        let queue = self.queue.lock();
        queue.raw.as_deref().map_or(Ok(()), |raw| self.check_capture(operation, raw, CAPTURED_BORROWER))
    }

    /// As [`refuse_capture`](Self::refuse_capture).
    #[inline(always)]
    pub(super) fn check_not_captured(&self, operation: &'static str, raw: &B::Stream) -> Result<()> {
        self.check_capture(operation, raw, CAPTURED)
    }

    #[inline(always)]
    fn check_capture(&self, operation: &'static str, raw: &B::Stream, what: &'static str) -> Result<()> {
        let is_capturing = self.context.note_loss(raw.is_capturing());
        match is_capturing.map_err(|error| error.in_operation(operation))? {
            true => Err(self.context.error(operation, ErrorKind::Unsupported { what })),
            false => Ok(()),
        }
    }
}
