//! A piece of a transfer in a block, whose parts threads share.

use super::super::staged::Staged;
use crate::{layout::Pair, memory::Staging, transfer::pieces::Pieces};
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
pub(super) struct Turn<B: Backend> {
    pub(super) staging: Arc<Staging<B>>,
    pub(super) piece: Pair,
    /// What one thread moves at a time.
    parts: Vec<Pair>,
    taken: AtomicUsize,
    /// Bytes that have not been filled or drained.
    left: AtomicUsize,
    next: OnceLock<Arc<Turn<B>>>,
}

impl<B: Backend> Turn<B> {
    /// A piece in parts of so many bytes.
    pub(super) fn new(
        operation: &'static str,
        staging: Arc<Staging<B>>,
        piece: Pair,
        part_bytes: usize,
    ) -> Result<Arc<Self>> {
        let mut rest = Pieces::new(&Staged::new(&staging, operation, &piece)?.inside(&piece));
        let parts = iter::from_fn(|| rest.next(part_bytes)).collect();
        let (taken, left) = (AtomicUsize::new(0), AtomicUsize::new(piece.len * piece.item));
        Ok(Arc::new(Self { staging, piece, parts, taken, left, next: OnceLock::new() }))
    }

    /// Bytes of the piece.
    pub(super) fn bytes(&self) -> usize {
        self.piece.len * self.piece.item
    }

    /// A part that nobody has taken.
    pub(super) fn take(&self) -> Option<&Pair> {
        self.parts.get(self.taken.fetch_add(1, Ordering::Relaxed))
    }

    /// How many parts nobody has taken.
    pub(super) fn untaken(&self) -> usize {
        self.parts.len().saturating_sub(self.taken.load(Ordering::Relaxed))
    }

    /// A part has been moved. `true` if it was the last one.
    pub(super) fn done(&self, part: &Pair) -> bool {
        let bytes = part.len * part.item;
        // Release for whoever looks whether all is done, acquire for the one that is last.
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

impl<B: Backend> Drop for Turn<B> {
    /// Whoever holds the last reference to an old one lets go of all behind it, one by one: each from within the one before would
    /// take as much of the stack as there are blocks in a transfer.
    fn drop(&mut self) {
        let mut next = self.next.take();
        while let Some(turn) = next {
            next = Arc::into_inner(turn).and_then(|mut turn| turn.next.take());
        }
    }
}
