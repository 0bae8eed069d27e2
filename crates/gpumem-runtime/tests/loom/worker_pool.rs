//! The worker pool: no thread is inside the work when the call is over, a requested thread comes, and all end with the
//! pool. (loom fails a model whose threads do not end.)

use gpumem_memory::sync::event_count::EventCount;
use gpumem_runtime::loom_models::WorkerPoolModel;
use loom::{
    cell::UnsafeCell,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Tries all interleavings of `body`, with threads that end where there is no work, and with threads that stay.
fn model(body: impl Fn(&Arc<WorkerPoolModel>) + Send + Sync + Copy + 'static) {
    for ends_at_once in [false, true] {
        let mut builder = loom::model::Builder::new();
        // A third preemption takes minutes.
        builder.preemption_bound = builder.preemption_bound.or(Some(2));
        builder.check(move || body(&Arc::new(WorkerPoolModel::new(ends_at_once))));
    }
}

/// A list of tasks from which threads take the next one, ordered only by the pool.
struct Tasks {
    next: AtomicUsize,
    done: Vec<UnsafeCell<usize>>,
}

// SAFETY: a task is taken by one thread, and looked at when the call is over; loom checks that.
unsafe impl Sync for Tasks {}

impl Tasks {
    fn new(count: usize) -> Self {
        Self { next: AtomicUsize::new(0), done: (0..count).map(|_| UnsafeCell::new(0)).collect() }
    }

    fn work(&self) {
        while let Some(task) = self.done.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            // SAFETY: as above.
            task.with_mut(|task| unsafe { *task += 1 });
        }
    }

    /// Looks at each task, which is a race if a thread is still inside.
    fn check(self) {
        for task in self.done {
            // SAFETY: as above.
            assert_eq!(task.with(|task| unsafe { *task }), 1);
        }
    }
}

fn run(pool: &WorkerPoolModel, helpers: usize, count: usize) {
    let tasks = Tasks::new(count);
    pool.run(helpers, &|| tasks.work(), || tasks.work());
    tasks.check();
}

#[test]
fn no_helper_is_inside_when_a_call_is_over() {
    model(|pool| {
        run(pool, 1, 2);
        run(pool, 1, 1);
    });
}

#[test]
fn two_helpers_share_the_tasks() {
    model(|pool| run(pool, 2, 2));
}

#[test]
fn two_callers_share_a_helper() {
    model(|pool| {
        let theirs = pool.clone();
        let other = thread::spawn(move || run(&theirs, 1, 1));
        run(pool, 1, 1);
        other.join().unwrap();
    });
}

/// Waits for a helper, which no transfer does: the caller would do a job alone for which it had woken no helper, and the
/// model would not notice.
fn run_until_a_helper_comes(pool: &WorkerPoolModel) {
    let (has_come, count) = (AtomicBool::new(false), EventCount::default());
    let theirs = || {
        has_come.store(true, Ordering::Release);
        count.notify_all();
    };
    pool.run(1, &theirs, || count.wait_until(|| has_come.load(Ordering::Acquire)));
}

#[test]
fn a_requested_helper_comes_each_time() {
    model(|pool| {
        run_until_a_helper_comes(pool);
        run_until_a_helper_comes(pool);
    });
}

#[test]
fn a_helper_comes_when_there_are_more_than_requested() {
    model(|pool| {
        run(pool, 2, 1);
        run_until_a_helper_comes(pool);
    });
}

#[test]
fn a_helper_that_unwinds_leaves_the_job() {
    model(|pool| {
        let tasks = Tasks::new(1);
        let theirs = || {
            tasks.work();
            resume_unwind(Box::new("on purpose"));
        };
        pool.run(1, &theirs, || tasks.work());
        tasks.check();
        run(pool, 1, 1);
    });
}

#[test]
fn no_helper_is_inside_when_the_caller_unwinds() {
    model(|pool| {
        let tasks = Tasks::new(1);
        let call = || pool.run(1, &|| tasks.work(), || resume_unwind(Box::new("on purpose")));
        assert!(catch_unwind(AssertUnwindSafe(call)).is_err());
        // Tasks that no helper has taken are left.
        tasks.work();
        tasks.check();
    });
}
