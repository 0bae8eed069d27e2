//! Waiting for the uses of a block, and asking for them.

use super::Allocation;
use crate::{
    memory::Counted,
    order::{Settled, Timeline},
    trace::Recorder,
};
use gpumem_core::{Backend, Error, HostAccess, MemoryKind, Result};
use smallvec::SmallVec;
use std::{ops::Range, sync::Arc};

/// A use that must be over before memory is used otherwise.
type PendingUse<B> = (Arc<Timeline<B>>, u64);

impl<B: Backend> Allocation<B> {
    /// Waits until the host may read or write these bytes.
    pub(crate) fn wait_for_host(
        &self,
        operation: &'static str,
        extent: &Range<usize>,
        access: HostAccess,
    ) -> Result<()> {
        self.check(operation)?;
        let uses: SmallVec<[PendingUse<B>; 4]> = {
            let log = self.log();
            let write = access == HostAccess::Write;
            log.conflicts(extent, write).map(|entry| (entry.by.clone(), entry.ticket)).collect()
        };
        for (timeline, ticket) in uses {
            timeline.settle(ticket).result.map_err(|error| error.in_operation(operation))?;
        }
        Recorder::used(self, extent, access == HostAccess::Write, operation, (0, 0));
        let concurrent = B::capabilities(&self.core().raw).concurrent_managed_access;
        if matches!(self.kind, MemoryKind::Managed(_)) && !concurrent {
            crate::completion::may_block(operation)?;
            self.core().note_loss(B::synchronize(&self.core().raw))?;
        }
        Ok(())
    }

    /// As [`wait_for_host`](Self::wait_for_host), where the elements are shown to somebody.
    pub(crate) fn show_to_host(
        &self,
        operation: &'static str,
        extent: &Range<usize>,
        access: HostAccess,
    ) -> Result<()> {
        self.wait_for_host(operation, extent, access)?;
        self.check_written(operation, extent)
    }

    /// As [`show_to_host`](Self::show_to_host), where somebody is about to use the elements on a device: only one that goes on
    /// after a failure is waited for, because it alone may fail without being lost.
    pub(crate) fn hand_out(&self, operation: &'static str, extent: &Range<usize>) -> Result<()> {
        let mut writers: SmallVec<[PendingUse<B>; 4]> = SmallVec::new();
        for entry in self.log().conflicts(extent, false) {
            if entry.by.survives_faults() && !entry.by.has_passed(entry.ticket) {
                writers.push((entry.by.clone(), entry.ticket));
            }
        }
        for (timeline, ticket) in writers {
            timeline.settle(ticket).result.map_err(|error| error.in_operation(operation))?;
        }
        self.check_written(operation, extent)
    }

    /// Makes a stream of others wait for whatever conflicts with a use of these bytes.
    pub(crate) fn hold_back(
        &self,
        operation: &'static str,
        extent: &Range<usize>,
        write: bool,
        stream: &B::Stream,
    ) -> Result<()> {
        self.check(operation)?;
        let fail = |error: Error| error.in_operation(operation);
        // What may take a wait of the host is left until the log is open again.
        let mut others: SmallVec<[PendingUse<B>; 4]> = SmallVec::new();
        for entry in self.log().conflicts(extent, write) {
            if !entry.by.hold_back_at_once(entry.ticket, self.core(), stream).map_err(fail)? {
                others.push((entry.by.clone(), entry.ticket));
            }
        }
        for (timeline, ticket) in others {
            timeline.hold_back(ticket, self.core(), stream).map_err(fail)?;
        }
        Ok(())
    }

    /// Notes that all of the memory, which is new, is written by what stands on a stream of others now.
    pub(crate) fn note_import(&self, operation: &'static str, stream: &B::Stream) -> Result<()> {
        let ended = Timeline::ended(self.core(), stream);
        let (timeline, ticket) = ended.map_err(|error| error.in_operation(operation))?;
        self.came_behind(operation, timeline, ticket);
        Ok(())
    }

    fn came_behind(&self, operation: &'static str, timeline: Arc<Timeline<B>>, ticket: u64) {
        let all = 0..self.len();
        Recorder::used(self, &all, true, operation, (timeline.id(), ticket));
        self.log.lock().inherit(all, timeline, ticket);
    }

    /// Notes that all of the memory, which is new, is written by what stands on a stream of ours now. As with work of our own
    /// the mark is left to whoever needs one: who uses the memory on this stream never does.
    pub(crate) fn note_given(
        memory: &mut Counted<Self>,
        operation: &'static str,
        timeline: &Arc<Timeline<B>>,
    ) -> Result<()> {
        timeline.check(operation)?;
        let ticket = timeline.behind_all().map_err(|error| error.in_operation(operation))?;
        memory.came_behind(operation, timeline.clone(), ticket);
        // Where somebody else holds the memory, it is a use like others.
        if let Some(memory) = memory.get_mut() {
            memory.extra.get_or_insert_default().given = Some((timeline.id(), ticket));
        }
        Ok(())
    }

    /// Notes what a borrower has enqueued on a stream of others up to now, as writes of these bytes.
    pub(crate) fn note_borrowers_work(
        &self,
        operation: &'static str,
        extent: &Range<usize>,
        stream: &B::Stream,
    ) -> Result<()> {
        let ended = Timeline::ended(self.core(), stream);
        let (timeline, ticket) = ended.map_err(|error| error.in_operation(operation))?;
        self.log().note_others(extent, true, &timeline, ticket);
        Ok(())
    }

    /// As [`note_borrowers_work`](Self::note_borrowers_work), on a stream of ours.
    pub(crate) fn note_work_on(
        &self,
        operation: &'static str,
        extent: &Range<usize>,
        timeline: &Arc<Timeline<B>>,
    ) -> Result<()> {
        timeline.check_owns(operation, self)?;
        let ticket = timeline.behind_all().map_err(|error| error.in_operation(operation))?;
        self.log().note_others(extent, true, timeline, ticket);
        Ok(())
    }

    /// What is known to write these bytes on other streams than `timeline`.
    pub(crate) fn writers(
        &self,
        extent: &Range<usize>,
        timeline: &Timeline<B>,
    ) -> SmallVec<[PendingUse<B>; 4]> {
        let log = self.log();
        let others = log.conflicts(extent, false).filter(|entry| entry.by.id() != timeline.id());
        others.map(|entry| (entry.by.clone(), entry.ticket)).collect()
    }

    /// Waits for every use, whatever becomes of it. Stops where it cannot be proven that a use is over.
    pub(crate) fn wait_until_unused(&self) -> Settled {
        let uses: SmallVec<[PendingUse<B>; 4]> =
            self.log().all().map(|entry| (entry.by.clone(), entry.ticket)).collect();
        let mut all = Settled::done();
        for (timeline, ticket) in uses {
            let settled = timeline.settle(ticket);
            if !settled.done {
                return settled;
            }
            all.result = all.result.and(settled.result);
        }
        all
    }

    /// Whether every use is known to be done, without asking the driver.
    pub(crate) fn is_known_idle(&self) -> bool {
        self.log().all().all(|entry| entry.by.has_passed(entry.ticket))
    }

    /// Whether every use is done, asking the driver. Never blocks; an error counts as "no".
    pub(crate) fn is_idle(&self) -> bool {
        let uses: SmallVec<[PendingUse<B>; 4]> =
            self.log().all().map(|entry| (entry.by.clone(), entry.ticket)).collect();
        uses.iter().all(|(timeline, ticket)| timeline.poll(*ticket).unwrap_or(false))
    }
}
