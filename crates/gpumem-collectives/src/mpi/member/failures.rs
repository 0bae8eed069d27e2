//! What fails: at a deadline, in the library, or because another rank is gone.

use super::{GRACE, Late, Member};
use crate::mpi::{
    Mpi, MpiError, Operation,
    control::Event,
    operation::{Owned, Sequence},
    thread,
};
use gpumem_core::CollectiveCause;
use std::{sync::Weak, time::Instant};

impl Member {
    /// This rank may call nothing more. What is under way goes on; what its streams have not come to fails, as they may wait
    /// for the thread that waits for this one.
    pub(crate) fn cut_off(&mut self, mpi: &Mpi, why: &str) {
        if self.waiting.values().flatten().any(|operation| !operation.is_ready()) {
            return self.give_up(mpi, why.to_owned());
        }
        let (rank, _) = self.comm.place();
        self.comm.revoke(CollectiveCause::PeerLost { rank, why: why.to_owned() });
    }

    /// This rank cannot do an operation that the others wait for.
    pub(super) fn give_up(&mut self, mpi: &Mpi, why: String) {
        let (rank, _) = self.comm.place();
        self.tell(mpi, &Event::Lost(why.clone()));
        self.revoke(CollectiveCause::PeerLost { rank, why });
    }

    /// The library reports an error. It may still use what it was given.
    pub(super) fn abandon(&mut self, mpi: &Mpi, operation: Owned, error: MpiError) {
        self.has_abandoned = true;
        // It fails with the others, when it is known which ranks are missing.
        // Put back in front, so that it counts as pending in what this rank tells.
        self.waiting.entry(operation.of).or_default().push_front(operation);
        self.be_late(mpi, Some(error.message));
    }

    /// Tells the others that this rank waits no longer.
    pub(super) fn be_late(&mut self, mpi: &Mpi, why: Option<String>) {
        // Once: a rank that hears this becomes late too, and would answer for ever.
        if self.late.is_none() && !self.is_dead {
            self.late = Some(Late { since: Instant::now(), why });
            self.tell(mpi, &Event::Late);
        }
    }

    pub(super) fn check_deadlines(&mut self, mpi: &Mpi) {
        let after = self.comm.options.timeout;
        if let Some(late) = &self.late {
            let told = self.comm.statuses();
            // When all have told how far they are, more time would tell nothing new.
            let all = self.comm.others().all(|rank| told.get(rank).is_some_and(Option::is_some));
            if late.since.elapsed() >= GRACE || all {
                // By now every rank that lives has told, so those that are behind are the ones that are missing.
                let missing = self.missing();
                let cause = match late.why.clone() {
                    Some(why) => {
                        let (rank, _) = self.comm.place();
                        CollectiveCause::PeerLost { rank: missing.first().copied().unwrap_or(rank), why }
                    }
                    None => CollectiveCause::Timeout { after, missing },
                };
                self.revoke(cause);
            }
            return;
        }
        let is_late = |operation: &Operation| operation.since().is_some_and(|since| since.elapsed() >= after);
        // Another rank may be gone since it has said where it goes.
        let is_parting_late =
            || self.partings.iter().filter_map(Weak::upgrade).any(|parting| is_late(&parting));
        if self.operations().any(|operation| is_late(operation)) || is_parting_late() {
            self.be_late(mpi, None);
        }
    }

    pub(super) fn operations(&self) -> impl Iterator<Item = &Owned> {
        let active = self.active.iter().map(|active| &active.operation);
        self.waiting.values().flatten().chain(active)
    }

    /// The oldest operation of all ranks that this rank has called and that is not over.
    pub(super) fn pending(&self) -> u64 {
        self.oldest(|_| true)
    }

    /// The oldest of them that its stream has not come to.
    pub(super) fn waiting(&self) -> u64 {
        self.oldest(|operation| operation.since().is_none())
    }

    fn oldest(&self, counts: impl Fn(&Operation) -> bool) -> u64 {
        let of_all =
            self.operations().filter(|operation| operation.of == Sequence::OfAll && counts(operation));
        of_all.map(|operation| operation.number).min().unwrap_or(u64::MAX)
    }

    /// The ranks that others wait for.
    fn missing(&self) -> Vec<usize> {
        let told = self.comm.statuses();
        let theirs = told.iter().flatten().map(|status| status.pending);
        // The oldest of all ranks: a later operation may wait only because of it.
        let oldest = theirs.chain([self.pending()]).min().unwrap_or(u64::MAX);
        if oldest != u64::MAX {
            return self.comm.missing(Sequence::OfAll, oldest, self.waiting());
        }
        match self.operations().next() {
            Some(pair) => self.comm.missing(pair.of, pair.number, u64::MAX),
            // The part of a split is being made, which all have called: who is gone has told nothing.
            None => self.comm.missing(Sequence::OfAll, 0, u64::MAX),
        }
    }

    /// Fails everything: no operation can succeed any more.
    pub(crate) fn revoke(&mut self, cause: CollectiveCause) {
        self.comm.revoke(cause.clone());
        if !matches!(cause, CollectiveCause::Aborted { .. }) {
            // A rank that aborts lives, and ends as the others do.
            thread::spoil();
        }
        // Before the operations fail: what is called while they do is refused.
        self.is_dead = true;
        self.late = None;
        self.fail(|_| Some(cause.clone()));
        // The part is given up when it is made.
        for parting in self.partings.iter().filter_map(Weak::upgrade) {
            parting.conclude(Err(cause.clone()));
        }
    }

    /// Fails operations.
    pub(super) fn fail(&mut self, cause: impl Fn(&Operation) -> Option<CollectiveCause>) {
        for waiting in self.waiting.values_mut() {
            // In the order of the calls, so that each stream sees its first failure first.
            waiting.retain(|operation| match cause(operation) {
                Some(cause) => {
                    operation.conclude(Err(cause));
                    false
                }
                None => true,
            });
        }
        let mut index = 0;
        while let Some(active) = self.active.get(index) {
            match cause(&active.operation) {
                Some(cause) => {
                    // The library goes on with its buffers.
                    self.active.remove(index).operation.conclude(Err(cause));
                    self.has_abandoned = true;
                }
                None => index += 1,
            }
        }
    }
}
