//! Work that was aborted from outside: its driver reports success, and its results are not there.

use super::{DeviceContext, Timeline};
use gpumem_core::{Backend, Error};
use std::sync::Arc;

impl<B: Backend> DeviceContext<B> {
    /// Notes that the work of `submission` is being aborted, before it is: the driver then reports success for it. It has failed,
    /// and so has all pending work that may depend on it: later work of its stream, and that of streams that have waited for it.
    pub fn note_aborted(&self, timeline: &Arc<Timeline<B>>, submission: u64, error: &Error) {
        let mut failed = vec![(timeline.clone(), submission)];
        let mut others = self.timelines();
        others.retain(|other| other.id() != timeline.id());
        // Streams that waited for it, and those that waited for these.
        loop {
            let depends = |other: &Arc<Timeline<B>>| {
                let queue = other.queue.lock();
                failed.iter().any(|(of, from)| queue.has_waited_for(of.id(), *from))
            };
            let Some(at) = others.iter().position(depends) else { break };
            let other = others.swap_remove(at);
            let first_pending = other.first_pending();
            failed.push((other, first_pending));
        }
        for (timeline, from) in failed {
            let last = timeline.last_submission();
            if from <= last {
                timeline.failed.note(from..=last, error, false);
            }
        }
    }
}
