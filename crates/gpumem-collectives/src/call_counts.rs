//! The communicators that were split from one another: how far each rank has come in each of them.

use std::sync::{Mutex, PoisonError};

/// A communicator of a rank.
#[derive(Debug)]
struct Entry {
    /// Which one it is in this process: two may have one number.
    key: u64,
    /// Its number on all ranks.
    id: u64,
    /// How many operations of it the rank has called.
    calls: u64,
}

/// For each rank of the first communicator: its communicators.
#[derive(Debug)]
pub(crate) struct CallCounts(Mutex<Vec<Vec<Entry>>>);

impl CallCounts {
    pub(crate) fn new(ranks: usize) -> Self {
        Self(Mutex::new((0..ranks).map(|_| Vec::new()).collect()))
    }

    fn with<R>(&self, rank: usize, change: impl FnOnce(&mut Vec<Entry>) -> R) -> Option<R> {
        // A leaf, within the lock of each of its communicators: the order that a rank tells is that of its calls.
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get_mut(rank).map(change)
    }

    /// A rank has a new communicator.
    pub(crate) fn join(&self, rank: usize, key: u64, id: u64) {
        self.with(rank, |of| of.push(Entry { key, id, calls: 0 }));
    }

    /// A rank gives a communicator up.
    pub(crate) fn leave(&self, rank: usize, key: u64) {
        self.with(rank, |of| of.retain(|entry| entry.key != key));
    }

    /// A rank calls an operation. Returns how many it has called of its other communicators, by their numbers. Those of which there are two
    /// say nothing to other ranks.
    pub(crate) fn call(&self, rank: usize, key: u64) -> Vec<(u64, u64)> {
        let order = self.with(rank, |of| {
            of.iter_mut().filter(|entry| entry.key == key).for_each(|own| own.calls += 1);
            let is_alone = |entry: &&Entry| of.iter().filter(|other| other.id == entry.id).count() == 1;
            let others = of.iter().filter(|entry| entry.key != key).filter(is_alone);
            others.map(|entry| (entry.id, entry.calls)).collect()
        });
        order.unwrap_or_default()
    }
}
