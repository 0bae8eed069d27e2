//! Staged transfers that have yet to land in the caller's memory.

use parking_lot::Mutex;
use std::fmt;

type Act = Box<dyn FnOnce() + Send>;

/// What is to be copied out of staging once submission indexes are done. Every entry belongs to a scope, which
/// does not end before its entries are gone.
#[derive(Default)]
pub(crate) struct CopyOutQueue(Mutex<State>);

#[derive(Default)]
struct State {
    waiting: Vec<DeferredCopyOut>,
    /// Scopes that have lost an entry, until they end.
    given_up: Vec<u64>,
}

struct DeferredCopyOut {
    scope: u64,
    submission: u64,
    act: Act,
}

impl CopyOutQueue {
    pub(crate) fn add(&self, scope: u64, submission: u64, act: Act) {
        self.0.lock().waiting.push(DeferredCopyOut { scope, submission, act });
    }

    /// Runs what is due. Under the lock, so that a scope that ends meanwhile waits for its last landing.
    pub(crate) fn run(&self, passed: impl Fn(u64) -> bool) {
        let mut state = self.0.lock();
        for landing in state.waiting.extract_if(.., |landing| passed(landing.submission)) {
            (landing.act)();
        }
    }

    /// Drops what is due without running it: the work before it failed, so there is nothing to land. Whichever caller
    /// waits for the device hears of the failure; so does each scope ([`has_given_up`](Self::has_given_up)).
    pub(crate) fn give_up(&self, passed: impl Fn(u64) -> bool) {
        let mut state = self.0.lock();
        let due: Vec<_> = state.waiting.extract_if(.., |landing| passed(landing.submission)).collect();
        state.given_up.extend(due.iter().map(|landing| landing.scope));
    }

    /// Whether the scope, which ends now, has lost a transfer.
    pub(crate) fn has_given_up(&self, scope: u64) -> bool {
        let mut state = self.0.lock();
        let before = state.given_up.len();
        state.given_up.retain(|lost| *lost != scope);
        state.given_up.len() < before
    }

    /// Drops what is left of a scope without running it.
    pub(crate) fn abandon(&self, scope: u64) {
        let left: Vec<_> = self.0.lock().waiting.extract_if(.., |landing| landing.scope == scope).collect();
        drop(left);
    }

    /// Forgets what is left of a scope whose work cannot be proven to be done. Its staging memory is leaked with it.
    pub(crate) fn leak(&self, scope: u64) {
        let left: Vec<_> = self.0.lock().waiting.extract_if(.., |landing| landing.scope == scope).collect();
        left.into_iter().for_each(|landing| std::mem::forget(landing.act));
    }
}

impl fmt::Debug for CopyOutQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CopyOutQueue").finish_non_exhaustive()
    }
}
