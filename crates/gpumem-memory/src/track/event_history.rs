//! The events of one stream.

use super::DeviceContext;
use super::RecordedEvent;
use gpumem_core::{Backend, Result};
use std::sync::{
    Arc,
    atomic::{Ordering, fence},
};

/// How many recorded events are kept. The oldest go first; a later mark stands for them.
const EVENTS: usize = 8;

/// An event with the submission index that it stands for, and for all before.
type Entry<B> = (u64, Arc<RecordedEvent<B>>);

/// Whose event a new mark gets.
#[derive(Debug, Clone, Copy)]
pub(super) enum Reused {
    /// The oldest mark's.
    Oldest,
    /// The last event's, where no one asks for earlier submission indexes. One event that goes round stays in the caches,
    /// ours and the driver's.
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

    /// Whether an event stands for the submission index.
    #[inline]
    pub(super) fn has(&self, submission: u64) -> bool {
        self.last().is_some_and(|(last, _)| *last >= submission)
    }

    /// The earliest mark that stands for the submission index.
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
        // Events are only cloned under the lock of the stream, which is ours now.
        let is_ours =
            |recorded: &Arc<RecordedEvent<B>>| Arc::strong_count(recorded) == 1 && recorded.is_of(context);
        let recorded = match place.take().filter(|(_, recorded)| is_ours(recorded)) {
            Some((_, recorded)) => {
                // What others did with the event before they let go of it comes first.
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
