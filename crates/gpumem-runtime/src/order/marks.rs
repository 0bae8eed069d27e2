//! The marks of one stream.

use super::Mark;
use crate::device::DeviceCore;
use gpumem_core::{Backend, Result};
use std::sync::{
    Arc,
    atomic::{Ordering, fence},
};

/// How many recorded marks are kept. The oldest go first; a later mark stands for them.
const MARKS: usize = 8;

/// A mark with the ticket that it stands for, and for all before.
type Recorded<B> = (u64, Arc<Mark<B>>);

/// Whose event a new mark gets.
#[derive(Debug, Clone, Copy)]
pub(super) enum Reused {
    /// The oldest mark's.
    Oldest,
    /// The last mark's, where nobody asks for earlier tickets. One event that goes round stays in the caches, ours and the
    /// driver's.
    Last,
}

/// The last marks of a stream, by rising tickets in a ring. Each place keeps its event, to be recorded again.
pub(super) struct Marks<B: Backend> {
    ring: [Option<Recorded<B>>; MARKS],
    /// The place of the last one.
    last: usize,
}

impl<B: Backend> Marks<B> {
    pub(super) fn new() -> Self {
        Self { ring: [const { None }; MARKS], last: 0 }
    }

    #[inline]
    fn last(&self) -> Option<&Recorded<B>> {
        self.ring.get(self.last).and_then(Option::as_ref)
    }

    /// Whether a mark stands for the ticket.
    #[inline]
    pub(super) fn has(&self, ticket: u64) -> bool {
        self.last().is_some_and(|(last, _)| *last >= ticket)
    }

    /// The earliest mark that stands for the ticket.
    #[inline]
    pub(super) fn find(&self, ticket: u64) -> Option<&Recorded<B>> {
        if !self.has(ticket) {
            return None;
        }
        let (later, earlier) = self.ring.split_at_checked(self.last + 1)?;
        earlier.iter().chain(later).flatten().find(|(marked, _)| *marked >= ticket)
    }

    /// Records a mark for the ticket, which is not less than the last one's, with the event of a mark that goes, unless
    /// somebody holds that.
    #[inline]
    pub(super) fn record(
        &mut self,
        ticket: u64,
        event: Reused,
        core: &Arc<DeviceCore<B>>,
        record: impl FnOnce(&B::Event) -> Result<()>,
    ) -> Result<&Recorded<B>> {
        let at = match event {
            Reused::Oldest => (self.last + 1) % MARKS,
            Reused::Last => self.last,
        };
        let place = &mut self.ring[at];
        // Marks are only cloned under the lock of the stream, which is ours now.
        let is_ours = |mark: &Arc<Mark<B>>| Arc::strong_count(mark) == 1 && mark.is_of(core);
        let mark = match place.take().filter(|(_, mark)| is_ours(mark)) {
            Some((_, mark)) => {
                // What others did with the event before they let go of it comes first.
                fence(Ordering::Acquire);
                mark
            }
            None => Arc::new(Mark::new(core)?),
        };
        if let Some(event) = mark.event() {
            core.note_loss(record(event))?;
        }
        self.last = at;
        Ok(place.insert((ticket, mark)))
    }
}
