//! What the ranks of one process call, compared as they call it: the library compares nothing, and may write past an array that is
//! shorter than another rank's call says. No rank waits for another: the one that calls last finds out.
//!
//! It pairs sends and receives in the order of the calls, also those of which gathers, scatters and exchanges of all ranks consist. So
//! these are compared twice: with each other, and between any two ranks with what these send and receive otherwise.

use super::calls::in_order;
use crate::{
    Options,
    call::{Call, Kind, Prepared},
    fingerprint::{Fingerprint, disagreement},
};
use gpumem_core::{Backend, CollectiveCause, process::PerProcess};
use smallvec::SmallVec;
use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

/// The communicators of the process, by their numbers. A forked child has none.
static COMMUNICATORS: PerProcess<Mutex<HashMap<u64, Weak<Peers>>>> = PerProcess::new(Mutex::default);

/// A rank of the process, on a device of whichever backend.
pub(super) trait Peer: Send + Sync {
    /// Fails what is under way, and all later calls. Never waits.
    fn end(self: Arc<Self>, cause: CollectiveCause);

    /// As [`end`](Self::end), if work under way has failed. Whether that has ended it, and the library holds something for it still.
    fn end_if_failed(self: Arc<Self>) -> bool;

    /// Waits until the library holds nothing for it, at most so long.
    fn wait_closed(&self, most: Duration);
}

/// The ranks of the process, of all communicators.
pub(super) fn all_peers() -> Vec<Arc<dyn Peer>> {
    // Only references are taken under the locks: the last one of a rank drops arrays.
    let all = COMMUNICATORS.get().lock().unwrap_or_else(PoisonError::into_inner);
    let all: Vec<Arc<Peers>> = all.values().filter_map(Weak::upgrade).collect();
    all.iter()
        .flat_map(|peers| peers.lock().ranks.values().filter_map(Weak::upgrade).collect::<Vec<_>>())
        .collect()
}

/// The ranks of a communicator that the process has.
pub(super) struct Peers {
    /// The number of ranks, also of those of other processes, and the options of each.
    size: usize,
    options: Options,
    /// How many there are. One that is alone has nothing to compare.
    count: AtomicUsize,
    /// A leaf: no other lock is taken under it.
    calls: Mutex<Calls>,
}

#[derive(Default)]
struct Calls {
    ranks: BTreeMap<usize, Weak<dyn Peer>>,
    /// Operations of all ranks.
    all: Queue,
    /// What has sends and receives, by the rank that sends and the one that receives.
    pairs: HashMap<[usize; 2], Queue>,
}

/// Calls that meet in the order in which they are made.
#[derive(Default)]
struct Queue {
    /// How many each end has made. The ends are the ranks, or the sender and the receiver.
    counts: BTreeMap<usize, u64>,
    /// The number of the first ones that are kept.
    first: u64,
    /// Those that some end has still to make.
    kept: VecDeque<Meeting>,
}

/// Calls that meet, with their ranks.
#[derive(Default)]
struct Meeting {
    ranks: SmallVec<[usize; 4]>,
    /// One, as long as it stands for those of all ranks: then nothing is allocated.
    calls: SmallVec<[Fingerprint; 1]>,
}

/// Why the calls of a meeting fail, by their ranks. The last one was made last.
type Unfit = Vec<(usize, CollectiveCause)>;

/// Calls that do not fit together.
pub(super) struct Mismatch {
    /// Why the call that was made last fails.
    pub(super) own: CollectiveCause,
    /// The other ranks of the process, and why their communicators end.
    others: Vec<(Arc<dyn Peer>, CollectiveCause)>,
}

