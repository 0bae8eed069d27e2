//! Threads of a device that help the calling thread with one piece of work.
//!
//! The caller works too. It does not wait for a worker that has not begun: a worker that is busy elsewhere is left out. When
//! [`WorkerPool::broadcast`] returns, or unwinds, no helper is inside the work, so the work may borrow.

use crate::tuning::TUNING;
use gpumem_core::process::ProcessGuard;
use gpumem_memory::sync::{
    event_count::{EventCount, spin_until},
    threads::{Builder, Mutex, MutexGuard},
};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, PoisonError},
};

/// The helpers of one device, started when there is something to do for them.
#[derive(Debug)]
pub(crate) struct WorkerPool {
    shared: Arc<Shared>,
    origin: ProcessGuard,
}

impl Default for WorkerPool {
    fn default() -> Self {
        Self { shared: Arc::default(), origin: ProcessGuard::current() }
    }
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// Notified when there is a job, and when the pool is closed.
    work: EventCount,
    /// Notified when the last helper has left a job.
    left: EventCount,
    /// In a model a helper without work ends at once, or never.
    #[cfg(loom)]
    ends_at_once: bool,
}

#[derive(Debug, Default)]
struct State {
    jobs: Vec<Job>,
    next: u64,
    alive: usize,
    idle: usize,
    closed: bool,
    /// Why the system has refused a thread, until that is told.
    refused: Option<std::io::Error>,
}

#[derive(Debug)]
struct Job {
    id: u64,
    body: JobFn,
    /// Helpers that may still join.
    wanted: usize,
    /// Helpers that are inside.
    inside: usize,
}

/// The function that helpers call. It is alive as long as its job is listed.
#[derive(Debug, Clone, Copy)]
struct JobFn(*const (dyn Fn() + Sync));

// SAFETY: the closure is `Sync`, so calling it through a shared pointer from any thread is allowed.
unsafe impl Send for JobFn {}

impl Shared {
    /// The locks of `std`, and no state that a panic could leave half-done.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The loop of a helper: takes part in one job after the other, until the pool is closed or there is none for long.
    fn help(&self) {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.jobs.iter_mut().find(|job| job.wanted > 0) {
                job.wanted -= 1;
                job.inside += 1;
                let (id, body) = (job.id, job.body);
                drop(state);
                // SAFETY: the job is listed and counts this thread as inside, so `broadcast` is still waiting below the closure.
                let ended = catch_unwind(AssertUnwindSafe(|| unsafe { (*body.0)() }));
                if self.leave(id) {
                    self.left.notify_all();
                }
                // After it has left: a subscriber may wait for the transfer.
                if ended.is_err() {
                    gpumem_core::tell!(error: "a helper of a transfer panicked");
                }
                state = self.lock();
                continue;
            }
            if state.closed {
                break;
            }
            state.idle += 1;
            drop(state);
            let has_work = self.work.wait_for(self.idle_time(), || {
                let state = self.lock();
                state.closed || state.has_work()
            });
            state = self.lock();
            state.idle -= 1;
            if !has_work && !state.has_work() {
                break;
            }
        }
        state.alive -= 1;
    }

    /// Notes that a helper has left a job. `true`: it was the last one.
    fn leave(&self, id: u64) -> bool {
        let mut state = self.lock();
        state.jobs.iter_mut().find(|job| job.id == id).is_some_and(|job| {
            job.inside -= 1;
            job.inside == 0
        })
    }

    /// Returns how long a helper waits for work.
    #[cfg(not(loom))]
    fn idle_time(&self) -> Option<std::time::Duration> {
        Some(TUNING.helper_idle)
    }

    #[cfg(loom)]
    fn idle_time(&self) -> Option<std::time::Duration> {
        self.ends_at_once.then_some(std::time::Duration::ZERO)
    }
}

impl State {
    fn has_work(&self) -> bool {
        self.jobs.iter().any(|job| job.wanted > 0)
    }
}

impl WorkerPool {
    /// Makes a pool for a model, in which a helper without work ends at once, or never.
    #[cfg(loom)]
    pub(crate) fn for_a_model(ends_at_once: bool) -> Self {
        Self {
            shared: Arc::new(Shared { ends_at_once, ..Shared::default() }),
            origin: ProcessGuard::current(),
        }
    }

