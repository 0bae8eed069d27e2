//! The adversarial schedule: it has no threads, and every call chooses at random which work runs.
//!
//! The lock is held while a choice is made, never while a command runs, so that a kernel may call the device. The caller's own
//! locks may be held during a call, and a kernel may ask for them: so kernels run only in calls that wait or query, which are made
//! without locks.

use super::{
    Command, Engine, Fault, Item, Progress, Queue, Random,
    step::{CommandPart, Next, Outcome},
};
use crate::process::Adversary;
use crate::sync::lock;
use gpumem_core::user_code;
use std::sync::Arc;

/// Most steps that the trace holds.
const TRACE: usize = 1 << 16;
/// Pieces after which the rest of a command is done at once.
const MOST_CHUNKS: u32 = 6;
/// The number of fruitless queries after which one step of the queried stream runs.
const PATIENCE: u32 = 16;
/// Steps for others after which a wait insists on its own stream.
const DETOURS: u32 = 256;
/// Most steps of an eager schedule at one call.
const EAGER_STEPS: usize = 10_000;

/// One step of an adversarial schedule: which piece of which command ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Step {
    /// The stream, in the order in which the streams of the device were made.
    pub stream: u32,
    /// The command, in the order in which the commands of the stream were enqueued.
    pub command: u64,
    /// The piece of the command, from 0. Only copies, fills and launches of graphs are torn.
    pub chunk: u32,
}

/// How a schedule misbehaves. Drawn from the seed, because purely random choices seldom go to extremes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Policy {
    /// Nothing runs before a thread waits, and then only the work that it needs.
    Lazy,
    /// Nothing runs before a thread waits, and then everything else first.
    OthersFirst,
    /// Anything at any time.
    Random,
    /// One stream of so many runs only when it must.
    Starve { of: u32, which: u32 },
    /// The youngest stream runs first.
    NewestFirst,
    /// The oldest stream runs first.
    OldestFirst,
    /// Everything runs as soon as it can.
    Eager,
}

/// The state of an adversarial schedule.
#[derive(Debug)]
pub(crate) struct Deterministic {
    random: Random,
    policy: Policy,
    /// How often commands are torn: one time in so many they are not.
    whole: usize,
    queues: Vec<Arc<Queue>>,
    trace: Vec<Step>,
    misses: u32,
    detours: u32,
}

/// A piece of a command that is about to run.
struct Piece {
    queue: Arc<Queue>,
    part: CommandPart,
    fault: Option<Fault>,
}

impl Deterministic {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let policy = match random.below(9) {
            0 => Policy::Lazy,
            1 => Policy::OthersFirst,
            2 | 3 => Policy::Random,
            4 | 5 => {
                let of = 2 + random.below(3) as u32;
                Policy::Starve { of, which: random.below(of as usize) as u32 }
            }
            6 => Policy::NewestFirst,
            7 => Policy::OldestFirst,
            _ => Policy::Eager,
        };
        let whole = 1 + random.below(5);
        Self { random, policy, whole, queues: Vec::new(), trace: Vec::new(), misses: 0, detours: 0 }
    }

    pub(crate) fn add(&mut self, queue: Arc<Queue>) {
        self.queues.push(queue);
    }

    /// Random numbers that follow from the seed.
    pub(crate) fn random(&mut self) -> Random {
        Random::new(self.random.next())
    }

    pub(crate) fn trace(&self) -> Vec<Step> {
        self.trace.clone()
    }

    /// All streams that are known; forgets those that are done and have no handle left.
    pub(crate) fn queues(&mut self) -> &[Arc<Queue>] {
        self.queues
            .retain(|queue| Arc::strong_count(queue) > 1 || queue.completed() < lock(&queue.state).enqueued);
        &self.queues
    }

    /// Forgets the streams that have nothing to do, and returns them.
    pub(crate) fn take_idle_queues(&mut self) -> Vec<Arc<Queue>> {
        let is_idle = |queue: &mut Arc<Queue>| queue.completed() >= lock(&queue.state).enqueued;
        self.queues.extract_if(.., is_idle).collect()
    }

    /// Begins one step of any stream that can run.
    fn begin_any(&mut self) -> Option<Piece> {
        let all = self.runnable();
        self.pick(all).and_then(|queue| self.begin(queue, true))
    }

    fn runnable(&mut self) -> Vec<Arc<Queue>> {
        self.queues().iter().filter(|queue| queue.is_runnable()).cloned().collect()
    }

    /// Chooses at a call that waits for nothing.
    fn choose_freely(&mut self) -> Option<Arc<Queue>> {
        let mut candidates = self.runnable();
        candidates.retain(|queue| !lock(&queue.state).is_kernel_next());
        if let Policy::Starve { of, which } = self.policy {
            candidates.retain(|queue| queue.number % of != which);
        }
        self.pick(candidates)
    }

    /// Chooses where a thread waits for the stream at the end of a chain of waits.
    fn choose_towards(&mut self, needed: &Arc<Queue>) -> Option<Arc<Queue>> {
        let mut candidates = self.runnable();
        match self.policy {
            Policy::Lazy => candidates.clear(),
            Policy::OthersFirst => candidates.retain(|queue| queue.id != needed.id),
            Policy::Starve { of, which } => candidates.retain(|queue| queue.number % of != which),
            _ => {}
        }
        self.detours += 1;
        match self.pick(candidates) {
            Some(queue) if queue.id != needed.id && self.detours < DETOURS => Some(queue),
            _ => {
                self.detours = 0;
                if !needed.is_parked_future() {
                    return needed.is_runnable().then(|| Arc::clone(needed));
                }
                // Any stream may wake it.
                let all = self.runnable();
                self.pick(all)
            }
        }
    }

    fn pick(&mut self, mut candidates: Vec<Arc<Queue>>) -> Option<Arc<Queue>> {
        match self.policy {
            Policy::NewestFirst => candidates.into_iter().max_by_key(|queue| queue.number),
            Policy::OldestFirst => candidates.into_iter().min_by_key(|queue| queue.number),
            _ if candidates.is_empty() => None,
            _ => {
                let index = self.random.below(candidates.len());
                Some(candidates.swap_remove(index))
            }
        }
    }

    /// Takes a piece out of a stream, also of a kernel if those may run. `None` if another thread was faster.
    fn begin(&mut self, queue: Arc<Queue>, with_kernels: bool) -> Option<Piece> {
        let mut state = lock(&queue.state);
        if !with_kernels && state.is_kernel_next() {
            return None;
        }
        let (submission, chunk) = (queue.completed() + 1, state.chunks);
        let Next::Ready(fault) = queue.next(&state) else { return None };
        let part = queue.take(&mut state, |left, chunks| {
            match left <= 1 || chunks >= MOST_CHUNKS || self.random.one_in(self.whole) {
                true => left,
                false => 1 + self.random.below(left),
            }
        })?;
        if self.trace.len() < TRACE {
            self.trace.push(Step { stream: queue.number, command: submission - 1, chunk });
        }
        drop(state);
        Some(Piece { queue, part, fault })
    }
}

