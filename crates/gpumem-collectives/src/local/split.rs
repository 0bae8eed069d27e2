//! Splits: the ranks of a communicator form smaller ones.

use super::{End, Shared};
use crate::engine::{Joined, Split};
use gpumem_core::{Backend, CollectiveCause, CollectiveError, Error, Result};
use std::{
    collections::BTreeMap,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Longest sleep between two looks at whether the communicator still lives.
const NAP: Duration = Duration::from_millis(50);
/// Failed splits that are kept apart for ranks that have yet to begin them.
const MOST_FAILED: usize = 16;

/// What a rank gets: the part that it belongs to, and its rank there.
type Part = (Arc<Shared>, usize);

/// The splits of a communicator that are under way.
#[derive(Debug, Default)]
pub(crate) struct Splits {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// How many splits each rank has begun.
    begun: BTreeMap<usize, u64>,
    rounds: BTreeMap<u64, Round>,
    /// The last failed split that is not kept any more, and why it failed. Ranks begin splits one after the other, so none up to it
    /// that is not kept is still open.
    forgotten: Option<(u64, CollectiveCause)>,
}

impl State {
    /// Why a split that is not kept has failed.
    fn forgotten(&self, number: u64) -> Option<&CollectiveCause> {
        let (last, cause) = self.forgotten.as_ref()?;
        (number <= *last && !self.rounds.contains_key(&number)).then_some(cause)
    }

    /// Forgets the oldest failed splits, if there are many: a rank that never begins them would have them kept.
    fn forget_failed(&mut self) {
        let failed = self.rounds.iter().filter(|(_, round)| round.failed.is_some());
        if failed.clone().count() > MOST_FAILED
            && let Some(oldest) = failed.map(|(number, _)| *number).next()
            && let Some(cause) = self.rounds.remove(&oldest).and_then(|round| round.failed)
        {
            self.forgotten = Some((oldest, cause));
        }
    }
}

#[derive(Debug)]
struct Round {
    /// What each rank has said: its colour and its key.
    said: Vec<Option<(Option<u64>, i64)>>,
    /// The part of each rank that has not taken it yet, and its rank there.
    parts: Option<Vec<Option<Part>>>,
    /// Why there will be none: a rank has given the split up.
    failed: Option<CollectiveCause>,
    taken: usize,
}

impl Splits {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Before the lock of the communicator, which never waits for its splits.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has waiting ranks look at the communicator again.
    pub(crate) fn wake(&self) {
        self.changed.notify_all();
    }

    /// A rank says which part it goes to. The last rank makes the parts. Returns the number of the split.
    pub(crate) fn begin(&self, shared: &Shared, rank: usize, said: (Option<u64>, i64)) -> u64 {
        // Until the parts are made: the last rank to say where it goes makes them, and there is one such rank.
        let mut state = self.lock();
        let begun = state.begun.entry(rank).or_default();
        let number = *begun;
        *begun += 1;
        if state.forgotten(number).is_some() {
            return number;
        }
        let size = shared.size();
        let round = state.rounds.entry(number).or_insert_with(|| Round {
            said: vec![None; size],
            parts: None,
            failed: None,
            taken: 0,
        });
        if let Some(own) = round.said.get_mut(rank) {
            *own = Some(said);
        }
        if round.failed.is_none()
            && let Some(all) = round.said.iter().copied().collect::<Option<Vec<_>>>()
        {
            round.parts = Some(parts(shared, &all));
        }
        drop(state);
        self.wake();
        number
    }

    /// Waits for the part of a rank.
    fn finish(&self, shared: &Shared, rank: usize, number: u64) -> Result<Option<Part>, CollectiveCause> {
        let (since, after) = (Instant::now(), shared.timeout());
        // Unlocked in each sleep: the ranks that are missing need it.
        let mut state = self.lock();
        loop {
            if let Some(round) = state.rounds.get_mut(&number)
                && let Some(parts) = &mut round.parts
            {
                // Taken once: a part that no rank takes must not be kept by the split.
                let own = parts[rank].take();
                round.taken += 1;
                if round.taken == shared.size() {
                    state.rounds.remove(&number);
                }
                return Ok(own);
            }
            let failed = state.rounds.get(&number).and_then(|round| round.failed.as_ref());
            if let Some(cause) = failed.or(state.forgotten(number)) {
                return Err(cause.clone());
            }
            let silent = state.rounds.get(&number).map(|round| &round.said);
            let missing: Vec<usize> = silent
                .into_iter()
                .flatten()
                .enumerate()
                .filter(|(_, said)| said.is_none())
                .map(|(rank, _)| rank)
                .collect();
            // Both lock the communicator, which never locks its splits.
            let dead = shared.of_rank(rank, |own| own.revoked.clone()).or_else(|| shared.has_left(&missing));
            if let Some(cause) = dead {
                return Err(cause);
            }
            if since.elapsed() >= after {
                return Err(CollectiveCause::Timeout { after, missing });
            }
            let nap = NAP.min(after);
            (state, _) = self.changed.wait_timeout(state, nap).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Splits {
    /// A rank does not take its part: the others do not wait for it.
    fn give_up(&self, shared: &Shared, rank: usize, number: u64, cause: CollectiveCause) {
        let mut state = self.lock();
        let Some(round) = state.rounds.get_mut(&number) else { return };
        let own = match &mut round.parts {
            Some(parts) => parts.get_mut(rank).and_then(Option::take),
            None => {
                round.failed.get_or_insert(cause);
                // There is something for each rank in it, and a rank may never begin the split.
                round.said = Vec::new();
                None
            }
        };
        round.taken += 1;
        if round.taken == shared.size() {
            state.rounds.remove(&number);
        }
        state.forget_failed();
        drop(state);
        if let Some((part, rank)) = own {
            part.leave(rank);
        }
        self.wake();
    }
}

/// Forms one communicator for each colour. Its ranks are in the order of their keys, and of their old ranks.
fn parts(shared: &Shared, said: &[(Option<u64>, i64)]) -> Vec<Option<Part>> {
    let mut colours: BTreeMap<u64, Vec<(i64, usize)>> = BTreeMap::new();
    for (rank, (colour, key)) in said.iter().enumerate() {
        if let Some(colour) = colour {
            colours.entry(*colour).or_default().push((*key, rank));
        }
    }
    let mut all: Vec<Option<Part>> = said.iter().map(|_| None).collect();
    for mut ranks in colours.into_values() {
        ranks.sort_unstable();
        let members = ranks.iter().map(|(_, rank)| shared.members[*rank]).collect();
        let part = Arc::new(Shared::new(members, shared.call_counts.clone(), shared.options.clone()));
        for (new, (_, old)) in ranks.iter().enumerate() {
            part.join(new);
            all[*old] = Some((part.clone(), new));
        }
    }
    all
}

/// A split that this rank has begun. Dropped before it has its part, the rank gives the split up.
pub(crate) struct Begun {
    shared: Arc<Shared>,
    rank: usize,
    number: u64,
    is_over: bool,
}

impl Begun {
    pub(crate) fn new(shared: Arc<Shared>, rank: usize, number: u64) -> Self {
        Self { shared, rank, number, is_over: false }
    }

    fn give_up(&mut self, cause: CollectiveCause) {
        self.is_over = true;
        self.shared.splits.give_up(&self.shared, self.rank, self.number, cause);
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        if !self.is_over {
            let why = "it gave the split up".to_owned();
            self.give_up(CollectiveCause::PeerLost { rank: self.rank, why });
        }
    }
}

impl<B: Backend> Split<B> for Begun {
    fn finish(mut self: Box<Self>) -> Result<Option<Joined<B>>> {
        match self.shared.splits.finish(&self.shared, self.rank, self.number) {
            Ok(part) => {
                self.is_over = true;
                Ok(part.map(|(part, rank)| -> Joined<B> {
                    let size = part.size();
                    (Arc::new(End::new(part, rank)), rank, size)
                }))
            }
            Err(cause) => {
                self.give_up(cause.clone());
                let place = (self.rank, self.shared.size());
                let failed = CollectiveError::new("split", self.number, place, cause);
                Err(Error::new("", "split", Box::new(failed)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, call_counts::CallCounts};

    #[test]
    fn little_is_kept_of_splits_that_fail() {
        let options = Options::new().timeout(Duration::ZERO);
        let shared = Arc::new(Shared::new(vec![0, 1], Arc::new(CallCounts::new(2)), options));
        (0..2).for_each(|rank| assert!(shared.join(rank)));
        let fail = |rank| {
            let number = shared.splits.begin(&shared, rank, (Some(0), 0));
            let cause = shared.splits.finish(&shared, rank, number).unwrap_err();
            Begun::new(shared.clone(), rank, number).give_up(cause.clone());
            cause
        };
        let late = CollectiveCause::Timeout { after: Duration::ZERO, missing: vec![1] };
        let count = 3 * MOST_FAILED;
        assert!((0..count).all(|_| fail(0) == late));
        let kept = |most| {
            let state = shared.splits.lock();
            state.rounds.len() <= most && state.rounds.values().all(|round| round.said.is_empty())
        };
        assert!(kept(MOST_FAILED));
        assert!((0..count).all(|_| fail(1) == late), "the other rank is told the same");
        assert!(kept(0));
        // Both are in step.
        let begun: Vec<u64> = (0..2).map(|rank| shared.splits.begin(&shared, rank, (Some(0), 0))).collect();
        for (rank, number) in begun.into_iter().enumerate() {
            let (part, own) = shared.splits.finish(&shared, rank, number).unwrap().unwrap();
            assert_eq!((part.size(), own, number), (2, rank, count as u64));
        }
        assert!(kept(0));
    }
}
