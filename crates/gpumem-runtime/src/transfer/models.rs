//! The threads of transfers for the loom models in `tests/loom`. Compiled with `--cfg loom` only.

use crate::worker_pool;

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
