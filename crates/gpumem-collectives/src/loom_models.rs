//! What the loom models in `tests/loom.rs` run of the meeting. Compiled with `--cfg loom` only.
#![allow(clippy::expect_used, reason = "a model may fail")]

use crate::local::meeting::{Meeting, Verdict};
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

/// A meeting of two ranks with their memory, and whether each was woken.
#[derive(Debug, Clone)]
pub struct Pair {
    meeting: Arc<Meeting<Arc<Memory>>>,
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
    /// A meeting that no rank has come to.
    pub fn new() -> Self {
        let memory = || Arc::new(Memory { moved: AtomicUsize::new(0), is_free: AtomicBool::new(false) });
        let woken = || Arc::new(Woken(AtomicBool::new(false)));
        let memory = [memory(), memory()];
        let meeting = Arc::new(Meeting::new(vec![0, 1], run));
        meeting.set_steps(memory.to_vec());
        Self { meeting, memory, woken: [woken(), woken()] }
    }

    /// A rank comes. `None` if it has to wait.
    pub fn arrive(&self, seat: usize) -> Option<bool> {
        match self.meeting.arrive(seat, &Waker::from(self.woken[seat].clone())) {
            Poll::Pending => None,
            Poll::Ready(outcome) => Some(outcome.is_ok()),
        }
    }

    /// The deadline is over.
    pub fn fail(&self) -> bool {
        self.meeting.fail(Verdict::One(CollectiveCause::Aborted { rank: 0 }))
    }

    /// The memory of a rank is given up.
    pub fn give_up(&self, seat: usize) {
        self.meeting.leave(seat, CollectiveCause::Aborted { rank: seat });
        self.memory[seat].is_free.store(true, Ordering::Release);
    }

    /// How often the bytes of a rank were moved.
    pub fn moved(&self, seat: usize) -> usize {
        self.memory[seat].moved.load(Ordering::Acquire)
    }

    /// The outcome for a rank that has come: if it had to wait, it was woken.
    pub fn outcome(&self, seat: usize, first: Option<bool>) -> bool {
        first.unwrap_or_else(|| {
            assert!(self.woken[seat].0.load(Ordering::Acquire), "a rank waits for ever");
            self.arrive(seat).expect("the meeting is over")
        })
    }
}

impl Default for Pair {
    fn default() -> Self {
        Self::new()
    }
}
