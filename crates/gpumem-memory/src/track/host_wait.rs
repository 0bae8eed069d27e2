//! How the host learns that work is done, or that it failed.

use super::{
    RecordedEvent, Timeline,
    queue::{WaitTarget, stale},
};
use crate::blocking;
use gpumem_core::{Backend, Error, ErrorKind, Event, Result, Stream};

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

impl<B: Backend> Timeline<B> {
    /// How the work before an event ended, which is done. The driver's event says so also after other calls were told.
    /// Where a failure loses the device, every call says so anyway.
    ///
    /// # Errors
    /// Returns the failure of that work.
    pub fn outcome(&self, recorded: &RecordedEvent<B>) -> Result<()> {
        match recorded.event() {
            Some(event) if B::capabilities(&self.context.raw).survives_faults => {
                self.context.note_loss(event.query()).map(drop)
            }
            _ => Ok(()),
        }
    }

    /// Whether everything enqueued so far is done, asking the driver. Never blocks, and leaves a failure to the call that
    /// waits.
    ///
    /// # Errors
    /// Returns the failure of the work or of the driver, each time until a call has waited for the stream.
    pub fn poll_all(&self) -> Result<bool> {
        let is_done = self.poll(self.last_submission())?;
        if is_done && B::capabilities(&self.context.raw).survives_faults {
            self.with_raw("query", Stream::query)?;
        }
        Ok(is_done)
    }

    /// Remembers that work up to `submission` failed.
    pub(super) fn note_fault(&self, submission: u64, error: &Error) {
        let mut fault = self.fault.lock();
        if fault.as_ref().is_none_or(|(last, _)| *last < submission) {
            *fault = Some((submission, error.clone()));
        }
    }

    /// Tells whether work up to `submission` is known to have failed, or to come after failed work.
    pub(crate) fn has_failed(&self, submission: u64) -> bool {
        self.fault.lock().as_ref().is_some_and(|(last, _)| *last >= submission)
    }

    /// Checks whether work after `submission` has failed, even if an earlier call has reported the failure.
    ///
    /// # Errors
    /// Returns that failure.
    pub fn fault_since(&self, submission: u64) -> Result<()> {
        match self.fault.lock().as_ref() {
            Some((last, error)) if *last > submission => Err(error.clone()),
            _ => Ok(()),
        }
    }

    /// Whether `submission` is done, asking the driver. Never blocks.
    ///
    /// # Errors
    /// Returns the failure of the work or of the driver. Work that failed counts as done afterwards.
    pub fn poll(&self, submission: u64) -> Result<bool> {
        let is_done = self.poll_driver(submission)?;
        if is_done {
            self.aborted.check(submission)?;
        }
        Ok(is_done)
    }

    fn poll_driver(&self, submission: u64) -> Result<bool> {
        if self.is_complete(submission) || self.is_stale() {
            return Ok(true);
        }
        let (answer, covers) = {
            let mut queue = self.queue.lock();
            if self.is_whole_device && !queue.events.has(submission) {
                match self.record(&mut queue) {
                    Err(error) if is_unsupported(&error) => return Ok(false),
                    recorded => recorded?,
                }
            }
            if !queue.events.has(submission) {
                let raw = queue.raw.clone();
                let last = queue.submission;
                match raw.map(|raw| raw.query()) {
                    Some(Ok(false)) if submission < last => queue.record(&self.context).map(drop)?,
                    Some(Ok(false)) => return Ok(false),
                    Some(answer) => return self.conclude(last, answer),
                    None => return Err(stale(&self.context, "query")),
                }
            }
            match queue.events.find(submission) {
                Some((covers, recorded)) => (recorded.event().map_or(Ok(true), Event::query), *covers),
                None => return Ok(true),
            }
        };
        self.conclude(covers, answer)
    }

    /// Draws the conclusion from the driver's answer about `submission`.
    fn conclude(&self, submission: u64, answer: Result<bool>) -> Result<bool> {
        let answer = self.context.note_loss(answer);
        let done = match &answer {
            Ok(done) => *done,
            Err(error) if ends_the_work(error) => {
                self.note_fault(submission, error);
                true
            }
            Err(_) => false,
        };
        if done {
            self.note_complete(submission);
        }
        answer
    }

    /// Blocks until `submission` is done, or cannot go on. Needs no event: if no event covers the submission index, it
    /// waits for the stream itself.
    pub fn wait_host(&self, submission: u64) -> WaitOutcome {
        if self.is_complete(submission) || self.is_stale() {
            return self.ended_well(submission);
        }
        if let Err(error) = blocking::may_block("synchronize") {
            return WaitOutcome::unproven(error);
        }
        if let Err(error) = self.context.check_process("synchronize") {
            return WaitOutcome::unproven(error);
        }
        let begin = self.context.recorder.begin_wait();
        let (covers, answer) = {
            let queue = self.queue.lock();
            let (last, raw, recorded) = (queue.submission, queue.raw.clone(), queue.event_for(submission));
            drop(queue);
            match (recorded, raw) {
                (Some(WaitTarget::Event { submission, recorded }), _) => {
                    (submission, recorded.event().map_or(Ok(()), Event::synchronize))
                }
                (_, Some(raw)) => (last, raw.synchronize()),
                // The stream was dropped and its last event could not be made: only the device can tell.
                (_, None) => (last, B::synchronize(&self.context.raw)),
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
                // queried.
                let failed = ends_the_work(&error);
                if failed {
                    self.note_fault(covers, &error);
                }
                let done = failed || B::synchronize(&self.context.raw).is_ok();
                if done {
                    self.note_complete(covers);
                }
                WaitOutcome { done, result: Err(error) }
            }
        }
    }

    /// Waits until everything on the driver's stream is done, including work of other libraries.
    pub(crate) fn wait_host_all(&self) -> WaitOutcome {
        let last = {
            let mut queue = self.queue.lock();
            // Foreign work on the same stream has no submission index: a new one makes the wait look again.
            queue.submission += 1;
            queue.submission
        };
        self.wait_host(last)
    }

    /// Copies the results of completed work out of staging memory, unless the work failed, even if an earlier call has
    /// reported it.
    pub fn copy_out_completed(&self) {
        self.copy_outs.give_up(|submission| self.has_failed(submission));
        self.copy_outs.run(|submission| self.is_complete(submission));
    }

    /// Waits as `wait_host_all`, and until callbacks have run. Staged transfers land unless their work
    /// failed, even if an earlier call has reported it, or `land` says that it is unknown.
    pub fn finish(&self, land: bool) -> WaitOutcome {
        let wait_outcome = self.wait_host_all();
        if land {
            self.copy_out_completed();
        } else {
            self.copy_outs.give_up(|submission| self.has_failed(submission) || self.is_complete(submission));
        }
        if wait_outcome.done {
            self.callbacks.drain();
        }
        wait_outcome
    }
}

pub(super) fn is_unsupported(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Unsupported { .. })
}

/// Whether an error says that the work is over: it failed, or its device has stopped.
fn ends_the_work(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::AsynchronousFault { .. } | ErrorKind::DeviceLost { .. })
}
