//! A stream as the ordering code sees it: submission indexes, events, and the waits that it has made.

use super::counters::Counters;
use super::{
    DeviceContext, HeldContext, QueueRef, RecordedEvent, Span,
    callbacks::Tasks,
    copy_out_queue::CopyOutQueue,
    events::Reused,
    host_wait::is_unsupported,
    queue::{Queue, WaitTarget, stale, wait_on_host, wait_on_stream},
    recording::{RECORDED, Recording},
    submission::Unordered,
    waits::Waits,
};
use crate::sync::{AtomicU64, Ordering, Rank, ShortMutex};
use gpumem_core::{
    Backend, DriverDevice, Error, ErrorKind, FailedSubmissions, NotRecorded, RawStream, Result, Stream as _,
    StreamKind,
};
use std::{
    fmt,
    panic::{RefUnwindSafe, UnwindSafe},
    sync::Arc,
    thread::ThreadId,
};

/// The part of a stream that outlives it: access logs refer to it. The fields that every submission reads come first.
#[repr(C, align(64))]
pub struct Timeline<B: Backend> {
    id: u64,
    pub context: HeldContext<B>,
    /// How often the device had been reset when the stream was made.
    pub generation: u64,
    kind: StreamKind,
    /// Represents the work of other libraries on unknown streams of the device. It has no stream; its events come after
    /// everything on the device.
    pub(super) is_whole_device: bool,
    /// Made by [`foreign_snapshot`](Self::foreign_snapshot): each submission index names the work of another library on
    /// one of its streams.
    of_producer: bool,
    /// [`Capabilities::survives_faults`](gpumem_core::Capabilities::survives_faults) of the device.
    survives_faults: bool,
    /// The only thread that may use the driver's per-thread stream.
    thread: Option<ThreadId>,
    /// Submission indexes up to here are known to be done.
    completed: AtomicU64,
    /// The last submission index that was given out. Written under the lock of the queue.
    pub(super) given_out: AtomicU64,
    pub counters: Arc<Counters>,
    // One lock for the index and the driver's call, so that index order is queue order.
    pub(super) queue: ShortMutex<Queue<B>>,
    pub(super) waits: ShortMutex<Waits>,
    pub(super) failed: Arc<FailedSubmissions>,
    /// What the work is written to instead, in the recording of a graph.
    pub(super) recording: Option<Arc<dyn Recording<B>>>,
    /// Callbacks that run on a thread of the library once submissions are done.
    pub(crate) callbacks: Tasks<B>,
    pub(super) futures: Tasks<B>,
    /// Staged transfers that have yet to land in their destinations.
    pub copy_outs: CopyOutQueue,
}

// As a device.
impl<B: Backend> UnwindSafe for Timeline<B> {}
impl<B: Backend> RefUnwindSafe for Timeline<B> {}

impl<B: Backend> Timeline<B> {
    pub fn new(context: &Arc<DeviceContext<B>>, raw: B::Stream, kind: StreamKind) -> Arc<Self> {
        let timeline = Self::over(context, Some(raw), kind);
        context.add_timeline(&timeline);
        timeline
    }

    /// Makes an ended timeline whose last submission index covers the work on a foreign stream up to now. The lifetime
    /// of that stream is unknown, so it is not touched again.
    pub(crate) fn foreign_snapshot(
        context: &Arc<DeviceContext<B>>,
        raw: &B::Stream,
    ) -> Result<(Arc<Self>, u64)> {
        let timeline = context.foreign_timelines.take(context).unwrap_or_else(|| {
            Self::with_queue(context, Queue::new(None), StreamKind::New, (false, true), None)
        });
        // The timeline is this thread's alone; the lock of the pool that it came from is free again.
        let mut queue = timeline.queue.lock();
        // Earlier submission indexes are never queried.
        queue.record_next(context, raw, Reused::Last)?;
        let submission = timeline.give_out(&mut queue);
        drop(queue);
        context.counters.count_record();
        Ok((timeline, submission))
    }

    /// The timeline of a stream that others may end at any time: it has no stream of its own, and an event after each submission index,
    /// which [`note_work_of`](Self::note_work_of) gives out.
    pub fn of_others(context: &Arc<DeviceContext<B>>) -> Arc<Self> {
        Self::with_queue(context, Queue::new(None), StreamKind::New, (false, false), None)
    }

