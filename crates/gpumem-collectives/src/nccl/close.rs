//! Looking after operations under way, and ending a communicator when there are none.

use super::{
    Link,
    link::{Handle, Phase, State},
};
use crate::{report, watchdog::Watched};
use gpumem_core::{Backend, CollectiveCause, process::DriverUse};
use gpumem_sys::nccl::ncclResult_t;
use std::{sync::Arc, thread, time::Duration};

impl<B: Backend> Watched for Link<B> {
    fn look(self: Arc<Self>) -> bool {
        let _use = DriverUse::new();
        // Alone: the watchdog calls it without the lock of its list.
        let mut state = self.lock();
        // In a forked child, or at the end of the process, the library must not be called.
        if !self.device.core_by(crate::KEY).origin.is_valid() {
            return false;
        }
        // What is known to be done is not late: it is taken out before deadlines are looked at.
        self.prune(&mut state);
        self.find_failure(&mut state);
        if let Some(handle) = state.to_abort.take() {
            self.start_abort(&mut state, handle);
        }
        self.destroy_if_idle(&mut state);
        let is_joining = matches!(state.phase, Phase::Joining) && state.rank.revoked.is_none();
        let is_active = state.is_active() || is_joining || state.to_abort.is_some();
        state.is_watched = is_active;
        drop(state);
        report::tell();
        is_active
    }

    fn timeout(&self) -> Duration {
        self.options.timeout
    }
}

impl<B: Backend> Link<B> {
    /// Revokes the communicator if the library reports an error, or an operation is late.
    fn find_failure(self: &Arc<Self>, state: &mut State<B>) {
        // Nothing is under way, so nothing can be late or fail.
        if !state.is_active() && !matches!(state.phase, Phase::Joining) {
            return;
        }
        if let Phase::Ready(Handle(handle)) = state.phase {
            let mut found = ncclResult_t::ncclSuccess;
            let library = self.library;
            // SAFETY: the communicator is alive: it is ended only after the phase has changed, under the same lock.
            let asked = unsafe { library.ncclCommGetAsyncError(handle, &mut found) };
            let fine = [ncclResult_t::ncclSuccess, ncclResult_t::ncclInProgress];
            if asked.is_ok()
                && !fine.contains(&found)
                && let Err(failure) = library.check(Ok(found))
            {
                let why = failure.to_string();
                return self.revoke_locked(state, CollectiveCause::Library { why });
            }
        }
        let after = self.options.timeout;
        if state.is_late(after) {
            self.revoke_locked(state, CollectiveCause::Timeout { after, missing: Vec::new() });
        }
    }

    /// Frees the communicator if the rank has given it up and nothing is under way.
    fn destroy_if_idle(self: &Arc<Self>, state: &mut State<B>) {
        if state.rank.has_left
            && !state.is_active()
            && let Phase::Ready(handle) = state.phase
        {
            // Under the lock, so that one thread frees it.
            state.phase = Phase::Closing;
            self.destroy(handle);
        }
    }

    /// Frees an idle communicator, on a thread that may wait for other ranks of the process.
    fn destroy(self: &Arc<Self>, Handle(handle): Handle) {
        let link = self.clone();
        let handle = Handle(handle);
        let started = thread::Builder::new().name("gpumem:destroy".to_owned()).spawn(move || {
            // The whole handle is moved here: its pointer alone could not be sent.
            let Handle(handle) = { handle };
            let _use = DriverUse::new();
            if !link.device.core_by(crate::KEY).origin.is_valid() {
                return;
            }
            let library = link.library;
            // Before the communicator goes: the library knows registrations by it.
            link.deregister_all(handle);
            // SAFETY: the communicator is alive, and nothing of it is under way or will be called.
            let destroyed =
                link.device.with_current(|| library.check(unsafe { library.ncclCommDestroy(handle) }));
            if let Err(failure) = destroyed {
                report::warn(&format!("a communicator was not destroyed: {failure}"));
            }
            report::tell();
            link.note_closed();
        });
        if let Err(error) = started {
            report::note(format!("a communicator is not destroyed, as no thread could be started: {error}"));
        }
    }

    /// Gives the communicator up. What is under way goes on.
    pub(super) fn leave(self: &Arc<Self>) {
        // Without the order of the calls: a rank may leave while another thread is inside the library.
        let mut state = self.lock();
        let had_left = std::mem::replace(&mut state.rank.has_left, true);
        if !had_left && !matches!(state.phase, Phase::Closed) {
            // The watchdog has only a weak reference; operations under way need the link.
            state.keep = Some(self.clone());
            self.prune(&mut state);
            self.destroy_if_idle(&mut state);
            if let Err(cause) = self.watch(&mut state) {
                report::note(format!("a communicator with operations under way is not destroyed: {cause}"));
            }
        }
        drop(state);
        report::tell();
    }
}
