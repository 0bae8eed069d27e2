//! A stream as the ordering code sees it: tickets, marks, and what it has waited for.

use super::{
    Access, Mark, Position,
    logs::{Held, Logs},
    queue::{Point, Queue, stale, wait_on_stream},
    settle::is_unsupported,
    uses::Use,
};
use crate::{
    completion::Callbacks,
    device::{DeviceCore, Tally},
    sync::{AtomicU64, Mutex, Ordering, ShortMutex, ShortMutexGuard},
    transfer::Landings,
};
use gpumem_core::{Backend, Error, ErrorKind, Result, StreamKind};
use std::{fmt, sync::Arc, thread::ThreadId};

/// The part of a stream that outlives it: use logs refer to it. What every submission reads comes first, and lies side by
/// side.
#[repr(C, align(64))]
pub(crate) struct Timeline<B: Backend> {
    id: u64,
    pub(crate) core: Arc<DeviceCore<B>>,
    pub(crate) generation: u64,
    kind: StreamKind,
    /// Stands for whatever others enqueue on the device, on streams that nobody has named to us. It has no stream of
    /// its own; its marks are behind everything.
    pub(super) everything: bool,
    /// Made by [`ended`](Self::ended): its tickets stand for streams of others, one after the other.
    of_producer: bool,
    /// The only thread that may use the driver's per-thread stream.
    thread: Option<ThreadId>,
    /// Tickets up to here are known to be done.
    passed: AtomicU64,
    /// What the stream counts, under the lock of its queue.
    pub(crate) tally: Arc<Tally>,
    pub(super) queue: ShortMutex<Queue<B>>,
    /// The last failure of the work itself, and the ticket up to which it goes. A driver tells it once, to whoever waits
    /// first; those whose work it was may come later.
    pub(super) fault: Mutex<Option<(u64, Error)>>,
    /// What runs on a thread of ours once tickets are done.
    pub(crate) callbacks: Callbacks,
    /// Staged transfers that have yet to land in their destinations.
    pub(crate) landings: Landings,
}

/// A ticket of a queue, which is locked until the work stands in it.
pub(super) struct Admitted<'a, B: Backend> {
    queue: ShortMutexGuard<'a, Queue<B>>,
    pub(super) ticket: u64,
    /// Whether somebody borrows any of the memory.
    pub(super) is_lent: bool,
}

impl<B: Backend> Timeline<B> {
    pub(crate) fn new(core: &Arc<DeviceCore<B>>, raw: B::Stream, kind: StreamKind) -> Arc<Self> {
        let timeline = Self::over(core, Some(raw), kind);
        core.add_timeline(&timeline);
        timeline
    }

    /// A timeline that has ended, and its last ticket, which stands for what is on a stream of others up to now. Nobody
    /// says how long that stream lives, so it is not touched again.
    ///
    /// # Errors
    /// Of the driver.
    pub(crate) fn ended(core: &Arc<DeviceCore<B>>, raw: &B::Stream) -> Result<(Arc<Self>, u64)> {
        let timeline = core.ended.take(core).unwrap_or_else(|| {
            let queue = Queue::new(None, core.counters.of_ended());
            Self::with_queue(core, queue, StreamKind::New, (false, true))
        });
        let ticket = timeline.queue.lock().record_on(core, raw)?;
        core.counters.count_record();
        Ok((timeline, ticket))
    }

    /// The timeline of what others enqueue on streams that we do not know: [`DeviceCore::others`].
    pub(crate) fn of_others(core: &Arc<DeviceCore<B>>) -> Arc<Self> {
        Self::over(core, None, StreamKind::New)
    }

    fn over(core: &Arc<DeviceCore<B>>, raw: Option<B::Stream>, kind: StreamKind) -> Arc<Self> {
        let everything = raw.is_none();
        Self::with_queue(core, Queue::new(raw, core.counters.tally()), kind, (everything, false))
    }

    fn with_queue(
        core: &Arc<DeviceCore<B>>,
        queue: Queue<B>,
        kind: StreamKind,
        (everything, of_producer): (bool, bool),
    ) -> Arc<Self> {
        Arc::new(Self {
            id: crate::unique_id(),
            core: core.clone(),
            generation: core.generation(),
            kind,
            everything,
            of_producer,
            thread: (kind == StreamKind::PerThread).then(|| std::thread::current().id()),
            passed: AtomicU64::new(0),
            fault: Mutex::new(None),
            tally: queue.tally.clone(),
            queue: ShortMutex::new(queue),
            callbacks: Callbacks::default(),
            landings: Landings::default(),
        })
    }

