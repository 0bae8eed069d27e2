//! The one way to submit work to a stream: after everything that the work conflicts with.

use super::{
    Access, DeviceContext, RecordedEvent, Timeline,
    access_log::LoggedAccess,
    locked_logs::{LockedLog, LockedLogs},
    queue::{Queue, WaitTarget, stale},
    unique_id,
};
use crate::sync::ShortMutexGuard;
use gpumem_core::{Backend, Error, Result, StreamKind};
use std::sync::Arc;

/// A submission index of a queue, which is locked until the work is enqueued.
pub(super) struct SubmissionGuard<'a, B: Backend> {
    queue: ShortMutexGuard<'a, Queue<B>>,
    pub(super) submission: u64,
    /// Whether any of the memory is borrowed.
    pub(super) is_lent: bool,
}

/// A use that no driver makes the stream wait for, so that the host has to, without any lock.
pub(super) struct Unordered<B: Backend> {
    pub(super) by: Arc<Timeline<B>>,
    pub(super) submission: u64,
    /// An event after it, if there is one.
    pub(super) recorded: Option<Arc<RecordedEvent<B>>>,
}

/// Why a submission could not begin.
pub(super) enum Hindrance<B: Backend> {
    Failed(Error),
    Unordered(Unordered<B>),
}

impl<B: Backend> From<Error> for Hindrance<B> {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl<B: Backend> Timeline<B> {
    /// Calls `begin`, which locks logs and the queue, until the host has waited for all that it must wait for itself: for work of
    /// another backend, say. No lock is held meanwhile: that work may be code of the user's, which asks for one. `begin` notes
    /// the work of the loans that have been made since the number that it gets.
    #[inline(always)]
    pub(super) fn after_host_waits<R>(
        &self,
        operation: &'static str,
        mut begin: impl FnMut(u64) -> Result<R, Hindrance<B>>,
    ) -> Result<R> {
        // Older loans have been noted by an earlier call. Were they noted by each, there would always be more to wait for.
        let (mut since, mut tried) = (0, 0);
        loop {
            match begin(since) {
                Ok(begun) => return Ok(begun),
                Err(Hindrance::Failed(error)) => return Err(error),
                Err(Hindrance::Unordered(earlier)) => {
                    (since, tried) = (tried, unique_id());
                    self.wait_before_use(&earlier).map_err(|error| error.in_operation(operation))?
                }
            }
        }
    }

    /// Waits for everything that the uses conflict with, takes the next submission index, and notes the uses under it.
    /// The result holds the lock of the queue until the work is enqueued; the logs are locked for a shorter time. All
    /// state is read and written before the driver call, which evicts most of it from the caches.
    /// Returns an error if the stream cannot be used, or not made to wait, and [`Overlap`](gpumem_core::ErrorKind::Overlap) if
    /// a conflicting use is announced. Nothing has been noted.
    #[inline(never)] // one for whatever is enqueued
    pub(super) fn begin_submission(
        self: &Arc<Self>,
        operation: &'static str,
        accesses: &[Access<'_, B>],
    ) -> Result<SubmissionGuard<'_, B>> {
        self.after_host_waits(operation, |since| self.try_begin_submission(operation, accesses, since))
    }

    #[inline(always)]
    fn try_begin_submission(
        self: &Arc<Self>,
        operation: &'static str,
        accesses: &[Access<'_, B>],
        since: u64,
    ) -> Result<SubmissionGuard<'_, B>, Hindrance<B>> {
        match accesses {
            [only] => {
                return self.begin_submission_of(operation, [LockedLog::one(self, operation, only, since)?]);
            }
            [first, second] => {
                if let Some(both) = LockedLog::two(self, operation, [first, second], since)? {
                    return self.begin_submission_of(operation, both);
                }
            }
            _ => {}
        }
        let mut all = LockedLog::all(self, operation, accesses, since)?;
        self.begin_after_dependencies(operation, LockedLogs(&mut all), self.lock_queue(operation)?)
    }

    /// The queue, locked until the work is enqueued, so that index order is queue order. The caller has locked the logs before.
    ///
    /// Refuses a stream that another library captures, before anything is noted, and before a wait would end the capture: captured
    /// work does not run now, but at each launch of the other library's graph, whatever has become of its memory and its program by
    /// then. No log, no pool and no law knows of these launches.
    #[inline(always)]
    fn lock_queue(&self, operation: &'static str) -> Result<ShortMutexGuard<'_, Queue<B>>> {
        let queue = self.queue.lock();
        if let Some(raw) = queue.raw.as_deref() {
            self.check_not_captured(operation, raw)?;
        }
        Ok(queue)
    }

    /// [`begin_submission`](Self::begin_submission) for so many uses.
    #[inline(always)]
    fn begin_submission_of<'a, const USES: usize>(
        self: &'a Arc<Self>,
        operation: &'static str,
        mut all: [LockedLog<'_, B>; USES],
    ) -> Result<SubmissionGuard<'a, B>, Hindrance<B>> {
        let mut queue = self.lock_queue(operation)?;
        if queue.raw.is_some()
            && let Some((submission, is_lent)) =
                LockedLogs(&mut all).record_repeat(self, operation, &mut queue)
        {
            return Ok(SubmissionGuard { queue, submission, is_lent });
        }
        // Moved to a place in memory, which the usual case does not need.
        self.begin_after_dependencies(operation, LockedLogs(&mut { all }), queue)
    }

