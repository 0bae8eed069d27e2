//! Work of several ranks in a graph. Each launch submits it by itself, between the parts that it submits as one piece of work.

use super::launch::Bound;
use crate::{
    Stream,
    device::AllocationRef,
    key::Key,
    recording::{RegionUse, Step},
};
use gpumem_core::{Backend, ErrorKind, NotRecorded, Result};
use gpumem_memory::track::{Access, Work};
use smallvec::SmallVec;
use std::{fmt, ops::Range, sync::Arc};

/// An operation of several ranks, or a group of them, that was recorded.
pub trait RankWork<B: Backend>: fmt::Debug + Send + Sync {
    /// Refuses what [`enqueue`](Self::enqueue) would refuse in any case, before the launch has enqueued anything.
    fn check(&self, stream: &Stream<B>) -> Result<()>;

    /// Submits it as a call outside of a graph does, with the memory of a launch for each use that was recorded, in their order. Also
    /// after an error the other ranks meet no later operation in place of this one.
    fn enqueue(&self, stream: &Stream<B>, memory: &[BoundUse<'_, B>]) -> Result<()>;
}

/// Work of several ranks in a recording, which does not know its trait.
struct Kept<B: Backend>(Arc<dyn RankWork<B>>);

/// The work of several ranks that a step is.
pub(super) fn of<B: Backend>(step: &Step<B>) -> Option<&dyn RankWork<B>> {
    step.ranks.as_ref()?.downcast_ref::<Kept<B>>().map(|kept| &*kept.0)
}

/// Bytes of memory of a launch.
pub type BoundUse<'a, B> = (&'a AllocationRef<B>, Range<usize>);

impl<B: Backend> Stream<B> {
    /// Writes work of several ranks down in the recording of the stream, for the crate of these. `accesses` are its uses of memory, and
    /// `later` what copies after it write: each launch gets the memory of both, in this order.
    ///
    /// # Errors
    /// Returns [`NotRecordable`](ErrorKind::NotRecordable) or [`OfRecording`](ErrorKind::OfRecording) for memory or a stream that is
    /// not of the recording, and [`Overlap`](ErrorKind::Overlap). Nothing has been recorded then.
    #[doc(hidden)]
    pub fn record_ranks_by(
        &self,
        _: Key,
        operation: &'static str,
        (accesses, later): (&[Access<'_, B>], &[Access<'_, B>]),
        work: Arc<dyn RankWork<B>>,
    ) -> Result<()> {
        let timeline = self.timeline();
        let Some(recording) = self.device().recording() else {
            let what = NotRecorded::ForeignWork;
            return Err(timeline.context.error(operation, ErrorKind::NotRecordable { what }));
        };
        // What is admitted is not enqueued: it is data. What a copy writes may lie between what another one does.
        drop(timeline.admit(Work::Transfer, operation, accesses)?);
        for access in later {
            drop(timeline.admit(Work::Transfer, operation, std::slice::from_ref(access))?);
        }
        recording.add_ranks(timeline.id(), operation, accesses.iter().chain(later), Arc::new(Kept(work)))
    }
}

impl<B: Backend> Bound<'_, '_, B> {
    /// Submits work of several ranks with the memory of this launch.
    pub(super) fn enqueue_ranks(
        &self,
        stream: &Stream<B>,
        step: &Step<B>,
        work: &dyn RankWork<B>,
    ) -> Result<()> {
        let bound = |RegionUse { region, extent, .. }: &RegionUse| {
            let (memory, start) = self.memory(*self.plan.homes.get(*region)?)?;
            Some((memory, start + extent.start..start + extent.end))
        };
        let memory: SmallVec<[_; 4]> = step.uses.iter().filter_map(bound).collect();
        work.enqueue(stream, &memory)
    }
}
