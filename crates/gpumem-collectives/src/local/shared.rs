//! What the ranks of a communicator share.

use super::{
    Move, Part, PendingCollective, agree::agreed, open::Open, participant::LocalParticipant,
    pending::Verdict, split::Splits,
};
use crate::{
    Options,
    call::Kind,
    call_counts::CallCounts,
    fingerprint::Fingerprint,
    rank_state::RankState,
    watchdog::{self, Watched},
};
use gpumem_core::{CollectiveCause, CollectiveError};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// Operations under way below which their list is not cleaned up.
const FEW: usize = 32;

/// What the ranks of a communicator share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) id: u64,
    pub(crate) options: Options,
    /// The rank of each rank in the communicator from which all were split.
    pub(crate) members: Vec<usize>,
    pub(crate) call_counts: Arc<CallCounts>,
    pub(crate) splits: Splits,
    state: Mutex<State>,
    /// Whether the watchdog looks after it.
    is_watched: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    ranks: Vec<Rank>,
    /// How many of them have joined.
    joined: usize,
    /// Operations of all ranks that not all have called, from the oldest.
    open: VecDeque<Open>,
    /// The number of the first of them.
    first_open: u64,
    /// Sends and receives whose other side has not called, by sender and receiver.
    pairs: BTreeMap<(usize, usize), VecDeque<Open>>,
    under_way: Vec<Weak<PendingCollective<Move>>>,
    clean_up_at: usize,
}

#[derive(Debug)]
struct Rank {
    state: RankState,
    has_joined: bool,
    /// Operations of all ranks that it has called.
    collectives: u64,
}

/// What is to be done when the lock is free: waking streams takes their locks.
type Later = Vec<(Arc<PendingCollective<Move>>, Verdict)>;

/// The slot of a rank in an operation, the operation, and the calls of all ranks, if all have called.
type Joined = (usize, Arc<PendingCollective<Move>>, Option<Vec<(Fingerprint, Part)>>);

impl State {
    /// The rank at a slot of `from` and `to` calls its side of a send.
    fn join_pair(
        &mut self,
        (from, to): (usize, usize),
        slot: usize,
        called: (Fingerprint, Part),
    ) -> Result<Joined, CollectiveCause> {
        let peer = if slot == 0 { to } else { from };
        let size = self.ranks.len();
        let waiting = self.pairs.entry((from, to)).or_default();
        // Pairs wait for the same side only: the other one would have matched the first.
        let at = waiting.iter().position(|open| open.lacks(slot)).unwrap_or(waiting.len());
        if at == waiting.len() {
            if self.ranks.get(peer).is_none_or(|other| other.state.has_left) {
                return Err(left(peer, size));
            }
            waiting.push_back(Open::new(vec![from, to]));
        }
        let Some(open) = waiting.get_mut(at) else { return Err(left(peer, size)) };
        open.called[slot] = Some(called);
        let (pending, all) = (open.pending.clone(), open.complete());
        if all.is_some() {
            waiting.remove(at);
            if waiting.is_empty() {
                self.pairs.remove(&(from, to));
            }
        }
        Ok((slot, pending, all))
    }

    /// A rank calls its next operation of all ranks.
    fn join_all(&mut self, rank: usize, called: (Fingerprint, Part)) -> Result<Joined, CollectiveCause> {
        let (number, size) = (self.ranks[rank].collectives, self.ranks.len());
        self.ranks[rank].collectives += 1;
        let absent = self.ranks.iter().position(|other| other.state.has_left && other.collectives <= number);
        if let Some(absent) = absent {
            // Those that have called it before were told when that rank left.
            return Err(left(absent, size));
        }
        let at = (number - self.first_open) as usize;
        if at == self.open.len() {
            self.open.push_back(Open::new((0..size).collect()));
        }
        let Some(open) = self.open.get_mut(at) else { return Err(left(rank, size)) };
        open.called[rank] = Some(called);
        let (pending, all) = (open.pending.clone(), open.complete());
        while self.open.front().is_some_and(|open| open.called.iter().all(Option::is_some)) {
            self.open.pop_front();
            self.first_open += 1;
        }
        Ok((rank, pending, all))
    }
}