    /// Gives out a submission index after everything on `raw`, the stream that the timeline [stands for](Self::of_others), which is not
    /// touched again.
    pub fn note_work_of(&self, raw: &B::Stream) -> Result<u64> {
        // Index and event under one lock: they cover the same work.
        let mut queue = self.queue.lock();
        queue.record_next(&self.context, raw, Reused::Oldest)?;
        self.counters.count_record();
        Ok(self.give_out(&mut queue))
    }

    /// The timeline of the work on unknown streams: [`DeviceContext::unknown_streams`].
    pub(crate) fn for_unknown_streams(context: &Arc<DeviceContext<B>>) -> Arc<Self> {
        Self::over(context, None, StreamKind::New)
    }

    fn over(context: &Arc<DeviceContext<B>>, raw: Option<B::Stream>, kind: StreamKind) -> Arc<Self> {
        let is_whole_device = raw.is_none();
        Self::with_queue(context, Queue::new(raw), kind, (is_whole_device, false), None)
    }

    /// A stream of a recording: it has none of the driver's.
    pub fn in_recording(context: &Arc<DeviceContext<B>>, recording: Arc<dyn Recording<B>>) -> Arc<Self> {
        Self::with_queue(context, Queue::new(None), StreamKind::New, (false, false), Some(recording))
    }

    fn with_queue(
        context: &Arc<DeviceContext<B>>,
        queue: Queue<B>,
        kind: StreamKind,
        (is_whole_device, of_producer): (bool, bool),
        recording: Option<Arc<dyn Recording<B>>>,
    ) -> Arc<Self> {
        let id = super::unique_id();
        // Asked once: every submission looks at it.
        let survives_faults = context.raw.capabilities().survives_faults;
        let is_found = survives_faults && queue.raw.is_some();
        Arc::new(Self {
            id,
            context: HeldContext::new(context),
            generation: if recording.is_some() { RECORDED } else { context.generation() },
            kind,
            is_whole_device,
            of_producer,
            survives_faults,
            // Its handle means another stream on each thread.
            thread: (kind == StreamKind::PerThread).then(|| std::thread::current().id()),
            completed: AtomicU64::new(0),
            given_out: AtomicU64::new(0),
            failed: match is_found {
                // SAFETY: the number was made above, for this stream.
                true => unsafe { FailedSubmissions::of_stream(id) },
                false => Arc::default(),
            },
            counters: context.counters.clone(),
            recording,
            queue: ShortMutex::new(Rank::Queue, queue),
            waits: ShortMutex::new(Rank::Waits, Waits::default()),
            callbacks: Tasks::new(),
            futures: Tasks::new(),
            copy_outs: CopyOutQueue::new(),
        })
    }

    /// A submission index for work that another library may have enqueued here meanwhile.
    pub(crate) fn note_unknown_work(&self) -> u64 {
        // The number alone: what it stands for is on a stream that the library does not see.
        self.give_out(&mut self.queue.lock())
    }

    /// Gives out the next submission index, to work whose waits have been noted and whose uses of memory have not.
    #[inline]
    pub(super) fn give_out(&self, queue: &mut Queue<B>) -> u64 {
        queue.submission += 1;
        // AcqRel: with `fail_from`. Either that finds this index, and with it the waits before it, or what follows here finds the
        // failure.
        self.given_out.swap(queue.submission, Ordering::AcqRel);
        queue.submission
    }

    /// Returns the number of the stream, unique in this process.
    #[inline]
    pub fn id(&self) -> u64 {
        self.id
    }

    pub fn kind(&self) -> StreamKind {
        self.kind
    }

    /// Tells whether the backend gets the uses of work, and keeps failed work from being built upon.
    #[inline]
    pub fn survives_faults(&self) -> bool {
        self.survives_faults
    }

    /// The last submission index given out; 0 in a forked child, whose memory that work does not use. While the process ends the work
    /// goes on.
    pub fn last_submission(&self) -> u64 {
        // Acquire: the waits of that work have been noted.
        if self.context.origin.is_forked() { 0 } else { self.given_out.load(Ordering::Acquire) }
    }

    /// The first submission that is not known to be done.
    pub(super) fn first_pending(&self) -> u64 {
        // Acquire: as in `is_complete`; what lies before is over.
        self.completed.load(Ordering::Acquire) + 1
    }

