//! A chunk that lies open to all threads, as the submitter sees it.

use super::staged_chunk::StagedChunk;
use crate::{
    transfer::{Staging, TUNING, state::TransferState},
    transfer_options::TransferConfig,
};
use gpumem_core::Backend;
use std::{collections::VecDeque, sync::Arc};

pub(super) struct OpenChunk<B: Backend> {
    pub(super) chunk: Arc<StagedChunk<B>>,
    /// Parts that have been moved without a gap, and those that have been sent.
    moved: usize,
    pub(super) sent: usize,
    /// Copies of a ring that may be under way: their submission indexes, and where their parts end.
    copies: VecDeque<(u64, usize)>,
}

impl<B: Backend> OpenChunk<B> {
    pub(super) fn new(chunk: Arc<StagedChunk<B>>) -> Self {
        Self { chunk, moved: 0, sent: 0, copies: VecDeque::new() }
    }

    /// Notes the copy of the parts that are ready. `true` if these were the last ones.
    pub(super) fn has_sent(&mut self, end: usize, submission: u64) -> bool {
        self.sent = end;
        self.copies.push_back((submission, end));
        end == self.chunk.marks.parts()
    }

    /// Looks how many parts have been moved. `true` if there are more than before.
    pub(super) fn look(&mut self) -> bool {
        let moved = self.chunk.marks.moved_from(self.moved);
        moved > std::mem::replace(&mut self.moved, moved)
    }

    /// Opens the parts whose slots are free again. Asks the driver if `ask`.
    pub(super) fn reopen(&mut self, state: &TransferState<'_, B>, ask: bool) {
        let mut copied = None;
        while let Some((submission, end)) = self.copies.front()
            && state.is_complete(*submission, ask)
        {
            copied = Some(*end);
            self.copies.pop_front();
        }
        if let Some(end) = copied {
            self.chunk.marks.reopen(end);
            state.event_count.notify_all();
        }
    }

    /// Returns where the parts end that are to be sent now. A chunk of several runs is sent as a whole: on the device it need
    /// not be one run. A ring is sent as it is filled.
    pub(super) fn ready(&mut self, config: &TransferConfig) -> Option<usize> {
        self.look();
        let (all, slots) = (self.chunk.marks.parts(), self.chunk.marks.slots());
        if slots == 0 {
            return (self.moved == all).then_some(all);
        }
        let most = if all > slots { slots.div_ceil(TUNING.copies_of_a_ring) } else { all };
        // At most up to the end of the block.
        let end = self.moved.min(self.sent + most).min(self.sent / slots * slots + slots);
        let parts = end - self.sent;
        // Nothing is too short once the last parts have been opened.
        let is_last = self.chunk.marks.opened() == all;
        let shortest = config.shortest.div_ceil(self.chunk.part_bytes()).min(most);
        let least = if is_last { shortest } else { (self.sent / TUNING.ramp).clamp(shortest, most) };
        let is_cut_short = end == all || parts == most || end.is_multiple_of(slots);
        // One copy is under way and no other after it, or none.
        (parts > 0 && (parts >= least || is_cut_short) && self.copies.len() < 2).then_some(end)
    }

    /// Returns the copy that alone is missing: all open parts have been moved.
    pub(super) fn missing_copy(&self) -> Option<(&Arc<Staging<B>>, u64)> {
        let (submission, _) = self.copies.front()?;
        (self.moved == self.chunk.marks.opened()).then_some((&self.chunk.staging, *submission))
    }
}
