//! A stream as the ordering code sees it: tickets, marks, and what it has waited for.

use super::{Mark, Position};
use crate::{
    completion::{self, Callbacks},
    device::DeviceCore,
    sync::{AtomicU64, Mutex, Ordering},
    transfer::Landings,
};
use gpumem_core::{Backend, Error, ErrorKind, Event, Result, Stream, StreamKind};
use smallvec::SmallVec;
use std::{fmt, sync::Arc, thread::ThreadId};

/// How many recorded marks are kept. The oldest go first; a later mark stands for them.
const MARKS: usize = 8;
/// How many waits are remembered. Forgetting one costs a repeated wait, nothing else.
const SEEN: usize = 64;

/// The part of a stream that outlives it: use logs refer to it.
pub(crate) struct Timeline<B: Backend> {
    id: u64,
    pub(crate) core: Arc<DeviceCore<B>>,
    pub(crate) generation: u64,
    kind: StreamKind,
    /// The only thread that may use the driver's per-thread stream.
    thread: Option<ThreadId>,
    /// Tickets up to here are known to be done.
    passed: AtomicU64,
    /// The last failure of the work itself, and the ticket up to which it goes. A driver tells it once, to whoever waits
    /// first; those whose work it was may come later.
    fault: Mutex<Option<(u64, Error)>>,
    queue: Mutex<Queue<B>>,
    /// What runs on a thread of ours once tickets are done.
    pub(crate) callbacks: Callbacks,
    /// Staged transfers that have yet to land in their destinations.
    pub(crate) landings: Landings,
}

/// What is behind the lock of a timeline.
struct Queue<B: Backend> {
    /// The driver's stream, or `None` once it has been dropped. Shared with whoever is waiting for it.
    raw: Option<Arc<B::Stream>>,
    /// The last ticket that was given out.
    ticket: u64,
    /// Recorded marks in rising order: each stands for all tickets up to its own.
    marks: SmallVec<[(u64, Arc<Mark<B>>); 4]>,
    /// (timeline, ticket) that this stream has already waited for.
    seen: SmallVec<[(u64, u64); 8]>,
}

/// How a wait of the host ended.
#[derive(Debug)]
pub(crate) struct Settled {
    /// Whether the work is proven to be done, or to have stopped: its memory is not touched any more.
    pub(crate) done: bool,
    /// What the work or the driver says.
    pub(crate) result: Result<()>,
}

impl Settled {
    pub(crate) fn done() -> Self {
        Self { done: true, result: Ok(()) }
    }

    fn unproven(error: Error) -> Self {
        Self { done: false, result: Err(error) }
    }
}

/// A mark to wait for, or the news that there is nothing to wait for.
pub(crate) enum Point<B: Backend> {
    Passed,
    Mark { ticket: u64, mark: Arc<Mark<B>> },
}

/// What was enqueued, or why nothing was.
pub(crate) enum Enqueued<R> {
    /// Nothing was enqueued, not even a wait that matters.
    Nothing(Error),
    /// The ticket stands for the work. If it failed half-way, for the half that is under way.
    Ticket(u64, Result<R>),
}

impl<B: Backend> Timeline<B> {
    pub(crate) fn new(core: &Arc<DeviceCore<B>>, raw: B::Stream, kind: StreamKind) -> Arc<Self> {
        let timeline = Arc::new(Self {
            id: crate::unique_id(),
            core: core.clone(),
            generation: core.generation(),
            kind,
            thread: (kind == StreamKind::PerThread).then(|| std::thread::current().id()),
            passed: AtomicU64::new(0),
            fault: Mutex::new(None),
            queue: Mutex::new(Queue {
                raw: Some(Arc::new(raw)),
                ticket: 0,
                marks: SmallVec::new(),
                seen: SmallVec::new(),
            }),
            callbacks: Callbacks::default(),
            landings: Landings::default(),
        });
        core.add_timeline(&timeline);
        timeline
    }

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

    fn note_passed(&self, ticket: u64) {
        self.passed.fetch_max(ticket, Ordering::Release);
    }

    /// Remembers that work up to `ticket` failed.
    fn note_fault(&self, ticket: u64, error: &Error) {
        let mut fault = self.fault.lock();
        if fault.as_ref().is_none_or(|(last, _)| *last < ticket) {
            *fault = Some((ticket, error.clone()));
        }
    }

    /// Whether work up to `ticket` is known to have failed, or to stand behind work that did.
    pub(crate) fn has_failed(&self, ticket: u64) -> bool {
        self.fault.lock().as_ref().is_some_and(|(last, _)| *last >= ticket)
    }

    /// What work behind `ticket` did wrong, whoever was told of it.
    ///
    /// # Errors
    /// That failure.
    pub(crate) fn fault_since(&self, ticket: u64) -> Result<()> {
        match self.fault.lock().as_ref() {
            Some((last, error)) if *last > ticket => Err(error.clone()),
            _ => Ok(()),
        }
    }

