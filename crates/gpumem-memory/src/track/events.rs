//! Recorded events, the pool that they come from and go back to, and those of one stream.

use super::{DeviceContext, HeldContext};
use crate::sync::{Mutex, Rank};
use gpumem_core::{Backend, DriverDevice as _, EventOptions, Result};
use std::{
    fmt,
    panic::{RefUnwindSafe, UnwindSafe},
    sync::{
        Arc,
        atomic::{Ordering, fence},
    },
};

/// An event that has been recorded on some stream. Dropping it gives the event to the pool, not to the driver.
pub struct RecordedEvent<B: Backend> {
    /// Taken only in `drop`.
    event: Option<B::Event>,
    generation: u64,
    context: HeldContext<B>,
}

// As a device.
impl<B: Backend> UnwindSafe for RecordedEvent<B> {}
impl<B: Backend> RefUnwindSafe for RecordedEvent<B> {}

impl<B: Backend> RecordedEvent<B> {
    /// Takes an event from the pool of the device, or makes one.
    #[inline(never)]
    pub(crate) fn new(context: &Arc<DeviceContext<B>>) -> Result<Self> {
        // The lock of the stream is held here. The driver makes an event without this one: the guard is gone by then.
        let event = match context.events.free.lock().pop() {
            Some(event) => event,
            None => context.note_loss(context.raw.create_event(EventOptions::default()))?,
        };
        Ok(Self { event: Some(event), generation: context.generation(), context: HeldContext::new(context) })
    }

    /// Whether the event is one of the device as it is now.
    #[inline]
    pub(crate) fn is_of(&self, context: &DeviceContext<B>) -> bool {
        self.generation == context.generation()
    }

    /// The event. `None` never happens outside `drop`.
    #[inline]
    pub(crate) fn event(&self) -> Option<&B::Event> {
        self.event.as_ref()
    }
}

impl<B: Backend> Drop for RecordedEvent<B> {
    fn drop(&mut self) {
        if let Some(event) = self.event.take() {
            if self.context.origin.is_valid() && self.generation == self.context.generation() {
                // Under any lock in which the last reference may go: those of logs, queues and pools come before this one.
                self.context.events.free.lock().push(event);
            } else {
                // The driver belongs to another process, has ended, or was reset: no event can be destroyed.
                std::mem::forget(event);
            }
        }
    }
}

impl<B: Backend> fmt::Debug for RecordedEvent<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.event.fmt(f)
    }
}

/// Events that are not in use. Recording an event again does not disturb work that waits for the old recording, so an
/// event may be reused as soon as no new wait will use it.
#[derive(Debug)]
pub struct EventPool<B: Backend> {
    // Its own lock: events of all streams come here, under the lock of whichever stream or log drops them.
    free: Mutex<Vec<B::Event>>,
}

impl<B: Backend> EventPool<B> {
    pub(crate) fn new() -> Self {
        Self { free: Mutex::new(Rank::IdleEvents, Vec::new()) }
    }

    /// Takes all idle events, to be destroyed.
    pub fn take(&self) -> Vec<B::Event> {
        // The driver destroys them without the lock.
        std::mem::take(&mut *self.free.lock())
    }
}

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
        // The oldest event has been waited for most likely; if a caller still holds it, a new one takes its place.
        let at = match event {
            Reused::Oldest => (self.last + 1) % EVENTS,
            Reused::Last => self.last,
        };
        let place = &mut self.ring[at];
        // Events are only cloned under the lock of the stream, which this thread holds.
        let is_ours =
            // The count is relaxed: at 1 no other thread can clone it, and the fence below orders earlier uses.
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
        // Only once the driver has recorded it: one that was refused covers nothing.
        self.last = at;
        Ok(place.insert((submission, recorded)))
    }
}
