//! Worker threads, started when there is something to do for them.

use super::{Engine, Queue};
use crate::sync::{lock, sleep};
use gpumem_core::HostFunction;
use std::collections::VecDeque;
use std::sync::{
    Arc, Condvar, Mutex,
    atomic::{AtomicBool, Ordering},
};
use std::thread;
use std::time::Duration;

/// A worker without work ends after this time. The next work starts a new one. Unit tests see it end.
const IDLE: Duration = if cfg!(test) { Duration::from_millis(1) } else { Duration::from_secs(10) };

/// Commands that a worker runs of one stream before it looks at the others.
const TURN: usize = 64;

/// The workers of one device and the streams that want them.
#[derive(Debug)]
pub(crate) struct Pool {
    state: Mutex<State>,
    work: Condvar,
    most: usize,
    /// Whether a refusal is noted. Relaxed: a hint, which is nearly always false.
    is_refused: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    ready: VecDeque<Arc<Queue>>,
    alive: usize,
    /// Workers asleep for which no wake-up is under way.
    idle: usize,
    /// Wake-ups under way.
    calls: usize,
    closed: bool,
    /// Why the system has refused a thread, until a wait tells it.
    refused: Option<String>,
}

impl Pool {
    pub(crate) fn new(most: usize) -> Self {
        Self { state: Mutex::default(), work: Condvar::new(), most, is_refused: AtomicBool::new(false) }
    }

    /// Tells that the system has refused a thread. The caller holds no lock: a subscriber is code of the user.
    pub(crate) fn tell_refusal(&self) {
        if self.is_refused.load(Ordering::Relaxed) {
            self.is_refused.store(false, Ordering::Relaxed);
            let refused = lock(&self.state).refused.take();
            if let Some(why) = refused {
                gpumem_core::tell!(warn: "no worker thread could be started: {why}");
            }
        }
    }

    /// Gives a stream to the workers.
    pub(crate) fn list(&self, engine: &Arc<Engine>, queue: Arc<Queue>) {
        let mut state = lock(&self.state);
        state.ready.push_back(queue);
        if state.idle > 0 {
            state.idle -= 1;
            state.calls += 1;
            drop(state);
            self.work.notify_one();
            return;
        }
        if state.alive == self.most {
            return;
        }
        state.alive += 1;
        drop(state);
        if !self.start(engine) {
            let mut state = lock(&self.state);
            let stranded = if state.alive == 0 { std::mem::take(&mut state.ready) } else { VecDeque::new() };
            drop(state);
            self.run_here(stranded);
        }
    }

    /// Starts a worker, which is counted already. `false` if the system refuses one.
    fn start(&self, engine: &Arc<Engine>) -> bool {
        engine.counters().workers.up();
        let name = format!("gpumem:h{}", engine.ordinal());
        let ours = Arc::clone(engine);
        let started =
            thread::Builder::new().name(name).stack_size(HostFunction::STACK_BYTES).spawn(move || {
                if let Some(pool) = ours.pool() {
                    pool.work();
                }
                ours.counters().workers.down();
            });
        let Err(why) = started else { return true };
        engine.counters().workers.down();
        let mut state = lock(&self.state);
        state.alive -= 1;
        // Told by a wait: the caller of this may hold locks.
        state.refused = Some(why.to_string());
        drop(state);
        self.is_refused.store(true, Ordering::Relaxed);
        false
    }

    /// Without a single worker the work is done here: late is better than never. Kernels and futures are left to calls that wait or
    /// query, as the caller may hold locks, which their code may ask for.
    fn run_here(&self, stranded: VecDeque<Arc<Queue>>) {
        for queue in stranded {
            if queue.run_without_user_code() {
                lock(&self.state).ready.push_back(queue);
            }
        }
    }

    /// The loop of a worker.
    fn work(&self) {
        while let Some(queue) = self.next() {
            let _ = queue.run(u64::MAX, TURN, true);
        }
    }

    fn next(&self) -> Option<Arc<Queue>> {
        let mut state = lock(&self.state);
        loop {
            if let Some(queue) = state.ready.pop_front() {
                return Some(queue);
            }
            if state.closed {
                state.alive -= 1;
                return None;
            }
            state.idle += 1;
            let mut late = false;
            while state.calls == 0 && !late && !state.closed {
                (state, late) = sleep(&self.work, state, IDLE);
            }
            if state.calls > 0 {
                state.calls -= 1;
                continue;
            }
            state.idle -= 1;
            if late && state.ready.is_empty() {
                state.alive -= 1;
                return None;
            }
        }
    }

    /// Whether streams are listed that no worker will run, because there is none and the system refuses to start one. Without
    /// workers alone the pool is only idle: what is not listed yet starts one.
    pub(crate) fn is_stranded(&self, engine: &Arc<Engine>) -> bool {
        let mut state = lock(&self.state);
        if state.alive > 0 || state.ready.is_empty() {
            return false;
        }
        state.alive += 1;
        drop(state);
        !self.start(engine)
    }

    /// Lets the workers end when no work is left. Later work still finds or starts one. What is left to no worker runs here,
    /// but for code of the user.
    pub(crate) fn close(&self) {
        let mut state = lock(&self.state);
        state.closed = true;
        let left = if state.alive == 0 { std::mem::take(&mut state.ready) } else { VecDeque::new() };
        drop(state);
        self.work.notify_all();
        self.run_here(left);
    }
}
