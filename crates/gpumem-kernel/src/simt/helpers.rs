//! Threads that may take part in one piece of work, and that it does not wait for unless they have come.

use gpumem_core::process::ProcessGuard;
use rayon::ThreadPool;
use std::{
    cell::Cell,
    hint,
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

/// Threads that have been called to help. Dropping it waits until none is inside the work, and lets no other one begin.
pub(super) struct Helpers {
    shared: Arc<Shared>,
    origin: ProcessGuard,
    was_inside: bool,
}

struct Shared {
    /// Twice the number of threads inside, and [`CLOSED`].
    state: AtomicUsize,
    work: Work,
    left: Mutex<()>,
    changed: Condvar,
}

/// No other thread may begin.
const CLOSED: usize = 1;
const INSIDE: usize = 2;

/// Looks before the caller sleeps: others end their parts at about the same time.
const LOOKS: u32 = 1 << 12;

type Job = Box<dyn FnOnce() + Send>;

/// Calls that no thread of the pool has answered yet: jobs of user code may keep all of them. Relaxed: a bound, not an order.
static UNANSWERED: AtomicUsize = AtomicUsize::new(0);
const MOST_UNANSWERED: usize = 1 << 10;

/// The function that helpers call, which lives until the work is closed.
#[derive(Clone, Copy)]
struct Work(*const (dyn Fn() + Sync));

// SAFETY: the function is `Sync`, so any thread may call it.
unsafe impl Send for Work {}
// SAFETY: as above.
unsafe impl Sync for Work {}

thread_local! {
    /// Whether this thread is inside some work. A body that waits for jobs of its own may get a helper's instead, which runs nothing then.
    static IS_INSIDE: Cell<bool> = const { Cell::new(false) };
}

impl Helpers {
    /// Calls that many threads of the pool to `work`, in which this thread is from now on.
    ///
    /// # Safety
    /// The value is dropped, and `work` outlives it and does not unwind.
    pub(super) unsafe fn call<'a>(
        pool: &ThreadPool,
        threads: usize,
        work: &'a (dyn Fn() + Sync + 'a),
    ) -> Self {
        let work: *const (dyn Fn() + Sync + 'a) = work;
        // SAFETY: only the lifetime changes. Helpers call it while they are inside, and the drop of the value waits for those (the
        // caller).
        let work = unsafe {
            std::mem::transmute::<*const (dyn Fn() + Sync + 'a), *const (dyn Fn() + Sync + 'static)>(work)
        };
        let (state, left, changed) = Default::default();
        let shared = Arc::new(Shared { state, work: Work(work), left, changed });
        shared.call(threads, |help| pool.spawn(help));
        Self { shared, origin: ProcessGuard::current(), was_inside: IS_INSIDE.replace(true) }
    }
}

impl Shared {
    /// Calls that many threads, half of them by the first. None where so many have been called that do not come: they may never.
    fn call(self: &Arc<Self>, mut others: usize, spawn: impl Fn(Job)) {
        while others > 0 && UNANSWERED.load(Ordering::Relaxed) < MOST_UNANSWERED {
            let (half, shared) = (others.div_ceil(2), self.clone());
            UNANSWERED.fetch_add(1, Ordering::Relaxed);
            spawn(Box::new(move || shared.help(half - 1)));
            others -= half;
        }
    }

    /// Takes part, unless the work is over. Each that begins calls half of those that are left, because a thread takes its time to wake
    /// another.
    fn help(self: Arc<Self>, others: usize) {
        UNANSWERED.fetch_sub(1, Ordering::Relaxed);
        if IS_INSIDE.get() {
            return;
        }
        // Acquire: with the close of the work, after which no thread gets in. What the caller wrote before came by the queue of the pool.
        let join = |state| (state & CLOSED == 0).then_some(state + INSIDE);
        if self.state.fetch_update(Ordering::Acquire, Ordering::Relaxed, join).is_err() {
            return;
        }
        self.call(others, rayon::spawn);
        IS_INSIDE.set(true);
        // SAFETY: this thread is counted as inside, so the caller has not returned; the function does not unwind.
        unsafe { (*self.work.0)() };
        IS_INSIDE.set(false);
        // Release: what this thread has written is seen by the caller, who finds it gone.
        if self.state.fetch_sub(INSIDE, Ordering::Release) == CLOSED | INSIDE {
            // The caller looks under the lock before it sleeps.
            drop(self.left.lock().unwrap_or_else(PoisonError::into_inner));
            self.changed.notify_one();
        }
    }

    /// Whether no thread is inside; none comes any more.
    fn is_over(&self) -> bool {
        // Acquire: with the release of the last one.
        self.state.load(Ordering::Acquire) == CLOSED
    }
}

impl Drop for Helpers {
    fn drop(&mut self) {
        IS_INSIDE.set(self.was_inside);
        let shared = &self.shared;
        shared.state.fetch_or(CLOSED, Ordering::AcqRel);
        // A child that the work has forked has none of the threads.
        let is_over = || shared.is_over() || self.origin.is_forked();
        let soon = (0..LOOKS).any(|_| {
            hint::spin_loop();
            is_over()
        });
        if soon {
            return;
        }
        let mut left = shared.left.lock().unwrap_or_else(PoisonError::into_inner);
        while !is_over() {
            left = shared.changed.wait(left).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
