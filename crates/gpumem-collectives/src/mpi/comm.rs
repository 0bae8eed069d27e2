//! A communicator of this process, as its callers and the engine's thread share it.

use super::{
    Operation,
    abi::Object,
    control::{Event, PeerStatus},
    inbox::{Inbox, Message},
    operation::{Owned, Sequence, Work},
    split::Request,
};
use crate::{
    Options,
    call::{Call, Kind},
    call_counts::CallCounts,
    fingerprint::Fingerprint,
    identity::stable_hash,
    rank_state::RankState,
};
use gpumem_core::{CollectiveCall, CollectiveCause, CollectiveError};
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU64, Ordering},
};

/// The next [key](Comm::key).
static NEXT_KEY: AtomicU64 = AtomicU64::new(0);

#[derive(Debug)]
pub(crate) struct Comm {
    /// Which communicator of this process it is, for the engine. No other one ever has its number.
    pub(crate) key: u64,
    /// The same number on all ranks, to compare what they call. It is a hash of what callers choose, so two communicators may have one.
    pub(crate) id: u64,
    pub(crate) raw: Object,
    rank: usize,
    size: usize,
    pub(crate) options: Options,
    pub(crate) call_counts: Arc<CallCounts>,
    pub(crate) inbox: Arc<Inbox>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    rank: RankState,
    collectives: u64,
    /// Sends to each rank, and receives from it.
    sends: Vec<u64>,
    receives: Vec<u64>,
    /// What each rank has told last.
    status: Vec<Option<PeerStatus>>,
}

impl Comm {
    pub(crate) fn new(
        (id, raw): (u64, Object),
        (rank, size): (usize, usize),
        options: Options,
        call_counts: Arc<CallCounts>,
        inbox: Arc<Inbox>,
    ) -> Arc<Self> {
        let state = State {
            rank: RankState::new((rank, size)),
            collectives: 0,
            sends: vec![0; size],
            receives: vec![0; size],
            status: vec![None; size],
        };
        // Relaxed: only that each number is given once matters.
        let key = NEXT_KEY.fetch_add(1, Ordering::Relaxed);
        call_counts.join(0, key, id);
        Arc::new(Self { key, id, raw, rank, size, options, call_counts, inbox, state: Mutex::new(state) })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // After the end's order; before the inbox, and the state of an operation that the inbox drops.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This rank, and the number of ranks.
    pub(crate) fn place(&self) -> (usize, usize) {
        (self.rank, self.size)
    }

    /// The other ranks.
    pub(crate) fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let rank = self.rank;
        (0..self.size).filter(move |other| *other != rank)
    }

    /// This rank calls an operation.
    ///
    /// # Errors
    /// Returns why the operation cannot succeed.
    pub(crate) fn call(self: &Arc<Self>, call: Call) -> Result<Arc<Operation>, Box<CollectiveError>> {
        let of = match call.kind {
            Kind::Send { to } => Sequence::SendTo(to),
            Kind::Receive { from } => Sequence::ReceiveFrom(from),
            _ => Sequence::OfAll,
        };
        let order = match of {
            Sequence::OfAll if !self.options.concurrent => self.call_counts.call(0, self.key),
            _ => Vec::new(),
        };
        let fingerprint = Fingerprint::new(&call, order);
        self.add(of, Work::Call(call), fingerprint)
    }

    /// This rank begins a split.
    pub(crate) fn split(self: &Arc<Self>, request: Request) -> Result<Arc<Operation>, Box<CollectiveError>> {
        let fingerprint = Fingerprint::of_name(CollectiveCall::new("split", "u8", 0), 0);
        self.add(Sequence::OfAll, Work::Split(request), fingerprint)
    }

    fn add(
        self: &Arc<Self>,
        of: Sequence,
        work: Work,
        fingerprint: Fingerprint,
    ) -> Result<Arc<Operation>, Box<CollectiveError>> {
        let operation = fingerprint.call.operation;
        // From the number to the inbox under one lock: the engine sees operations in the order of their numbers.
        let mut state = self.lock();
        let sequence = state.rank.begin(fingerprint.call.clone());
        let refused = state.rank.ended().or_else(|| state.left(of));
        if let Some(cause) = refused {
            return Err(state.rank.fail(operation, sequence..sequence + 1, cause));
        }
        let number = state.count(of);
        let added = Operation::new(self.clone(), work, (of, number, sequence), fingerprint);
        let added = Arc::new(added);
        // Under the lock: the engine's thread sees the operations in their order.
        self.inbox.push(Message::Add(Owned::new(added.clone())));
        Ok(added)
    }

    /// Looks at the state of this rank, or changes it. Waits for no call of MPI, which only the engine's thread makes.
    pub(crate) fn of_rank<R>(&self, look: impl FnOnce(&mut RankState) -> R) -> R {
        look(&mut self.lock().rank)
    }

    /// Refuses all later operations. The first cause stays.
    pub(crate) fn revoke(&self, cause: CollectiveCause) {
        // The counts are changed after it: later calls are refused already.
        self.lock().rank.revoked.get_or_insert(cause);
        // From here on the ranks call different numbers of operations of it.
        self.call_counts.leave(0, self.key);
    }