impl Shared {
    pub(crate) fn new(members: Vec<usize>, call_counts: Arc<CallCounts>, options: Options) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let size = members.len();
        let rank = |rank| Rank { state: RankState::new((rank, size)), has_joined: false, collectives: 0 };
        let ranks = (0..size).map(rank).collect();
        Self {
            // Relaxed: the numbers only have to differ.
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            options,
            members,
            call_counts,
            splits: Splits::default(),
            state: Mutex::new(State { ranks, clean_up_at: FEW, ..State::default() }),
            is_watched: AtomicBool::new(false),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // After the splits and the table of joins; before the counts and the state of each operation.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn size(&self) -> usize {
        self.members.len()
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.options.timeout
    }

    /// A rank gets its communicator. `false` if it has one already.
    pub(crate) fn join(&self, rank: usize) -> bool {
        let mut state = self.lock();
        let Some(own) = state.ranks.get_mut(rank).filter(|own| !own.has_joined) else { return false };
        own.has_joined = true;
        // The counts are changed afterwards: the rank cannot call an operation before this call returns.
        state.joined += 1;
        drop(state);
        self.call_counts.join(self.members[rank], self.id, self.id);
        true
    }

    /// Whether no rank can join any more.
    pub(crate) fn have_all_joined(&self) -> bool {
        let state = self.lock();
        state.joined == state.ranks.len()
    }

    /// A rank calls an operation.
    ///
    /// # Errors
    /// Returns why the operation cannot succeed: then no rank moves anything in it.
    pub(crate) fn call(
        self: &Arc<Self>,
        rank: usize,
        part: Part,
    ) -> Result<LocalParticipant, Box<CollectiveError>> {
        let operation = part.call.kind.name();
        let mut later = Later::new();
        // From the number to the record under one lock: a rank's operations are met in the order in which they are recorded.
        let mut state = self.lock();
        let own = &mut state.ranks[rank].state;
        let sequence = own.begin(part.call.describe());
        let called = match own.ended() {
            Some(cause) => Err(cause),
            None => self.call_locked(&mut state, rank, part, &mut later),
        };
        drop(state);
        // Without the lock: an operation that fails wakes streams.
        for (pending, verdict) in later {
            pending.fail(verdict);
        }
        match called {
            Ok((pending, slot)) => {
                let shared = self.clone();
                Ok(LocalParticipant { pending, slot, shared, rank, operation, sequence, traced: None })
            }
            Err(cause) => Err(self.of_rank(rank, |own| own.fail(operation, sequence..sequence + 1, cause))),
        }
    }

    fn call_locked(
        &self,
        state: &mut State,
        rank: usize,
        part: Part,
        later: &mut Later,
    ) -> Result<(Arc<PendingCollective<Move>>, usize), CollectiveCause> {
        let pair = match part.call.kind {
            Kind::Send { to } => Some(((rank, to), 0)),
            Kind::Receive { from } => Some(((from, rank), 1)),
            _ => None,
        };
        let order = match pair {
            None if !self.options.concurrent => self.call_counts.call(self.members[rank], self.id),
            _ => Vec::new(),
        };
        let called = (Fingerprint::new(&part.call, order), part);
        let (ranks, (slot, pending, all)) = match pair {
            Some((ranks, slot)) => (vec![ranks.0, ranks.1], state.join_pair(ranks, slot, called)?),
            None => ((0..self.size()).collect(), state.join_all(rank, called)?),
        };
        if let Some(all) = all {
            match agreed(&ranks, all) {
                Ok(steps) => pending.set_steps(steps),
                Err(verdict) => {
                    let cause = verdict.of(slot);
                    later.push((pending, verdict));
                    return Err(cause);
                }
            }
        }
        state.note(&pending);
        Ok((pending, slot))
    }

    /// Looks at the state of a rank, or changes it.
    pub(crate) fn of_rank<R>(&self, rank: usize, look: impl FnOnce(&mut RankState) -> R) -> R {
        look(&mut self.lock().ranks[rank].state)
    }

    /// Fails all operations whose bytes are not being moved, and all later ones.
    pub(crate) fn revoke(&self, cause: CollectiveCause) {
        let (under_way, open) = {
            // Taken out under the lock, failed without it. The counts change within it, so that no operation is counted after
            // this.
            let mut state = self.lock();
            for rank in &mut state.ranks {
                rank.state.revoked.get_or_insert_with(|| cause.clone());
            }
            // From here on the ranks call different numbers of operations of it.
            self.members.iter().for_each(|rank| self.call_counts.leave(*rank, self.id));
            // The numbers of later operations are not looked at.
            let open = (std::mem::take(&mut state.open), std::mem::take(&mut state.pairs));
            (std::mem::take(&mut state.under_way), open)
        };
        for pending in under_way.iter().filter_map(Weak::upgrade) {
            pending.fail(Verdict::One(cause.clone()));
        }
        // Without the lock: what is open wakes its ranks when it is dropped.
        drop(open);
        // Without the lock: who waits for a split looks at the communicator within the lock of the splits.
        self.splits.wake();
    }

