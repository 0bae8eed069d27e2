//! Waiting for what another thread does any moment.

use crate::sync::{AtomicUsize, Condvar, Mutex, Ordering, fence, spin_loop, wait};

/// Looks before a thread sleeps: some hundred microseconds, in which a part is filled and a block copied. Waking up takes up to
/// that long.
const LOOKS: u32 = if cfg!(any(miri, loom)) { 1 } else { 1 << 12 };

/// Wakes those who sleep, and costs nothing while nobody does. What they wait for is in atomics of its own.
#[derive(Debug, Default)]
pub(super) struct Bell {
    sleepers: AtomicUsize,
    lock: Mutex<()>,
    rung: Condvar,
}

impl Bell {
    /// Something that others may be waiting for holds now.
    pub(super) fn ring(&self) {
        // With the one in `sleep`: either this thread sees that somebody sleeps, or they see what holds now.
        fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            // Whoever has looked in vain holds the lock until it can be woken.
            drop(self.lock.lock());
            self.rung.notify_all();
        }
    }

    /// Sleeps until `holds`, which some thread rings for.
    pub(super) fn sleep(&self, mut holds: impl FnMut() -> bool) {
        let mut guard = self.lock.lock();
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        while !holds() {
            guard = wait(&self.rung, guard);
        }
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Looks for a while whether something holds. It is told how often it has been looked at.
pub(super) fn look(mut holds: impl FnMut(u32) -> bool) -> bool {
    (0..LOOKS).any(|looks| {
        spin_loop();
        holds(looks)
    })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::{sync::atomic::AtomicBool, thread};

    #[test]
    fn nobody_sleeps_on() {
        let (bell, turn) = (Bell::default(), AtomicUsize::new(0));
        const ROUNDS: usize = if cfg!(miri) { 10 } else { 2000 };
        thread::scope(|scope| {
            for me in 0..2 {
                let (bell, turn) = (&bell, &turn);
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        let mine = || turn.load(Ordering::Acquire) == 2 * round + me;
                        if round % 2 == 0 || !look(|_| mine()) {
                            bell.sleep(mine);
                        }
                        turn.fetch_add(1, Ordering::Release);
                        bell.ring();
                    }
                });
            }
        });
        assert_eq!(turn.into_inner(), 2 * ROUNDS);
    }

    #[test]
    fn what_never_holds_is_given_up() {
        let never = AtomicBool::new(false);
        assert!(!look(|_| never.load(Ordering::Relaxed)));
        assert!(look(|_| true));
    }
}
