//! Waits for conditions that another thread fulfils soon.

use super::{
    AtomicUsize, Ordering, fence, spin_loop,
    threads::{Condvar, Mutex, MutexGuard},
};
use gpumem_core::process::ProcessGuard;
use std::{sync::PoisonError, time::Duration};

/// Wakes sleeping threads, and costs almost nothing while none sleeps. The condition is kept elsewhere, in atomics or
/// under a lock that no thread holds while it notifies.
///
/// The lock and the condition variable are those of `std`: they wake all sleepers of `notify_all` at once, where others wake
/// one after the other.
#[derive(Debug)]
pub struct EventCount {
    sleepers: AtomicUsize,
    lock: Mutex<()>,
    changed: Condvar,
    /// The process whose threads sleep. A forked child has none of them, and one may have held the lock.
    origin: ProcessGuard,
}

impl Default for EventCount {
    fn default() -> Self {
        let (sleepers, lock, changed) = Default::default();
        Self { sleepers, lock, changed, origin: ProcessGuard::current() }
    }
}

impl EventCount {
    /// Wakes all sleepers: something that they may be waiting for holds now.
    pub fn notify_all(&self) {
        if self.has_sleepers() {
            self.changed.notify_all();
        }
    }

    /// Wakes up to so many sleepers, which wait for the same.
    pub fn notify(&self, threads: usize) {
        if self.has_sleepers() {
            (0..threads).for_each(|_| self.changed.notify_one());
        }
    }

    fn has_sleepers(&self) -> bool {
        // With the one in `wait_for`: either this thread sees the sleeper, or the sleeper sees that the
        // condition holds.
        fence(Ordering::SeqCst);
        let has_sleepers = self.sleepers.load(Ordering::Relaxed) > 0 && !self.origin.is_forked();
        if has_sleepers {
            // A thread that found the condition false holds the lock until it can be woken.
            drop(self.lock());
        }
        has_sleepers
    }

    /// Sleeps until `holds`, for which some thread notifies.
    pub fn wait_until(&self, holds: impl FnMut() -> bool) {
        self.wait_for(None, holds);
    }

    /// Sleeps until `holds`, for which some thread notifies, or for so long. Returns whether it holds.
    pub fn wait_for(&self, timeout: Option<Duration>, mut holds: impl FnMut() -> bool) -> bool {
        let mut guard = self.lock();
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let end = Deadline::after(timeout);
        let mut has_time = true;
        let found = loop {
            if holds() {
                break true;
            }
            if !has_time {
                break false;
            }
            (guard, has_time) = end.sleep(&self.changed, guard);
        };
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
        found
    }

    /// Locks. The lock guards nothing that a panic could leave half-done.
    fn lock(&self) -> MutexGuard<'_, ()> {
        self.lock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// When a sleep ends. No time passes in a model: a limited sleep ends at once there.
struct Deadline(#[cfg(not(loom))] Option<std::time::Instant>, #[cfg(loom)] bool);

impl Deadline {
    #[cfg(not(loom))]
    fn after(timeout: Option<Duration>) -> Self {
        Self(timeout.and_then(|timeout| std::time::Instant::now().checked_add(timeout)))
    }

    /// Sleeps until a notification or the deadline, and returns whether there is time left.
    #[cfg(not(loom))]
    fn sleep<'a>(&self, changed: &Condvar, guard: MutexGuard<'a, ()>) -> (MutexGuard<'a, ()>, bool) {
        let Some(end) = self.0 else {
            return (changed.wait(guard).unwrap_or_else(PoisonError::into_inner), true);
        };
        let left = end.saturating_duration_since(std::time::Instant::now());
        let (guard, outcome) = changed.wait_timeout(guard, left).unwrap_or_else(PoisonError::into_inner);
        (guard, !outcome.timed_out())
    }

    #[cfg(loom)]
    fn after(timeout: Option<Duration>) -> Self {
        Self(timeout.is_some())
    }

    #[cfg(loom)]
    fn sleep<'a>(&self, changed: &Condvar, guard: MutexGuard<'a, ()>) -> (MutexGuard<'a, ()>, bool) {
        match self.0 {
            true => (guard, false),
            false => (changed.wait(guard).unwrap_or_else(PoisonError::into_inner), true),
        }
    }
}

/// Checks a condition `spins` times. The condition gets the number of earlier checks.
pub fn spin_until(spins: u32, mut holds: impl FnMut(u32) -> bool) -> bool {
    (0..spins).any(|looks| {
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
                        if round % 2 == 0 || !spin_until(1 << 10, |_| mine()) {
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
    fn a_limited_sleep_ends_without_a_notification() {
        let event_count = EventCount::default();
        assert!(!event_count.wait_for(Some(Duration::from_millis(1)), || false));
        assert!(event_count.wait_for(Some(Duration::ZERO), || true));
        let mut looks = 0;
        let found = event_count.wait_for(Some(Duration::from_millis(1)), || {
            looks += 1;
            looks == 2
        });
        assert!(found, "the state when the time is over counts");
        assert_eq!(event_count.sleepers.into_inner(), 0);
    }

    #[test]
    fn a_condition_that_never_holds_ends_the_spin() {
        let never = AtomicBool::new(false);
        assert!(!spin_until(1 << 10, |_| never.load(Ordering::Relaxed)));
        assert!(spin_until(1 << 10, |_| true));
    }
}
