//! The one way into a stream: behind everything that the work conflicts with.

use super::{
    Access, Timeline,
    logs::{Held, Logs},
    queue::{Point, Queue, stale},
    uses::Use,
};
use crate::sync::ShortMutexGuard;
use gpumem_core::{Backend, Result, StreamKind};
use std::sync::Arc;

/// A ticket of a queue, which is locked until the work stands in it.
pub(super) struct Admitted<'a, B: Backend> {
    queue: ShortMutexGuard<'a, Queue<B>>,
    pub(super) ticket: u64,
    /// Whether somebody borrows any of the memory.
    pub(super) is_lent: bool,
}

impl<B: Backend> Timeline<B> {
    /// Takes the next ticket, behind everything that the uses conflict with, and notes them under it. Whoever asks for the
    /// ticket meets the lock of the queue, which the result holds until the work stands in the stream; the logs need not be
    /// locked for so long. All that is read and written of ours is so before the driver is called, which leaves little of
    /// it in the caches.
    ///
    /// # Errors
    /// The stream cannot be used, or not made to wait. Nothing has been noted.
    #[inline(never)] // one for whatever is enqueued
    pub(super) fn admit(
        self: &Arc<Self>,
        operation: &'static str,
        accesses: &[Access<'_, B>],
    ) -> Result<Admitted<'_, B>> {
        match accesses {
            [only] => return self.admit_to(operation, [Held::one(only)]),
            [first, second] => {
                if let Some(both) = Held::two(first, second) {
                    return self.admit_to(operation, both);
                }
            }
            _ => {}
        }
        self.admit_behind(operation, Logs(&mut Held::all(accesses)), self.queue.lock())
    }

    /// [`admit`](Self::admit) for so many uses.
    #[inline(always)]
    fn admit_to<'a, const USES: usize>(
        self: &'a Arc<Self>,
        operation: &'static str,
        mut all: [Held<'_, B>; USES],
    ) -> Result<Admitted<'a, B>> {
        let mut queue = self.queue.lock();
        let ticket = queue.ticket + 1;
        if queue.raw.is_some()
            && let Some(is_lent) = Logs(&mut all).note_again(self, operation, ticket)
        {
            queue.ticket = ticket;
            return Ok(Admitted { queue, ticket, is_lent });
        }
        // Moved to a place in memory, which the usual case does not need.
        self.admit_behind(operation, Logs(&mut { all }), queue)
    }

    /// [`admit`](Self::admit), where there may be something to wait for.
    #[inline(always)]
    fn admit_behind<'a>(
        self: &'a Arc<Self>,
        operation: &'static str,
        mut logs: Logs<'_, '_, B>,
        queue: ShortMutexGuard<'a, Queue<B>>,
    ) -> Result<Admitted<'a, B>> {
        let mut queue = self.put_behind(operation, queue, &mut logs)?;
        if queue.raw.is_none() {
            return Err(stale(&self.core, operation));
        }
        queue.ticket += 1;
        let ticket = queue.ticket;
        let is_lent = logs.note(self, operation, ticket);
        Ok(Admitted { queue, ticket, is_lent })
    }

    /// Runs `enqueue`, which is told its ticket, on the driver's stream, under the lock that gives out tickets. If it fails
    /// half-way, the ticket stands for the half that is under way.
    #[inline]
    pub(super) fn enqueue<R>(
        &self,
        Admitted { mut queue, ticket, .. }: Admitted<'_, B>,
        operation: &'static str,
        enqueue: impl FnOnce(&B::Stream, u64) -> Result<R>,
    ) -> Result<R> {
        let Some(raw) = queue.raw.as_deref() else { return Err(stale(&self.core, operation)) };
        let result = self.core.note_loss(enqueue(raw, ticket));
        if self.kind() == StreamKind::PerThread {
            // Another thread cannot record on this stream later, so the mark is made now.
            queue.record(&self.core)?;
        }
        result
    }

    /// Makes the stream wait for everything that the logs name, and shows it to `look`.
    #[inline(always)]
    pub(super) fn wait_and_see<R>(
        &self,
        operation: &'static str,
        mut logs: Logs<'_, '_, B>,
        look: impl FnOnce(&B::Stream) -> Result<R>,
    ) -> Result<R> {
        let queue = self.put_behind(operation, self.queue.lock(), &mut logs)?;
        match queue.raw.as_deref() {
            Some(raw) => look(raw),
            None => Err(stale(&self.core, operation)),
        }
    }

    /// The queue, locked, when the stream waits for everything that conflicts with the uses.
    #[inline(always)]
    fn put_behind<'a>(
        &'a self,
        operation: &'static str,
        queue: ShortMutexGuard<'a, Queue<B>>,
        logs: &mut Logs<'_, '_, B>,
    ) -> Result<ShortMutexGuard<'a, Queue<B>>> {
        logs.tidy();
        if logs.are_settled(self, |id, ticket| queue.has_waited_for(id, ticket)) {
            return Ok(queue);
        }
        self.wait_for_all(queue, logs).map_err(|error| error.in_operation(operation))
    }

    /// Makes the stream wait for other timelines, as far as it has not done so before.
    #[inline(never)]
    fn wait_for_all<'a>(
        &'a self,
        mut queue: ShortMutexGuard<'a, Queue<B>>,
        logs: &Logs<'_, '_, B>,
    ) -> Result<ShortMutexGuard<'a, Queue<B>>> {
        for (access, log) in logs.each() {
            for Use { by: of, ticket, .. } in log.conflicts(&access.extent, access.write) {
                // A wait for one use is often one for the next: a mark stands for all that came before it.
                if of.id() == self.id()
                    || queue.has_waited_for(of.id(), *ticket)
                    || self.wait_beside(&mut queue, of, *ticket)?
                {
                    continue;
                }
                // Somebody is busy there. To wait for that, nothing of ours may be locked that they could be waiting for.
                drop(queue);
                let point = of.point(*ticket)?;
                queue = self.queue.lock();
                if let Point::Mark { ticket, mark } = point {
                    queue.wait_for(&self.core, of.id(), ticket, &mark)?;
                    self.core.recorder.waited(self.id(), of.id(), ticket);
                }
            }
        }
        Ok(queue)
    }

    /// Makes the stream wait for another one of its device, if the lock of that one can be had without waiting for it: the
    /// usual case, which needs no reference to the mark. Otherwise nothing is done.
    #[inline]
    fn wait_beside(&self, queue: &mut Queue<B>, of: &Self, ticket: u64) -> Result<bool> {
        if of.everything || !Arc::ptr_eq(&self.core, &of.core) {
            return Ok(false);
        }
        if of.has_passed(ticket) || of.is_stale() {
            return Ok(true);
        }
        let Some(mut theirs) = of.queue.try_lock() else { return Ok(false) };
        let (covers, mark) = match theirs.marks.has(ticket) {
            false => theirs.record(&self.core)?,
            true => match theirs.marks.find(ticket) {
                Some(recorded) => recorded,
                None => return Ok(false),
            },
        };
        queue.wait_for(&self.core, of.id(), *covers, mark)?;
        self.core.recorder.waited(self.id(), of.id(), *covers);
        Ok(true)
    }
}
