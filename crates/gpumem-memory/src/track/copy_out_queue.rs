//! Downloads that lie in staging memory and have yet to be copied to the caller's memory.

use crate::sync::{PlainMutex, Rank};
use gpumem_core::{Error, Result};
use std::fmt;

type CopyOut = Box<dyn FnMut() -> Result<()> + Send>;

/// The copies of a stream out of staging memory, which run once submissions are done. Every entry belongs to a scope,
/// which does not end before its entries are gone.
pub struct CopyOutQueue(PlainMutex<State>);

#[derive(Default)]
struct State {
    /// The oldest first.
    waiting: Vec<Entry>,
    /// Scopes that have lost an entry, and why, until they end.
    lost: Vec<(u64, Error)>,
}

struct Entry {
    scope: u64,
    /// The last copy into the staging memory.
    submission: u64,
    /// Of the staging memory.
    bytes: usize,
    /// Owns the staging memory, which is dropped without the lock: that may be the user's code.
    copy_out: CopyOut,
}

impl CopyOutQueue {
    pub(crate) fn new() -> Self {
        Self(PlainMutex::new(Rank::CopyOuts, State::default()))
    }

    /// Adds `copy_out`, which copies `bytes` bytes out of staging memory.
    pub fn add(&self, scope: u64, submission: u64, bytes: usize, copy_out: CopyOut) {
        // Waits for copies that another thread makes of earlier entries: their order is kept.
        self.0.lock().waiting.push(Entry { scope, submission, bytes, copy_out });
    }

    /// Returns the last submission of the oldest entry if all entries together hold more than `bytes` bytes.
    pub fn oldest_above(&self, bytes: usize) -> Option<u64> {
        let state = self.0.lock();
        (held(&state) > bytes).then(|| state.waiting.first().map(|entry| entry.submission))?
    }

    /// Returns the bytes of staging memory that the entries hold.
    pub fn bytes(&self) -> usize {
        held(&self.0.lock())
    }

    /// Runs the copies that are due. The lock is held meanwhile, so that a scope that ends waits for its last entry. A
    /// failure is kept for the scope.
    pub(crate) fn run(&self, is_due: impl Fn(u64) -> bool) {
        // Over the copies, and before all other locks: a copy may look at memory and its failures.
        let mut state = self.0.lock();
        let State { waiting, lost } = &mut *state;
        let copied: Vec<_> = waiting
            .extract_if(.., |entry| is_due(entry.submission))
            .map(|mut entry| {
                if let Err(error) = (entry.copy_out)() {
                    lost.push((entry.scope, error));
                }
                entry.copy_out
            })
            .collect();
        drop(state);
        drop(copied);
    }

    /// Returns why entries of the scope, which ends now, have not been copied out: the first reason, if there is any.
    pub fn take_lost(&self, scope: u64) -> Option<Error> {
        let mut state = self.0.lock();
        let mut lost = state.lost.extract_if(.., |(of, _)| *of == scope).map(|(_, lost)| lost);
        let first = lost.next();
        lost.for_each(drop);
        first
    }

    /// Drops the remaining entries of a scope without copying them out.
    pub fn abandon(&self, scope: u64) {
        // Under the lock no entry of the scope is being copied: `run` holds it meanwhile.
        let left: Vec<_> = self.0.lock().waiting.extract_if(.., |entry| entry.scope == scope).collect();
        drop(left);
    }

    /// Forgets the remaining entries of a scope whose work cannot be proven to be done. Its staging memory is leaked
    /// with it.
    pub fn leak(&self, scope: u64) {
        // As in `abandon`.
        let left: Vec<_> = self.0.lock().waiting.extract_if(.., |entry| entry.scope == scope).collect();
        left.into_iter().for_each(|entry| std::mem::forget(entry.copy_out));
    }
}

fn held(state: &State) -> usize {
    state.waiting.iter().fold(0, |bytes, entry| bytes.saturating_add(entry.bytes))
}

impl fmt::Debug for CopyOutQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CopyOutQueue").finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use gpumem_core::ErrorKind;
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    fn failing() -> Result<()> {
        Err(Error::new("", "copy_to_host", ErrorKind::NotReady))
    }

    /// Staging memory goes back to a resource of the user's, which may use the stream.
    #[test]
    fn what_an_entry_owns_is_dropped_without_the_lock() {
        struct Staging(Arc<CopyOutQueue>, Arc<AtomicUsize>);
        impl Drop for Staging {
            fn drop(&mut self) {
                if self.0.0.try_lock().is_some() {
                    self.1.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        let (queue, unlocked) = (Arc::new(CopyOutQueue::new()), Arc::new(AtomicUsize::new(0)));
        for scope in 0..3 {
            let staging = Staging(queue.clone(), unlocked.clone());
            queue.add(
                scope,
                1,
                1,
                Box::new(move || if staging.1.load(Ordering::Relaxed) == 0 { Ok(()) } else { failing() }),
            );
        }
        queue.run(|_| true);
        assert_eq!((unlocked.load(Ordering::Relaxed), queue.bytes()), (3, 0));
    }

    #[test]
    fn each_scope_gets_the_errors_of_its_own_entries() {
        let (queue, ran) = (CopyOutQueue::new(), Arc::new(AtomicUsize::new(0)));
        let counts = |ran: &Arc<AtomicUsize>| -> CopyOut {
            let ran = ran.clone();
            Box::new(move || {
                ran.fetch_add(1, Ordering::Relaxed);
                Ok(())
            })
        };
        queue.add(1, 10, 100, counts(&ran));
        queue.add(2, 11, 50, Box::new(failing));
        queue.add(3, 12, 7, counts(&ran));
        queue.add(4, 13, 1, counts(&ran));
        assert_eq!((queue.bytes(), queue.oldest_above(157), queue.oldest_above(158)), (158, Some(10), None));
        queue.run(|submission| submission <= 11);
        assert_eq!((ran.load(Ordering::Relaxed), queue.bytes(), queue.oldest_above(0)), (1, 8, Some(12)));
        queue.abandon(3);
        queue.abandon(4);
        assert_eq!((ran.load(Ordering::Relaxed), queue.bytes(), queue.oldest_above(0)), (1, 0, None));
        assert!([1, 3, 4].iter().all(|scope| queue.take_lost(*scope).is_none()));
        assert_eq!(queue.take_lost(2), Some(failing().unwrap_err()));
        assert!(queue.take_lost(2).is_none(), "told twice");
    }
}
