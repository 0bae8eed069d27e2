//! A piece of a transfer in a block, whose parts threads share.

use super::super::staged::Staged;
use crate::{
    layout::CopyNest,
    transfer::{Staging, chunks::Chunks},
};
use gpumem_core::{Backend, Result};
use std::{
    iter,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
};

/// A piece in a block, and the one behind it once there is one. Threads go along that chain without a lock: on one they would
/// meet whenever a block has no more parts, and sleep.
pub(in crate::transfer) struct StagedChunk<B: Backend> {
    pub(super) staging: Arc<Staging<B>>,
    pub(super) piece: CopyNest,
    /// What one thread moves at a time.
    parts: Vec<CopyNest>,
    taken: AtomicUsize,
    /// Bytes that have not been filled or drained.
    left: AtomicUsize,
    next: OnceLock<Arc<StagedChunk<B>>>,
}

impl<B: Backend> StagedChunk<B> {
    /// A piece in parts of so many bytes.
    pub(super) fn new(
        operation: &'static str,
        staging: Arc<Staging<B>>,
        piece: CopyNest,
        part_bytes: usize,
    ) -> Result<Arc<Self>> {
        let mut rest = Chunks::new(&Staged::new(&staging, operation, &piece)?.inside(&piece));
        let parts = iter::from_fn(|| rest.next(part_bytes)).collect();
        let (taken, left) = (AtomicUsize::new(0), AtomicUsize::new(piece.len * piece.item));
        Ok(Arc::new(Self { staging, piece, parts, taken, left, next: OnceLock::new() }))
    }

    /// Bytes of the piece.
    pub(super) fn bytes(&self) -> usize {
        self.piece.len * self.piece.item
    }

    /// A part that is not taken yet.
    pub(super) fn take(&self) -> Option<&CopyNest> {
        self.parts.get(self.taken.fetch_add(1, Ordering::Relaxed))
    }

    /// Returns the number of parts that are not taken yet.
    pub(super) fn untaken(&self) -> usize {
        self.parts.len().saturating_sub(self.taken.load(Ordering::Relaxed))
    }

    /// A part has been moved. `true` if it was the last one.
    pub(super) fn done(&self, part: &CopyNest) -> bool {
        let bytes = part.len * part.item;
        // Release for threads that check for completion, acquire for the last one.
        self.left.fetch_sub(bytes, Ordering::AcqRel) == bytes
    }

    /// All parts have been moved.
    pub(super) fn is_done(&self) -> bool {
        self.left.load(Ordering::Acquire) == 0
    }

    pub(super) fn next(&self) -> Option<&Arc<Self>> {
        self.next.get()
    }

    /// What comes behind it, which is said once.
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
