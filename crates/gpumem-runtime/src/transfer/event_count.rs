//! Waiting for what another thread does any moment.

use super::TUNING;
use crate::sync::{AtomicUsize, Condvar, Mutex, Ordering, fence, spin_loop, wait};

/// Wakes sleeping threads, and costs almost nothing while none sleeps. What they wait for is in atomics of
/// its own.
#[derive(Debug, Default)]
pub(super) struct EventCount {
    sleepers: AtomicUsize,
    lock: Mutex<()>,
    changed: Condvar,
}

impl EventCount {
    /// Something that others may be waiting for holds now.
    pub(super) fn notify_all(&self) {
        // With the one in `sleep`: either this thread sees the sleeper, or the sleeper sees that the
        // condition holds.
        fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            // A thread that found the condition false holds the lock until it can be woken.
            drop(self.lock.lock());
            self.changed.notify_all();
        }
    }

    /// Sleeps until `holds`, which some thread rings for.
    pub(super) fn wait_until(&self, mut holds: impl FnMut() -> bool) {
        let mut guard = self.lock.lock();
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        while !holds() {
            guard = wait(&self.changed, guard);
        }
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Looks for a while whether something holds. It is told how often it has been looked at.
pub(super) fn spin_until(mut holds: impl FnMut(u32) -> bool) -> bool {
    (0..TUNING.spins).any(|looks| {
        spin_loop();
        holds(looks)
    })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::{sync::atomic::AtomicBool, thread};

    #[test]
    fn no_wakeup_is_lost() {
        let (event_count, turn) = (EventCount::default(), AtomicUsize::new(0));
        const ROUNDS: usize = if cfg!(miri) { 10 } else { 2000 };
        thread::scope(|scope| {
            for me in 0..2 {
                let (event_count, turn) = (&event_count, &turn);
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        let mine = || turn.load(Ordering::Acquire) == 2 * round + me;
                        if round % 2 == 0 || !spin_until(|_| mine()) {
                            event_count.wait_until(mine);
                        }
                        turn.fetch_add(1, Ordering::Release);
                        event_count.notify_all();
                    }
                });
            }
        });
        assert_eq!(turn.into_inner(), 2 * ROUNDS);
    }

    #[test]
    fn a_condition_that_never_holds_ends_the_spin() {
        let never = AtomicBool::new(false);
        assert!(!spin_until(|_| never.load(Ordering::Relaxed)));
        assert!(spin_until(|_| true));
    }
}
