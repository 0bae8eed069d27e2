//! The threads that groups run on.

use super::helpers::Helpers;
use crate::simt::group_batch::Batch;
use gpumem_core::{HostFunction, NonBlockingContext, process::PerProcess};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::{
    any::Any,
    ops::Range,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

/// Our own, because rayon's global pool panics where the system has no threads for it. A forked child has none of its parent's
/// threads, and would wait for them for ever.
static POOL: PerProcess<Option<ThreadPool>> = PerProcess::new(|| {
    ThreadPoolBuilder::new()
        .thread_name(|index| format!("gpumem-simt-{index}"))
        .stack_size(HostFunction::STACK_BYTES)
        .build()
        .ok()
});

/// Parts of a launch for each thread: enough that threads which are late are made up for.
const PARTS: u64 = 8;

/// Runs the groups, and returns the fault of the first part that has one. They begin on this thread, which wakes others
/// if the rest takes long, and takes part in it: waking others takes longer than many a whole launch.
pub(crate) fn run<E: Send>(groups: u64, part: impl Fn(&mut Batch) -> Result<(), E> + Sync) -> Result<(), E> {
    let mut alone = Batch::while_short(0..groups);
    part(&mut alone)?;
    let rest = alone.rest();
    if rest.is_empty() {
        return Ok(());
    }
    let pool = POOL.get().as_ref();
    let threads = pool.map_or(1, ThreadPool::current_num_threads);
    let (Some(pool), 2..) = (pool, threads) else { return part(&mut Batch::all(rest)) };
    let parts = Parts::of(rest, PARTS * threads as u64);
    let others = (threads - 1).min(parts.count as usize - 1);
    // A body may wait for a device on the other threads as little as on this one.
    let context = NonBlockingContext::current();
    let part = |batch: &mut Batch| NonBlockingContext::run(context, || part(batch));
    let work = || {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| parts.run(&part))) {
            parts.stop();
            lock(&parts.panic).get_or_insert(panic);
        }
    };
    // SAFETY: it is dropped below, and the function catches every panic.
    let helpers = unsafe { Helpers::call(pool, others, &work) };
    work();
    // Until no other thread is inside.
    drop(helpers);
    parts.outcome()
}

/// Parts of the work, which threads take one after the other.
struct Parts<E> {
    groups: Range<u64>,
    count: u64,
    next: AtomicU64,
    /// The first part that has a fault. Those before it have been taken before it, so that none of them is left out.
    fault: Mutex<Option<(u64, E)>>,
    /// What a thread has panicked with: its part is not done.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

impl<E: Send> Parts<E> {
    fn of(groups: Range<u64>, most: u64) -> Self {
        let count = most.min(groups.end - groups.start);
        Self { groups, count, next: AtomicU64::new(0), fault: Mutex::default(), panic: Mutex::default() }
    }

    /// Where a part begins.
    fn start(&self, index: u64) -> u64 {
        let groups = u128::from(self.groups.end - self.groups.start);
        self.groups.start + (groups * u128::from(index) / u128::from(self.count)) as u64
    }

    /// The next part.
    fn take(&self) -> Option<(u64, Range<u64>)> {
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        (index < self.count).then(|| (index, self.start(index)..self.start(index + 1)))
    }

    /// Runs parts on this thread.
    fn run(&self, part: &(impl Fn(&mut Batch) -> Result<(), E> + Sync)) {
        while let Some((index, groups)) = self.take() {
            if let Err(fault) = part(&mut Batch::all(groups)) {
                self.stop();
                let mut first = lock(&self.fault);
                if first.as_ref().is_none_or(|(before, _)| index < *before) {
                    *first = Some((index, fault));
                }
            }
        }
    }

    /// No thread takes another part.
    fn stop(&self) {
        self.next.store(self.count, Ordering::Relaxed);
    }

    /// The fault of the first part that has one, when all threads are done. A panic of a thread goes on in this one.
    fn outcome(self) -> Result<(), E> {
        if let Some(panic) = lock(&self.panic).take() {
            resume_unwind(panic);
        }
        lock(&self.fault).take().map_or(Ok(()), |(_, fault)| Err(fault))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        cell::Cell,
        sync::{
            Arc,
            atomic::{AtomicBool, AtomicU32},
        },
        thread,
        time::Duration,
    };

    /// Long enough that others are woken.
    fn dwell() {
        thread::sleep(Duration::from_micros(50));
    }