    /// A ticket for work that somebody else may have enqueued here meanwhile.
    pub(crate) fn note_others(&self) -> u64 {
        let mut queue = self.queue.lock();
        queue.ticket += 1;
        queue.ticket
    }

    #[inline]
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn kind(&self) -> StreamKind {
        self.kind
    }

    /// The last ticket given out.
    pub(crate) fn last_ticket(&self) -> u64 {
        self.queue.lock().ticket
    }

    pub(super) fn note_passed(&self, ticket: u64) {
        self.passed.fetch_max(ticket, Ordering::Release);
    }

    /// A reset of the device ends all work that was enqueued before it.
    #[inline]
    pub(crate) fn is_stale(&self) -> bool {
        self.generation != self.core.generation()
    }

    /// Whether this stream may be used from here and now. [`check`](Self::check) says why not.
    #[inline]
    pub(super) fn is_ready(&self) -> bool {
        self.core.is_usable()
            && !self.is_stale()
            && self.thread.is_none_or(|thread| thread == std::thread::current().id())
    }

    /// Whether this stream may be used from here and now.
    pub(crate) fn check(&self, operation: &'static str) -> Result<()> {
        self.core.check(operation)?;
        if self.is_stale() {
            return Err(stale::<B>(operation));
        }
        match self.thread {
            Some(thread) if thread != std::thread::current().id() => {
                Err(Error::new(B::NAME, operation, ErrorKind::WrongThread))
            }
            _ => Ok(()),
        }
    }

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
            return Err(stale::<B>(operation));
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
        let Some(raw) = queue.raw.as_deref() else { return Err(stale::<B>(operation)) };
        let result = self.core.note_loss(enqueue(raw, ticket));
        if self.kind == StreamKind::PerThread {
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
            None => Err(stale::<B>(operation)),
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
                if of.id == self.id
                    || queue.has_waited_for(of.id, *ticket)
                    || self.wait_beside(&mut queue, of, *ticket)?
                {
                    continue;
                }
                // Somebody is busy there. To wait for that, nothing of ours may be locked that they could be waiting for.
                drop(queue);
                let point = of.point(*ticket)?;
                queue = self.queue.lock();
                if let Point::Mark { ticket, mark } = point {
                    queue.wait_for(&self.core, of.id, ticket, &mark)?;
                    self.core.recorder.waited(self.id, of.id, ticket);
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
        queue.wait_for(&self.core, of.id, *covers, mark)?;
        self.core.recorder.waited(self.id, of.id, *covers);
        Ok(true)
    }

    /// A mark that stands for `ticket`: one that exists, or one recorded now.
    pub(crate) fn point(&self, ticket: u64) -> Result<Point<B>> {
        if self.has_passed(ticket) || self.is_stale() {
            return Ok(Point::Passed);
        }
        let mut queue = self.queue.lock();
        if let Some(point) = queue.mark_for(ticket) {
            return Ok(point);
        }
        match self.record(&mut queue) {
            Ok(()) => Ok(queue.mark_for(ticket).unwrap_or(Point::Passed)),
            Err(error) if self.everything && is_unsupported(&error) => {
                drop(queue);
                // There is no mark behind all streams on this device, so the host waits for all of them.
                let settled = self.settle(ticket);
                match settled.done {
                    true => Ok(Point::Passed),
                    false => Err(settled.result.err().unwrap_or(error)),
                }
            }
            Err(error) => Err(error),
        }
    }

    /// Records a mark behind everything that the timeline stands for so far.
    pub(super) fn record(&self, queue: &mut Queue<B>) -> Result<()> {
        match self.everything {
            true => queue.record_everything(&self.core).map(drop),
            false => queue.record(&self.core).map(drop),
        }
    }

    /// Records a mark behind everything on the driver's stream, what others have enqueued there included.
    pub(crate) fn mark_now(&self) -> Result<(u64, Arc<Mark<B>>)> {
        let mut queue = self.queue.lock();
        queue.ticket += 1;
        queue.record(&self.core).cloned()
    }

    /// A ticket behind everything on the driver's stream, what others have enqueued there included.
    pub(crate) fn behind_all(&self) -> Result<u64> {
        let mut queue = self.queue.lock();
        queue.ticket += 1;
        if self.kind == StreamKind::PerThread {
            // Another thread cannot record on this stream later.
            queue.record(&self.core)?;
        }
        Ok(queue.ticket)
    }

    /// Whether an event of this stream may be asked: any thread may, but not after a reset.
    pub(crate) fn check_event(&self, operation: &'static str) -> Result<()> {
        self.core.check(operation)?;
        match self.is_stale() {
            true => Err(Error::new(B::NAME, operation, ErrorKind::Stale { what: "event" })),
            false => Ok(()),
        }
    }

    /// Runs `act` on the driver's stream without giving out a ticket.
    pub(crate) fn with_raw<R>(
        &self,
        operation: &'static str,
        act: impl FnOnce(&B::Stream) -> Result<R>,
    ) -> Result<R> {
        let queue = self.queue.lock();
        match queue.raw.as_deref() {
            Some(raw) => self.core.note_loss(act(raw)),
            None => Err(stale::<B>(operation)),
        }
    }

    /// Makes the stream wait for a mark of another timeline.
    pub(crate) fn wait_for(&self, of: u64, ticket: u64, mark: &Mark<B>) -> Result<()> {
        self.queue.lock().wait_for(&self.core, of, ticket, mark)?;
        self.core.recorder.waited(self.id, of, ticket);
        Ok(())
    }

    /// Makes the stream wait for work of another timeline. What stands for streams that nobody has named cannot.
    pub(crate) fn follow(&self, of: &Self, ticket: u64) -> Result<()> {
        if self.everything || self.id == of.id || self.is_stale() || self.queue.lock().raw.is_none() {
            return Ok(());
        }
        match of.point(ticket)? {
            Point::Passed => Ok(()),
            Point::Mark { ticket, mark } => self.wait_for(of.id, ticket, &mark),
        }
    }

    /// Whether the timeline is one that [`ended`](Self::ended) has made: its tickets stand for what producers of imports had
    /// enqueued, each on whatever stream that was.
    #[inline]
    pub(crate) fn is_of_producer(&self) -> bool {
        self.of_producer
    }

    /// As [`hold_back`](Self::hold_back), where that takes no wait of the host; `false` where it could. No reference to
    /// the mark is needed.
    pub(crate) fn hold_back_at_once(
        &self,
        ticket: u64,
        core: &Arc<DeviceCore<B>>,
        stream: &B::Stream,
    ) -> Result<bool> {
        if self.has_passed(ticket) || self.is_stale() {
            return Ok(true);
        }
        if !Arc::ptr_eq(&self.core, core) {
            return Ok(false);
        }
        let mut queue = self.queue.lock();
        if !queue.marks.has(ticket) {
            match self.record(&mut queue) {
                Err(error) if self.everything && is_unsupported(&error) => return Ok(false),
                recorded => recorded?,
            }
        }
        let Some((_, mark)) = queue.marks.find(ticket) else { return Ok(false) };
        if wait_on_stream::<B>(stream, mark, core)? {
            core.counters.count_wait();
        }
        Ok(true)
    }

    /// Makes a stream of others, which `core` is the device of, wait for `ticket`.
    pub(crate) fn hold_back(&self, ticket: u64, core: &DeviceCore<B>, stream: &B::Stream) -> Result<()> {
        if let Point::Mark { mark, .. } = self.point(ticket)?
            && wait_on_stream::<B>(stream, &mark, core)?
        {
            core.counters.count_wait();
        }
        Ok(())
    }

    /// Ends the timeline: leaves a last mark that all its tickets resolve to, and hands out the driver's stream.
    pub(crate) fn end(&self) -> Option<Arc<B::Stream>> {
        let mut queue = self.queue.lock();
        let last = queue.ticket;
        let needs_mark = !self.has_passed(last) && !self.is_stale() && queue.mark_for(last).is_none();
        if needs_mark && let Err(error) = queue.record(&self.core) {
            // `settle` then asks the whole device.
            self.core.errors.push(error.in_operation("drop of a stream"));
        }
        queue.raw.take()
    }

    #[inline]
    pub(crate) fn has_passed(&self, ticket: u64) -> bool {
        self.passed.load(Ordering::Acquire) >= ticket
    }
}

impl<B: Backend> Position for Arc<Timeline<B>> {
    #[inline]
    fn queue(&self) -> u64 {
        self.id
    }

    #[inline]
    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(self, other)
    }

    #[inline]
    fn has_passed(&self, ticket: u64) -> bool {
        Timeline::has_passed(self, ticket)
    }
}

impl<B: Backend> fmt::Debug for Timeline<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timeline").field("id", &self.id).field("kind", &self.kind).finish_non_exhaustive()
    }
}