impl Peers {
    /// Those of a communicator. Returns why a rank of this size and options is none of them.
    pub(super) fn of(communicator: u64, size: usize, options: &Options) -> Result<Arc<Self>, &'static str> {
        let mut all = COMMUNICATORS.get().lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, peers| peers.strong_count() > 0);
        let Some(peers) = all.get(&communicator).and_then(Weak::upgrade) else {
            let (count, calls) = (AtomicUsize::new(0), Mutex::default());
            let peers = Arc::new(Self { size, options: options.clone(), count, calls });
            all.insert(communicator, Arc::downgrade(&peers));
            return Ok(peers);
        };
        match (peers.size == size, peers.options == *options) {
            (false, _) => Err("another rank joined with another number of ranks"),
            (_, false) => Err("another rank joined with other options"),
            _ => Ok(peers),
        }
    }

    /// Adds a rank, before the library knows it: until all ranks have joined, none can call. Returns why it is refused.
    pub(super) fn add(&self, rank: usize, peer: Weak<dyn Peer>) -> Result<(), &'static str> {
        let mut calls = self.lock();
        // Also where that one has gone: the library joins no rank a second time.
        if calls.ranks.contains_key(&rank) {
            return Err("another communicator has joined as this rank");
        }
        calls.ranks.insert(rank, peer);
        // Relaxed: a rank calls when the library has joined all, and so orders their threads.
        self.count.store(calls.ranks.len(), Ordering::Relaxed);
        Ok(())
    }

    /// Compares what a rank is about to call with what the others of the process have called.
    #[inline]
    pub(super) fn compare<B: Backend>(
        &self,
        rank: usize,
        calls: &[Prepared<'_, B>],
    ) -> Result<(), Box<Mismatch>> {
        // Relaxed: as in `add`.
        if self.count.load(Ordering::Relaxed) < 2 {
            return Ok(());
        }
        let next: SmallVec<[&Call; 4]> = in_order(calls).map(|prepared| &prepared.call).collect();
        let mut calls = self.lock();
        calls.compare(rank, &next).map_err(|unfit| Box::new(calls.mismatch(rank, &unfit)))
    }

    fn lock(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Calls {
    fn compare(&mut self, rank: usize, calls: &[&Call]) -> Result<(), Unfit> {
        let all: SmallVec<[&Call; 4]> =
            calls.iter().filter(|call| !call.kind.is_of_pair()).copied().collect();
        let ranks = self.ranks.len();
        if all.len() > 1
            && let Some(group) = Fingerprint::of_group(&all)
        {
            self.all.add((rank, rank), group, ranks)?;
        }
        for call in calls {
            let fingerprint = || Fingerprint::new(call, Vec::new());
            if !call.kind.is_of_pair() {
                self.all.add((rank, rank), fingerprint(), ranks)?;
            }
            for (ends, end) in self.transfers(&call.kind, rank) {
                // Without the blocks, which have been compared.
                let fingerprint = fingerprint().among(&[]);
                self.pairs.entry(ends).or_default().add((rank, end), fingerprint, ends.len())?;
            }
        }
        Ok(())
    }

    /// The sends and receives of a rank in an operation, with ranks of the process: who sends and who receives, and which of them it is.
    fn transfers(&self, kind: &Kind, rank: usize) -> Vec<([usize; 2], usize)> {
        let all = || self.ranks.keys().copied();
        let (send, receive) = (|to| ([rank, to], 0), |from| ([from, rank], 1));
        let mut found: Vec<_> = match kind {
            Kind::Send { to } => vec![send(*to)],
            Kind::Receive { from } => vec![receive(*from)],
            Kind::AllToAll | Kind::AllToAllV { .. } => all().map(send).chain(all().map(receive)).collect(),
            Kind::Gather { root } if *root == rank => all().map(receive).chain([send(rank)]).collect(),
            Kind::Gather { root } => vec![send(*root)],
            Kind::Scatter { root } if *root == rank => all().map(send).chain([receive(rank)]).collect(),
            Kind::Scatter { root } => vec![receive(*root)],
            _ => Vec::new(),
        };
        found.retain(|(ends, _)| ends.iter().all(|rank| self.ranks.contains_key(rank)));
        found
    }

    /// What each rank of the process is told.
    fn mismatch(&self, rank: usize, unfit: &Unfit) -> Mismatch {
        let lost =
            CollectiveCause::PeerLost { rank, why: "its call does not fit that of another rank".into() };
        let of = |rank: usize| {
            let found = unfit.iter().rev().find(|(of, _)| *of == rank);
            found.map_or_else(|| lost.clone(), |(_, cause)| cause.clone())
        };
        let others = self.ranks.iter().filter(|(other, _)| **other != rank);
        let others = others.filter_map(|(other, peer)| Some((peer.upgrade()?, of(*other)))).collect();
        Mismatch { own: of(rank), others }
    }
}

impl Queue {
    /// Adds the next call of an end of so many, and compares it with those that it meets.
    fn add(&mut self, (rank, end): (usize, usize), call: Fingerprint, ends: usize) -> Result<(), Unfit> {
        let count = self.counts.entry(end).or_default();
        let at = (*count - self.first) as usize;
        *count += 1;
        if at == self.kept.len() {
            self.kept.push_back(Meeting::default());
        }
        if let Some(meeting) = self.kept.get_mut(at) {
            meeting.add(rank, call)?;
        }
        // An end makes its calls in order, so no later meeting is complete before an earlier one.
        if self.kept.front().is_some_and(|meeting| meeting.ranks.len() == ends) {
            self.kept.pop_front();
            self.first += 1;
        }
        Ok(())
    }
}

impl Meeting {
    fn add(&mut self, rank: usize, call: Fingerprint) -> Result<(), Unfit> {
        self.ranks.push(rank);
        if let [first] = &*self.calls {
            // As nearly always. A send and its receive, which are told of in other words, meet no third call.
            if first.is_same(&call) {
                return Ok(());
            }
            let first = first.clone();
            self.calls.resize(self.ranks.len() - 1, first);
        }
        self.calls.push(call);
        let calls: Vec<_> = self.calls.iter().map(|call| call.among(&self.ranks)).collect();
        let Some(found) = disagreement(&self.ranks, &calls) else { return Ok(()) };
        Err(self.ranks.iter().enumerate().map(|(slot, rank)| (*rank, found.of(slot))).collect())
    }
}

impl Mismatch {
    /// Ends the communicators of the other ranks.
    pub(super) fn tell(self) -> CollectiveCause {
        for (peer, cause) in self.others {
            peer.end(cause);
        }
        self.own
    }
}

impl fmt::Debug for Peers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peers").field("count", &self.count).finish_non_exhaustive()
    }
}
