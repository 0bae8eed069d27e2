//! The state of one rank's communicator.

use super::{check::Buffers, device_order::DeviceOrder, peers::Peers, register::Registrations};
use crate::{Options, rank_state::RankState, watchdog};
use gpumem_core::{Backend, CollectiveCause, CollectiveError, Error, MemoryUse, Result};
use gpumem_runtime::{
    Device, DeviceArray,
    internal::{Timeline, may_block},
};
use gpumem_sys::nccl::{Library, ncclComm_t};
use ndarray::Ix1;
use smallvec::SmallVec;
use std::{
    collections::VecDeque,
    fmt,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// Operations under way from which on a call looks which are done.
const MANY: usize = 256;
/// Calls from one question to the next: asking the driver takes longer than the rest of a call.
const CALLS_BETWEEN: usize = 64;

/// The library's communicator. It may be used on any thread.
#[derive(Debug, Clone, Copy)]
pub(super) struct Handle(pub(super) ncclComm_t);

// SAFETY: the library's functions may be called on any thread; the link sees to it that no call follows its end.
unsafe impl Send for Handle {}

/// How far a communicator has come.
#[derive(Debug, Clone, Copy)]
pub(super) enum Phase {
    /// A thread is setting it up.
    Joining,
    Ready(Handle),
    /// It is being ended, or never came about.
    Closing,
    /// The library holds nothing for it any more.
    Closed,
}

/// An operation that is being called, or that is under way.
#[derive(Debug, Clone, Copy)]
pub(super) struct IssuedCall {
    pub(super) operation: &'static str,
    /// The number of its first part, and how many parts it has.
    pub(super) sequence: u64,
    pub(super) parts: u64,
}

/// What operations write, or what copies after them write.
pub(super) type Writes = SmallVec<[MemoryUse; 1]>;

/// The stream and the submission of the last operation. Changed only by the thread that has [`Link::order`].
#[derive(Default)]
pub(super) struct LastSubmission {
    timeline: AtomicU64,
    submission: AtomicU64,
}

impl LastSubmission {
    /// Whether nothing has been enqueued. No timeline has the number 0.
    pub(super) fn is_none(&self) -> bool {
        // Relaxed: who has the order of the calls reads what its holder before has written. Without it, only a hint: the
        // caller waits for the ranks once more.
        self.timeline.load(Ordering::Relaxed) == 0
    }

    /// The submission, if it was on this stream.
    pub(super) fn on<B: Backend>(&self, timeline: &Timeline<B>) -> Option<u64> {
        // Relaxed: under the order of the calls, whose lock orders all that is written here.
        let is_same = self.timeline.load(Ordering::Relaxed) == timeline.id();
        is_same.then(|| self.submission.load(Ordering::Relaxed))
    }

    pub(super) fn note<B: Backend>(&self, timeline: &Timeline<B>, submission: u64) {
        // Relaxed: as in `on`. Who reads the two without the order looks at the first alone.
        self.timeline.store(timeline.id(), Ordering::Relaxed);
        self.submission.store(submission, Ordering::Relaxed);
    }
}

/// An operation that is under way.
pub(super) struct Pending<B: Backend> {
    pub(super) called: IssuedCall,
    pub(super) timeline: Arc<Timeline<B>>,
    pub(super) submission: u64,
    pub(super) writes: Writes,
}

impl<B: Backend> Pending<B> {
    /// Returns its failure, or that of work before it: what it has moved is not known then.
    fn check(&self) -> Result<()> {
        self.timeline.check_submissions(self.submission..=self.submission)
    }

    /// Whether it is known to have ended well.
    fn is_done(&self) -> bool {
        self.timeline.is_over(self.submission) && self.check().is_ok()
    }
}

pub(super) struct State<B: Backend> {
    pub(super) rank: RankState,
    pub(super) phase: Phase,
    /// Whether a thread is inside the library.
    pub(super) is_calling: bool,
    /// Whether the ranks have agreed on a call that this one has still to make.
    pub(super) has_agreed: bool,
    pub(super) pending: VecDeque<Pending<B>>,
    /// From so many of them on, a call looks which are done.
    pub(super) prune_from: usize,
    /// When an operation was last seen to be done, or was begun with nothing else under way.
    pub(super) progress: Instant,
    pub(super) is_watched: bool,
    /// What is to be aborted once a thread can be started for it, and whether that was reported.
    pub(super) to_abort: Option<Handle>,
    pub(super) reported_no_thread: bool,
    /// Whether it was ended because work before its operations had failed.
    pub(super) is_behind: bool,
    /// Whether a thread asks the driver about the operations.
    pub(super) has_progress_thread: bool,
    /// Since when the driver has not answered.
    pub(super) asking: Option<Instant>,
    /// When the last question began that the driver answered by no.
    pub(super) not_done: Option<Instant>,
    /// Kept from when the rank gives it up until the library holds nothing for it.
    pub(super) keep: Option<Arc<Link<B>>>,
}

/// One rank's communicator.
pub(super) struct Link<B: Backend> {
    /// Equal for all ranks of the process in one communicator.
    pub(super) communicator: u64,
    /// Those ranks.
    pub(super) peers: Arc<Peers>,
    pub(super) library: &'static Library,
    pub(super) kind: crate::identity::EngineKind,
    pub(super) device: Device<B>,
    pub(super) rank: usize,
    pub(super) size: usize,
    pub(super) options: Options,
    /// Held while an operation is enqueued: two threads would reverse the order on the stream.
    pub(super) order: Mutex<()>,
    pub(super) last: LastSubmission,
    /// Shared with the other communicators of the device, unless they may be called in any order.
    pub(super) device_order: Option<Arc<DeviceOrder<B>>>,
    /// What a barrier reduces.
    pub(super) barrier: DeviceArray<u8, Ix1, B>,
    pub(super) registered: Mutex<Registrations<B>>,
    pub(super) splits: AtomicU64,
    /// For comparisons of calls, while none uses them.
    pub(super) buffers: Mutex<Vec<Buffers<B>>>,
    pub(super) state: Mutex<State<B>>,
    pub(super) changed: Condvar,
    /// Whether the thread that calls is inside the library, or about to enter it.
    pub(super) is_inside: AtomicBool,
}

impl<B: Backend> Link<B> {
    pub(super) fn lock(&self) -> MutexGuard<'_, State<B>> {
        // After the order, the device order and the registrations. The library and other ranks are never waited for under it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The error of a call.
    pub(super) fn error(&self, operation: &'static str, sequence: u64, cause: CollectiveCause) -> Error {
        let error = CollectiveError::new(operation, sequence, (self.rank, self.size), cause);
        self.device.core_by(crate::KEY).error(operation, Box::new(error))
    }

    /// Waits until the communicator is set up.
    pub(super) fn wait_ready(&self, operation: &'static str) -> Result<Handle> {
        self.lock_ready(operation).map(|(_, handle)| handle)
    }

    /// As [`wait_ready`](Self::wait_ready), with the lock of the state.
    pub(super) fn lock_ready(&self, operation: &'static str) -> Result<(MutexGuard<'_, State<B>>, Handle)> {
        let mut state = self.lock();
        loop {
            match (state.phase, &state.rank.revoked) {
                (Phase::Ready(handle), None) => return Ok((state, handle)),
                (Phase::Joining, None) => {
                    may_block(operation)?;
                    let nap = Duration::from_millis(50);
                    let waited = self.changed.wait_timeout(state, nap);
                    state = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
                (_, cause) => {
                    let cause = cause.clone().unwrap_or(CollectiveCause::Aborted { rank: self.rank });
                    return Err(self.error(operation, state.rank.sequence, cause));
                }
            }
        }
    }

    /// Notes that the thread that has the handle enters the library.
    #[inline]
    pub(super) fn enter(&self) {
        // Release: with the abort, which frees the communicator some time after it has seen this.
        self.is_inside.store(true, Ordering::Release);
    }

    /// Registers the communicator with the watchdog, and has the driver asked about what is under way.
    ///
    /// # Errors
    /// Returns why that cannot be.
    pub(super) fn watch(self: &Arc<Self>, state: &mut State<B>) -> Result<(), CollectiveCause> {
        if !state.is_watched {
            let own = Arc::downgrade(self);
            watchdog::watch(own)?;
            state.is_watched = true;
        }
        if !state.has_progress_thread {
            self.start_progress()?;
            state.has_progress_thread = true;
        }
        Ok(())
    }
}

impl<B: Backend> State<B> {
    pub(super) fn new(place: (usize, usize)) -> Self {
        Self {
            rank: RankState::new(place),
            phase: Phase::Joining,
            is_calling: false,
            has_agreed: false,
            pending: VecDeque::new(),
            prune_from: MANY,
            progress: Instant::now(),
            is_watched: false,
            to_abort: None,
            reported_no_thread: false,
            is_behind: false,
            has_progress_thread: false,
            asking: None,
            not_done: None,
            keep: None,
        }
    }

    /// Notes that a thread has the handle. It [enters](Link::enter) the library next, and waits for nothing before.
    pub(super) fn begin_call(&mut self) {
        self.is_calling = true;
        if self.pending.is_empty() {
            self.progress = Instant::now();
        }
    }

    /// Notes that the thread is not inside the library any more, and does not have the handle.
    pub(super) fn end_call(&mut self, link: &Link<B>) {
        // Relaxed: written and read under the lock, but for `enter`.
        link.is_inside.store(false, Ordering::Relaxed);
        self.is_calling = false;
    }

    /// Forgets operations that are known to be done. Returns the failure of one that is under way. Asks no driver: see
    /// [`progress`](super::progress).
    pub(super) fn prune(&mut self) -> Result<()> {
        let before = self.pending.len();
        while let Some(first) = self.pending.front().filter(|first| first.is_done()) {
            self.rank.end(first.called.sequence..first.called.sequence + first.called.parts);
            self.pending.pop_front();
        }
        if self.pending.len() < before {
            self.progress = Instant::now();
        }
        self.prune_from = MANY.max(self.pending.len() + CALLS_BETWEEN);
        self.pending.iter().try_for_each(Pending::check)
    }
}

impl<B: Backend> fmt::Debug for Link<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("rank", &self.rank).field("size", &self.size).finish_non_exhaustive()
    }
}
