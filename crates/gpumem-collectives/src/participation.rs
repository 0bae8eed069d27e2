//! The future that a stream runs for operations of its rank that are one piece of work.

use gpumem_core::{CollectiveError, Failure};
use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, Waker},
};

pub(crate) type Outcome = Result<(), Box<CollectiveError>>;

/// The part of a rank in an operation.
pub(crate) trait Participate: Unpin {
    /// The stream has come so far, or asks again. Returns the outcome once.
    fn poll(&mut self, waker: &Waker) -> Option<Outcome>;

    /// The rank does not take part.
    fn give_up(&mut self);
}

/// A participant until its outcome is there. Dropped before, it gives up.
pub(crate) struct Awaited<P: Participate>(P, Option<Outcome>);

impl<P: Participate> Awaited<P> {
    pub(crate) fn new(participant: P) -> Self {
        Self(participant, None)
    }
}

impl<P: Participate> Drop for Awaited<P> {
    fn drop(&mut self) {
        if self.1.is_none() {
            self.0.give_up();
        }
    }
}

pub(crate) struct Participation<P: Participate> {
    pub(crate) participants: Vec<Awaited<P>>,
    /// The device and the stream.
    pub(crate) place: String,
}

impl<P: Participate> Future for Participation<P> {
    type Output = Result<(), Failure>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { participants, place } = &mut *self;
        // All come before any is waited for: operations of a group do not wait for each other.
        for Awaited(participant, outcome) in &mut *participants {
            if outcome.is_none() {
                *outcome = participant.poll(context.waker());
            }
        }
        if participants.iter().any(|Awaited(_, outcome)| outcome.is_none()) {
            return Poll::Pending;
        }
        // The first one in the order of the calls is the failure of the work.
        let mut failed =
            participants.iter().filter_map(|Awaited(_, outcome)| outcome.as_ref()?.as_ref().err());
        Poll::Ready(match failed.next() {
            Some(error) => Err(Failure::of_collective(place.clone(), (**error).clone())),
            None => Ok(()),
        })
    }
}
