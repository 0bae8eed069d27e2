//! State that the threads of one transfer share: its progress, whether it goes on, and the error.

use super::{Staging, TUNING, torn::unwound};
use crate::Device;
use gpumem_core::{Backend, DriverDevice, Error, ErrorKind, Result, StreamKind};
use gpumem_memory::{may_block, sync::event_count::EventCount, track::Timeline};
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::{
    mem,
    ops::{ControlFlow, RangeInclusive},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
};

/// How far a transfer has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Progress {
    /// Bytes that have been moved, or handed to the copy engine.
    pub done: u64,
    /// Bytes of the whole transfer.
    pub total: u64,
}

/// The callback between two pieces of a transfer, on the calling thread. `Break` ends the transfer.
pub(crate) type ProgressFn<'a> = &'a mut dyn FnMut(Progress) -> ControlFlow<()>;

/// Whether the calling thread moves a transfer alone: a stream of one thread can be used by no other; and a thread that must not
/// block must not delegate blocking work either.
pub(super) fn is_alone<B: Backend>(timeline: &Timeline<B>, operation: &'static str) -> bool {
    timeline.kind() == StreamKind::PerThread || may_block(operation).is_err()
}

/// One transfer, as its threads see it.
pub(super) struct TransferState<'a, B: Backend> {
    pub(super) device: &'a Device<B>,
    pub(super) timeline: &'a Arc<Timeline<B>>,
    pub(super) operation: &'static str,
    /// The calling one among them.
    pub(super) threads: usize,
    /// Bytes of all.
    pub(super) total: u64,
    /// Notified when there is more to do, when a chunk is done, and at the end.
    pub(super) event_count: EventCount,
    /// Helpers that have come.
    helpers: AtomicUsize,
    ended: AtomicBool,
    failure: Mutex<Option<Error>>,
    done: AtomicU64,
    /// Of the last copy.
    submission: AtomicU64,
    /// Of all copies. Other threads may use the stream between two of them.
    submissions: Mutex<SmallVec<[RangeInclusive<u64>; 1]>>,
}

/// Ends the work of all threads with an error, unless it is forgotten: the part of a thread that unwinds has not been moved. The
/// whole transfer may run in a destructor while its thread unwinds.
struct EndOnUnwind<'w, 'a, B: Backend>(&'w TransferState<'a, B>);

impl<B: Backend> Drop for EndOnUnwind<'_, '_, B> {
    fn drop(&mut self) {
        self.0.fail(unwound(self.0.device.core(), self.0.operation));
    }
}

impl<'a, B: Backend> TransferState<'a, B> {
    pub(super) fn new(
        device: &'a Device<B>,
        timeline: &'a Arc<Timeline<B>>,
        operation: &'static str,
        threads: usize,
        total: usize,
    ) -> Self {
        Self {
            device,
            timeline,
            operation,
            threads,
            total: total as u64,
            event_count: EventCount::default(),
            helpers: AtomicUsize::new(0),
            ended: AtomicBool::new(false),
            failure: Mutex::new(None),
            done: AtomicU64::new(0),
            submission: AtomicU64::new(0),
            submissions: Mutex::default(),
        }
    }

    /// Has the calling thread `submit` and the others `help`, and returns the last submission index when all have
    /// returned. The former gets a function to call whenever more is done.
    /// Returns the first failure. Nothing of the transfer is running any more then, on the device neither.
    pub(super) fn run(
        &self,
        help: &(dyn Fn() -> Result<()> + Sync),
        submit: impl Fn(&mut dyn FnMut()) -> Result<()>,
        mut progress: Option<ProgressFn<'_>>,
    ) -> Result<u64> {
        let or_fail = |outcome: Result<()>| {
            if let Err(error) = outcome {
                self.fail(error);
            }
        };
        let help = || {
            let end = EndOnUnwind(self);
            self.helpers.fetch_add(1, Ordering::Relaxed);
            or_fail(help());
            mem::forget(end);
        };
        let submit = |on_progress: &mut dyn FnMut()| {
            let end = EndOnUnwind(self);
            or_fail(submit(on_progress));
            mem::forget(end);
        };
        let mut reported = 0;
        self.device.0.staging.workers().broadcast(self.threads - 1, &help, || match &mut progress {
            // Code of the user's, which finds its own context.
            Some(progress) => submit(&mut || self.report_progress(&mut reported, progress)),
            None => self.device.raw().with_current(&mut || submit(&mut || ())),
        });
        // The progress function may have forked. The helpers are the parent's, and one may have held a lock.
        let core = self.device.core();
        if core.origin.is_forked() {
            return core.check_process(self.operation).map(|()| 0);
        }
        self.device.0.staging.workers().tell_refusal();
        if reported < self.total
            && self.failure.lock().is_none()
            && let Some(progress) = &mut progress
        {
            // Others have moved the last part, or all of them before this thread had a turn.
            self.report_progress(&mut reported, progress);
        }
        let submission = self.submission.load(Ordering::Relaxed);
        match self.failure() {
            None => Ok(submission),
            Some(error) => {
                // Law 8: wait first, report after.
                let wait_outcome = self.timeline.wait_host(submission);
                if let Err(second) = wait_outcome.result
                    && !wait_outcome.done
                {
                    self.device.core().errors.push(second);
                }
                Err(error)
            }
        }
    }

