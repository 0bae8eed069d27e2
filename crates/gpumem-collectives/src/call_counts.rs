//! The communicators that were split from one another: how far each rank has come in each of them.

use std::sync::{Mutex, PoisonError};

/// For each rank of the first communicator: its communicators, and how many operations of them it has called.
#[derive(Debug)]
pub(crate) struct CallCounts(Mutex<Vec<Vec<(u64, u64)>>>);

impl CallCounts {
    pub(crate) fn new(ranks: usize) -> Self {
        Self(Mutex::new(vec![Vec::new(); ranks]))
    }

    fn with<R>(&self, rank: usize, change: impl FnOnce(&mut Vec<(u64, u64)>) -> R) -> Option<R> {
        // A leaf, within the lock of each of its communicators: the order that a rank tells is that of its calls.
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get_mut(rank).map(change)
    }

    /// A rank has a new communicator.
    pub(crate) fn join(&self, rank: usize, communicator: u64) {
        self.with(rank, |of| of.push((communicator, 0)));
    }

    /// A rank gives a communicator up.
    pub(crate) fn leave(&self, rank: usize, communicator: u64) {
        self.with(rank, |of| of.retain(|(id, _)| *id != communicator));
    }

    /// A rank calls an operation. Returns how many it has called of its other communicators.
    pub(crate) fn call(&self, rank: usize, communicator: u64) -> Vec<(u64, u64)> {
        let order = self.with(rank, |of| {
            let mut others = Vec::new();
            for (id, calls) in of {
                if *id == communicator {
                    *calls += 1;
                } else {
                    others.push((*id, *calls));
                }
            }
            others
        });
        order.unwrap_or_default()
    }
}
