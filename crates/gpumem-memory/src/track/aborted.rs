//! Work that was aborted from outside: its driver reports success, and its results are not there.

use super::{DeviceContext, Timeline, WaitOutcome};
use gpumem_core::{Backend, Error, Result};
use parking_lot::Mutex;
// Not those of the models, in which nothing is aborted.
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// What is known of aborted work of a timeline.
#[derive(Debug)]
pub(super) struct Aborted {
    /// The first submission index of it, or the largest number. The only thing that is read while nothing was aborted.
    from: AtomicU64,
    report: Mutex<Option<Report>>,
}

#[derive(Debug)]
struct Report {
    /// The last submission that may depend on the aborted work.
    last: u64,
    error: Error,
    /// Whether a wait for later work has told of it.
    is_told: bool,
}

impl Aborted {
    pub(super) fn new() -> Self {
        Self { from: AtomicU64::new(u64::MAX), report: Mutex::new(None) }
    }

    /// Tells of aborted work: to every wait for it and for work that may depend on it, and to one later wait.
    #[inline]
    pub(super) fn check(&self, submission: u64) -> Result<()> {
        if submission < self.from.load(Ordering::Acquire) { Ok(()) } else { self.tell(submission) }
    }

    #[cold]
    fn tell(&self, submission: u64) -> Result<()> {
        match &mut *self.report.lock() {
            Some(report) if submission <= report.last || !report.is_told => {
                report.is_told = true;
                Err(report.error.clone())
            }
            _ => Ok(()),
        }
    }

    fn note(&self, from: u64, last: u64, error: &Error) {
        let mut report = self.report.lock();
        *report = Some(Report { last, error: error.clone(), is_told: false });
        self.from.store(from.min(self.from.load(Ordering::Relaxed)), Ordering::Release);
    }
}

impl<B: Backend> Timeline<B> {
    /// The outcome of a wait that has ended well, for work that may have been aborted.
    #[inline]
    pub(super) fn ended_well(&self, submission: u64) -> WaitOutcome {
        WaitOutcome { done: true, result: self.aborted.check(submission) }
    }
}

impl<B: Backend> DeviceContext<B> {
    /// Notes that the work of `submission` is being aborted, before it is: the driver then reports success for it. Waits
    /// for it, for later work of its stream, and for pending work of streams that have waited for it return the error.
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
            timeline.aborted.note(from, last, error);
            if from <= last {
                timeline.note_fault(last, error);
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use gpumem_core::ErrorKind;

    fn error() -> Error {
        Error::new("test", "all_reduce", ErrorKind::Cancelled)
    }

    #[test]
    fn waits_for_aborted_work_always_fail_and_a_later_one_once() {
        let aborted = Aborted::new();
        aborted.check(u64::MAX - 1).unwrap();
        aborted.note(5, 7, &error());
        aborted.check(4).unwrap();
        aborted.check(9).unwrap_err();
        aborted.check(9).unwrap();
        for submission in [5, 7, 5, 7] {
            aborted.check(submission).unwrap_err();
        }
        aborted.check(8).unwrap();
        aborted.note(10, 10, &error());
        aborted.check(11).unwrap_err();
        aborted.check(5).unwrap_err();
    }
}