    pub(super) fn note_complete(&self, submission: u64) {
        // Release: who finds the work complete uses its memory. Relaxed where the number has risen already: nothing is written.
        // ThreadSanitizer does not see `fetch_max`.
        let later = |completed| (completed < submission).then_some(submission);
        let _ = self.completed.fetch_update(Ordering::Release, Ordering::Relaxed, later);
    }

    /// A reset of the device ends all work that was enqueued before it.
    #[inline]
    pub(crate) fn is_stale(&self) -> bool {
        self.generation != self.context.generation()
    }

    /// Whether this stream may be used from here and now. [`check`](Self::check) says why not.
    #[inline]
    pub fn is_ready(&self) -> bool {
        self.context.is_usable() && !self.is_stale() && self.is_of_this_thread()
    }

    /// Whether the driver's stream is this one here: on another thread, the per-thread stream is that thread's own.
    #[inline]
    pub(super) fn is_of_this_thread(&self) -> bool {
        self.thread.is_none_or(|thread| thread == std::thread::current().id())
    }

    /// The driver's stream, to be asked or waited for, unless it is another one on this thread.
    pub(super) fn raw_here(&self, queue: &Queue<B>) -> Option<Arc<B::Stream>> {
        queue.raw.clone().filter(|_| self.is_of_this_thread())
    }

    /// Whether this stream may be used from here and now, for a call that needs the driver's stream.
    pub fn check(&self, operation: &'static str) -> Result<()> {
        self.check_for(operation, NotRecorded::DriverStream)
    }

    /// As [`check`](Self::check), for a call that a graph does not record as what it is.
    pub fn check_for(&self, operation: &'static str, what: NotRecorded) -> Result<()> {
        self.context.check(operation)?;
        if self.is_stale() {
            return Err(self.unusable(operation, what));
        }
        self.check_thread(operation)
    }

    fn check_thread(&self, operation: &'static str) -> Result<()> {
        match self.is_of_this_thread() {
            true => Ok(()),
            false => Err(self.context.error(operation, ErrorKind::WrongThread)),
        }
    }

    /// Returns an event that covers `submission`: an existing one, or one recorded now. May make the host wait.
    pub fn wait_target(&self, submission: u64) -> Result<WaitTarget<B>> {
        match self.try_wait_target(submission)? {
            Some(target) => Ok(target),
            None => self.wait_for_everything(submission).map(|()| WaitTarget::Complete),
        }
    }