    /// How far this rank has come, for another one.
    pub(crate) fn status(&self, event: Event, (pending, waiting): (u64, u64), rank: usize) -> PeerStatus {
        let state = self.lock();
        let of = |counts: &[u64]| counts.get(rank).copied().unwrap_or(0);
        let (sends, receives) = (of(&state.sends), of(&state.receives));
        PeerStatus { event, collectives: state.collectives, pending, waiting, sends, receives }
    }

    /// Notes what another rank has told.
    pub(crate) fn note(&self, rank: usize, status: PeerStatus) {
        if let Some(known) = self.lock().status.get_mut(rank) {
            *known = Some(status);
        }
    }

    /// What each rank has told last.
    pub(crate) fn statuses(&self) -> Vec<Option<PeerStatus>> {
        self.lock().status.clone()
    }

    /// The ranks without which an operation cannot take place: they have not called it, or their streams have not come to it, as far
    /// as this rank knows. `waiting` is what the stream of this rank has not come to.
    pub(crate) fn missing(&self, of: Sequence, number: u64, waiting: u64) -> Vec<usize> {
        let (state, rank) = (self.lock(), self.rank);
        // The numbers of what the rank has come to.
        let calls = |status: &PeerStatus| match of {
            Sequence::OfAll => status.collectives.min(status.waiting),
            Sequence::SendTo(_) => status.receives,
            Sequence::ReceiveFrom(_) => status.sends,
        };
        let concerns = |other: usize| match of {
            Sequence::OfAll => other != rank,
            Sequence::SendTo(peer) | Sequence::ReceiveFrom(peer) => other == peer && other != rank,
        };
        // Of a rank that has told nothing, nothing is known: it counts as missing.
        let mut missing: Vec<usize> = (0..self.size)
            .filter(|other| concerns(*other))
            .filter(|other| state.status[*other].as_ref().is_none_or(|status| calls(status) <= number))
            .collect();
        if of == Sequence::OfAll && state.collectives.min(waiting) <= number {
            missing.push(rank);
            missing.sort_unstable();
        }
        missing
    }

    /// Why an operation fails because a rank has left, if it does.
    pub(crate) fn left(&self, of: Sequence, number: u64) -> Option<CollectiveCause> {
        let state = self.lock();
        state.absent(of, number).map(left)
    }

    /// The number of a part of this communicator, the same one on its ranks.
    pub(crate) fn part(&self, split: u64, colour: u64) -> u64 {
        stable_hash([self.id, split, colour].into_iter().flat_map(u64::to_le_bytes))
    }
}

/// A communicator for a caller that may have stopped waiting for it: then this rank leaves it, and the others are told.
#[derive(Debug)]
pub(crate) struct Unclaimed {
    comm: Arc<Comm>,
    is_claimed: bool,
}

impl Unclaimed {
    pub(crate) fn new(comm: Arc<Comm>) -> Self {
        Self { comm, is_claimed: false }
    }

    pub(crate) fn claim(mut self) -> Arc<Comm> {
        self.is_claimed = true;
        self.comm.clone()
    }
}

impl Drop for Unclaimed {
    fn drop(&mut self) {
        if !self.is_claimed {
            self.comm.call_counts.leave(0, self.comm.key);
            // The others would wait for this rank until their deadline.
            self.comm.inbox.push(Message::Leave(self.comm.key));
        }
    }
}

impl State {
    /// Counts a call. Returns its number.
    fn count(&mut self, of: Sequence) -> u64 {
        let counter = match of {
            Sequence::OfAll => Some(&mut self.collectives),
            Sequence::SendTo(rank) => self.sends.get_mut(rank),
            Sequence::ReceiveFrom(rank) => self.receives.get_mut(rank),
        };
        counter.map_or(0, |counter| {
            *counter += 1;
            *counter - 1
        })
    }

    /// Why the next call fails because a rank has left, if it does.
    fn left(&self, of: Sequence) -> Option<CollectiveCause> {
        let number = match of {
            Sequence::OfAll => self.collectives,
            Sequence::SendTo(rank) => *self.sends.get(rank)?,
            Sequence::ReceiveFrom(rank) => *self.receives.get(rank)?,
        };
        self.absent(of, number).map(left)
    }

    /// A rank that has left before it called the operation.
    fn absent(&self, of: Sequence, number: u64) -> Option<usize> {
        let has_left = |rank: usize, calls: fn(&PeerStatus) -> u64| {
            let status = self.status.get(rank).and_then(Option::as_ref);
            // Only the last status counts, which says how far it came.
            status.is_some_and(|status| status.event.is_left() && calls(status) <= number)
        };
        match of {
            Sequence::OfAll => {
                (0..self.status.len()).find(|rank| has_left(*rank, |status| status.collectives))
            }
            Sequence::SendTo(rank) => has_left(rank, |status| status.receives).then_some(rank),
            Sequence::ReceiveFrom(rank) => has_left(rank, |status| status.sends).then_some(rank),
        }
    }
}

fn left(rank: usize) -> CollectiveCause {
    CollectiveCause::PeerLost { rank, why: "its communicator was dropped".to_owned() }
}
