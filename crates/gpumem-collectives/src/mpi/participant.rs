//! The part of this rank in an operation.

use super::{Operation, operation::Work, staging::BYTES_DIFFER};
use crate::{
    participation::{self, Outcome},
    span::Span,
};
use gpumem_core::CollectiveCause;
use std::{sync::Arc, task::Waker};

/// One operation, with the arrays of the rank.
pub(crate) struct MpiParticipant {
    operation: Arc<Operation>,
    source: Span,
    destination: Span,
}

impl MpiParticipant {
    /// # Safety
    /// Whenever it is polled, the arrays are valid, and no other code uses them in conflict with the operation.
    pub(crate) unsafe fn new(operation: Arc<Operation>, source: Span, destination: Span) -> Self {
        Self { operation, source, destination }
    }
}

impl participation::Participate for MpiParticipant {
    fn poll(&mut self, waker: &Waker) -> Option<Outcome> {
        let Self { operation, source, destination } = self;
        // SAFETY: the promise of `new`.
        let outcome = unsafe { operation.poll(waker, *source) }?.and_then(|staging| {
            let place = operation.comm.place();
            let is_moved = match &operation.work {
                // SAFETY: the promise of `new`.
                Work::Call(call) => unsafe { staging.empty(call, place, *destination) },
                Work::Split(_) => true,
            };
            let differ = || CollectiveCause::PeerLost { rank: place.0, why: BYTES_DIFFER.to_owned() };
            is_moved.then_some(()).ok_or_else(differ)
        });
        Some(operation.note(outcome))
    }

    fn give_up(&mut self) {
        self.operation
            .give_up(format!("{} of its stream did not run", self.operation.fingerprint.call.operation));
    }
}