    /// [`begin_submission`](Self::begin_submission), where there may be something to wait for.
    #[inline(always)]
    fn begin_after_dependencies<'a>(
        self: &'a Arc<Self>,
        operation: &'static str,
        mut logs: LockedLogs<'_, '_, B>,
        queue: ShortMutexGuard<'a, Queue<B>>,
    ) -> Result<SubmissionGuard<'a, B>, Hindrance<B>> {
        let mut queue = self.wait_for_dependencies(operation, queue, &mut logs)?;
        if queue.raw.is_none() {
            return Err(stale(&self.context, operation).into());
        }
        // Only now: a stream that could not be made to wait has given out no index.
        let submission = self.give_out(&mut queue);
        if DeviceContext::<B>::has_aborted() {
            // What the work depends on may have been aborted since the logs were locked. The enqueuing looks for the poison.
            logs.poison_aborted();
        }
        let is_lent = logs.note(self, operation, submission);
        Ok(SubmissionGuard { queue, submission, is_lent })
    }

    /// Runs `enqueue`, which gets its submission index, on the driver's stream, under the queue's lock. If it fails
    /// half-way, the submission index covers the half that is under way.
    #[inline]
    pub(super) fn enqueue<R>(
        &self,
        SubmissionGuard { mut queue, submission, .. }: SubmissionGuard<'_, B>,
        operation: &'static str,
        enqueue: impl FnOnce(&B::Stream, u64) -> Result<R>,
    ) -> Result<R> {
        let Some(raw) = queue.raw.as_deref() else { return Err(stale(&self.context, operation)) };
        let result = self.context.note_loss(enqueue(raw, submission));
        // Still under the lock of the queue, so that the event covers no later work.
        if self.kind() == StreamKind::PerThread {
            // Another thread cannot record on this stream later, so the event is made now.
            self.record(&mut queue)?;
        }
        result
    }

    /// Calls `begin`, and makes the stream wait for everything that the logs name.
    #[inline(always)]
    pub(super) fn begin_and_wait<R>(
        &self,
        operation: &'static str,
        mut logs: LockedLogs<'_, '_, B>,
        begin: impl FnOnce(&mut Queue<B>) -> Result<R>,
    ) -> Result<R, Hindrance<B>> {
        let mut queue = self.lock_queue(operation)?;
        let begun = begin(&mut queue)?;
        self.wait_for_dependencies(operation, queue, &mut logs)?;
        Ok(begun)
    }

    /// The queue, locked, when the stream waits for everything that conflicts with the uses.
    #[inline(always)]
    fn wait_for_dependencies<'a>(
        &'a self,
        operation: &'static str,
        queue: ShortMutexGuard<'a, Queue<B>>,
        logs: &mut LockedLogs<'_, '_, B>,
    ) -> Result<ShortMutexGuard<'a, Queue<B>>, Hindrance<B>> {
        // First: the look at what is settled sees fewer uses then.
        logs.compact();
        if logs.are_settled(self, |id, submission| self.waits.lock().has(id, submission)) {
            return Ok(queue);
        }
        self.wait_for_all(queue, logs).map_err(|hindrance| match hindrance {
            Hindrance::Failed(error) => error.in_operation(operation).into(),
            unordered => unordered,
        })
    }

    /// Makes the stream wait for other timelines, as far as it has not done so before.
    #[inline(never)]
    fn wait_for_all<'a>(
        &'a self,
        mut queue: ShortMutexGuard<'a, Queue<B>>,
        logs: &LockedLogs<'_, '_, B>,
    ) -> Result<ShortMutexGuard<'a, Queue<B>>, Hindrance<B>> {
        for (access, log) in logs.each() {
            for LoggedAccess { by: of, submission, .. } in log.conflicts(&access.extent, access.write) {
                // A wait for one use often covers the next one: an event covers all earlier work.
                if of.id() == self.id()
                    || self.waits.lock().has(of.id(), *submission)
                    || self.try_wait_on(&queue, of, *submission)?
                {
                    continue;
                }
                // Another thread holds that lock. Before blocking on it this one releases its own, which the other may be
                // waiting for.
                drop(queue);
                let unordered = |submission, recorded| {
                    Hindrance::Unordered(Unordered { by: of.clone(), submission, recorded })
                };
                let Some(target) = of.try_wait_target(*submission)? else {
                    return Err(unordered(*submission, None));
                };
                // The other queue is unlocked again: at no time does a thread wait for one while it holds another.
                queue = self.queue.lock();
                if let WaitTarget::Event { submission, recorded } = target {
                    if !self.wait_on(&queue, of, submission, &recorded)? {
                        return Err(unordered(submission, Some(recorded)));
                    }
                    self.context.recorder.waited(self.id(), of.id(), submission);
                }
            }
        }
        Ok(queue)
    }

    /// Makes the stream wait for another one of its device, if the lock of that one can be had without waiting for it: the
    /// usual case, which needs no reference to the event. Otherwise nothing is done.
    #[inline]
    fn try_wait_on(&self, queue: &Queue<B>, of: &Self, submission: u64) -> Result<bool> {
        // These may take a wait of the host, which is made without this lock.
        if of.is_whole_device || !Arc::ptr_eq(&self.context, &of.context) {
            return Ok(false);
        }
        if of.is_complete(submission) || of.is_stale() {
            return Ok(true);
        }
        // Tried, not waited for: that stream may be trying to get this one.
        let Some(mut theirs) = of.queue.try_lock() else { return Ok(false) };
        let (covers, recorded) = match theirs.events.has(submission) {
            // Ended without a last event, or another one on this thread.
            false if theirs.raw.is_none() || !of.is_of_this_thread() => return Ok(false),
            false => of.record(&mut theirs)?.clone(),
            true => match theirs.events.find(submission) {
                Some(recorded) => recorded.clone(),
                None => return Ok(false),
            },
        };
        // This stream may have no room for the wait: others go on with that one.
        drop(theirs);
        let waits = self.wait_on(queue, of, covers, &recorded)?;
        if waits {
            self.context.recorder.waited(self.id(), of.id(), covers);
        }
        Ok(waits)
    }
}
