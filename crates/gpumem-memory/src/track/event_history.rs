//! The events of one stream.

use super::DeviceContext;
use super::RecordedEvent;
use gpumem_core::{Backend, Result};
use std::sync::{
    Arc,
    atomic::{Ordering, fence},
};

/// How many recorded events are kept. The oldest are dropped first; a later event covers them.
const EVENTS: usize = 8;

/// An event with the submission index that it covers, with all earlier ones.
type Entry<B> = (u64, Arc<RecordedEvent<B>>);

/// Selects the event that a new recording uses.
#[derive(Debug, Clone, Copy)]
pub(super) enum Reused {
    /// The event of the oldest recording.
    Oldest,
    /// The last one, if earlier submission indexes are not needed any more. One event that is used again and again
    /// stays in the caches of the library and the driver.
    Last,
}

/// The last events of a stream, by rising submission indexes in a ring. Each place keeps its event, to be
/// recorded again.
pub(super) struct EventHistory<B: Backend> {
    ring: [Option<Entry<B>>; EVENTS],
    /// The place of the last one.
    last: usize,
}

impl<B: Backend> EventHistory<B> {
    pub(super) fn new() -> Self {
        Self { ring: [const { None }; EVENTS], last: 0 }
    }

    #[inline]
    fn last(&self) -> Option<&Entry<B>> {
        self.ring.get(self.last).and_then(Option::as_ref)
    }

    /// Tells whether an event covers the submission index.
    #[inline]
    pub(super) fn has(&self, submission: u64) -> bool {
        self.last().is_some_and(|(last, _)| *last >= submission)
    }

    /// Returns the earliest event that covers the submission index.
    #[inline]
    pub(super) fn find(&self, submission: u64) -> Option<&Entry<B>> {
        if !self.has(submission) {
            return None;
        }
        let (later, earlier) = self.ring.split_at_checked(self.last + 1)?;
        earlier.iter().chain(later).flatten().find(|(marked, _)| *marked >= submission)
    }

    /// Records an event for the submission index, which is not less than the last one's, with the event of an event
    /// that goes, unless a caller holds that.
    #[inline]
    pub(super) fn record(
        &mut self,
        submission: u64,
        event: Reused,
        context: &Arc<DeviceContext<B>>,
        record: impl FnOnce(&B::Event) -> Result<()>,
    ) -> Result<&Entry<B>> {
        let at = match event {
            Reused::Oldest => (self.last + 1) % EVENTS,
            Reused::Last => self.last,
        };
        let place = &mut self.ring[at];
        // Events are only cloned under the lock of the stream, which this thread holds.
        let is_ours =
            |recorded: &Arc<RecordedEvent<B>>| Arc::strong_count(recorded) == 1 && recorded.is_of(context);
        let recorded = match place.take().filter(|(_, recorded)| is_ours(recorded)) {
            Some((_, recorded)) => {
                // Other threads' uses of the event before they dropped it come first.
                fence(Ordering::Acquire);
                recorded
            }
            None => Arc::new(RecordedEvent::new(context)?),
        };
        if let Some(event) = recorded.event() {
            context.note_loss(record(event))?;
        }
        self.last = at;
        Ok(place.insert((submission, recorded)))
    }
}
