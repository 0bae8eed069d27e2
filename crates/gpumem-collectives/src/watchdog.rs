//! The thread that ends operations for which a rank comes too late: one for the process, while there are any.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, PoisonError, Weak},
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

struct List {
    communicators: Vec<Weak<dyn Watched>>,
    is_running: bool,
}

static WATCHED: Mutex<List> = Mutex::new(List { communicators: Vec::new(), is_running: false });

/// Looks after a communicator until none of its operations is under way.
pub(crate) fn watch(shared: Weak<dyn Watched>) {
    let mut watched = WATCHED.lock().unwrap_or_else(PoisonError::into_inner);
    watched.communicators.push(shared);
    if watched.is_running {
        return;
    }
    watched.is_running = true;
    drop(watched);
    let started = thread::Builder::new().name("gpumem:collectives".to_owned()).spawn(run);
    if let Err(error) = started {
        tracing::warn!("deadlines of collectives are not kept, as no thread could be started: {error}");
        WATCHED.lock().unwrap_or_else(PoisonError::into_inner).is_running = false;
    }
}

fn run() {
    loop {
        let communicators = {
            let mut watched = WATCHED.lock().unwrap_or_else(PoisonError::into_inner);
            if watched.communicators.is_empty() {
                watched.is_running = false;
                return;
            }
            watched.communicators.clone()
        };
        let mut period = PERIOD[1];
        let mut idle = Vec::new();
        for weak in &communicators {
            match weak.upgrade() {
                Some(shared) => {
                    let timeout = shared.timeout();
                    // A look that panics ends neither this thread nor the deadlines.
                    if catch_unwind(AssertUnwindSafe(|| shared.look())).unwrap_or(true) {
                        period = period.min((timeout / LOOKS).max(PERIOD[0]));
                    } else {
                        idle.push(weak.clone());
                    }
                }
                None => idle.push(weak.clone()),
            }
        }
        let mut watched = WATCHED.lock().unwrap_or_else(PoisonError::into_inner);
        for weak in idle {
            if let Some(at) = watched.communicators.iter().position(|other| other.ptr_eq(&weak)) {
                watched.communicators.swap_remove(at);
            }
        }
        drop(watched);
        thread::sleep(period);
    }
}
