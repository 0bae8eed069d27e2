//! Running a stream on an engine with threads: by a worker, or by the thread that waits for it.

use super::{
    Command, Engine, Fault, Item, Mark, Queue, Work, stack,
    step::{Next, Outcome},
};
use crate::error::{error, invalid};
use crate::sync::{lock, sleep};
use gpumem_core::{CopyRegion, ErrorKind, Result, current_uses};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Turns of busy waiting before a thread goes to sleep: about as long as waking it takes.
const SPINS: u32 = 200;

/// Interval at which a waiting thread looks again: its event may depend on an engine without threads, which only moves
/// when it is called.
const NAP: Duration = Duration::from_millis(5);

/// Why a run ended.
#[derive(Debug)]
pub(crate) enum Ran {
    /// All is done that was asked for.
    Done,
    /// The budget is used up.
    Budget,
    /// Another thread runs the stream.
    Busy,
    /// The first command waits for this.
    Waits(Mark),
    /// The first command is a future that waits to be woken.
    Parked,
    /// The first command is left to others.
    Left,
}

/// What a thread that runs a stream leaves to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leaves {
    Nothing,
    /// Kernels, which need more stack than this thread has.
    Kernels,
    /// Kernels and futures, which are code of the user: this thread may hold locks that they ask for.
    UserCode,
}

impl Queue {
    /// Enqueues a command on an engine with threads, or runs it on the spot. Its submission index.
    pub(crate) fn enqueue(self: &Arc<Self>, operation: &'static str, mut command: Command) -> Result<u64> {
        let mut state = lock(&self.state);
        self.admit(operation)?;
        state.enqueued += 1;
        let submission = state.enqueued;
        if !self.engine.has_workers() {
            state.pending.push_back(Item::now(command));
            return Ok(submission);
        }
        if state.pending.is_empty() && !state.busy && command.is_brief(self.engine.brief_bytes()) {
            state.busy = true;
            drop(state);
            let fault = current_uses(|uses| self.run_whole(&mut command, uses));
            command.retire();
            let mut state = lock(&self.state);
            let aftermath = self.give_back(&mut state, Outcome::Over(fault));
            // Others may have enqueued meanwhile.
            let list = state.take_listing();
            drop(state);
            if !aftermath.is_empty() {
                aftermath.settle();
            }
            if list {
                Engine::list(Arc::clone(self));
            }
            return Ok(submission);
        }
        state.pending.push_back(Item::now(command));
        let list = state.take_listing();
        drop(state);
        if list {
            Engine::list(Arc::clone(self));
        }
        Ok(submission)
    }

    /// Copies on the spot, without a submission index, if all that was enqueued is done, and no bytes are poisoned. `false` if it has
    /// not copied. The lock is held meanwhile, so that nothing overtakes it.
    ///
    /// # Safety
    /// As for `run_region`.
    pub(crate) unsafe fn try_copy_sync(&self, region: &CopyRegion, bytes: usize) -> bool {
        let engine = &*self.engine;
        let mut state = lock(&self.state);
        let idle = self.completed() == state.enqueued && !state.busy;
        // Which allocations the two sides belong to is not told here.
        if !idle || engine.knows_poison() || self.generation != engine.generation() {
            return false;
        }
        // SAFETY: the caller's promise.
        let copied = unsafe { state.sides.copy(engine, region, bytes) } || {
            // Registered memory, or a fault, which the ordinary way then tells.
            let work = Work::Copy(*region);
            work.run(engine, self.id, 0..work.units()).is_ok()
        };
        if copied {
            state.at_once.copies += 1;
            state.at_once.bytes += bytes as u64;
        }
        copied
    }

    /// Refuses commands that can never run, and those on a stream that is captured. Called under the lock, so that no command slips in
    /// after a loss or a reset.
    pub(crate) fn admit(&self, operation: &'static str) -> Result<()> {
        self.engine.check_lost(operation)?;
        if self.generation != self.engine.generation() {
            return Err(error(operation, ErrorKind::Stale { what: "stream" }));
        }
        if self.is_captured(operation)? {
            return Err(invalid(operation, "the stream is captured"));
        }
        Ok(())
    }

    /// Runs commands up to the submission index `until`, at most `budget` of them. A thread that waits leaves kernels to the workers
    /// where its stack has less room than theirs; where no worker can be had it runs them all the same.
    pub(crate) fn run(self: &Arc<Self>, until: u64, budget: usize, worker: bool) -> Ran {
        let all = worker || stack::has_room() || self.engine.is_stranded();
        self.run_some(until, budget, worker, if all { Leaves::Nothing } else { Leaves::Kernels })
    }

    /// Runs all commands of a listed stream up to code of the user. Tells whether there is some: the stream is to be listed again.
    pub(super) fn run_without_user_code(self: &Arc<Self>) -> bool {
        matches!(self.run_some(u64::MAX, usize::MAX, true, Leaves::UserCode), Ran::Left)
    }