    /// Calls `caller` on this thread and `worker` on up to `helpers` others, and returns when all calls have returned.
    /// Both take their work from a common list; no work is lost if no helper comes.
    pub(crate) fn broadcast(&self, helpers: usize, worker: &(dyn Fn() + Sync), caller: impl FnOnce()) {
        if helpers == 0 {
            return caller();
        }
        let body: *const (dyn Fn() + Sync + '_) = worker;
        // SAFETY: only the lifetime changes. The job is taken off the list below, also when `caller` unwinds, and not
        // before the last helper has left, so the closure is not called after this function returns.
        let body = unsafe {
            std::mem::transmute::<*const (dyn Fn() + Sync + '_), *const (dyn Fn() + Sync + 'static)>(body)
        };
        let mut state = self.shared.lock();
        let id = state.next;
        state.next += 1;
        state.jobs.push(Job { id, body: JobFn(body), wanted: helpers, inside: 0 });
        // No more than one transfer may have, however many there are: a busy helper comes later.
        let idle = state.idle;
        let missing = helpers.saturating_sub(idle);
        let started = missing.min(helpers.saturating_sub(state.alive));
        state.alive += started;
        drop(state);
        // From here on the job ends with this guard.
        let _listed = JobGuard { shared: &self.shared, origin: self.origin, id };
        // Waking a thread takes a microsecond or two, also one that is not wanted.
        match helpers < idle {
            true => self.shared.work.notify(helpers),
            false => self.shared.work.notify_all(),
        }
        for _ in 0..started {
            let shared = self.shared.clone();
            let builder = Builder::new().name("gpumem:copy".to_owned());
            if let Err(why) = builder.spawn(move || shared.help()) {
                let mut state = self.shared.lock();
                state.alive -= 1;
                // Told later: the caller of this may hold locks, and a subscriber is code of the user.
                state.refused = Some(why);
            }
        }
        caller();
    }

    /// Tells that the system has refused a thread. The caller holds no lock.
    pub(crate) fn tell_refusal(&self) {
        // A thread of the parent's may have held the lock.
        if self.origin.is_forked() {
            return;
        }
        let refused = self.shared.lock().refused.take();
        if let Some(why) = refused {
            gpumem_core::tell!(warn: "no thread could be started to help with a transfer: {why}");
        }
    }

    /// Threads that are alive.
    #[cfg(all(test, not(loom)))]
    fn alive(&self) -> usize {
        self.shared.lock().alive
    }

    /// Drops the pool and waits for its threads.
    #[cfg(all(test, not(loom)))]
    fn end(self) {
        let shared = self.shared.clone();
        drop(self);
        while shared.lock().alive > 0 {
            std::thread::yield_now();
        }
    }
}

/// A job on the list. Taking it off waits for the helpers that are inside.
struct JobGuard<'a> {
    shared: &'a Shared,
    origin: ProcessGuard,
    id: u64,
}

impl JobGuard<'_> {
    /// Takes the job off the list if no worker runs it, and lets no other one start. `true`: it is off.
    fn is_over(&self, state: &mut State) -> bool {
        let Some(at) = state.jobs.iter().position(|job| job.id == self.id) else { return true };
        state.jobs[at].wanted = 0;
        let is_over = state.jobs[at].inside == 0;
        if is_over {
            state.jobs.swap_remove(at);
        }
        is_over
    }
}

impl Drop for JobGuard<'_> {
    fn drop(&mut self) {
        let shared = self.shared;
        // Forked in code of the caller's: no helper is there, and one that is not may hold the lock. While the process ends they are
        // there, and use memory of the caller's.
        if self.origin.is_forked() {
            return;
        }
        if spin_until(TUNING.spins, |looks| {
            looks.is_multiple_of(TUNING.looks_per_lock) && self.is_over(&mut shared.lock())
        }) {
            return;
        }
        shared.left.wait_until(|| self.is_over(&mut shared.lock()));
    }
}

impl Drop for WorkerPool {
    /// Lets the helpers end, without waiting for them: they only touch state that they share with each other. A forked
    /// child has no helpers, and a thread that does not exist there may hold a lock.
    fn drop(&mut self) {
        if self.origin.is_valid() {
            self.shared.lock().closed = true;
            self.shared.work.notify_all();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::{
        sync::atomic::{AtomicUsize, Ordering},
        thread,
        time::Duration,
    };

    fn count(workers: &WorkerPool, helpers: usize, tasks: usize) -> usize {
        let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let work = || {
            while next.fetch_add(1, Ordering::Relaxed) < tasks {
                done.fetch_add(1, Ordering::Relaxed);
            }
        };
        workers.broadcast(helpers, &work, work);
        done.load(Ordering::Relaxed)
    }

    #[test]
    fn all_tasks_are_done_with_any_number_of_workers() {
        let workers = WorkerPool::default();
        for helpers in [0, 1, 3] {
            for tasks in [0, 1, 100] {
                assert_eq!(count(&workers, helpers, tasks), tasks);
            }
        }
        assert!(workers.alive() <= 3, "{} threads", workers.alive());
        workers.end();
    }

    #[test]
    fn no_worker_runs_the_job_after_a_panic() {
        let workers = WorkerPool::default();
        let inside = AtomicUsize::new(0);
        for _ in 0..if cfg!(miri) { 3 } else { 20 } {
            let ended = catch_unwind(AssertUnwindSafe(|| {
                let worker = || {
                    inside.fetch_add(1, Ordering::SeqCst);
                    thread::sleep(Duration::from_millis(1));
                    inside.fetch_sub(1, Ordering::SeqCst);
                };
                workers.broadcast(2, &worker, || std::panic::resume_unwind(Box::new("on purpose")));
            }));
            assert!(ended.is_err());
            assert_eq!(inside.load(Ordering::SeqCst), 0);
        }
        assert_eq!(count(&workers, 2, 50), 50, "and the pool still works");
        workers.end();
    }

    #[test]
    fn callers_do_not_wait_for_each_other() {
        let workers = WorkerPool::default();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    (0..if cfg!(miri) { 2 } else { 50 }).for_each(|_| assert_eq!(count(&workers, 3, 20), 20))
                });
            }
        });
        assert!(workers.alive() <= 3);
        workers.end();
    }
}
