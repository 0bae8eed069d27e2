//! The state under the lock of a timeline: the driver's stream and its events.

use super::{
    DeviceContext, RecordedEvent,
    events::{EventHistory, Reused},
};
use crate::blocking;
use gpumem_core::{Backend, DriverDevice, Error, ErrorKind, Event, Result, Stream as _};
use std::sync::Arc;

/// The queue of one stream. The fields that most work needs come first.
#[repr(C)]
pub(super) struct Queue<B: Backend> {
    /// The driver's stream, or `None` once it has been dropped. Shared with the threads that wait for it.
    pub(super) raw: Option<Arc<B::Stream>>,
    /// The last submission index that was given out.
    pub(super) submission: u64,
    pub(super) events: EventHistory<B>,
}

/// An event to wait for, or the news that there is nothing to wait for.
pub enum WaitTarget<B: Backend> {
    Complete,
    Event { submission: u64, recorded: Arc<RecordedEvent<B>> },
}

impl<B: Backend> Queue<B> {
    pub(super) fn new(raw: Option<B::Stream>) -> Self {
        Self { raw: raw.map(Arc::new), submission: 0, events: EventHistory::new() }
    }

    /// Records the event of the next submission index, for the work on a foreign stream now.
    pub(super) fn record_next(
        &mut self,
        context: &Arc<DeviceContext<B>>,
        raw: &B::Stream,
        event: Reused,
    ) -> Result<()> {
        self.events.record(self.submission + 1, event, context, |event| raw.record(event)).map(drop)
    }

    pub(super) fn event_for(&self, submission: u64) -> Option<WaitTarget<B>> {
        let (submission, recorded) = self.events.find(submission)?;
        Some(WaitTarget::Event { submission: *submission, recorded: recorded.clone() })
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
