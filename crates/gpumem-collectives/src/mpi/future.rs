//! The future that a stream runs for its operations.

use super::{Operation, operation::Work, staging::BYTES_DIFFER};
use crate::span::Span;
use gpumem_core::{CollectiveCause, CollectiveError, Failure};
use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

/// One operation, with the arrays of the rank.
#[derive(Debug)]
pub(crate) struct Participant {
    pub(crate) operation: Arc<Operation>,
    pub(crate) source: Span,
    pub(crate) destination: Span,
    pub(crate) outcome: Option<Result<(), Box<CollectiveError>>>,
}

impl Participant {
    /// # Safety
    /// The arrays are valid, and no other code uses them in conflict with the operation.
    unsafe fn poll(&mut self, waker: &Waker) {
        // Over: the stream asks again because of another operation of the group.
        if self.outcome.is_some() {
            return;
        }
        let Self { operation, source, destination, .. } = self;
        // SAFETY: passed on to the caller.
        match unsafe { operation.poll(waker, *source) } {
            None => {}
            Some(Ok(staging)) => {
                let place = operation.comm.place();
                let is_moved = match &operation.work {
                    // SAFETY: passed on to the caller.
                    Work::Call(call) => unsafe { staging.empty(call, place, *destination) },
                    Work::Split(_) => true,
                };
                let differ = || CollectiveCause::PeerLost { rank: place.0, why: BYTES_DIFFER.to_owned() };
                self.outcome = Some(operation.note(is_moved.then_some(()).ok_or_else(differ)));
            }
            Some(Err(cause)) => self.outcome = Some(operation.note(Err(cause))),
        }
    }
}

impl Drop for Participant {
    fn drop(&mut self) {
        // The stream has dropped it: the other ranks must not wait for it.
        if self.outcome.is_none() {
            self.operation
                .give_up(format!("{} of its stream did not run", self.operation.fingerprint.call.operation));
        }
    }
}

/// The operations of a rank that are one piece of work of its stream.
#[derive(Debug)]
pub(crate) struct Participation {
    participants: Vec<Participant>,
    /// The device and the stream.
    place: String,
}

impl Participation {
    /// # Safety
    /// Whenever the future is polled, the arrays are valid, and no other code uses them in conflict with the operations.
    pub(crate) unsafe fn new(participants: Vec<Participant>, place: String) -> Self {
        Self { participants, place }
    }
}

impl Future for Participation {
    type Output = Result<(), Failure>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        for participant in &mut self.participants {
            // SAFETY: the promise of `new`.
            unsafe { participant.poll(context.waker()) };
        }
        if self.participants.iter().any(|participant| participant.outcome.is_none()) {
            return Poll::Pending;
        }
        let mut failed =
            self.participants.iter().filter_map(|participant| participant.outcome.as_ref()?.as_ref().err());
        Poll::Ready(match failed.next() {
            Some(error) => Err(Failure::of_collective(self.place.clone(), (**error).clone())),
            None => Ok(()),
        })
    }
}
