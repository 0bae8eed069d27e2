//! Asking the driver how far the operations of a communicator have come.
//!
//! A driver may keep a thread that asks, or that records an event to ask for, as long as its queue has no room. What it runs then may be
//! the operation that waits for a rank which never comes. So no thread asks with the lock of the state, which an abort needs, and the
//! thread that keeps deadlines does not ask at all: each communicator with operations under way has a thread for that.

use super::{Link, link::State};
use crate::watchdog;
use gpumem_core::{Backend, CollectiveCause, process::DriverUse};
use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

/// A question that is not answered for so long is answered by no: the driver has no room.
const UNANSWERED: Duration = Duration::from_secs(1);

impl<B: Backend> Link<B> {
    /// Starts the thread. The caller notes that it is there.
    ///
    /// # Errors
    /// Returns [`Library`](CollectiveCause::Library) if no thread can be started: an operation must not be waited for then.
    pub(super) fn start_progress(self: &Arc<Self>) -> Result<(), CollectiveCause> {
        let link = Arc::downgrade(self);
        let period = watchdog::period(self.options.timeout);
        let ask = move || {
            while let Some(link) = link.upgrade() {
                let _use = DriverUse::new();
                if !link.device.core_by(crate::KEY).origin.is_valid() {
                    return;
                }
                link.ask();
                // Under the lock: the next operation finds the thread, or starts another.
                let mut state = link.lock();
                if !state.is_active() {
                    state.has_progress_thread = false;
                    return;
                }
                drop(state);
                drop((link, _use));
                thread::sleep(period);
            }
        };
        let started = thread::Builder::new().name("gpumem:progress".to_owned()).spawn(ask);
        started.map(drop).map_err(|error| CollectiveCause::Library {
            why: format!("no thread that asks for operations could be started: {error}"),
        })
    }

    /// Asks the driver about the operations under way, the first one first, and forgets those that are done.
    pub(super) fn ask(self: &Arc<Self>) {
        let mut last = None;
        loop {
            let first = {
                // Only to see which is the first: the driver is asked without the lock.
                let mut state = self.lock();
                if state.asking.is_some() {
                    // By another thread, which the driver may keep: that must stay known.
                    return;
                }
                self.prune(&mut state);
                let first = state.pending.front().map(|first| (first.timeline.clone(), first.submission));
                state.asking = first.is_some().then(Instant::now);
                first
            };
            let Some((timeline, submission)) = first else { return };
            let begun = Instant::now();
            // A question that fails says nothing about the work, or leaves a failure. The same one twice would be asked for ever.
            let question = Some((timeline.id(), submission));
            let is_done = last != question && timeline.poll(submission).unwrap_or(false);
            last = question;
            // Again only for this.
            let mut state = self.lock();
            state.asking = None;
            if !is_done {
                state.not_done = Some(begun);
                return;
            }
        }
    }
}

impl<B: Backend> State<B> {
    /// Whether an operation is being called or under way.
    pub(super) fn is_active(&self) -> bool {
        self.is_calling || !self.pending.is_empty()
    }

    /// Whether no operation has been done for so long. What is done is not late: the driver has to be asked by then, whenever the thread
    /// comes to that.
    pub(super) fn is_late(&self, timeout: Duration) -> bool {
        let is_asked =
            || self.not_done.is_some_and(|asked| asked.saturating_duration_since(self.progress) >= timeout);
        let is_unanswered = || self.asking.is_some_and(|since| since.elapsed() >= UNANSWERED.min(timeout));
        self.progress.elapsed() >= timeout && (self.pending.is_empty() || is_asked() || is_unanswered())
    }
}
