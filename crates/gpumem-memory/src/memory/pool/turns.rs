//! Who grows which pool: one thread at a time each where threads may wait, and no circle of threads that wait for each other.
//!
//! Upstream may be code of the user that takes memory from other pools, or from the one that grows. A thread that would wait for
//! itself, through whatever pools and threads, does not wait: it gets an error. A callback or a kernel's body does not wait either,
//! as the thread that grows may be waiting for it, in the driver: it grows the pool beside that thread.
//!
//! In turn a thread that grows a pool waits for no device ([`may_block`](crate::blocking::may_block)): its work may be waiting for the
//! pool.

use crate::{
    blocking::{self, check_outside_callback},
    sync::{PlainMutex, Rank},
    user_code::Marked,
};
use gpumem_core::{Error, ErrorKind, Result, process::PerProcess};
use parking_lot::Condvar;
use std::thread::{self, ThreadId};

static TURNS: PerProcess<Turns> = PerProcess::new(Turns::new);

#[derive(Debug)]
struct Turns {
    state: PlainMutex<State>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Pools by their addresses, and the threads that grow them.
    growing: Vec<(usize, ThreadId)>,
    /// Threads, and the pools that they wait to grow.
    waiting: Vec<(ThreadId, usize)>,
}

impl State {
    fn growers(&self, pool: usize) -> impl Iterator<Item = ThreadId> {
        self.growing.iter().filter(move |(other, _)| *other == pool).map(|(_, thread)| *thread)
    }

    /// Whether a thread that grows the pool is `own`, or waits for it. No threads wait in a circle, so this ends.
    fn waits_for(&self, pool: usize, own: ThreadId) -> bool {
        self.growers(pool).any(|thread| {
            let waiting = || self.waiting.iter().find(|(other, _)| *other == thread);
            thread == own || waiting().is_some_and(|(_, pool)| self.waits_for(*pool, own))
        })
    }
}

impl Turns {
    fn new() -> Self {
        Self { state: PlainMutex::new(Rank::Turns, State::default()), ended: Condvar::new() }
    }
}

/// The calling thread grows a pool.
#[derive(Debug)]
pub(super) struct Turn {
    pool: usize,
    thread: ThreadId,
    _growing: Marked,
}

impl Turn {
    /// Waits until no other thread grows the pool, if the thread may wait. An error if that would never be, or if the thread grows it
    /// already.
    pub(super) fn take<T>(pool: &T, operation: &'static str) -> Result<Self> {
        let (pool, own) = (std::ptr::from_ref(pool).addr(), thread::current().id());
        let turns = TURNS.get();
        // One lock for all pools of the process: who waits for whom is seen as a whole.
        let mut state = turns.state.lock();
        while state.growers(pool).next().is_some() {
            // Upstream of that pool may call this one: then the wait, or the growth, would have no end.
            if state.waits_for(pool, own) {
                let what = "taking memory from a pool inside a memory resource that the pool grows from";
                return Err(Error::new("", operation, ErrorKind::Unsupported { what }));
            }
            if check_outside_callback(operation).is_err() {
                break;
            }
            state.waiting.push((own, pool));
            // Not while a pool is locked: `search` has unlocked its own before.
            state.wait(&turns.ended);
            state.waiting.retain(|(thread, _)| *thread != own);
        }
        state.growing.push((pool, own));
        Ok(Self { pool, thread: own, _growing: blocking::growing() })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let turns = TURNS.get();
        // Also when upstream has panicked.
        turns.state.lock().growing.retain(|growing| *growing != (self.pool, self.thread));
        turns.ended.notify_all();
    }
}
