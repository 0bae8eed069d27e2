//! An operation of several ranks, until it is over.
//!
//! Each rank has a slot, and takes it when its stream has come so far. The last to come moves the bytes of all, on the
//! thread that runs its stream; the others are woken. No thread waits for another one.

use crate::fingerprint::Disagreement;
use gpumem_core::CollectiveCause;
use smallvec::SmallVec;
use std::{
    fmt,
    sync::Arc,
    task::{Poll, Waker},
    time::Instant,
};

#[cfg(loom)]
use loom::sync::{Condvar, Mutex, MutexGuard};
#[cfg(not(loom))]
use std::sync::{Condvar, Mutex, MutexGuard};

/// How an operation failed, for each slot.
#[derive(Debug, Clone)]
pub(crate) enum Verdict {
    One(CollectiveCause),
    Each(Arc<Disagreement>),
}

impl Verdict {
    pub(crate) fn of(&self, slot: usize) -> CollectiveCause {
        match self {
            Verdict::One(cause) => cause.clone(),
            Verdict::Each(found) => found.of(slot),
        }
    }
}

#[derive(Debug)]
enum Phase {
    /// Not all ranks have come. No memory is used.
    Gathering,
    /// The last rank moves the bytes. All ranks stay until that is over.
    Running,
    Over(Option<Verdict>),
}

/// Where the part of a rank stands: the number of its stream, and that of the submission there.
pub(crate) type Standing = (u64, u64);

#[derive(Debug)]
enum Slot {
    Free,
    Taken(Waker),
}

/// An operation of several ranks, in steps of type `P`.
pub(crate) struct PendingCollective<P> {
    /// The rank of each slot.
    ranks: Vec<usize>,
    run: fn(&[P]),
    // Its own lock, so that ranks of different operations do not meet.
    state: Mutex<State<P>>,
    is_over: Condvar,
}

struct State<P> {
    phase: Phase,
    steps: Vec<P>,
    slots: Vec<Slot>,
    taken: usize,
    /// Where the parts of the slots that have been enqueued stand.
    enqueued: SmallVec<[(usize, Standing); 4]>,
    /// When the first rank came.
    since: Option<Instant>,
    /// When the last one came, and when the bytes had been moved.
    times: [Option<Instant>; 2],
}

