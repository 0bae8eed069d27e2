//! An operation of this rank, between its stream and the engine's thread.

use super::{
    Comm, Staging,
    split::{Answer, Request},
};
use crate::{call::Call, fingerprint::Fingerprint, span::Span};
use gpumem_core::{CollectiveCause, CollectiveError};
use std::{
    ops::Deref,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    task::Waker,
    time::Instant,
};

/// Operations that the library sees in the order in which the rank calls them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sequence {
    OfAll,
    SendTo(usize),
    ReceiveFrom(usize),
}

#[derive(Debug)]
pub(crate) enum Work {
    Call(Call),
    Split(Request),
}

#[derive(Debug)]
pub(crate) struct Operation {
    pub(crate) comm: Arc<Comm>,
    pub(crate) work: Work,
    pub(crate) of: Sequence,
    /// Its number among those.
    pub(crate) number: u64,
    /// Its number among all of this rank.
    pub(crate) sequence: u64,
    pub(crate) fingerprint: Fingerprint,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    waker: Option<Waker>,
    /// When the stream had come so far.
    since: Option<Instant>,
}

#[derive(Debug)]
enum Phase {
    /// The stream has not come so far.
    Called,
    /// The source was copied.
    Ready(Staging),
    /// The engine's thread has it.
    Taken,
    /// The stream cannot do it any more, and why.
    GivenUp(String),
    /// The outcome, until the stream takes it.
    Over(Option<Outcome>),
}

type Outcome = Result<Staging, CollectiveCause>;

/// What the engine's thread finds.
#[derive(Debug)]
pub(crate) enum Found {
    NotReady,
    Ready(Staging),
    GivenUp(String),
    /// It has failed already.
    Over,
}

impl Operation {
    pub(crate) fn new(
        comm: Arc<Comm>,
        work: Work,
        (of, number, sequence): (Sequence, u64, u64),
        fingerprint: Fingerprint,
    ) -> Self {
        let (phase, since) = match work {
            Work::Call(_) => (Phase::Called, None),
            Work::Split(_) => (Phase::Ready(Staging::default()), Some(Instant::now())),
        };
        let state = Mutex::new(State { phase, waker: None, since });
        Self { comm, work, of, number, sequence, fingerprint, state }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Within the lock of a communicator, or alone. The inbox is woken, and streams are, without it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The stream has come so far, or asks again. Copies the source once. Returns the outcome when it is over.
    ///
    /// # Safety
    /// The source is valid for reads, and not written meanwhile.
    pub(crate) unsafe fn poll(&self, waker: &Waker, source: Span) -> Option<Outcome> {
        let mut state = self.lock();
        match std::mem::replace(&mut state.phase, Phase::Taken) {
            Phase::Called => {
                let Work::Call(call) = &self.work else { return None };
                // SAFETY: passed on to the caller.
                let phase = match unsafe { Staging::fill(call, self.comm.place(), source) } {
                    Ok(staging) => Phase::Ready(staging),
                    Err(why) => Phase::GivenUp(why.to_owned()),
                };
                *state = State { phase, waker: Some(waker.clone()), since: Some(Instant::now()) };
                drop(state);
                self.comm.inbox.wake();
                None
            }
            Phase::Over(outcome) => {
                state.phase = Phase::Over(None);
                outcome
            }
            same => {
                state.phase = same;
                state.waker = Some(waker.clone());
                None
            }
        }
    }

    /// The stream cannot do it any more. If it has begun, it goes on without the stream.
    pub(crate) fn give_up(&self, why: String) {
        let mut state = self.lock();
        match &state.phase {
            Phase::Called | Phase::Ready(_) => state.phase = Phase::GivenUp(why),
            _ => return,
        }
        state.since.get_or_insert_with(Instant::now);
        drop(state);
        self.comm.inbox.wake();
    }

    /// Notes how it has ended for this rank.
    pub(crate) fn note(&self, outcome: Result<(), CollectiveCause>) -> Result<(), Box<CollectiveError>> {
        let sequences = self.sequence..self.sequence + 1;
        self.comm.of_rank(|own| match outcome {
            Ok(()) => {
                own.end(sequences);
                Ok(())
            }
            Err(cause) => Err(own.fail(self.fingerprint.call.operation, sequences, cause)),
        })
    }

    /// Takes it to be started, if it is ready.
    pub(crate) fn take(&self) -> Found {
        let mut state = self.lock();
        match std::mem::replace(&mut state.phase, Phase::Taken) {
            Phase::Ready(staging) => Found::Ready(staging),
            Phase::GivenUp(why) => Found::GivenUp(why),
            same @ Phase::Called => {
                state.phase = same;
                Found::NotReady
            }
            same => {
                state.phase = same;
                Found::Over
            }
        }
    }

    /// Whether it waits to be taken.
    pub(crate) fn is_ready(&self) -> bool {
        matches!(self.lock().phase, Phase::Ready(_) | Phase::GivenUp(_))
    }

    /// Since when the stream waits for it.
    pub(crate) fn since(&self) -> Option<Instant> {
        self.lock().since
    }

    /// It is over: the stream goes on. The first outcome stays.
    pub(crate) fn conclude(&self, outcome: Outcome) {
        match (&self.work, outcome) {
            (Work::Split(_), Err(cause)) => self.answer(Err(cause)),
            (_, outcome) => {
                self.end(Some(outcome));
            }
        }
    }

    /// As [`conclude`](Self::conclude), for a split.
    pub(crate) fn answer(&self, answer: Answer) {
        if let Work::Split(request) = &self.work
            && self.end(None)
        {
            request.answer(answer);
        }
    }

    fn end(&self, outcome: Option<Outcome>) -> bool {
        let mut state = self.lock();
        if matches!(state.phase, Phase::Over(_)) {
            return false;
        }
        state.phase = Phase::Over(outcome);
        // Woken without the lock: a stream takes its own, whose thread may be asking here.
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        true
    }
}

/// An operation in the hands of the engine. Whatever becomes of it there, it has an outcome in the end: dropped without
/// one, it fails.
#[derive(Debug)]
pub(crate) struct Owned(Arc<Operation>);

impl Owned {
    pub(crate) fn new(operation: Arc<Operation>) -> Self {
        Self(operation)
    }

    /// To look at it as long as the engine has it.
    pub(crate) fn downgrade(&self) -> Weak<Operation> {
        Arc::downgrade(&self.0)
    }
}

impl Deref for Owned {
    type Target = Operation;

    fn deref(&self) -> &Operation {
        &self.0
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // Unlocked again before it fails, which takes the lock once more.
        if !matches!(self.lock().phase, Phase::Over(_)) {
            // Takes no lock of the communicator, which the caller may hold.
            let (rank, _) = self.comm.place();
            let why = "its engine has dropped the operation".to_owned();
            self.conclude(Err(CollectiveCause::PeerLost { rank, why }));
        }
    }
}
