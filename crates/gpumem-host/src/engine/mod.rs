//! The engine of a device: its streams, the threads that run them, and the faults.

mod command;
mod deterministic;
mod event_core;
mod future;
mod graph;
mod poison;
mod pool;
mod queue;
mod random;
mod run;
mod stack;
mod step;
mod work;

pub(crate) use command::{Command, KERNEL, Sides, drop_of_user, is_inside};
pub use deterministic::Step;
pub(crate) use event_core::{EventCore, Marks, Recording};
pub(crate) use future::Pending;
pub(crate) use graph::{CapturePoint, GraphLaunch, Nodes};
pub(crate) use poison::{Fault, Item, Refused, Torn};
pub(crate) use queue::{Mark, Progress, Queue};
use random::Random;
pub(crate) use work::{Function, Launch, Work};

use crate::NAME;
use crate::counters::{CounterCells, Counters};
use crate::error::error;
use crate::inject::{Injections, Operation};
use crate::memory::Budget;
use crate::options::{HostOptions, Schedule};
use crate::process::ProcessState;
use crate::sync::lock;
use deterministic::Deterministic;
use gpumem_core::process::ProcessGuard;
use gpumem_core::{ErrorKind, Result};
use pool::Pool;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

/// Most faults of forgotten streams that are kept until the device is synchronised. Those beyond are counted.
const ORPHANS: usize = 16;

#[derive(Debug, Default)]
struct Orphans {
    /// The oldest.
    kept: Vec<String>,
    /// How many there were beyond them.
    more: usize,
}

#[derive(Debug)]
enum Runner {
    Threads(Pool),
    Deterministic(Mutex<Deterministic>),
}

/// State that the streams, events and threads of a device share. It outlives the device.
#[derive(Debug)]
pub(crate) struct Engine {
    process: &'static ProcessState,
    ordinal: usize,
    brief_bytes: usize,
    /// Whether it looks after [`POISONED`](gpumem_core::POISONED).
    survives_faults: bool,
    runner: Runner,
    counters: CounterCells,
    budget: Budget,
    generation: AtomicU64,
    is_lost: AtomicBool,
    is_closed: AtomicBool,
    /// Calls of `run_out` since the last one ended.
    run_outs: AtomicU64,
    injections: Injections,
    cause: Mutex<String>,
    next_number: AtomicU32,
    queues: Mutex<Vec<Weak<Queue>>>,
    orphans: Mutex<Orphans>,
}

impl Engine {
    pub(crate) fn new(process: &'static ProcessState, ordinal: usize, options: &HostOptions) -> Self {
        Self {
            process,
            ordinal,
            brief_bytes: options.brief_bytes,
            survives_faults: options.survives_faults,
            runner: match options.schedule {
                Schedule::Concurrent => Runner::Threads(Pool::new(options.workers)),
                Schedule::Adversarial { seed } => Runner::Deterministic(Mutex::new(Deterministic::new(seed))),
            },
            counters: CounterCells::default(),
            budget: Budget::new(options.memory),
            generation: AtomicU64::new(0),
            is_lost: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            run_outs: AtomicU64::new(0),
            injections: Injections::default(),
            cause: Mutex::default(),
            next_number: AtomicU32::new(0),
            queues: Mutex::default(),
            orphans: Mutex::default(),
        }
    }

