//! What the loom models in `tests/loom.rs` run of the operation. Compiled with `--cfg loom` only.
#![allow(clippy::expect_used, reason = "a model may fail")]

use crate::local::pending::{PendingCollective, Verdict};
use gpumem_core::CollectiveCause;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::{
    sync::Arc,
    task::{Poll, Wake, Waker},
};

/// The memory of a rank.
#[derive(Debug)]
pub struct Memory {
    moved: AtomicUsize,
    is_free: AtomicBool,
}

/// An operation of two ranks with their memory, and whether each was woken.
#[derive(Debug, Clone)]
pub struct Pair {
    pending: Arc<PendingCollective<Arc<Memory>>>,
    memory: [Arc<Memory>; 2],
    woken: [Arc<Woken>; 2],
}

/// Whether a rank was woken.
#[derive(Debug)]
pub struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

fn run(parts: &[Arc<Memory>]) {
    for memory in parts {
        assert!(!memory.is_free.load(Ordering::Acquire), "memory is used that was given up");
        memory.moved.fetch_add(1, Ordering::AcqRel);
    }
}

impl Pair {
    /// An operation that no rank has come to.
    pub fn new() -> Self {
        let memory = || Arc::new(Memory { moved: AtomicUsize::new(0), is_free: AtomicBool::new(false) });
        let woken = || Arc::new(Woken(AtomicBool::new(false)));
        let memory = [memory(), memory()];
        let pending = Arc::new(PendingCollective::new(vec![0, 1], run));
        pending.set_steps(memory.to_vec());
        Self { pending, memory, woken: [woken(), woken()] }
    }

    /// A rank comes. `None` if it has to wait.
    pub fn arrive(&self, slot: usize) -> Option<bool> {
        match self.pending.arrive(slot, &Waker::from(self.woken[slot].clone())) {
            Poll::Pending => None,
            Poll::Ready(outcome) => Some(outcome.is_ok()),
        }
    }

    /// The deadline is over.
    pub fn fail(&self) -> bool {
        self.pending.fail(Verdict::One(CollectiveCause::Aborted { rank: 0 }))
    }

    /// The memory of a rank is given up.
    pub fn give_up(&self, slot: usize) {
        self.pending.leave(slot, CollectiveCause::Aborted { rank: slot });
        self.memory[slot].is_free.store(true, Ordering::Release);
    }

    /// How often the bytes of a rank were moved.
    pub fn moved(&self, slot: usize) -> usize {
        self.memory[slot].moved.load(Ordering::Acquire)
    }

    /// The outcome for a rank that has come: if it had to wait, it was woken.
    pub fn outcome(&self, slot: usize, first: Option<bool>) -> bool {
        first.unwrap_or_else(|| {
            assert!(self.woken[slot].0.load(Ordering::Acquire), "a rank waits for ever");
            self.arrive(slot).expect("the pending is over")
        })
    }
}

impl Default for Pair {
    fn default() -> Self {
        Self::new()
    }
}
