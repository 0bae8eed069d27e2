//! A piece of a transfer in a block, whose parts threads share.

use super::super::staged::Staged;
use crate::{layout::Pair, memory::Staging, transfer::pieces::Pieces};
use gpumem_core::{Backend, Result};
use std::{
    iter,
    ops::Range,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

/// What one thread moves at a time.
pub(super) struct Part {
    pub(super) pair: Pair,
    is_moved: AtomicBool,
}

/// A piece in a block, and the one behind it once there is one. Threads go along that chain without a lock: on one they would
/// meet whenever a block has no more parts, and sleep.
pub(super) struct Turn<B: Backend> {
    pub(super) staging: Arc<Staging<B>>,
    pub(super) piece: Pair,
    /// In the order in which they lie in the block.
    parts: Vec<Part>,
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
        let part = |pair| Part { pair, is_moved: AtomicBool::new(false) };
        let parts = iter::from_fn(|| rest.next(part_bytes).map(part)).collect();
        let (taken, left) = (AtomicUsize::new(0), AtomicUsize::new(piece.len * piece.item));
        Ok(Arc::new(Self { staging, piece, parts, taken, left, next: OnceLock::new() }))
    }

    /// Bytes of the piece.
    pub(super) fn bytes(&self) -> usize {
        self.piece.len * self.piece.item
    }

    /// These bytes of the piece, which are all of them or those of one run.
    pub(super) fn cut(&self, bytes: &Range<usize>) -> Pair {
        let piece = self.piece.clone();
        match bytes.len() == self.bytes() {
            true => piece,
            false => Pair {
                src: piece.src + bytes.start,
                dst: piece.dst + bytes.start,
                run: bytes.len(),
                len: bytes.len() / piece.item,
                ..piece
            },
        }
    }

    /// A part that nobody has taken.
    pub(super) fn take(&self) -> Option<&Part> {
        self.parts.get(self.taken.fetch_add(1, Ordering::Relaxed))
    }

    /// How many parts nobody has taken.
    pub(super) fn untaken(&self) -> usize {
        self.parts.len().saturating_sub(self.taken.load(Ordering::Relaxed))
    }

    /// A part has been moved. `true` if it was the last one.
    pub(super) fn done(&self, part: &Part) -> bool {
        let bytes = part.pair.len * part.pair.item;
        part.is_moved.store(true, Ordering::Release);
        // Release for whoever looks whether all is done, acquire for the one that is last.
        self.left.fetch_sub(bytes, Ordering::AcqRel) == bytes
    }

    /// All parts have been moved.
    pub(super) fn is_done(&self) -> bool {
        self.left.load(Ordering::Acquire) == 0
    }

    /// Of a piece that is one run, what has been moved of it from `start` on without a gap: where that ends.
    pub(super) fn moved_from(&self, start: usize) -> usize {
        let behind = self.parts.iter().skip_while(|part| part.pair.dst < start);
        let moved = behind.take_while(|part| part.is_moved.load(Ordering::Acquire));
        moved.last().map_or(start, |part| part.pair.dst + part.pair.run)
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
