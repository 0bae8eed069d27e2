//! An operation that some ranks have not called yet.

use super::{Move, Part, PendingCollective, part, pending::Verdict};
use crate::fingerprint::Fingerprint;
use gpumem_core::CollectiveCause;
use std::sync::Arc;

/// An operation that some ranks have not called yet. Dropped before the others have, it fails: no rank waits for it.
///
/// Then it wakes streams, which take their locks: the lock of the communicator is free.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) pending: Arc<PendingCollective<Move>>,
    pub(super) called: Vec<Option<(Fingerprint, Part)>>,
}

impl Open {
    pub(super) fn new(ranks: Vec<usize>) -> Self {
        let called = ranks.iter().map(|_| None).collect();
        Self { pending: Arc::new(PendingCollective::new(ranks, part::run)), called }
    }

    pub(super) fn lacks(&self, slot: usize) -> bool {
        self.called.get(slot).is_some_and(Option::is_none)
    }

    /// Whether it lacks a call of this rank, which may have both slots of what it sends to itself.
    pub(super) fn lacks_call_of(&self, rank: usize) -> bool {
        self.pending.ranks().iter().zip(&self.called).any(|(of, called)| *of == rank && called.is_none())
    }

    /// The calls of all ranks, if all have called.
    pub(super) fn complete(&self) -> Option<Vec<(Fingerprint, Part)>> {
        // The last call copies them all; each of the others nothing.
        let all = || self.called.iter().cloned().collect();
        self.called.iter().all(Option::is_some).then(all)?
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if let Some(slot) = self.called.iter().position(Option::is_none) {
            let why = "its engine has dropped the operation".to_owned();
            self.pending.fail(Verdict::One(CollectiveCause::PeerLost { rank: slot, why }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::{Poll, Waker};

    #[test]
    fn a_rank_in_an_operation_that_is_dropped_gets_an_error() {
        let open = Open::new(vec![0, 1]);
        let pending = open.pending.clone();
        assert!(pending.arrive(0, Waker::noop()).is_pending());
        drop(open);
        assert!(matches!(
            pending.arrive(0, Waker::noop()),
            Poll::Ready(Err(CollectiveCause::PeerLost { .. }))
        ));
    }
}
