//! One rank in a meeting, and the future that its stream runs.

use super::{Meeting, Move, Shared};
use crate::record::Write;
use gpumem_core::{CollectiveCause, CollectiveError, Failure};
use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Instant,
};

/// One rank in a meeting. Dropped before the meeting is over, the rank does not come.
#[derive(Debug)]
pub(crate) struct Attendee {
    pub(crate) meeting: Arc<Meeting<Move>>,
    pub(crate) seat: usize,
    pub(crate) shared: Arc<Shared>,
    pub(crate) rank: usize,
    pub(crate) operation: &'static str,
    pub(crate) sequence: u64,
    pub(crate) traced: Option<Traced>,
    pub(crate) outcome: Option<Result<(), Box<CollectiveError>>>,
}

/// An operation of which a recording gets the times.
pub(crate) struct Traced {
    /// When the stream had come so far.
    pub(crate) came: Option<Instant>,
    pub(crate) write: Write,
}

impl fmt::Debug for Traced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Traced").field("came", &self.came).finish_non_exhaustive()
    }
}

impl Attendee {
    fn fail(&self, cause: CollectiveCause) -> Box<CollectiveError> {
        let sequences = self.sequence..self.sequence + 1;
        self.shared.of_rank(self.rank, |own| own.fail(self.operation, sequences, cause))
    }

    fn poll(&mut self, context: &mut Context<'_>) {
        if self.outcome.is_some() {
            return;
        }
        if let Some(traced) = &mut self.traced {
            // Only the first time: a stream asks again whenever it is woken.
            traced.came.get_or_insert_with(Instant::now);
        }
        match self.meeting.arrive(self.seat, context.waker()) {
            // From the first rank that waits on: before, no deadline runs.
            Poll::Pending => self.shared.watch(),
            Poll::Ready(Ok(())) => {
                if let Some(Traced { came: Some(came), write }) = self.traced.take()
                    && let Some([began, ended]) = self.meeting.times()
                {
                    write(began.saturating_duration_since(came), ended.saturating_duration_since(began));
                }
                self.shared.of_rank(self.rank, |own| own.end(self.sequence..self.sequence + 1));
                self.outcome = Some(Ok(()));
            }
            Poll::Ready(Err(cause)) => {
                // Without the lock of the meeting, which is over: the communicator has one of its own.
                self.outcome = Some(Err(self.fail(cause)));
            }
        }
    }
}

impl Drop for Attendee {
    fn drop(&mut self) {
        if self.outcome.is_none() {
            let why = format!("{} of its stream did not run", self.operation);
            let lost = CollectiveCause::PeerLost { rank: self.rank, why };
            // Waits while the bytes move: the memory is given up after this.
            if let Some(cause) = self.meeting.leave(self.seat, lost) {
                self.fail(cause);
            }
        }
    }
}

/// The operations of one rank that are one piece of work of its stream.
pub(crate) struct Attendance {
    pub(crate) attendees: Vec<Attendee>,
    /// The device and the stream.
    pub(crate) place: String,
}

impl Future for Attendance {
    type Output = Result<(), Failure>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // All come before any is waited for: operations of a group do not wait for each other.
        self.attendees.iter_mut().for_each(|attendee| attendee.poll(context));
        if self.attendees.iter().any(|attendee| attendee.outcome.is_none()) {
            return Poll::Pending;
        }
        // The first one in the order of the calls is the failure of the work.
        let mut failed =
            self.attendees.iter().filter_map(|attendee| attendee.outcome.as_ref()?.as_ref().err());
        Poll::Ready(match failed.next() {
            Some(error) => Err(Failure::of_collective(self.place.clone(), (**error).clone())),
            None => Ok(()),
        })
    }
}
