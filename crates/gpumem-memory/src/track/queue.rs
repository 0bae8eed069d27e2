//! The state under the lock of a timeline: the driver's stream, its events, and the waits that it has made.

use super::{
    DeviceContext, RecordedEvent, Timeline,
    events::{EventHistory, Reused},
};
use crate::blocking;
use gpumem_core::{Backend, DriverDevice, Error, ErrorKind, Event, Result, Stream as _};
use smallvec::SmallVec;
use std::sync::Arc;

/// How many waits are remembered. Forgetting one costs a repeated wait, and that the stream counts as one that depends on whatever is
/// aborted meanwhile.
const SEEN: usize = 64;

/// The queue of one stream. The fields that most work needs come first.
#[repr(C)]
pub(super) struct Queue<B: Backend> {
    /// The driver's stream, or `None` once it has been dropped. Shared with the threads that wait for it.
    pub(super) raw: Option<Arc<B::Stream>>,
    /// The last submission index that was given out.
    pub(super) submission: u64,
    /// (timeline, submission index) that this stream has already waited for.
    seen: SmallVec<[(u64, u64); 8]>,
    /// The first submission index after the last wait that has been forgotten; 0 if none has been.
    forgotten: u64,
    pub(super) events: EventHistory<B>,
}

/// An event to wait for, or the news that there is nothing to wait for.
pub enum WaitTarget<B: Backend> {
    Complete,
    Event { submission: u64, recorded: Arc<RecordedEvent<B>> },
}

impl<B: Backend> Queue<B> {
    pub(super) fn new(raw: Option<B::Stream>) -> Self {
        Self {
            raw: raw.map(Arc::new),
            submission: 0,
            events: EventHistory::new(),
            seen: SmallVec::new(),
            forgotten: 0,
        }
    }

    /// Returns a submission index for the work on a foreign stream now, with its event. Earlier submission indexes are
    /// never queried.
    pub(super) fn record_on(&mut self, context: &Arc<DeviceContext<B>>, raw: &B::Stream) -> Result<u64> {
        let submission = self.submission + 1;
        self.events.record(submission, Reused::Last, context, |event| raw.record(event))?;
        // Only if the driver has recorded it.
        self.submission = submission;
        Ok(submission)
    }

    /// Whether the stream has already waited for that submission index of that timeline.
    #[inline]
    pub(super) fn has_waited_for(&self, timeline: u64, submission: u64) -> bool {
        self.seen.iter().any(|(id, seen)| *id == timeline && *seen >= submission)
    }

    /// Whether pending work, which begins with that submission index, may depend on that of a timeline from an index on.
    pub(super) fn may_depend_on(&self, timeline: u64, submission: u64, first_pending: u64) -> bool {
        self.forgotten >= first_pending || self.has_waited_for(timeline, submission)
    }

    pub(super) fn event_for(&self, submission: u64) -> Option<WaitTarget<B>> {
        let (submission, recorded) = self.events.find(submission)?;
        Some(WaitTarget::Event { submission: *submission, recorded: recorded.clone() })
    }

    /// Makes the stream wait for an event of the timeline `of`, and remembers that. Another device remembers that this one
    /// depends on it. `false` if no driver connects the two: the host has to wait, without the lock of the queue.
    #[inline]
    pub(super) fn wait_for(
        &mut self,
        context: &Arc<DeviceContext<B>>,
        of: &Timeline<B>,
        submission: u64,
        recorded: &RecordedEvent<B>,
    ) -> Result<bool> {
        let Some(raw) = self.raw.as_deref() else { return Err(stale(context, "wait")) };
        if !Arc::ptr_eq(context, &of.context) {
            of.context.note_dependent(context);
        }
        let waits = wait_on_stream::<B>(raw, recorded, context)?;
        if waits {
            self.note_seen(of.id(), submission);
        }
        Ok(waits)
    }

    #[inline]
    fn note_seen(&mut self, timeline: u64, submission: u64) {
        if let Some((_, seen)) = self.seen.iter_mut().find(|(id, _)| *id == timeline) {
            *seen = (*seen).max(submission);
            return;
        }
        self.note_first(timeline, submission);
    }

    #[inline(never)]
    fn note_first(&mut self, timeline: u64, submission: u64) {
        // The oldest wait is the least likely to be asked for again.
        if self.seen.len() >= SEEN {
            self.seen.remove(0);
            self.forgotten = self.submission + 1;
        }
        self.seen.push((timeline, submission));
    }

    /// Records an event after everything that has been enqueued.
    #[inline]
    pub(super) fn record(
        &mut self,
        context: &Arc<DeviceContext<B>>,
    ) -> Result<&(u64, Arc<RecordedEvent<B>>)> {
        let Some(raw) = self.raw.as_deref() else { return Err(stale(context, "record")) };
        // No index is given out meanwhile: the caller has the lock.
        let recorded =
            self.events.record(self.submission, Reused::Oldest, context, |event| raw.record(event))?;
        context.counters.count_record();
        Ok(recorded)
    }

    /// Records an event after the work of all streams of the device.
    pub(super) fn record_everything(
        &mut self,
        context: &Arc<DeviceContext<B>>,
    ) -> Result<&(u64, Arc<RecordedEvent<B>>)> {
        let recorded = self
            .events
            .record(self.submission, Reused::Oldest, context, |event| context.raw.record_device(event))?;
        context.counters.count_record();
        Ok(recorded)
    }
}

/// Makes the stream wait for the event. `false` if the two belong to different backends: the host has to wait, without a lock.
#[inline]
pub(super) fn wait_on_stream<B: Backend>(
    raw: &B::Stream,
    recorded: &RecordedEvent<B>,
    context: &DeviceContext<B>,
) -> Result<bool> {
    let Some(event) = recorded.event() else { return Ok(true) };
    match raw.wait(event) {
        Ok(()) => {
            context.counters.count_wait();
            Ok(true)
        }
        Err(error) if matches!(error.kind(), ErrorKind::BackendMismatch { .. }) => Ok(false),
        Err(error) => context.note_loss(Err(error)),
    }
}

/// Makes the host wait for the event. The caller holds no lock: what it waits for may be code of the user's.
#[cold]
pub(super) fn wait_on_host<B: Backend>(recorded: &RecordedEvent<B>) -> Result<()> {
    blocking::may_block("wait")?;
    recorded.event().map_or(Ok(()), Event::synchronize)
}

#[cold]
pub(super) fn stale<B: Backend>(context: &DeviceContext<B>, operation: &'static str) -> Error {
    context.error(operation, ErrorKind::Stale { what: "stream" })
}

impl<B: Backend> std::fmt::Debug for WaitTarget<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WaitTarget").finish_non_exhaustive()
    }
}