    /// A reset of the device ends all work that was enqueued before it.
    fn is_stale(&self) -> bool {
        self.generation != self.core.generation()
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

    /// Runs `enqueue` on the driver's stream under the lock that gives out tickets, after waiting on the stream for
    /// `points`.
    pub(crate) fn enqueue<R>(
        &self,
        operation: &'static str,
        points: &[(u64, Point<B>)],
        enqueue: impl FnOnce(&B::Stream) -> Result<R>,
    ) -> Enqueued<R> {
        let mut queue = self.queue.lock();
        let Some(raw) = queue.raw.clone() else { return Enqueued::Nothing(stale::<B>(operation)) };
        for (of, point) in points {
            let Point::Mark { ticket, mark } = point else { continue };
            if let Err(error) = wait_on_stream::<B>(&raw, mark, &self.core) {
                return Enqueued::Nothing(error.in_operation(operation));
            }
            queue.note_seen(*of, *ticket);
        }
        let result = self.core.note_loss(enqueue(&raw));
        queue.ticket += 1;
        if self.kind == StreamKind::PerThread {
            // Another thread cannot record on this stream later, so the mark is made now.
            if let Err(error) = queue.record(&self.core) {
                return Enqueued::Ticket(queue.ticket, Err(error));
            }
        }
        Enqueued::Ticket(queue.ticket, result)
    }

    /// Whether the stream has already waited for that ticket of that timeline.
    pub(crate) fn has_waited_for(&self, timeline: u64, ticket: u64) -> bool {
        self.queue.lock().seen.iter().any(|(id, seen)| *id == timeline && *seen >= ticket)
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
        queue.record(&self.core)?;
        Ok(queue.mark_for(ticket).unwrap_or(Point::Passed))
    }

    /// Records a mark behind everything on the driver's stream, what others have enqueued there included.
    pub(crate) fn mark_now(&self) -> Result<(u64, Arc<Mark<B>>)> {
        let mut queue = self.queue.lock();
        queue.ticket += 1;
        queue.record(&self.core)?;
        match queue.marks.last() {
            Some((ticket, mark)) => Ok((*ticket, mark.clone())),
            None => Err(stale::<B>("record")),
        }
    }

    /// Whether an event of this stream may be asked: any thread may, but not after a reset.
    pub(crate) fn check_event(&self, operation: &'static str) -> Result<()> {
        self.core.check(operation)?;
        match self.is_stale() {
            true => Err(Error::new(B::NAME, operation, ErrorKind::Stale { what: "event" })),
            false => Ok(()),
        }
    }

    /// Whether `ticket` is done, asking the driver. Never blocks.
    ///
    /// # Errors
    /// What the work or the driver says. Work that failed counts as done afterwards.
    pub(crate) fn poll(&self, ticket: u64) -> Result<bool> {
        if self.has_passed(ticket) || self.is_stale() {
            return Ok(true);
        }
        let (answer, covers) = {
            let mut queue = self.queue.lock();
            if queue.mark_for(ticket).is_none() {
                let raw = queue.raw.clone();
                let last = queue.ticket;
                match raw.map(|raw| raw.query()) {
                    Some(Ok(false)) if ticket < last => queue.record(&self.core)?,
                    Some(Ok(false)) => return Ok(false),
                    Some(answer) => return self.conclude(last, answer),
                    None => return Err(stale::<B>("query")),
                }
            }
            match queue.mark_for(ticket) {
                Some(Point::Mark { ticket, mark }) => (mark.event().map_or(Ok(true), Event::query), ticket),
                _ => return Ok(true),
            }
        };
        self.conclude(covers, answer)
    }

    /// Draws the conclusion from what the driver says about `ticket`.
    fn conclude(&self, ticket: u64, answer: Result<bool>) -> Result<bool> {
        let answer = self.core.note_loss(answer);
        let done = match &answer {
            Ok(done) => *done,
            Err(error) if ends_the_work(error) => {
                self.note_fault(ticket, error);
                true
            }
            Err(_) => false,
        };
        if done {
            self.note_passed(ticket);
        }
        answer
    }

    /// Blocks until `ticket` is done, or cannot go on. Needs no event: where no mark stands for the ticket, the
    /// stream itself is waited for.
    pub(crate) fn settle(&self, ticket: u64) -> Settled {
        if self.has_passed(ticket) || self.is_stale() {
            return Settled::done();
        }
        if let Err(error) = completion::may_block::<B>("synchronize") {
            return Settled::unproven(error);
        }
        if let Err(error) = self.core.origin.check(B::NAME, "synchronize") {
            return Settled::unproven(error);
        }
        let (covers, answer) = {
            let queue = self.queue.lock();
            let (last, raw, mark) = (queue.ticket, queue.raw.clone(), queue.mark_for(ticket));
            drop(queue);
            match (mark, raw) {
                (Some(Point::Mark { ticket, mark }), _) => {
                    (ticket, mark.event().map_or(Ok(()), Event::synchronize))
                }
                (_, Some(raw)) => (last, raw.synchronize()),
                // The stream was dropped and its last mark could not be made: only the device can tell.
                (_, None) => (last, B::synchronize(&self.core.raw)),
            }
        };
        match self.core.note_loss(answer) {
            Ok(()) => {
                self.note_passed(covers);
                Settled::done()
            }
            Err(error) => {
                // Either the work itself is at fault and over, or the wait is; then the whole device is asked.
                let failed = ends_the_work(&error);
                if failed {
                    self.note_fault(covers, &error);
                }
                let done = failed || B::synchronize(&self.core.raw).is_ok();
                if done {
                    self.note_passed(covers);
                }
                Settled { done, result: Err(error) }
            }
        }
    }

    /// Waits until everything on the driver's stream is done, what others have enqueued there included.
    pub(crate) fn settle_all(&self) -> Settled {
        let last = {
            let mut queue = self.queue.lock();
            // Foreign work on the same stream has no ticket of ours: a new one makes `settle` look again.
            queue.ticket += 1;
            queue.ticket
        };
        self.settle(last)
    }

    /// Waits as [`settle_all`](Self::settle_all), and until callbacks have run. Staged transfers land unless their work
    /// failed, whoever was told of it, or `land` says that nobody knows.
    pub(crate) fn finish(&self, land: bool) -> Settled {
        let settled = self.settle_all();
        self.landings.give_up(|ticket| self.has_failed(ticket));
        if land {
            self.landings.run(|ticket| self.has_passed(ticket));
        } else {
            self.landings.give_up(|ticket| self.has_passed(ticket));
        }
        if settled.done {
            self.callbacks.drain();
        }
        settled
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
        let mut queue = self.queue.lock();
        let Some(raw) = queue.raw.clone() else { return Err(stale::<B>("wait")) };
        wait_on_stream::<B>(&raw, mark, &self.core)?;
        queue.note_seen(of, ticket);
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

    pub(crate) fn has_passed(&self, ticket: u64) -> bool {
        self.passed.load(Ordering::Acquire) >= ticket
    }
}

fn stale<B: Backend>(operation: &'static str) -> Error {
    Error::new(B::NAME, operation, ErrorKind::Stale { what: "stream" })
}

/// Whether an error says that the work is over: it failed, or its device has stopped.
fn ends_the_work(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::AsynchronousFault { .. } | ErrorKind::DeviceLost { .. })
}

/// Makes the stream wait for the mark; where the two belong to different backends, the host waits instead.
fn wait_on_stream<B: Backend>(raw: &B::Stream, mark: &Mark<B>, core: &DeviceCore<B>) -> Result<()> {
    let Some(event) = mark.event() else { return Ok(()) };
    match B::wait(raw, event) {
        Ok(()) => {
            core.counters.count_wait();
            Ok(())
        }
        Err(error) if matches!(error.kind(), ErrorKind::BackendMismatch { .. }) => {
            completion::may_block::<B>("wait")?;
            event.synchronize()
        }
        Err(error) => core.note_loss(Err(error)),
    }
}

impl<B: Backend> Queue<B> {
    fn mark_for(&self, ticket: u64) -> Option<Point<B>> {
        let (ticket, mark) = self.marks.iter().find(|(marked, _)| *marked >= ticket)?;
        Some(Point::Mark { ticket: *ticket, mark: mark.clone() })
    }