impl<P> PendingCollective<P> {
    /// An operation of these ranks. `run` gets the steps when all have come.
    pub(crate) fn new(ranks: Vec<usize>, run: fn(&[P])) -> Self {
        let slots = ranks.iter().map(|_| Slot::Free).collect();
        let state = State {
            phase: Phase::Gathering,
            steps: Vec::new(),
            slots,
            taken: 0,
            enqueued: SmallVec::new(),
            since: None,
            times: [None; 2],
        };
        Self { ranks, run, state: Mutex::new(state), is_over: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State<P>> {
        // Within the lock of the communicator, or alone. Streams are woken, and bytes moved, without it.
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The rank of each slot.
    pub(crate) fn ranks(&self) -> &[usize] {
        &self.ranks
    }

    /// Sets the steps, before the last rank comes.
    pub(crate) fn set_steps(&self, steps: Vec<P>) {
        self.lock().steps = steps;
    }

    /// Notes where the part of a slot stands. Returns where those of other ranks do, as far as they have been enqueued and the
    /// operation has not begun.
    pub(crate) fn note_enqueued(&self, slot: usize, at: Standing) -> SmallVec<[(usize, Standing); 4]> {
        let mut state = self.lock();
        if !matches!(state.phase, Phase::Gathering) {
            return SmallVec::new();
        }
        let others = state.enqueued.iter().map(|(other, at)| (self.ranks[*other], *at)).collect();
        state.enqueued.push((slot, at));
        others
    }

    /// Takes a slot, or asks again. The last rank to come does the work and wakes the others.
    pub(crate) fn arrive(&self, slot: usize, waker: &Waker) -> Poll<Result<(), CollectiveCause>> {
        let mut state = self.lock();
        if let Phase::Over(verdict) = &state.phase {
            return Poll::Ready(verdict.as_ref().map_or(Ok(()), |verdict| Err(verdict.of(slot))));
        }
        let Some(own) = state.slots.get_mut(slot) else { return Poll::Pending };
        // The newest waker counts: the stream may have moved to another thread.
        if let Slot::Free = std::mem::replace(own, Slot::Taken(waker.clone())) {
            state.taken += 1;
            state.since.get_or_insert_with(Instant::now);
        }
        if state.taken < state.slots.len() || matches!(state.phase, Phase::Running) {
            return Poll::Pending;
        }
        state.phase = Phase::Running;
        state.times[0] = Some(Instant::now());
        // Taken out, so that the bytes move without the lock: other ranks may ask meanwhile.
        let steps = std::mem::take(&mut state.steps);
        drop(state);
        let mut end = End { pending: self, slot, is_done: false };
        (self.run)(&steps);
        end.is_done = true;
        Poll::Ready(Ok(()))
    }

    /// Ends the operation with a failure, unless it is over or the bytes are being moved. Tells whether it has.
    pub(crate) fn fail(&self, verdict: Verdict) -> bool {
        let state = self.lock();
        let is_gathering = matches!(state.phase, Phase::Gathering);
        if is_gathering {
            self.conclude(state, Some(verdict), None);
        }
        is_gathering
    }

    /// The rank of this slot does not come, or its memory is given up: the others fail with `cause`. Returns when no
    /// thread uses the memory any more, with the failure of the operation for this slot.
    pub(crate) fn leave(&self, slot: usize, cause: CollectiveCause) -> Option<CollectiveCause> {
        let mut state = self.lock();
        loop {
            match &state.phase {
                Phase::Gathering => {
                    self.conclude(state, Some(Verdict::One(cause.clone())), None);
                    return Some(cause);
                }
                Phase::Running => {
                    // The memory is used until the bytes have moved, however long that takes.
                    state = self.is_over.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
                }
                Phase::Over(verdict) => return verdict.as_ref().map(|verdict| verdict.of(slot)),
            }
        }
    }

    fn conclude(&self, mut state: MutexGuard<'_, State<P>>, verdict: Option<Verdict>, own: Option<usize>) {
        state.phase = Phase::Over(verdict);
        state.times[1] = Some(Instant::now());
        // Wakers are called without the lock: each takes the lock of its stream, whose thread may be asking here.
        let slots = std::mem::take(&mut state.slots);
        drop(state);
        self.is_over.notify_all();
        for (slot, taken) in slots.into_iter().enumerate() {
            if let Slot::Taken(waker) = taken
                && own != Some(slot)
            {
                waker.wake();
            }
        }
    }

    /// When the last rank came, and when the bytes had been moved, once they have been.
    pub(crate) fn times(&self) -> Option<[Instant; 2]> {
        let [began, ended] = self.lock().times;
        Some([began?, ended?])
    }

    /// Whether it is over, or the bytes are being moved.
    pub(crate) fn is_past(&self) -> bool {
        !matches!(self.lock().phase, Phase::Gathering)
    }

    /// When the first rank came, and the ranks that are missing, while there are any.
    pub(crate) fn absent(&self) -> Option<(Instant, Vec<usize>)> {
        let state = self.lock();
        let since = state.since.filter(|_| matches!(state.phase, Phase::Gathering))?;
        let slots = self.ranks.iter().zip(&state.slots);
        let free = slots.filter(|(_, slot)| matches!(slot, Slot::Free));
        Some((since, free.map(|(rank, _)| *rank).collect()))
    }
}

/// Ends the operation when the work is over, also if it panics.
struct End<'a, P> {
    pending: &'a PendingCollective<P>,
    slot: usize,
    is_done: bool,
}

impl<P> Drop for End<'_, P> {
    fn drop(&mut self) {
        let why = "moving the bytes panicked".to_owned();
        let failed = CollectiveCause::PeerLost { rank: self.pending.ranks[self.slot], why };
        // Bytes may have been moved in part: it has failed for all.
        let verdict = (!self.is_done).then_some(Verdict::One(failed));
        // Taken anew: the bytes were moved without it.
        self.pending.conclude(self.pending.lock(), verdict, Some(self.slot));
    }
}

impl<P> fmt::Debug for PendingCollective<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingCollective").finish_non_exhaustive()
    }
}