    #[test]
    fn every_group_runs_once() {
        for groups in [0, 1, 2, 7, 100] {
            let ran: Vec<AtomicU32> = (0..groups).map(|_| AtomicU32::new(0)).collect();
            let outcome: Result<(), ()> = run(groups as u64, |batch| {
                for number in batch {
                    dwell();
                    ran[number as usize].fetch_add(1, Ordering::Relaxed);
                }
                Ok(())
            });
            assert_eq!(outcome, Ok(()));
            assert!(ran.iter().all(|count| count.load(Ordering::Relaxed) == 1), "{ran:?}");
        }
    }

    /// The only worker of a user's pool would run that job while it waits.
    #[test]
    #[cfg_attr(miri, ignore = "Miri does not know rayon's threads")]
    fn jobs_of_the_users_pool_run_outside_of_a_kernel() {
        let (is_inside, ran_inside) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicBool::new(false)));
        let (looks, found) = (is_inside.clone(), ran_inside.clone());
        let users = ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        users.install(|| {
            rayon::spawn(move || found.store(looks.load(Ordering::Relaxed), Ordering::Relaxed));
            let own = thread::current().id();
            let outcome: Result<(), ()> = run(100, |batch| {
                // Others take longer, and are waited for.
                let is_own = thread::current().id() == own;
                batch.for_each(|_| if is_own { dwell() } else { thread::sleep(Duration::from_millis(5)) });
                Ok(())
            });
            assert_eq!(outcome, Ok(()));
            is_inside.store(false, Ordering::Relaxed);
        });
        // Waits for the job.
        drop(users);
        assert!(!ran_inside.load(Ordering::Relaxed));
    }

    /// Launches that have all threads of the pool, and wait for one that comes later.
    #[test]
    #[cfg_attr(miri, ignore = "Miri does not know rayon's threads")]
    fn no_launch_waits_for_the_groups_of_others() {
        let (inside, may_end) = (AtomicU32::new(0), AtomicBool::new(false));
        let hold = || {
            let outcome: Result<(), ()> = run(1000, |batch| {
                for _ in batch {
                    inside.fetch_add(1, Ordering::SeqCst);
                    while !may_end.load(Ordering::SeqCst) {
                        dwell();
                    }
                }
                Ok(())
            });
            assert_eq!(outcome, Ok(()));
        };
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(hold);
            }
            while inside.load(Ordering::SeqCst) < 3 {
                dwell();
            }
            let ran = AtomicU32::new(0);
            let outcome: Result<(), ()> = run(100, |batch| {
                for _ in batch {
                    dwell();
                    ran.fetch_add(1, Ordering::SeqCst);
                }
                Ok(())
            });
            assert_eq!((outcome, ran.into_inner()), (Ok(()), 100));
            may_end.store(true, Ordering::SeqCst);
        });
    }

    /// A body that waits for jobs of its own may run those of others meanwhile, but no groups.
    #[test]
    #[cfg_attr(miri, ignore = "Miri does not know rayon's threads")]
    fn no_group_runs_within_a_group() {
        thread_local! {
            static INSIDE: Cell<bool> = const { Cell::new(false) };
        }
        let nested = AtomicBool::new(false);
        let launch = || {
            let outcome: Result<(), ()> = run(200, |batch| {
                for _ in batch {
                    if INSIDE.replace(true) {
                        nested.store(true, Ordering::SeqCst);
                    }
                    rayon::join(dwell, dwell);
                    INSIDE.set(false);
                }
                Ok(())
            });
            assert_eq!(outcome, Ok(()));
        };
        thread::scope(|scope| (0..3).for_each(|_| drop(scope.spawn(launch))));
        assert!(!nested.into_inner());
    }

    #[test]
    fn a_panic_of_any_thread_is_one_of_the_launch() {
        for at in [0, 50, 99] {
            let ended = catch_unwind(|| {
                run(100, |batch| {
                    for number in batch {
                        dwell();
                        assert_ne!(number, at, "on purpose");
                    }
                    Ok::<(), ()>(())
                })
            });
            assert!(ended.is_err(), "{at}");
        }
    }

    #[test]
    fn the_first_of_several_faults_is_reported() {
        for first in [0, 1, 17, 98] {
            let outcome = run(100, |batch| {
                batch.into_iter().try_for_each(|number| {
                    dwell();
                    // The later they are, the sooner they come.
                    if number >= first { Err(number) } else { Ok(()) }
                })
            });
            assert_eq!(outcome, Err(first));
        }
    }
}
