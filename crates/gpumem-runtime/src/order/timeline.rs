//! A stream as the ordering code sees it: tickets, marks, and what it has waited for.

use super::{
    Mark, Position,
    queue::{Point, Queue, stale, wait_on_stream},
    settle::is_unsupported,
};
use crate::{
    completion::Callbacks,
    device::{DeviceCore, Tally},
    sync::{AtomicU64, Mutex, Ordering, ShortMutex},
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
    /// [`Capabilities::survives_faults`](gpumem_core::Capabilities::survives_faults) of the device.
    survives_faults: bool,
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
            survives_faults: B::capabilities(&core.raw).survives_faults,
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

    /// Whether the backend hears what work uses, and keeps failed work from being built upon.
    #[inline]
    pub(crate) fn survives_faults(&self) -> bool {
        self.survives_faults
    }

    /// The last ticket given out.
    pub(crate) fn last_ticket(&self) -> u64 {
        self.queue.lock().ticket
    }

    pub(super) fn note_passed(&self, ticket: u64) {
        // ThreadSanitizer does not see `fetch_max`.
        let later = |passed| (passed < ticket).then_some(ticket);
        let _ = self.passed.fetch_update(Ordering::Release, Ordering::Relaxed, later);
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
            return Err(stale(&self.core, operation));
        }
        match self.thread {
            Some(thread) if thread != std::thread::current().id() => {
                Err(self.core.error(operation, ErrorKind::WrongThread))
            }
            _ => Ok(()),
        }
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
            true => Err(self.core.error(operation, ErrorKind::Stale { what: "event" })),
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
            None => Err(stale(&self.core, operation)),
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