impl Piece {
    fn run(self) {
        let Self { queue, part, fault } = self;
        // A call of the host is about to enqueue, and may hold locks for that.
        let outcome = user_code::as_another_thread(|| queue.execute(part, fault));
        let is_over = matches!(outcome, Outcome::Over(_));
        let mut state = lock(&queue.state);
        let aftermath = queue.give_back(&mut state, outcome);
        drop(state);
        aftermath.settle();
        if !is_over && queue.engine.is_lost() {
            queue.abandon();
        }
        if queue.engine.is_closed() {
            queue.engine.run_out();
        }
    }
}

impl Queue {
    fn is_runnable(&self) -> bool {
        let state = lock(&self.state);
        !state.busy
            && match state.pending.front() {
                None => false,
                Some(Item { command: Command::Wait(mark), .. }) => mark.progress() != Progress::Pending,
                Some(Item { command: Command::Future(_), .. }) => !state.parked,
                Some(_) => true,
            }
    }

    /// One step for a query: on a device with workers, none that they can do.
    fn force_or_poll(self: &Arc<Self>, submission: u64) -> bool {
        match self.engine.has_workers() {
            true => self.poll(submission),
            false => self.engine.force(self, Self::force_or_poll),
        }
    }

    /// Whether what the stream waits for in the end is a future that waits to be woken.
    pub(super) fn waits_for_future(self: &Arc<Self>) -> bool {
        let mut needed = Arc::clone(self);
        while let Some(mark) = needed.waits_for() {
            needed = mark.queue;
        }
        needed.is_parked_future()
    }
}

impl Adversary for Engine {
    fn step(&self) -> bool {
        let Some(adversary) = self.adversary() else { return false };
        let piece = lock(adversary).begin_any();
        piece.map(Piece::run).is_some()
    }
}

impl Engine {
    /// A call of the device: lets the schedule take some steps. No kernel runs, as the caller may hold locks.
    pub(crate) fn point(&self) {
        let Some(adversary) = self.adversary() else { return };
        let steps = {
            let mut adversary = lock(adversary);
            match adversary.policy {
                Policy::Lazy | Policy::OthersFirst => 0,
                Policy::Eager => EAGER_STEPS,
                _ => adversary.random.below(4),
            }
        };
        for _ in 0..steps {
            let mut choice = lock(adversary);
            let Some(queue) = choice.choose_freely() else { break };
            let piece = choice.begin(queue, false);
            drop(choice);
            if let Some(piece) = piece {
                piece.run();
            }
        }
    }

    /// One step for a thread that waits for `target`. `false` if other threads are at it, so that nothing can be
    /// done. `go_on` does one on another device, if that is what all waits for.
    pub(crate) fn force(&self, target: &Arc<Queue>, go_on: fn(&Arc<Queue>, u64) -> bool) -> bool {
        let Some(adversary) = self.adversary() else { return false };
        // The stream that everything in between waits for. One of another device is that device's affair.
        let mut needed = Arc::clone(target);
        let mut foreign = None;
        while let Some(mark) = needed.waits_for() {
            if !std::ptr::eq(&*mark.queue.engine, self) {
                foreign = Some(mark);
                break;
            }
            needed = mark.queue;
        }
        let mut choice = lock(adversary);
        let piece = choice.choose_towards(&needed).and_then(|queue| choice.begin(queue, true));
        drop(choice);
        match (piece, foreign) {
            (Some(piece), _) => {
                piece.run();
                true
            }
            (None, Some(mark)) => go_on(&mark.queue, mark.submission),
            // A stream of another device may wake it.
            (None, None) => needed.is_parked_future() && self.process.step_adversaries(),
        }
    }

    /// A query in vain about `target`. Every so often it is worth a step, so that asking again and again comes to an end.
    pub(crate) fn poke(&self, target: &Arc<Queue>) {
        let Some(adversary) = self.adversary() else { return };
        let due = {
            let mut adversary = lock(adversary);
            adversary.misses += 1;
            let due = adversary.misses >= PATIENCE
                || (adversary.policy != Policy::Lazy && adversary.random.one_in(8));
            if due {
                adversary.misses = 0;
            }
            due
        };
        if due {
            self.force(target, Queue::force_or_poll);
        }
    }
}
