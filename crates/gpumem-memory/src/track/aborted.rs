//! Work that is aborted: what fails with it, also what is submitted meanwhile. `README.md` says why none slips through.

use super::{DeviceContext, Timeline, waits::Waits};
use crate::sync::{Ordering, ShortMutexGuard};
use gpumem_core::{Backend, Error};
use std::{
    collections::BTreeMap,
    sync::{Arc, Weak, atomic::AtomicBool},
};

/// Whether work of the process has been aborted, ever: what the log of memory then looks for costs all others one load. Set from the
/// beginning in a model, whose executions must not differ.
static HAS_ABORTED: AtomicBool = AtomicBool::new(cfg!(loom));

impl<B: Backend> DeviceContext<B> {
    /// Returns this device and those that may have work which depends on its own.
    fn with_dependents(self: &Arc<Self>) -> Vec<Arc<Self>> {
        let mut all = vec![self.clone()];
        let mut at = 0;
        while let Some(context) = all.get(at) {
            // Collected first: the last reference to a device is not dropped under the lock.
            let found: Vec<_> = context.dependents.lock().iter().filter_map(Weak::upgrade).collect();
            for context in found {
                if !all.iter().any(|known| Arc::ptr_eq(known, &context)) {
                    all.push(context);
                }
            }
            at += 1;
        }
        all
    }

    /// Notes that the work of `submission` is being aborted, before it is: the driver then reports success for it. It has failed,
    /// and so has all pending work that may depend on it: later work of its stream, and that of streams that have waited for it, also
    /// of other devices.
    pub fn note_aborted(self: &Arc<Self>, timeline: &Arc<Timeline<B>>, submission: u64, error: &Error) {
        // Before the failures can be found: who finds one has to look for it.
        HAS_ABORTED.store(true, Ordering::Release);
        let next = timeline.fail_from(submission, error);
        // Each with its first submission, in the order in which they were noted.
        let mut failures = vec![(timeline.clone(), submission)];
        // Of each timeline, by its number: how many of the failures it was compared with, and what would fail next.
        let mut seen = BTreeMap::from([(timeline.id(), (1, Some(next)))]);
        loop {
            let before = failures.len();
            // Searched for only now: a stream that waits later finds the failures, and so does one that is not there yet.
            for other in self.with_dependents().into_iter().flat_map(|context| context.timelines()) {
                let (compared, next) = seen.entry(other.id()).or_default();
                // From its first pending work on: which of it waited is not kept.
                let first_pending = other.first_pending();
                let depends = {
                    let waits = other.waits_so_far();
                    failures.iter().skip(*compared).any(|(of, from)| {
                        of.id() != other.id() && waits.may_depend_on(of.id(), *from, first_pending)
                    })
                };
                *compared = failures.len();
                if depends {
                    let first = next.unwrap_or(first_pending);
                    let after = other.fail_from(first, error);
                    *next = Some(after);
                    // Also one that has failed before: work that came meanwhile may use what another one fails to write.
                    failures.extend((after > first).then_some((other, first)));
                }
            }
            if failures.len() == before {
                break;
            }
        }
    }

    /// Whether the driver may call work a success that was aborted.
    #[inline]
    pub(super) fn has_aborted() -> bool {
        HAS_ABORTED.load(Ordering::Acquire)
    }
}

impl<B: Backend> Timeline<B> {
    /// Notes that all work from a submission on has failed, and that which is submitted meanwhile. Returns the next submission.
    #[cold]
    pub(super) fn fail_from(&self, first: u64, error: &Error) -> u64 {
        let mut next = first;
        loop {
            // AcqRel: with `give_out`. What is submitted after the last turn finds the failure.
            let last = self.given_out.fetch_add(0, Ordering::AcqRel);
            if next > last {
                return next;
            }
            self.failed.note(next..=last, error, false);
            next = last + 1;
        }
    }

    /// The waits of all that has been submitted. What is submitted after this call finds the failures that were noted before it.
    #[cold]
    pub(super) fn waits_so_far(&self) -> ShortMutexGuard<'_, Waits> {
        // AcqRel: with `give_out`, as in `fail_from`.
        self.given_out.fetch_add(0, Ordering::AcqRel);
        self.waits.lock()
    }
}
