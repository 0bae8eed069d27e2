//! Waiting for the uses of a block, and asking for them.

use super::Tracked;
use crate::track::{Timeline, WaitOutcome};
use gpumem_core::{Backend, DriverDevice, Error, ErrorKind, HostAccess, MemoryKind, Result};
use smallvec::SmallVec;
use std::{ops::Range, sync::Arc};

/// A use that must be over before memory is used otherwise.
type PendingUse<B> = (Arc<Timeline<B>>, u64);

impl<B: Backend> Tracked<B> {
    /// Records a use, if uses are recorded: at `submission` of `stream`, or at once and by the host (stream 0).
    #[inline]
    pub fn record_use(
        &self,
        extent: &Range<usize>,
        write: bool,
        operation: &'static str,
        (stream, submission): (u64, u64),
    ) {
        if self.context.recorder.keeps_uses() {
            self.record_use_in_log(extent, write, operation, (stream, submission));
        }
    }

    /// Not in line: unrecorded work should not carry the code for it.
    #[inline(never)]
    fn record_use_in_log(&self, extent: &Range<usize>, write: bool, operation: &'static str, at: (u64, u64)) {
        let kind = self.is_owned().then(|| self.kind());
        self.context.recorder.used((self.id(), kind), extent, write, operation, at);
    }

    /// Waits until the host may read or write these bytes.
    pub fn wait_for_host(
        &self,
        operation: &'static str,
        extent: &Range<usize>,
        access: HostAccess,
    ) -> Result<()> {
        self.wait_for_uses(operation, extent, access == HostAccess::Write)?;
        // After the wait: the recording has the moment at which the host begins.
        self.record_use(extent, access == HostAccess::Write, operation, (0, 0));
        let concurrent = self.context.raw.capabilities().concurrent_managed_access;
        // There the host must not touch any managed memory while any kernel runs.
        if matches!(self.kind, MemoryKind::Managed(_)) && !concurrent {
            crate::blocking::may_block(operation)?;
            self.context.note_loss(self.context.raw.synchronize())?;
        }
        Ok(())
    }

    /// Waits on the host for work that conflicts with a use of these bytes. Failures are left to the bytes.
    pub fn wait_for_uses(&self, operation: &'static str, extent: &Range<usize>, write: bool) -> Result<()> {
        self.check(operation)?;
        let uses: SmallVec<[PendingUse<B>; 4]> = {
            let log = self.log_for(operation, extent, write, None)?;
            log.conflicts(extent, write).map(|entry| (entry.by.clone(), entry.submission)).collect()
        };
        for (timeline, submission) in uses {
            timeline.wait_for_use(submission).result.map_err(|error| error.in_operation(operation))?;
        }
        Ok(())
    }

    /// As [`wait_for_host`](Self::wait_for_host), where the elements are shown to other code.
    pub fn show_to_host(
        &self,
        operation: &'static str,
        extent: &Range<usize>,
        access: HostAccess,
    ) -> Result<()> {
        self.wait_for_host(operation, extent, access)?;
        self.check_written(operation, extent)
    }

    /// As [`show_to_host`](Self::show_to_host), where other code is about to use the elements on a device: only one that goes
    /// on after a failure is waited for, because it alone may fail without being lost.
    pub fn hand_out(&self, operation: &'static str, extent: &Range<usize>) -> Result<()> {
        let mut writers: SmallVec<[PendingUse<B>; 4]> = SmallVec::new();
        for entry in self.log_for(operation, extent, false, None)?.conflicts(extent, false) {
            if entry.by.survives_faults() && !entry.by.is_complete(entry.submission) {
                writers.push((entry.by.clone(), entry.submission));
            }
        }
        for (timeline, submission) in writers {
            timeline.wait_for_use(submission).result.map_err(|error| error.in_operation(operation))?;
        }
        self.check_written(operation, extent)
    }

    /// Makes a foreign stream wait for all uses but those of its own timeline: it is about to get the memory.
    pub fn make_owner_wait(
        &self,
        operation: &'static str,
        timeline: &Timeline<B>,
        stream: &B::Stream,
    ) -> Result<()> {
        for (by, submission) in self.writers(&(0..self.len()), timeline) {
            let waits = by.make_stream_wait(submission, self.context(), stream);
            waits.map_err(|error| error.in_operation(operation))?;
        }
        Ok(())
    }