    fn run_some(self: &Arc<Self>, until: u64, mut budget: usize, worker: bool, leaves: Leaves) -> Ran {
        let mut state = lock(&self.state);
        if worker {
            state.listed = false;
        }
        let ran = loop {
            if state.busy {
                return Ran::Busy;
            }
            if self.engine.is_lost() && !state.pending.is_empty() {
                drop(state);
                self.abandon();
                return Ran::Done;
            }
            if self.completed() >= until {
                break Ran::Done;
            }
            if budget == 0 && !state.pending.is_empty() {
                break Ran::Budget;
            }
            if state.is_next_left(leaves) {
                // The caller lists it; a thread that waits has it listed below, if no worker has it yet.
                state.listed |= worker;
                break Ran::Left;
            }
            match self.next(&state) {
                Next::Busy => return Ran::Busy,
                Next::Nothing => break Ran::Done,
                Next::Parked => break Ran::Parked,
                Next::Waits(mark) if state.parked => break Ran::Waits(mark),
                Next::Waits(mark) => {
                    state.parked = true;
                    drop(state);
                    let is_parked = mark.queue.park(mark.submission, self);
                    state = lock(&self.state);
                    if state.busy {
                        return Ran::Busy;
                    }
                    if is_parked {
                        break Ran::Waits(mark);
                    }
                    state.parked = false;
                }
                Next::Ready(fault) => {
                    budget -= 1;
                    let Some(part) = self.take(&mut state, |units, _| units) else { break Ran::Done };
                    drop(state);
                    let outcome = self.execute(part, fault);
                    state = lock(&self.state);
                    let aftermath = self.give_back(&mut state, outcome);
                    state = self.settle(state, aftermath);
                }
            }
        };
        let list = state.take_listing();
        drop(state);
        if list {
            Engine::list(Arc::clone(self));
        }
        ran
    }

    /// Waits until the commands up to `submission` are done, and runs them meanwhile where no other thread
    /// does.
    pub(crate) fn wait_until(self: &Arc<Self>, submission: u64) {
        if let Some(pool) = self.engine.pool() {
            pool.tell_refusal();
        }
        let mut spins = 0;
        while self.completed() < submission {
            if self.help(submission) {
                spins = 0;
                continue;
            }
            if spins < SPINS {
                spins += 1;
                std::hint::spin_loop();
                continue;
            }
            self.nap(submission);
        }
    }

    /// Sleeps until the submission index is done, or a moment.
    pub(super) fn nap(&self, submission: u64) {
        let mut state = lock(&self.state);
        if self.completed() < submission {
            state.wake_at = state.wake_at.min(submission);
            drop(sleep(&self.progress, state, NAP));
        }
    }

    /// Does something towards the submission index, along the chain of streams that it waits for. `false` if other
    /// threads are at it everywhere.
    pub(crate) fn help(self: &Arc<Self>, submission: u64) -> bool {
        let mut link = Mark::new(self, submission);
        loop {
            if !link.queue.engine.has_workers() {
                return link.queue.engine.force(&link.queue, Self::help);
            }
            let before = link.queue.completed();
            match link.queue.run(link.submission, usize::MAX, false) {
                Ran::Done | Ran::Budget => return true,
                Ran::Waits(_) | Ran::Parked if link.queue.completed() != before => return true,
                Ran::Waits(mark) => link = mark,
                Ran::Parked => return self.engine.process().step_adversaries(),
                Ran::Busy | Ran::Left => return false,
            }
        }
    }

    /// Whether the submission index is done. Lets engines without threads move on if not, and leaves all else to the workers.
    pub(crate) fn poll(self: &Arc<Self>, submission: u64) -> bool {
        self.engine.point();
        if self.completed() >= submission {
            return true;
        }
        let mut link = Mark::new(self, submission);
        loop {
            let queue = &link.queue;
            if !queue.engine.has_workers() {
                queue.engine.poke(queue);
                break;
            }
            // The caller may hold locks that a kernel asks for: it runs one only if no other thread ever will.
            if queue.engine.is_stranded() {
                let _ = queue.run(link.submission, usize::MAX, false);
            }
            let Some(mark) = queue.waits_for() else { break };
            link = mark;
        }
        if link.queue.is_parked_future() && link.queue.engine.has_workers() {
            self.engine.process().step_adversaries();
        }
        self.completed() >= submission
    }

    /// The fault of a stream that waited for a lost device.
    pub(super) fn lost_producer(&self) -> Fault {
        let cause = "the device of the event was lost before the event was reached".to_owned();
        Fault::new(&self.engine, self.number, "wait".to_owned(), cause)
    }

    /// Ends the life of the owning handle.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }
}
