//! One rank in an operation.

use super::{Move, PendingCollective, Shared};
use crate::{
    participation::{self, Outcome},
    record::Write,
};
use gpumem_core::{CollectiveCause, CollectiveError};
use std::{
    sync::Arc,
    task::{Poll, Waker},
    time::Instant,
};

/// One rank in an operation.
pub(crate) struct LocalParticipant {
    pub(crate) pending: Arc<PendingCollective<Move>>,
    pub(crate) slot: usize,
    pub(crate) shared: Arc<Shared>,
    pub(crate) rank: usize,
    pub(crate) operation: &'static str,
    pub(crate) sequence: u64,
    pub(crate) traced: Option<Traced>,
}

/// An operation of which a recording gets the times.
pub(crate) struct Traced {
    /// When the stream had come so far.
    pub(crate) came: Option<Instant>,
    pub(crate) write: Write,
}

impl LocalParticipant {
    fn fail(&self, cause: CollectiveCause) -> Box<CollectiveError> {
        let sequences = self.sequence..self.sequence + 1;
        self.shared.of_rank(self.rank, |own| own.fail(self.operation, sequences, cause))
    }
}

impl participation::Participate for LocalParticipant {
    fn poll(&mut self, waker: &Waker) -> Option<Outcome> {
        if let Some(traced) = &mut self.traced {
            // Only the first time: a stream asks again whenever it is woken.
            traced.came.get_or_insert_with(Instant::now);
        }
        match self.pending.arrive(self.slot, waker) {
            Poll::Pending => {
                // From the first rank that waits on: before, no deadline runs.
                self.shared.watch();
                None
            }
            Poll::Ready(Ok(())) => {
                if let Some(Traced { came: Some(came), write }) = self.traced.take()
                    && let Some([began, ended]) = self.pending.times()
                {
                    write(began.saturating_duration_since(came), ended.saturating_duration_since(began));
                }
                self.shared.of_rank(self.rank, |own| own.end(self.sequence..self.sequence + 1));
                Some(Ok(()))
            }
            // Without the lock of the operation, which is over: the communicator has one of its own.
            Poll::Ready(Err(cause)) => Some(Err(self.fail(cause))),
        }
    }

    fn give_up(&mut self) {
        let why = format!("{} of its stream did not run", self.operation);
        let lost = CollectiveCause::PeerLost { rank: self.rank, why };
        // Waits while the bytes move: the memory is given up after this.
        if let Some(cause) = self.pending.leave(self.slot, lost) {
            self.fail(cause);
        }
    }
}
