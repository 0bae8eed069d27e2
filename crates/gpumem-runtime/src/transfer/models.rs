//! The threads of transfers for the loom models in `tests/loom`. Compiled with `--cfg loom` only.

use super::pipeline::PartMarks;
use crate::{tuning::TUNING, worker_pool};
use gpumem_memory::sync::event_count;

/// The event count of transfers, as it is.
#[derive(Debug, Default)]
pub struct EventCountModel(event_count::EventCount);

impl EventCountModel {
    /// Wakes all threads that sleep.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }

    /// Sleeps until `holds`, for which another thread notifies.
    pub fn wait_until(&self, holds: impl FnMut() -> bool) {
        self.0.wait_until(holds);
    }

    /// Looks whether it `holds`, and then sleeps until it does.
    pub fn look_and_sleep(&self, mut holds: impl FnMut() -> bool) {
        if !event_count::spin_until(TUNING.spins, |_| holds()) {
            self.0.wait_until(holds);
        }
    }
}

/// The worker pool of a device, as it is but for the time after which a thread without work ends.
#[derive(Debug)]
pub struct WorkerPoolModel(worker_pool::WorkerPool);

impl WorkerPoolModel {
    /// Makes a pool whose threads end at once if there is no work, or wait for work without a limit.
    pub fn new(ends_at_once: bool) -> Self {
        Self(worker_pool::WorkerPool::for_a_model(ends_at_once))
    }

    /// Calls `caller` on this thread and `worker` on up to `helpers` others, and returns when all calls have returned.
    pub fn run(&self, helpers: usize, worker: &(dyn Fn() + Sync), caller: impl FnOnce()) {
        self.0.broadcast(helpers, worker, caller);
    }
}

/// The parts of a staged chunk, as they are.
#[derive(Debug)]
pub struct PartMarksModel(PartMarks);

impl PartMarksModel {
    /// Makes the marks of a chunk that is sent as a whole.
    pub fn whole(parts: usize) -> Self {
        Self(PartMarks::whole(parts))
    }

    /// Makes the marks of a ring.
    pub fn ring(parts: usize, slots: usize) -> Self {
        Self(PartMarks::ring(parts, slots))
    }

    /// Takes the next part.
    pub fn take(&self) -> Option<usize> {
        self.0.take()
    }

    /// Takes the next part if it is open.
    pub fn take_open(&self) -> Option<usize> {
        self.0.take_open()
    }

    /// Returns whether a part may be moved.
    pub fn is_open(&self, part: usize) -> bool {
        self.0.is_open(part)
    }

    /// Opens the parts that use the slots of the parts below `copied`.
    pub fn reopen(&self, copied: usize) {
        self.0.reopen(copied);
    }

    /// Notes that a part has been moved. `true` if the submitter may have something to send.
    pub fn mark(&self, part: usize) -> bool {
        self.0.mark(part)
    }

    /// Returns how many parts have been moved without a gap, given that so many have.
    pub fn moved_from(&self, moved: usize) -> usize {
        self.0.moved_from(moved)
    }
}
