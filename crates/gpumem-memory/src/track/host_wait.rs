//! How the host learns that work is done, or that it failed.

use super::{
    RecordedEvent, Timeline,
    queue::{WaitTarget, stale},
};
use crate::blocking;
use gpumem_core::{Backend, DriverDevice, Error, ErrorKind, Event, Result, Stream};
use std::ops::RangeInclusive;

/// How a wait of the host ended.
#[derive(Debug)]
pub struct WaitOutcome {
    /// Whether the work is proven to be done, or to have stopped: its memory is not touched any more.
    pub done: bool,
    /// The error of the work or the driver.
    pub result: Result<()>,
}

impl WaitOutcome {
    pub(crate) fn done() -> Self {
        Self { done: true, result: Ok(()) }
    }

    fn unproven(error: Error) -> Self {
        Self { done: false, result: Err(error) }
    }
}

/// The work of a stream that an event stands for.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    /// Failures up to here had been told by a wait for the whole stream when the event was recorded, which does not tell
    /// them.
    told: u64,
    pub last: u64,
}

impl<B: Backend> Timeline<B> {
    /// The work up to a submission, without failures that have been told by a wait for the stream.
    #[inline]
    pub fn span_to(&self, last: u64) -> Span {
        Span { told: self.failed.told(), last }
    }

    /// How the work of an event ended, which is done: the same each time.
    /// Returns the first failure of that work.
    pub fn outcome(&self, span: Span) -> Result<()> {
        self.check_submissions(span.told + 1..=span.last)
    }

    /// How the submissions ended, which are done.
    /// Returns their first failure, each time.
    #[inline]
    pub fn check_submissions(&self, submissions: RangeInclusive<u64>) -> Result<()> {
        self.failed.find(submissions).map_or(Ok(()), |error| Err(self.context.place(error)))
    }

    /// Whether everything on the driver's stream is done, asking the driver. Never blocks, and leaves a failure to the call that
    /// waits.
    /// Returns the failure of the work or of the driver, each time until a call has waited for the stream.
    pub fn poll_all(&self) -> Result<bool> {
        let (last, raw) = {
            // Only to take references: a driver without threads may run kernels meanwhile. A stream on which another thread is
            // enqueuing for as long is not done.
            let Some(queue) = self.queue.lock_soon() else { return Ok(false) };
            (queue.submission, self.raw_here(&queue))
        };
        // The stream itself, which may have work of other libraries.
        let raw = raw.ok_or_else(|| stale(&self.context, "query"))?;
        let is_done = self.conclude(last, raw.query())?;
        match self.failed.untold(last).filter(|_| is_done) {
            Some(error) => Err(self.context.place(error)),
            None => Ok(is_done),
        }
    }

    /// Notes that the driver reports a failure of work of the device. Unless it says which work has failed, that may have been
    /// this stream's. A wait that the driver refuses says nothing about the work.
    #[cold]
    pub fn note_failure(&self, error: &Error) {
        if !self.survives_faults() && ends_the_work(error) {
            self.note_fault(self.last_submission(), error);
        }
    }

    /// Notes that the driver reports a failure of work up to `submission`, perhaps to this caller only.
    #[cold]
    fn note_fault(&self, submission: u64, error: &Error) {
        let first = self.first_pending();
        // Work that is known to be done did not fail.
        if first <= submission {
            self.failed.note(first..=submission, error, false);
        }
    }