    /// As [`wait_target`](Self::wait_target), without a wait of the host. `None` if that is the only way.
    pub(super) fn try_wait_target(&self, submission: u64) -> Result<Option<WaitTarget<B>>> {
        if self.is_complete(submission) || self.is_stale() {
            return Ok(Some(WaitTarget::Complete));
        }
        // The index is looked up and its event recorded under one lock: no later work comes into the event.
        let mut queue = self.queue.lock();
        if let Some(point) = queue.event_for(submission) {
            return Ok(Some(point));
        }
        match self.record(&mut queue).map(drop) {
            Ok(()) => Ok(Some(queue.event_for(submission).unwrap_or(WaitTarget::Complete))),
            Err(error) if self.is_left_to_host(&queue, &error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes the host wait for `submission`, because no event can be recorded after it. The caller holds no lock.
    fn wait_for_everything(&self, submission: u64) -> Result<()> {
        let wait_outcome = self.wait_host(submission);
        if wait_outcome.done { Ok(()) } else { wait_outcome.result }
    }

    /// Makes the host wait for a use that a stream cannot be made to wait for. The caller holds no lock.
    pub(super) fn wait_before_use(&self, earlier: &Unordered<B>) -> Result<()> {
        let Unordered { by, submission, recorded } = earlier;
        match recorded {
            Some(recorded) => {
                wait_on_host(recorded)?;
                by.note_complete(*submission);
                self.context.recorder.waited(self.id, by.id, *submission);
                Ok(())
            }
            None => by.wait_for_everything(*submission),
        }
    }

    /// Records an event after all work of the timeline so far.
    /// Returns [`WrongThread`](ErrorKind::WrongThread) where the driver would record it after other work.
    #[inline]
    pub(super) fn record<'q>(&self, queue: &'q mut Queue<B>) -> Result<&'q (u64, Arc<RecordedEvent<B>>)> {
        self.check_thread("record")?;
        match self.is_whole_device {
            true => queue.record_everything(&self.context),
            false => queue.record(&self.context),
        }
    }

    /// Whether an event could not be recorded because there is none of that work, here or at all.
    fn is_left_to_host(&self, queue: &Queue<B>, error: &Error) -> bool {
        match self.is_whole_device {
            true => is_unsupported(error),
            false => queue.raw.is_none() || !self.is_of_this_thread(),
        }
    }

    /// Records an event after everything on the driver's stream, including work of other libraries.
    pub fn record_now(&self) -> Result<(Span, Arc<RecordedEvent<B>>)> {
        // Index and event under one lock: they cover the same work.
        let mut queue = self.queue.lock();
        self.give_out(&mut queue);
        let (last, recorded) = self.record(&mut queue)?;
        Ok((self.span_to(*last), recorded.clone()))
    }

    /// Returns a submission index after everything on the driver's stream, including work of other libraries.
    pub fn reserve_index(&self) -> Result<u64> {
        if self.is_recording() {
            return Err(self.unusable("reserve_index", NotRecorded::DriverStream));
        }
        // As in `record_now`.
        let mut queue = self.queue.lock();
        self.give_out(&mut queue);
        if self.kind == StreamKind::PerThread {
            // Another thread cannot record on this stream later.
            self.record(&mut queue)?;
        }
        Ok(queue.submission)
    }

    /// Whether an event of this stream may be asked: any thread may, but not after a reset.
    pub fn check_event(&self, operation: &'static str) -> Result<()> {
        self.context.check(operation)?;
        match self.is_stale() {
            true => Err(self.context.error(operation, ErrorKind::Stale { what: "event" })),
            false => Ok(()),
        }
    }

    /// Returns the driver's handle, for a look.
    pub fn handle(&self, operation: &'static str) -> Result<RawStream> {
        self.with_raw(operation, |raw| Ok(raw.raw()))
    }

    /// Records an event of the caller's on the driver's stream.
    pub fn record_event(&self, operation: &'static str, event: &B::Event) -> Result<()> {
        self.with_raw(operation, |raw| raw.record(event))
    }

    /// Runs `act` on the driver's stream without giving out a submission index. `act` uses no memory of the library: work
    /// that does goes through [`admit`](Self::admit).
    pub(super) fn with_raw<R>(
        &self,
        operation: &'static str,
        act: impl FnOnce(&B::Stream) -> Result<R>,
    ) -> Result<R> {
        // `act` is a call of the driver on this stream alone, so no other lock is needed under it.
        self.with_raw_locked(&self.queue.lock(), operation, act)
    }

    /// As [`with_raw`](Self::with_raw), with the lock of the queue.
    #[inline]
    pub(super) fn with_raw_locked<R>(
        &self,
        queue: &Queue<B>,
        operation: &'static str,
        act: impl FnOnce(&B::Stream) -> Result<R>,
    ) -> Result<R> {
        match queue.raw.as_deref() {
            Some(raw) => self.context.note_loss(act(raw)),
            None => Err(self.unusable(operation, NotRecorded::DriverStream)),
        }
    }

    /// As [`with_raw`](Self::with_raw), for the models of what must not be done.
    #[cfg(loom)]
    pub fn with_raw_of_a_model<R>(&self, act: impl FnOnce(&B::Stream) -> Result<R>) -> Result<R> {
        self.with_raw("model", act)
    }

    /// Makes the stream wait for an event of another timeline.
    pub fn wait_for(&self, of: &Self, submission: u64, recorded: &RecordedEvent<B>) -> Result<()> {
        self.check_thread("wait")?;
        // Its own queue alone: the event was taken from the other one before.
        let waits = self.wait_on(&self.queue.lock(), of, submission, recorded)?;
        if !waits {
            wait_on_host(recorded)?;
        }
        self.context.recorder.waited(self.id, of.id, submission);
        Ok(())
    }

    /// Makes the stream wait for an event of the timeline `of`, and remembers that. Another device remembers that this one
    /// depends on it. `false` if no driver connects the two: the host has to wait, without the lock of the queue.
    #[inline]
    pub(super) fn wait_on(
        &self,
        queue: &Queue<B>,
        of: &Self,
        submission: u64,
        recorded: &RecordedEvent<B>,
    ) -> Result<bool> {
        let Some(raw) = queue.raw.as_deref() else { return Err(stale(&self.context, "wait")) };
        if !Arc::ptr_eq(&self.context, &of.context) {
            of.context.note_dependent(&self.context);
        }
        let waits = wait_on_stream::<B>(raw, recorded, &self.context)?;
        if waits {
            self.waits.lock().note(of.id, submission, queue.submission + 1);
        }
        Ok(waits)
    }

    /// Makes the stream wait for work of another timeline. The timeline of unknown streams cannot.
    pub fn wait_for_timeline(&self, of: &Self, submission: u64) -> Result<()> {
        if self.is_whole_device || self.id == of.id || self.is_stale() || self.queue.lock().raw.is_none() {
            return Ok(());
        }
        // First the other queue, then this one, never both.
        match of.wait_target(submission)? {
            WaitTarget::Complete => Ok(()),
            WaitTarget::Event { submission, recorded } => self.wait_for(of, submission, &recorded),
        }
    }

    /// Whether `foreign_snapshot` made the timeline: each submission index names the work that the
    /// producer of an import had enqueued.
    #[inline]
    pub fn is_foreign_snapshot(&self) -> bool {
        self.of_producer
    }

    /// Makes a stream of others, which `context` is the device of, wait for `submission`.
    pub(crate) fn make_stream_wait(
        &self,
        submission: u64,
        context: &DeviceContext<B>,
        stream: &B::Stream,
    ) -> Result<()> {
        match self.wait_target(submission)? {
            WaitTarget::Event { recorded, .. } if !wait_on_stream::<B>(stream, &recorded, context)? => {
                wait_on_host(&recorded)
            }
            _ => Ok(()),
        }
    }

    /// Ends the timeline: leaves a last event that all its submission indexes resolve to, and returns the driver's
    /// stream. Where another library captures the stream there is no such event yet: it is kept, and asked, and `true` is returned.
    pub fn end(&self) -> (Option<Arc<B::Stream>>, bool) {
        // The last index, its event and the stream go under one lock: a wait finds either the stream or the event.
        let mut queue = self.queue.lock();
        let last = queue.submission;
        // Only if a thread may still wait for it: a mark takes an event.
        let needs_mark = !self.is_complete(last) && !self.is_stale() && queue.event_for(last).is_none();
        let failed = needs_mark.then(|| self.record(&mut queue).err()).flatten();
        let is_kept = failed.as_ref().is_some_and(is_unsupported);
        let raw = if is_kept { queue.raw.clone() } else { queue.raw.take() };
        drop(queue);
        if let Some(error) = failed {
            // A wait then asks the stream that is kept, or the whole device. A subscriber of tracing may use the stream.
            self.context.errors.push(error.in_operation("drop of a stream"));
        }
        (raw, is_kept)
    }

    /// Returns whether the work is known to be over: done, or ended by a reset.
    pub fn is_over(&self, submission: u64) -> bool {
        self.is_complete(submission) || self.is_stale()
    }

    /// Returns whether the work is known to be done.
    #[inline]
    pub fn is_complete(&self, submission: u64) -> bool {
        // Acquire: with the release of who saw the driver say so. The memory is not used any more, and results are visible.
        self.completed.load(Ordering::Acquire) >= submission
    }
}

impl<B: Backend> Drop for Timeline<B> {
    fn drop(&mut self) {
        if self.context.is_usable()
            && !self.is_stale()
            && let Some(error) = self.failed.untold(u64::MAX)
        {
            self.context.leave_failure(error);
        }
    }
}

impl<B: Backend> QueueRef for Arc<Timeline<B>> {
    #[inline]
    fn queue(&self) -> u64 {
        self.id
    }

    #[inline]
    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(self, other)
    }

    #[inline]
    fn is_complete(&self, submission: u64) -> bool {
        Timeline::is_complete(self, submission)
    }

    #[inline]
    fn has_aborted(&self, submission: u64) -> bool {
        DeviceContext::<B>::has_aborted()
            && !self.survives_faults
            && self.failed.find(submission..=submission).is_some()
    }
}

impl<B: Backend> fmt::Debug for Timeline<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timeline").field("id", &self.id).field("kind", &self.kind).finish_non_exhaustive()
    }
}
