//! Failing everything that is under way: a rank is late, the library reports an error, or the user aborts.

use super::{
    Link,
    link::{Handle, IssuedCall, Phase, State, Writes},
    peers::{Peer, all_peers},
};
use crate::report;
use gpumem_core::{Backend, CollectiveCause, CollectiveError, Failure, POISONED, process::DriverUse};
use gpumem_runtime::internal::Timeline;
use gpumem_sys::nccl::ncclResult_t;
use std::{
    sync::{Arc, PoisonError, atomic::Ordering},
    thread,
    time::{Duration, Instant},
};

/// How long a thread inside the library has to come back before the communicator is freed under it: once it has been told to,
/// and where the library cannot tell it.
const GRACE: [Duration; 2] = [Duration::from_secs(5), Duration::from_millis(100)];

/// How long communicators whose operations are behind an aborted one have to be told, or to end: a library that waits for all work of
/// the device does not end them before.
const BEHIND: Duration = Duration::from_millis(500);

impl<B: Backend> Peer for Link<B> {
    fn end(self: Arc<Self>, cause: CollectiveCause) {
        // Told by the rank whose call finds it, once that has no lock.
        self.revoke_locked(&mut self.lock(), cause);
    }

    fn end_if_failed(self: Arc<Self>) -> bool {
        let _use = DriverUse::new();
        // Alone: the thread that aborts another communicator has no lock.
        let mut state = self.lock();
        if !self.device.core_by(crate::KEY).origin.is_valid() {
            return false;
        }
        self.prune(&mut state);
        state.is_behind && !matches!(state.phase, Phase::Closed)
    }

    fn wait_closed(&self, most: Duration) {
        let began = Instant::now();
        // Unlocked in each sleep: the thread that ends the communicator needs it.
        let mut state = self.lock();
        while !matches!(state.phase, Phase::Closed) && began.elapsed() < most {
            let waited = self.changed.wait_timeout(state, most);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl<B: Backend> Link<B> {
    /// Fails all operations under way, and all later ones. Never waits.
    pub(super) fn revoke(self: &Arc<Self>, cause: CollectiveCause) {
        // Never held over a call of the library, so a rank that hangs there can be given up.
        let mut state = self.lock();
        self.revoke_locked(&mut state, cause);
        drop(state);
        report::tell();
    }

    pub(super) fn revoke_locked(self: &Arc<Self>, state: &mut State<B>, cause: CollectiveCause) {
        if state.rank.revoked.is_some() {
            return;
        }
        state.rank.revoked = Some(cause.clone());
        // What fails is under way still.
        let _ = state.prune();
        // Before anything is aborted: the driver will call it a success.
        for pending in std::mem::take(&mut state.pending) {
            let submitted = Some((&pending.timeline, pending.submission));
            self.fail(state, &pending.called, &pending.writes, submitted, &cause);
        }
        if let Phase::Ready(handle) = state.phase {
            state.phase = Phase::Closing;
            self.start_abort(state, handle);
        }
        self.changed.notify_all();
    }

    /// Aborts the library's communicator on a thread of its own. Where there is no thread, the watchdog tries again.
    pub(super) fn start_abort(self: &Arc<Self>, state: &mut State<B>, handle: Handle) {
        let link = self.clone();
        let started =
            thread::Builder::new().name("gpumem:abort".to_owned()).spawn(move || link.abort_handle(handle));
        if let Err(error) = started {
            if !std::mem::replace(&mut state.reported_no_thread, true) {
                report::note(format!(
                    "a communicator is not aborted before a thread can be started: {error}"
                ));
            }
            state.to_abort = Some(handle);
            // Nothing new where an operation is under way. Otherwise nothing runs that has to be ended.
            let _ = self.watch(state);
        }
    }

    /// Forgets operations that are done. One that has failed has given the other ranks what they must not use: it ends the communicator.
    pub(super) fn prune(self: &Arc<Self>, state: &mut State<B>) {
        if let Err(error) = state.prune() {
            state.is_behind = state.rank.revoked.is_none();
            let why = format!("work of its stream failed: {error}");
            self.revoke_locked(state, CollectiveCause::PeerLost { rank: self.rank, why });
        }
    }

    /// Poisons what an operation was to write.
    pub(super) fn fail(
        &self,
        state: &mut State<B>,
        called: &IssuedCall,
        writes: &Writes,
        submitted: Option<(&Arc<Timeline<B>>, u64)>,
        cause: &CollectiveCause,
    ) -> Box<CollectiveError> {
        let sequences = called.sequence..called.sequence + called.parts;
        let error = state.rank.fail(called.operation, sequences, cause.clone());
        let failure = Arc::new(Failure::of_collective(self.device.name(), (*error).clone()));
        for used in writes {
            // SAFETY: the bytes are those of the array that the operation was to write, which is their owner.
            unsafe { POISONED.poison(used, &failure) };
        }
        if let Some((timeline, submission)) = submitted {
            let report = self.device.core_by(crate::KEY).error(called.operation, error.clone());
            timeline.context.note_aborted(timeline, submission, &report);
        }
        error
    }

    /// Aborts the library's communicator, on a thread that may hang there.
    pub(super) fn abort_handle(&self, Handle(handle): Handle) {
        // What was enqueued behind runs on what an abort leaves, and would give it to other ranks: it ends first.
        // Whichever thread has found that it failed. Those that are behind themselves do not wait for each other.
        let mut behind: Vec<_> =
            all_peers().into_iter().filter(|peer| peer.clone().end_if_failed()).collect();
        if self.lock().is_behind {
            behind.clear();
        }
        let began = Instant::now();
        behind.iter().for_each(|peer| peer.wait_closed(BEHIND.saturating_sub(began.elapsed())));
        let library = self.library;
        let told = {
            let _use = DriverUse::new();
            if !self.device.core_by(crate::KEY).origin.is_valid() {
                return;
            }
            // SAFETY: the communicator is alive: only this thread ends it.
            unsafe { library.ncclCommRevoke(handle, 0) == Ok(ncclResult_t::ncclSuccess) }
        };
        let grace = GRACE[usize::from(!told)];
        // Unlocked in each sleep: the thread inside the library needs it to come out. One that has the handle and is not inside yet waits
        // for nothing before it is, and would use what an abort frees.
        let (mut state, mut inside) = (self.lock(), None);
        while state.is_calling {
            // From the first look that finds it inside on: it may have been on its way for long.
            if self.is_inside.load(Ordering::Acquire)
                && inside.get_or_insert_with(Instant::now).elapsed() >= grace
            {
                break;
            }
            let waited = self.changed.wait_timeout(state, GRACE[1]);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(state);
        let _use = DriverUse::new();
        if !self.device.core_by(crate::KEY).origin.is_valid() {
            return;
        }
        // SAFETY: as above; no thread takes the handle any more, and those that had it are inside: those are what an abort is for.
        let aborted = self.device.with_current(|| library.check(unsafe { library.ncclCommAbort(handle) }));
        if let Err(failure) = aborted {
            report::warn(&format!("a communicator was not aborted: {failure}"));
        }
        self.note_closed();
    }

    pub(super) fn note_closed(&self) {
        self.forget_registrations();
        // After the registrations, which have a lock of their own that comes before this one.
        let mut state = self.lock();
        state.phase = Phase::Closed;
        let kept = state.keep.take();
        drop(state);
        self.changed.notify_all();
        // Perhaps the last reference: its drop frees arrays, and takes locks of the device.
        drop(kept);
    }
}