    /// Whether `submission` is over, asking the driver. Never blocks. [`check_submissions`](Self::check_submissions) then tells how
    /// it ended.
    ///
    /// The driver is asked without the lock: one without threads may run kernels meanwhile, whose bodies may use the stream.
    pub fn poll(&self, submission: u64) -> Result<bool> {
        if self.is_complete(submission) || self.is_stale() {
            return Ok(true);
        }
        // Not for as long as a driver without room keeps a thread that enqueues: the caller may be the one to end what it waits for.
        let Some(mut queue) = self.queue.lock_soon() else { return Ok(false) };
        if self.is_whole_device && !queue.events.has(submission) {
            match self.record(&mut queue).map(drop) {
                Err(error) if is_unsupported(&error) => return Ok(false),
                recorded => recorded?,
            }
        }
        if !queue.events.has(submission) {
            let (raw, last) = (self.raw_here(&queue), queue.submission);
            drop(queue);
            match raw.map(|raw| raw.query()) {
                Some(Ok(false)) if submission < last => {}
                Some(Ok(false)) => return Ok(false),
                Some(answer) => return self.conclude(last, answer),
                // Only a wait can tell.
                None => return Ok(false),
            }
            let Some(again) = self.queue.lock_soon() else { return Ok(false) };
            queue = again;
            if !queue.events.has(submission) {
                self.record(&mut queue)?;
            }
        }
        let event = queue.event_for(submission);
        drop(queue);
        match event {
            Some(WaitTarget::Event { submission, recorded }) => {
                self.conclude(submission, recorded.event().map_or(Ok(true), Event::query))
            }
            _ => Ok(true),
        }
    }

    /// As [`poll`](Self::poll), by an event after the submission, whatever is enqueued meanwhile.
    pub fn poll_recorded(&self, submission: u64, recorded: &RecordedEvent<B>) -> Result<bool> {
        if self.is_over(submission) {
            return Ok(true);
        }
        self.conclude(submission, recorded.event().map_or(Ok(true), Event::query))
    }

    /// Draws the conclusion from the driver's answer about `submission`.
    fn conclude(&self, submission: u64, answer: Result<bool>) -> Result<bool> {
        let answer = self.context.note_loss(answer);
        let done = match &answer {
            Ok(done) => *done,
            Err(error) if ends_the_work(error) => {
                // Before it counts as complete: who sees that looks for failures next.
                self.note_fault(submission, error);
                true
            }
            Err(_) => false,
        };
        // A failure of the query alone says nothing about the work.
        if done {
            self.note_complete(submission);
        }
        answer
    }

    /// Blocks until `submission` is done, or cannot go on, and returns how it ended, each time. Failures of other work stay for
    /// [`synchronize`](Self::synchronize): many callers only need to know that memory is not in use. Needs no event: if none covers
    /// the submission index, it waits for the stream itself.
    pub fn wait_host(&self, submission: u64) -> WaitOutcome {
        self.wait_by(submission, None)
    }

    /// As [`wait_host`](Self::wait_host), by an event after the submission, whatever is enqueued meanwhile.
    pub fn wait_recorded(&self, submission: u64, recorded: &RecordedEvent<B>) -> WaitOutcome {
        self.wait_by(submission, Some(recorded))
    }

    fn wait_by(&self, submission: u64, recorded: Option<&RecordedEvent<B>>) -> WaitOutcome {
        if self.is_complete(submission) || self.is_stale() {
            return self.ended_well(submission);
        }
        // After the look at what is complete: work that is done may be asked for anywhere.
        if let Err(error) = blocking::may_block("synchronize") {
            return WaitOutcome::unproven(error);
        }
        if let Err(error) = self.context.check_process("synchronize") {
            return WaitOutcome::unproven(error);
        }
        let begin = self.context.recorder.begin_wait();
        let reached = |recorded: &RecordedEvent<B>| recorded.event().map_or(Ok(()), Event::synchronize);
        let (covers, answer) = match recorded {
            Some(recorded) => (submission, reached(recorded)),
            None => {
                // Only to take references: others enqueue while this thread waits.
                let queue = self.queue.lock();
                let (last, raw, found) =
                    (queue.submission, self.raw_here(&queue), queue.event_for(submission));
                drop(queue);
                match (found, raw) {
                    (Some(WaitTarget::Event { submission, recorded }), _) => (submission, reached(&recorded)),
                    (_, Some(raw)) => (last, raw.synchronize()),
                    // The stream was dropped and its last event could not be made, or it is another one on this thread: only the
                    // device can tell.
                    (_, None) => (last, self.context.raw.synchronize()),
                }
            }
        };
        self.context.recorder.end_wait(begin, self.id(), covers);
        match self.context.note_loss(answer) {
            Ok(()) => {
                self.note_complete(covers);
                self.ended_well(submission)
            }
            Err(error) => {
                // Either the work has failed and is over, or the wait itself has failed; then the whole device is
                // queried. A refusal is left at that: the device would be waited for beside the capture which is in the way.
                let failed = ends_the_work(&error);
                if failed {
                    self.note_fault(covers, &error);
                }
                // Law 8: memory that may still be written is not given back.
                let done = failed || (!is_unsupported(&error) && self.context.raw.synchronize().is_ok());
                if done {
                    self.note_complete(covers);
                }
                WaitOutcome { done, result: Err(error) }
            }
        }
    }

