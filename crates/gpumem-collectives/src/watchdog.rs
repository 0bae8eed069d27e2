//! The thread that ends operations for which a rank comes too late: one for the process, while there are any.

use gpumem_core::{CollectiveCause, process::PerProcess};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    thread,
    time::Duration,
};

/// Shortest and longest time between two looks.
const PERIOD: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(100)];
/// Looks in a communicator's deadline.
const LOOKS: u32 = 20;

/// A communicator with operations under way.
pub(crate) trait Watched: Send + Sync {
    /// Ends what is late. `false` if nothing is under way: it is not looked at again until it is [watched](watch) anew.
    fn look(self: Arc<Self>) -> bool;

    /// How long an operation may take.
    fn timeout(&self) -> Duration;
}

#[derive(Default)]
struct List {
    communicators: Vec<Weak<dyn Watched>>,
    is_running: bool,
}

/// A forked child has no such thread, and begins with a list of its own.
static WATCHED: PerProcess<Mutex<List>> = PerProcess::new(Mutex::default);

fn watched() -> MutexGuard<'static, List> {
    // A leaf: communicators come here with their own lock, so no lock of a communicator is taken under it.
    WATCHED.get().lock().unwrap_or_else(PoisonError::into_inner)
}

/// Looks after a communicator until none of its operations is under way.
///
/// # Errors
/// Returns [`Library`](CollectiveCause::Library) if no thread can be started: an operation must not be waited for then.
pub(crate) fn watch(shared: Weak<dyn Watched>) -> Result<(), CollectiveCause> {
    let mut list = watched();
    if !list.is_running {
        // The new thread begins with the lock.
        let started = thread::Builder::new().name("gpumem:collectives".to_owned()).spawn(run);
        started.map_err(|error| CollectiveCause::Library {
            why: format!("no thread that keeps deadlines could be started: {error}"),
        })?;
        list.is_running = true;
    }
    list.communicators.push(shared);
    Ok(())
}

/// The time from one look to the next, for a deadline.
pub(crate) fn period(timeout: Duration) -> Duration {
    (timeout / LOOKS).clamp(PERIOD[0], PERIOD[1])
}

fn run() {
    loop {
        let communicators = {
            let mut list = watched();
            if list.communicators.is_empty() {
                list.is_running = false;
                return;
            }
            list.communicators.clone()
        };
        let mut period = PERIOD[1];
        let mut idle = Vec::new();
        for weak in &communicators {
            match weak.upgrade() {
                Some(shared) => {
                    let timeout = shared.timeout();
                    // A look that panics ends neither this thread nor the deadlines.
                    if catch_unwind(AssertUnwindSafe(|| shared.look())).unwrap_or(true) {
                        period = period.min(self::period(timeout));
                    } else {
                        idle.push(weak.clone());
                    }
                }
                None => idle.push(weak.clone()),
            }
        }
        let mut list = watched();
        for weak in idle {
            if let Some(at) = list.communicators.iter().position(|other| other.ptr_eq(&weak)) {
                list.communicators.swap_remove(at);
            }
        }
        drop(list);
        thread::sleep(period);
    }
}