    /// Makes a foreign stream wait for all work that conflicts with a use of these bytes.
    pub fn make_stream_wait(
        &self,
        operation: &'static str,
        extent: &Range<usize>,
        write: bool,
        stream: &B::Stream,
    ) -> Result<()> {
        self.check(operation)?;
        let fail = |error: Error| error.in_operation(operation);
        // The waits come when the log is unlocked again: the stream may have no room for one, and the host may have to wait.
        let mut earlier: SmallVec<[PendingUse<B>; 4]> = SmallVec::new();
        for entry in self.log_for(operation, extent, write, None)?.conflicts(extent, write) {
            if !entry.by.is_complete(entry.submission) {
                earlier.push((entry.by.clone(), entry.submission));
            }
        }
        for (timeline, submission) in earlier {
            timeline.make_stream_wait(submission, self.context(), stream).map_err(fail)?;
        }
        Ok(())
    }

    /// Notes that the pending work of a foreign stream writes all of the memory, which is new.
    pub fn note_import(&self, operation: &'static str, stream: &B::Stream) -> Result<()> {
        let ended = Timeline::foreign_snapshot(self.context(), stream);
        let (timeline, submission) = ended.map_err(|error| error.in_operation(operation))?;
        self.record_import(operation, timeline, submission);
        Ok(())
    }

    /// Notes that all of the memory, which is new, is written by `submission` of a timeline.
    pub fn record_import(&self, operation: &'static str, timeline: Arc<Timeline<B>>, submission: u64) {
        let all = 0..self.len();
        self.record_use(&all, true, operation, (timeline.id(), submission));
        // New memory is not lent yet: no borrower's work has to be noted first.
        self.log.lock().note_others(&all, true, &timeline, submission);
    }

    /// Asks the driver what is over of a long log: work of others comes to it without having waited for what it holds. The caller has
    /// no lock.
    #[cold]
    pub fn shorten_log(&self) {
        let uses: SmallVec<[PendingUse<B>; 4]> = {
            let log = self.log();
            let all = log.all().filter(|_| log.is_long());
            all.map(|entry| (entry.by.clone(), entry.submission)).collect()
        };
        for (timeline, submission) in uses {
            // What cannot be told stays.
            let _ = timeline.poll(submission);
        }
    }

    /// Notes a borrower's work on a foreign stream up to now, as writes of these bytes.
    pub fn note_borrowers_work(
        &self,
        operation: &'static str,
        extent: &Range<usize>,
        stream: &B::Stream,
    ) -> Result<()> {
        let ended = Timeline::foreign_snapshot(self.context(), stream);
        let (timeline, submission) = ended.map_err(|error| error.in_operation(operation))?;
        self.shorten_log();
        self.log().note_others(extent, true, &timeline, submission);
        Ok(())
    }

    /// As [`note_borrowers_work`](Self::note_borrowers_work), on a stream of the library.
    pub fn note_work_on(
        &self,
        operation: &'static str,
        extent: &Range<usize>,
        timeline: &Arc<Timeline<B>>,
    ) -> Result<()> {
        timeline.check_owns(operation, self)?;
        // The queue is free again before the log is locked: logs come first.
        let submission = timeline.reserve_index().map_err(|error| error.in_operation(operation))?;
        self.log().note_others(extent, true, timeline, submission);
        Ok(())
    }

    /// Returns the known writers of these bytes on other streams than `timeline`.
    pub fn writers(&self, extent: &Range<usize>, timeline: &Timeline<B>) -> SmallVec<[PendingUse<B>; 4]> {
        let log = self.log();
        let others = log.conflicts(extent, false).filter(|entry| entry.by.id() != timeline.id());
        others.map(|entry| (entry.by.clone(), entry.submission)).collect()
    }

    /// Waits for every use. Stops if it cannot be proven that a use is over. That one of them was aborted is left to the bytes: the
    /// memory may have had another owner then.
    pub fn wait_until_unused(&self) -> WaitOutcome {
        let uses: SmallVec<[PendingUse<B>; 4]> =
            self.log().all().map(|entry| (entry.by.clone(), entry.submission)).collect();
        let mut all = WaitOutcome::done();
        for (timeline, submission) in uses {
            let wait_outcome = timeline.wait_for_use(submission);
            if !wait_outcome.done {
                return wait_outcome;
            }
            let is_aborted = |error: &Error| matches!(error.kind(), ErrorKind::Collective(_));
            if !wait_outcome.result.as_ref().is_err_and(is_aborted) {
                all.result = all.result.and(wait_outcome.result);
            }
        }
        all
    }

    /// Whether every use is known to be done, without asking the driver.
    pub fn is_known_idle(&self) -> bool {
        self.log().all().all(|entry| entry.by.is_complete(entry.submission))
    }

    /// Whether every use is done, asking the driver. Never blocks; an error counts as "no".
    pub fn is_idle(&self) -> bool {
        let uses: SmallVec<[PendingUse<B>; 4]> =
            self.log().all().map(|entry| (entry.by.clone(), entry.submission)).collect();
        uses.iter().all(|(timeline, submission)| timeline.poll(*submission).unwrap_or(false))
    }
}