    /// Reports the progress since the last time.
    fn report_progress(&self, reported: &mut u64, progress: ProgressFn<'_>) {
        let done = self.done.load(Ordering::Relaxed);
        if done > *reported {
            *reported = done;
            let core = self.device.core();
            let outcome = match progress(Progress { done, total: self.total }) {
                ControlFlow::Break(()) => Err(core.error(self.operation, ErrorKind::Cancelled)),
                ControlFlow::Continue(()) => core.check_process(self.operation),
            };
            match outcome {
                _ if core.origin.is_forked() => self.end(),
                Ok(()) => {}
                Err(error) => self.fail(error),
            }
        }
    }

    /// So many bytes more have been moved, or handed to the copy engine.
    pub(super) fn has_done(&self, bytes: usize) {
        self.done.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// The first failure, also of a thread that has unwound.
    pub(super) fn failure(&self) -> Option<Error> {
        self.failure.lock().clone()
    }

    fn fail(&self, error: Error) {
        self.failure.lock().get_or_insert(error);
        self.end();
    }

    /// No thread takes another part.
    fn end(&self) {
        self.ended.store(true, Ordering::Release);
        self.event_count.notify_all();
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Whether a copy has been enqueued.
    pub(super) fn has_begun(&self) -> bool {
        self.submission.load(Ordering::Relaxed) > 0
    }

    /// Whether the calling thread moves parts too.
    pub(super) fn caller_also_copies(&self) -> bool {
        self.threads <= TUNING.dedicated_submitter_above
            || self.helpers.load(Ordering::Relaxed) < TUNING.enough_helpers
    }

    /// Whether a helper has come.
    pub(super) fn has_helpers(&self) -> bool {
        self.helpers.load(Ordering::Relaxed) > 0
    }

    /// A copy of this transfer has been enqueued. It `has_event` if there are others, so that it can be waited for alone.
    pub(super) fn has_enqueued(&self, submission: u64, has_event: bool) {
        self.submission.fetch_max(submission, Ordering::Relaxed);
        let mut submissions = self.submissions.lock();
        match submissions.last_mut().filter(|run| run.end() + 1 == submission) {
            Some(run) => *run = *run.start()..=submission,
            None => submissions.push(submission..=submission),
        }
        drop(submissions);
        if has_event {
            // Without its own event the copy is waited for together with all later work: slow, not wrong.
            let _ = self.timeline.wait_target(submission);
        }
    }

    /// Tells whether the copy with that submission index is over, asking the driver if `ask`. A wait for the copy
    /// reports its failure.
    pub(super) fn is_complete(&self, submission: u64, ask: bool) -> bool {
        self.timeline.is_complete(submission) || ask && matches!(self.timeline.poll(submission), Ok(true))
    }

    /// Waits for all copies, which have been enqueued.
    /// Returns the first failure of one of them.
    pub(super) fn wait_for_all(&self) -> Result<()> {
        let result = self.timeline.wait_host(self.submission.load(Ordering::Relaxed)).result;
        let submissions = self.submissions.lock();
        let mut submissions = submissions.iter();
        let result = result
            .and_then(|()| submissions.try_for_each(|run| self.timeline.check_submissions(run.clone())));
        result.map_err(|error| error.in_operation(self.operation))
    }

    /// Waits for the copy that uses a block.
    pub(super) fn wait_host(&self, staging: &Arc<Staging<B>>, submission: u64) -> Result<()> {
        let wait_outcome = self.timeline.wait_host(submission);
        if !wait_outcome.done {
            // The device may go on using the block.
            std::mem::forget(staging.clone());
        }
        wait_outcome.result.map_err(|error| error.in_operation(self.operation))
    }
}

#[cfg(all(test, not(any(loom, miri))))]
mod tests {
    use super::*;
    use gpumem_host::Host;

    /// A helper has taken a part, and unwinds before it has moved it.
    #[test]
    fn a_helper_that_panics_ends_the_transfer_with_an_error() {
        let device = Device::<Host>::open("host").unwrap();
        let timeline = device.default_timeline().unwrap();
        let state = TransferState::new(&device, &timeline, "test", 2, 1);
        let help = || std::panic::resume_unwind(Box::new("on purpose"));
        let submit = |_: &mut dyn FnMut()| {
            state.event_count.wait_until(|| state.has_ended());
            Ok(())
        };
        let error = state.run(&help, submit, None).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::AsynchronousFault { .. }), "{error}");
        assert_eq!(error.operation(), "test");
    }
}