    pub(crate) fn process(&self) -> &'static ProcessState {
        self.process
    }

    pub(crate) fn origin(&self) -> ProcessGuard {
        self.process.origin()
    }

    pub(crate) fn ordinal(&self) -> usize {
        self.ordinal
    }

    pub(crate) fn counters(&self) -> &CounterCells {
        &self.counters
    }

    /// Returns the counts so far. Takes no lock in a forked child, and returns fewer counts there.
    pub(crate) fn count(&self) -> Counters {
        // Before the cells, to which a stream adds its own count when it ends.
        let queues = if self.origin().is_valid() { self.queues() } else { Vec::new() };
        let mut counters = self.counters.snapshot();
        for queue in &queues {
            let at_once = lock(&queue.state).at_once;
            counters.copies += at_once.copies;
            counters.copied_bytes += at_once.bytes;
        }
        counters
    }

    pub(crate) fn budget(&self) -> &Budget {
        &self.budget
    }

    pub(crate) fn brief_bytes(&self) -> usize {
        self.brief_bytes
    }

    pub(crate) fn has_workers(&self) -> bool {
        matches!(self.runner, Runner::Threads(_))
    }

    pub(crate) fn pool(&self) -> Option<&Pool> {
        match &self.runner {
            Runner::Threads(pool) => Some(pool),
            Runner::Deterministic(_) => None,
        }
    }

    /// Whether work of the workers is left that none of them will do.
    fn is_stranded(self: &Arc<Self>) -> bool {
        self.pool().is_some_and(|pool| pool.is_stranded(self))
    }

    fn adversary(&self) -> Option<&Mutex<Deterministic>> {
        match &self.runner {
            Runner::Threads(_) => None,
            Runner::Deterministic(adversary) => Some(adversary),
        }
    }

    /// Random numbers of a launch of a graph under the adversarial schedule.
    pub(crate) fn random(&self) -> Option<Random> {
        self.adversary().map(|adversary| lock(adversary).random())
    }

    /// Puts a stream on the list of the workers.
    pub(crate) fn list(queue: Arc<Queue>) {
        let engine = Arc::clone(&queue.engine);
        if let Some(pool) = engine.pool() {
            pool.list(&engine, queue);
        }
    }

    /// The streams of a device without threads.
    fn adversary_queues(&self) -> Vec<Arc<Queue>> {
        self.adversary().map_or_else(Vec::new, |adversary| lock(adversary).queues().to_vec())
    }

    /// Forgets the streams of a closed device that have nothing to do.
    fn forget_idle_queues(&self) {
        let idle = self.adversary().map(|adversary| lock(adversary).take_idle_queues());
        drop(idle);
    }

    pub(crate) fn trace(&self) -> Vec<Step> {
        self.adversary().map_or_else(Vec::new, |adversary| lock(adversary).trace())
    }

    /// Begins every call: checks that the process is the right one, that the device is not lost, and that no failure is
    /// injected. Takes no lock before the process check.
    pub(crate) fn enter(&self, name: &'static str, operation: Operation) -> Result<()> {
        self.origin().check(NAME, name)?;
        self.point();
        self.check_lost(name)?;
        self.strike(name, operation)
    }

    /// Whether a call may do its work at once: there are worker threads (an adversarial schedule decides when work is
    /// done), the process and the device are usable, and no failure is to come.
    pub(crate) fn is_plain(&self) -> bool {
        self.has_workers() && self.origin().is_valid() && !self.is_lost() && !self.injections.has_any()
    }

    /// As [`enter`](Self::enter), for commands that can also be made to fail when their turn comes: then, why.
    pub(crate) fn enter_work(&self, name: &'static str, operation: Operation) -> Result<Option<String>> {
        match self.enter(name, operation) {
            Ok(()) => Ok(None),
            Err(error) => match error.kind() {
                ErrorKind::AsynchronousFault { what } => Ok(Some(what.clone())),
                _ => Err(error),
            },
        }
    }

    /// The failure that was injected for this call.
    pub(crate) fn strike(&self, name: &'static str, operation: Operation) -> Result<()> {
        match self.injections.strike(operation) {
            None => Ok(()),
            Some(ErrorKind::DeviceLost { cause }) => {
                self.lose(&cause);
                self.check_lost(name)
            }
            Some(kind) => Err(error(name, kind)),
        }
    }

    pub(crate) fn injections(&self) -> &Injections {
        &self.injections
    }

    pub(crate) fn create_queue(self: &Arc<Self>) -> Arc<Queue> {
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        let queue = Arc::new(Queue::new(self, self.process.serial(), number));
        let mut queues = lock(&self.queues);
        if queues.len() == queues.capacity() {
            queues.retain(|queue| queue.strong_count() > 0);
        }
        queues.push(Arc::downgrade(&queue));
        drop(queues);
        if let Some(adversary) = self.adversary() {
            lock(adversary).add(Arc::clone(&queue));
        }
        queue
    }

    /// The streams that are alive or have work to do.
    pub(crate) fn queues(&self) -> Vec<Arc<Queue>> {
        lock(&self.queues).iter().filter_map(Weak::upgrade).collect()
    }

    /// The stream of that raw handle, if it is alive or has work to do.
    pub(crate) fn queue(&self, id: u64) -> Option<Arc<Queue>> {
        lock(&self.queues).iter().filter_map(Weak::upgrade).find(|queue| queue.id == id)
    }

    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    pub(crate) fn next_generation(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Acquire)
    }

    pub(crate) fn check_lost(&self, operation: &'static str) -> Result<()> {
        if self.is_lost() {
            let cause = lock(&self.cause).clone();
            return Err(error(operation, ErrorKind::DeviceLost { cause }));
        }
        Ok(())
    }

    /// Loses the device: pending work is dropped, and every later call fails with the first cause.
    pub(crate) fn lose(&self, why: &str) {
        {
            let mut cause = lock(&self.cause);
            if self.is_lost() {
                return;
            }
            why.clone_into(&mut cause);
            self.is_lost.store(true, Ordering::Release);
        }
        for queue in self.queues() {
            queue.abandon();
        }
    }

    /// Why the device was lost.
    pub(crate) fn cause(&self) -> String {
        lock(&self.cause).clone()
    }

    pub(crate) fn find(&self) {
        self.is_lost.store(false, Ordering::Release);
    }

    /// Keeps the fault of a stream that is dropped, under whatever lock: a subscriber of tracing is told when the device ends.
    pub(crate) fn leave_fault(&self, what: &str) {
        let mut orphans = lock(&self.orphans);
        if orphans.kept.len() < ORPHANS {
            orphans.kept.push(what.to_owned());
        } else {
            orphans.more = orphans.more.saturating_add(1);
        }
    }

    /// Takes the faults that forgotten streams have left.
    pub(crate) fn take_left_faults(&self) -> Vec<String> {
        let Orphans { mut kept, more } = std::mem::take(&mut *lock(&self.orphans));
        if more > 0 {
            kept.push(format!("and {more} more failures of streams that are gone"));
        }
        kept
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    /// The last handle of the device is dropped. Pending work still runs to its end.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
        match &self.runner {
            Runner::Threads(pool) => pool.close(),
            Runner::Deterministic(_) => self.finish(),
        }
    }
}

impl Engine {
    /// Whether bytes are poisoned that its work may use.
    #[inline]
    pub(crate) fn knows_poison(&self) -> bool {
        gpumem_core::POISONED.is_any() && self.survives_faults
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if self.origin().is_valid() {
            self.process.table.clear(self.ordinal);
            for what in self.take_left_faults() {
                gpumem_core::tell!(error: "a stream of host:{} was dropped with a fault: {what}", self.ordinal);
            }
        }
    }
}
