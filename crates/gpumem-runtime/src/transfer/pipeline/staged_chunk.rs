//! A piece of a transfer that lies in a staging block, in parts that threads share.

use crate::{
    layout::CopyNest,
    transfer::{
        Direction, Staging, chunks::Chunks, host_side::HostSide, staged::Staged, store_policy::StorePolicy,
    },
};
use gpumem_core::{Backend, Error, FileError, HostAccess, Result};
use gpumem_memory::sync::part_marks::PartMarks;
use std::{
    iter,
    ops::Range,
    sync::{Arc, OnceLock},
};

/// A piece in a block, and the one after it once there is one. Threads go along that chain without a lock: on one they would
/// meet whenever a block has no more parts, and sleep.
pub(in crate::transfer) struct StagedChunk<B: Backend> {
    pub(super) staging: Arc<Staging<B>>,
    pub(super) piece: CopyNest,
    pub(super) marks: PartMarks,
    /// The part that one thread moves at a time.
    parts: Parts,
    next: OnceLock<Arc<StagedChunk<B>>>,
}

/// How a piece is divided into parts.
enum Parts {
    /// One run, in parts of so many bytes.
    Run(usize),
    /// Several runs.
    List(Vec<CopyNest>),
}

impl<B: Backend> StagedChunk<B> {
    /// Puts a piece, in parts of so many bytes, into a block that is as long.
    pub(super) fn whole(
        operation: &'static str,
        staging: Arc<Staging<B>>,
        piece: CopyNest,
        part_bytes: usize,
    ) -> Result<Arc<Self>> {
        let (parts, count) = if piece.axes.is_empty() {
            (Parts::Run(part_bytes), (piece.len * piece.item).div_ceil(part_bytes))
        } else {
            let mut rest = Chunks::new(&Staged::new(&staging, operation, &piece)?.inside(&piece));
            let list: Vec<_> = iter::from_fn(|| rest.next(part_bytes)).collect();
            let count = list.len();
            (Parts::List(list), count)
        };
        Ok(Self::with(staging, piece, parts, PartMarks::whole(count)))
    }

    /// Puts a run, in parts of so many bytes, into a block with so many slots of that length, which are used in turn.
    pub(super) fn ring(
        staging: Arc<Staging<B>>,
        run: CopyNest,
        part_bytes: usize,
        slots: usize,
    ) -> Arc<Self> {
        let count = (run.len * run.item).div_ceil(part_bytes);
        Self::with(staging, run, Parts::Run(part_bytes), PartMarks::ring(count, slots))
    }

    fn with(staging: Arc<Staging<B>>, piece: CopyNest, parts: Parts, marks: PartMarks) -> Arc<Self> {
        Arc::new(Self { staging, piece, marks, parts, next: OnceLock::new() })
    }

    pub(super) fn bytes(&self) -> usize {
        self.piece.len * self.piece.item
    }

    /// Returns the bytes of the run that these parts of a ring are.
    pub(super) fn run_of(&self, parts: Range<usize>) -> Range<usize> {
        let part_bytes = self.part_bytes();
        parts.start * part_bytes..self.bytes().min(parts.end * part_bytes)
    }

    /// Returns the bytes of a part of a run.
    pub(super) fn part_bytes(&self) -> usize {
        match &self.parts {
            Parts::Run(bytes) => *bytes,
            Parts::List(_) => self.bytes(),
        }
    }

    /// Returns where a part ends in the caller's memory.
    pub(super) fn end_of(&self, part: usize) -> usize {
        match &self.parts {
            Parts::Run(_) => self.piece.src + self.run_of(part..part + 1).end,
            Parts::List(parts) => parts.get(part).map_or(0, |nest| nest.src + nest.run),
        }
    }

    /// Makes the block ready for the host to write it, or to read a copy's data. Call it before parts are moved.
    /// Returns an error if the block cannot be used, and in a download if its contents are unknown.
    pub(super) fn show_to_host(&self, operation: &'static str, direction: Direction) -> Result<()> {
        let memory = self.staging.memory();
        let used = match self.marks.slots() {
            0 => 0..self.bytes(),
            slots => 0..memory.len().min(slots * self.part_bytes()),
        };
        match direction {
            Direction::HostToDevice => memory.wait_for_host(operation, &used, HostAccess::Write),
            Direction::DeviceToHost => memory.show_to_host(operation, &used, HostAccess::Read),
        }
    }

    /// Moves a part between the host's side and the block. Returns its bytes, and whether the submitter may have
    /// something to do.
    ///
    /// # Safety
    /// The caller's memory is valid for the part, for writes in a download. The part is open, and moved by this call alone.
    /// [`show_to_host`](Self::show_to_host) has succeeded.
    /// Returns [`Unsupported`](gpumem_core::ErrorKind::Unsupported) if the host does not see page-locked memory, and
    /// [`File`](gpumem_core::ErrorKind::File) if a file does not have the bytes.
    pub(super) unsafe fn move_part(
        &self,
        operation: &'static str,
        part: usize,
        side: HostSide<'_>,
        direction: Direction,
        stores: StorePolicy,
    ) -> Result<(usize, bool)> {
        let block = self.staging.host(operation)?.as_ptr();
        let bytes = match &self.parts {
            Parts::Run(part_bytes) => {
                let run = self.run_of(part..part + 1);
                let slot = if self.marks.slots() == 0 { part } else { part % self.marks.slots() };
                let theirs = self.piece.src + run.start;
                let ours = block.wrapping_add(slot * part_bytes);
                // SAFETY: the caller's promise. The block has these bytes, and no copy uses them while the part is open and
                // has not been moved.
                unsafe { side.move_run(theirs, ours, run.len(), direction, stores) }
                    .map_err(|error| self.fail(operation, error))?;
                run.len()
            }
            Parts::List(parts) => {
                let Some(nest) = parts.get(part) else { return Ok((0, false)) };
                // SAFETY: as above.
                unsafe { side.move_nest(nest, block, direction, stores) }
                    .map_err(|error| self.fail(operation, error))?;
                nest.len * nest.item
            }
        };
        Ok((bytes, self.marks.mark(part)))
    }

    #[cold]
    fn fail(&self, operation: &'static str, error: FileError) -> Error {
        self.staging.memory().core().error(operation, Box::new(error))
    }

    pub(super) fn next(&self) -> Option<&Arc<Self>> {
        self.next.get()
    }

    /// Sets the chunk after this one, once.
    pub(super) fn set_next(&self, next: &Arc<Self>) {
        let _ = self.next.set(next.clone());
    }
}

impl<B: Backend> Drop for StagedChunk<B> {
    /// Drops the chunks after this one in a loop: recursion would use stack space in proportion to the blocks of a transfer.
    fn drop(&mut self) {
        let mut next = self.next.take();
        while let Some(chunk) = next {
            next = Arc::into_inner(chunk).and_then(|mut chunk| chunk.next.take());
        }
    }
}