    /// As [`wait_host`](Self::wait_host), for work that used some memory. Where failed work is kept from being built upon, the
    /// bytes say what is missing, and by which work: that work may have had other bytes, or these were written since.
    pub fn wait_for_use(&self, submission: u64) -> WaitOutcome {
        let outcome = self.wait_host(submission);
        let has_failed = |error: &Error| matches!(error.kind(), ErrorKind::AsynchronousFault { .. });
        match outcome.result.as_ref().is_err_and(has_failed) && outcome.done && self.survives_faults() {
            true => WaitOutcome::done(),
            false => outcome,
        }
    }

    /// The outcome of a wait that has ended well.
    #[inline]
    fn ended_well(&self, submission: u64) -> WaitOutcome {
        WaitOutcome { done: true, result: self.check_submissions(submission..=submission) }
    }

    /// Waits until everything on the driver's stream is done, including work of other libraries, and until callbacks have run.
    /// Staged transfers land, unless their work failed.
    pub fn finish(&self) -> WaitOutcome {
        // Foreign work on the same stream has no submission index: a new one makes the wait look again.
        self.finish_to(self.note_unknown_work())
    }

    fn finish_to(&self, last: u64) -> WaitOutcome {
        // Before copies and callbacks, which wait for nothing themselves.
        let wait_outcome = self.wait_host(last);
        self.copy_out_completed();
        if wait_outcome.done {
            self.callbacks.drain();
        }
        wait_outcome
    }

    /// As [`finish`](Self::finish), and tells what has failed on the stream.
    /// Returns the failures that no such call has told.
    pub fn synchronize(&self) -> Result<()> {
        let span = self.span_to(self.note_unknown_work());
        self.told(span, self.finish_to(span.last))
    }

    /// Waits for the work up to a submission, and tells what has failed by then.
    /// Returns the failures that no such call has told.
    pub fn synchronize_to(&self, submission: u64) -> Result<()> {
        self.told(self.span_to(submission), self.wait_host(submission))
    }

    fn told(&self, span: Span, wait_outcome: WaitOutcome) -> Result<()> {
        // Work that may still run is told by a later wait.
        let told = if wait_outcome.done { self.failed.tell(span.told, span.last) } else { None };
        told.map_or(wait_outcome.result, |error| Err(self.context.place(error)))
    }

    /// Copies the results of completed work out of staging memory. A copy of what failed work was to write is an error of its
    /// scope.
    pub fn copy_out_completed(&self) {
        self.copy_outs.run(|submission| self.is_complete(submission));
    }
}

/// Whether an error says that nothing can wait here and now, where a later wait can: beside a capture of another library, or in a callback.
pub(crate) fn is_refused(error: &Error) -> bool {
    is_unsupported(error) || matches!(error.kind(), ErrorKind::BlockingInCallback)
}

pub(super) fn is_unsupported(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Unsupported { .. })
}

/// Whether an error says that the work is over: it failed, or its device has stopped.
fn ends_the_work(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::AsynchronousFault { .. } | ErrorKind::DeviceLost { .. })
}