    fn note_seen(&mut self, timeline: u64, ticket: u64) {
        if let Some((_, seen)) = self.seen.iter_mut().find(|(id, _)| *id == timeline) {
            *seen = (*seen).max(ticket);
            return;
        }
        if self.seen.len() >= SEEN {
            self.seen.remove(0);
        }
        self.seen.push((timeline, ticket));
    }

    fn record(&mut self, core: &Arc<DeviceCore<B>>) -> Result<()> {
        let Some(raw) = self.raw.as_deref() else { return Err(stale::<B>("record")) };
        let mark = Mark::new(core)?;
        if let Some(event) = mark.event() {
            core.note_loss(B::record(raw, event))?;
            core.counters.count_record();
        }
        if self.marks.len() >= MARKS {
            self.marks.remove(0);
        }
        self.marks.push((self.ticket, Arc::new(mark)));
        Ok(())
    }
}

impl<B: Backend> Position for Arc<Timeline<B>> {
    fn queue(&self) -> u64 {
        self.id
    }

    fn has_passed(&self, ticket: u64) -> bool {
        Timeline::has_passed(self, ticket)
    }
}

impl<B: Backend> fmt::Debug for Timeline<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timeline").field("id", &self.id).field("kind", &self.kind).finish_non_exhaustive()
    }
}