    /// A rank gives its communicator up. What it has called goes on; what it has not called fails.
    pub(crate) fn leave(&self, rank: usize) {
        let mut later = Later::new();
        // Operations are collected under the lock and failed without it: they wake streams.
        let mut state = self.lock();
        let Some(own) = state.ranks.get_mut(rank) else { return };
        own.state.has_left = true;
        let verdict = Verdict::One(left(rank, self.size()));
        let open = state.open.iter().chain(state.pairs.values().flatten());
        let lacking = open.filter(|open| open.lacks_call_of(rank));
        later.extend(lacking.map(|open| (open.pending.clone(), verdict.clone())));
        drop(state);
        self.call_counts.leave(self.members[rank], self.id);
        for (pending, verdict) in later {
            pending.fail(verdict);
        }
        self.splits.wake();
    }

    /// Tells whether one of these ranks has given its communicator up.
    pub(crate) fn has_left(&self, ranks: &[usize]) -> Option<CollectiveCause> {
        let state = self.lock();
        let rank =
            ranks.iter().find(|rank| state.ranks.get(**rank).is_some_and(|rank| rank.state.has_left))?;
        Some(left(*rank, self.size()))
    }

    /// Has the deadlines kept of operations that are under way. If that cannot be, they fail.
    pub(crate) fn watch(self: &Arc<Self>) {
        // AcqRel: with the watchdog's store: who finds it set knows that a look is still to come.
        if !self.is_watched.swap(true, Ordering::AcqRel) {
            let own = Arc::downgrade(self);
            if let Err(cause) = watchdog::watch(own) {
                self.is_watched.store(false, Ordering::Release);
                self.revoke(cause);
            }
        }
    }
}

impl Watched for Shared {
    fn look(self: Arc<Self>) -> bool {
        // Unlocked before a deadline is acted on: `revoke` takes it again.
        let mut state = self.lock();
        state.clean_up();
        if state.under_way.is_empty() {
            // Release, under the lock: an operation that is noted after this look sees that it has to ask for another.
            self.is_watched.store(false, Ordering::Release);
            return false;
        }
        let (now, after) = (Instant::now(), self.options.timeout);
        let late = state.under_way.iter().filter_map(Weak::upgrade).find_map(|pending| {
            // The lock of the operation, within that of the communicator.
            let (since, missing) = pending.absent()?;
            (now.saturating_duration_since(since) >= after).then_some(missing)
        });
        drop(state);
        if let Some(missing) = late {
            self.revoke(CollectiveCause::Timeout { after, missing });
        }
        true
    }

    fn timeout(&self) -> Duration {
        self.options.timeout
    }
}

impl State {
    /// Adds an operation to those that are under way.
    fn note(&mut self, pending: &Arc<PendingCollective<Move>>) {
        if self.under_way.len() >= self.clean_up_at {
            self.clean_up();
            self.clean_up_at = FEW.max(2 * self.under_way.len());
        }
        let last =
            self.under_way.last().is_some_and(|last| std::ptr::eq(last.as_ptr(), Arc::as_ptr(pending)));
        if !last {
            self.under_way.push(Arc::downgrade(pending));
        }
    }

    fn clean_up(&mut self) {
        self.under_way.retain(|pending| pending.upgrade().is_some_and(|pending| !pending.is_past()));
    }
}

fn left(rank: usize, size: usize) -> CollectiveCause {
    let why = if rank < size { "its communicator was dropped" } else { "there is no such rank" };
    CollectiveCause::PeerLost { rank, why: why.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{call::Call, span::Span};

    #[test]
    fn nothing_is_kept_of_operations_that_fail_because_a_rank_has_left() {
        let shared = Arc::new(Shared::new(vec![0, 1], Arc::new(CallCounts::new(2)), Options::new()));
        shared.join(0);
        shared.join(1);
        shared.leave(1);
        for _ in 0..3 {
            let call = Call::new::<u8>(Kind::Barrier, 0);
            let part =
                Part { call, queue: ("", 0, 0), source: Span::default(), destination: Span::default() };
            assert!(shared.call(0, part).is_err());
        }
        assert!(shared.lock().open.is_empty());
    }
}
