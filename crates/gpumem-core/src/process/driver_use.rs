//! Threads of the library that call a driver while the process ends.

use std::{
    cell::Cell,
    sync::atomic::{AtomicUsize, Ordering, fence},
    time::{Duration, Instant},
};

/// Threads of the library that may be inside a driver.
static COUNT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// How many of [`COUNT`] are of this thread: it may end the process itself.
    static OWN: Cell<usize> = const { Cell::new(0) };
}

/// How long the end of the process waits for other threads: longer than memory takes to be freed, shorter than a user's
/// patience with a kernel that hangs.
const LIMIT: Duration = Duration::from_secs(2);

/// Says that this thread of the library may call a driver. The end of the process waits for it, at most for two seconds:
/// HIP's own clean-up would free what the call still uses.
///
/// Whether the process ends is asked afterwards, as before every call of a driver.
#[derive(Debug)]
pub struct DriverUse(());

impl DriverUse {
    /// Begins to use a driver.
    #[allow(clippy::new_without_default)] // it counts
    pub fn new() -> Self {
        COUNT.fetch_add(1, Ordering::SeqCst);
        OWN.set(OWN.get() + 1);
        // Either the end of the process sees this thread, or this thread sees the end.
        fence(Ordering::SeqCst);
        Self(())
    }
}

impl Drop for DriverUse {
    fn drop(&mut self) {
        OWN.set(OWN.get().saturating_sub(1));
        // A child process has begun to count anew.
        let _ = COUNT.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |count| count.checked_sub(1));
    }
}

/// Forgets the threads of the parent process. Only touches atomics.
pub(super) fn forget_all() {
    COUNT.store(0, Ordering::SeqCst);
}

/// Waits until no other thread uses a driver.
pub(super) fn wait_for_others() {
    fence(Ordering::SeqCst);
    let own = OWN.try_with(Cell::get).unwrap_or(0);
    let begun = Instant::now();
    while COUNT.load(Ordering::SeqCst) > own && begun.elapsed() < LIMIT {
        std::thread::sleep(Duration::from_micros(100));
    }
}
