//! What is behind the lock of a timeline: the driver's stream, its marks, and what it has waited for.

use super::{
    Mark,
    marks::{Marks, Reused},
};
use crate::{
    completion,
    device::{DeviceCore, Tally},
};
use gpumem_core::{Backend, Error, ErrorKind, Event, Result};
use smallvec::SmallVec;
use std::sync::Arc;

/// How many waits are remembered. Forgetting one costs a repeated wait, nothing else.
const SEEN: usize = 64;

/// The queue of one stream. What most work needs comes first.
#[repr(C)]
pub(super) struct Queue<B: Backend> {
    /// The driver's stream, or `None` once it has been dropped. Shared with whoever is waiting for it.
    pub(super) raw: Option<Arc<B::Stream>>,
    /// The last ticket that was given out.
    pub(super) ticket: u64,
    pub(super) tally: Arc<Tally>,
    /// (timeline, ticket) that this stream has already waited for.
    seen: SmallVec<[(u64, u64); 8]>,
    pub(super) marks: Marks<B>,
}

/// A mark to wait for, or the news that there is nothing to wait for.
pub(crate) enum Point<B: Backend> {
    Passed,
    Mark { ticket: u64, mark: Arc<Mark<B>> },
}

impl<B: Backend> Queue<B> {
    pub(super) fn new(raw: Option<B::Stream>, tally: Arc<Tally>) -> Self {
        Self { raw: raw.map(Arc::new), ticket: 0, marks: Marks::new(), tally, seen: SmallVec::new() }
    }

    /// A ticket for what is on a stream of others now, with its mark. Nobody asks for the tickets before it.
    pub(super) fn record_on(&mut self, core: &Arc<DeviceCore<B>>, raw: &B::Stream) -> Result<u64> {
        let ticket = self.ticket + 1;
        self.marks.record(ticket, Reused::Last, core, |event| B::record(raw, event))?;
        self.ticket = ticket;
        Ok(ticket)
    }

    /// Whether the stream has already waited for that ticket of that timeline.
    #[inline]
    pub(super) fn has_waited_for(&self, timeline: u64, ticket: u64) -> bool {
        self.seen.iter().any(|(id, seen)| *id == timeline && *seen >= ticket)
    }

    pub(super) fn mark_for(&self, ticket: u64) -> Option<Point<B>> {
        let (ticket, mark) = self.marks.find(ticket)?;
        Some(Point::Mark { ticket: *ticket, mark: mark.clone() })
    }

    /// Makes the stream wait for a mark of the timeline `of`, and remembers that.
    #[inline]
    pub(super) fn wait_for(
        &mut self,
        core: &DeviceCore<B>,
        of: u64,
        ticket: u64,
        mark: &Mark<B>,
    ) -> Result<()> {
        let Some(raw) = self.raw.as_deref() else { return Err(stale(core, "wait")) };
        if wait_on_stream::<B>(raw, mark, core)? {
            self.tally.count_wait();
        }
        self.note_seen(of, ticket);
        Ok(())
    }

    #[inline]
    fn note_seen(&mut self, timeline: u64, ticket: u64) {
        if let Some((_, seen)) = self.seen.iter_mut().find(|(id, _)| *id == timeline) {
            *seen = (*seen).max(ticket);
            return;
        }
        self.note_first(timeline, ticket);
    }

    #[inline(never)]
    fn note_first(&mut self, timeline: u64, ticket: u64) {
        if self.seen.len() >= SEEN {
            self.seen.remove(0);
        }
        self.seen.push((timeline, ticket));
    }

    /// Records a mark behind everything that has been enqueued.
    #[inline]
    pub(super) fn record(&mut self, core: &Arc<DeviceCore<B>>) -> Result<&(u64, Arc<Mark<B>>)> {
        let Some(raw) = self.raw.as_deref() else { return Err(stale(core, "record")) };
        let recorded = self.marks.record(self.ticket, Reused::Oldest, core, |event| B::record(raw, event))?;
        self.tally.count_record();
        Ok(recorded)
    }

    /// Records a mark behind all streams of the device.
    pub(super) fn record_everything(&mut self, core: &Arc<DeviceCore<B>>) -> Result<&(u64, Arc<Mark<B>>)> {
        let recorded = self
            .marks
            .record(self.ticket, Reused::Oldest, core, |event| B::record_device(&core.raw, event))?;
        self.tally.count_record();
        Ok(recorded)
    }
}

/// Makes the stream wait for the mark; where the two belong to different backends, the host waits instead. Whether the
/// stream does.
#[inline]
pub(super) fn wait_on_stream<B: Backend>(
    raw: &B::Stream,
    mark: &Mark<B>,
    core: &DeviceCore<B>,
) -> Result<bool> {
    let Some(event) = mark.event() else { return Ok(false) };
    match B::wait(raw, event) {
        Ok(()) => Ok(true),
        Err(error) => wait_on_host(event, core, error).map(|()| false),
    }
}

#[cold]
fn wait_on_host<B: Backend>(event: &B::Event, core: &DeviceCore<B>, error: Error) -> Result<()> {
    match error.kind() {
        ErrorKind::BackendMismatch { .. } => {
            completion::may_block("wait")?;
            event.synchronize()
        }
        _ => core.note_loss(Err(error)),
    }
}

#[cold]
pub(super) fn stale<B: Backend>(core: &DeviceCore<B>, operation: &'static str) -> Error {
    core.error(operation, ErrorKind::Stale { what: "stream" })
}
