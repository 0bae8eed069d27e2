//! The event count of transfers: a sleeping thread is woken, and sees the change that it waited for.

use gpumem_memory::sync::event_count::{EventCount, spin_until};
use loom::{
    cell::UnsafeCell,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

/// Numbers that a thread writes before it counts on and rings.
#[derive(Default)]
struct Shared {
    event_count: EventCount,
    count: AtomicUsize,
    numbers: [UnsafeCell<usize>; 2],
}

// SAFETY: number `n` is written before the count exceeds `n`, and read afterwards; loom checks that.
unsafe impl Sync for Shared {}

impl Shared {
    fn write(&self, at: usize, number: usize) {
        // SAFETY: as above.
        self.numbers[at].with_mut(|place| unsafe { *place = number });
    }

    fn read(&self, at: usize) -> usize {
        // SAFETY: as above.
        self.numbers[at].with(|place| unsafe { *place })
    }

    /// Counts on by one, and rings.
    fn announce(&self) {
        self.count.fetch_add(1, Ordering::Release);
        self.event_count.notify_all();
    }

    /// Looks once whether the count has been reached, and then sleeps until it is.
    fn look_and_sleep(&self, count: usize) {
        if !spin_until(1, |_| self.has_reached(count)) {
            self.event_count.wait_until(|| self.has_reached(count));
        }
    }

    fn has_reached(&self, count: usize) -> bool {
        self.count.load(Ordering::Acquire) >= count
    }
}

fn model(body: impl Fn(&Arc<Shared>) + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(3));
    builder.check(move || body(&Arc::default()));
}

#[test]
fn a_sleeper_is_woken_and_sees_the_write() {
    for looks in [false, true] {
        model(move |shared| {
            let theirs = shared.clone();
            let other = thread::spawn(move || {
                theirs.write(0, 7);
                theirs.announce();
            });
            match looks {
                true => shared.look_and_sleep(1),
                false => shared.event_count.wait_until(|| shared.has_reached(1)),
            }
            assert_eq!(shared.read(0), 7);
            other.join().unwrap();
        });
    }
}

#[test]
fn each_sleeper_is_woken_for_its_own() {
    model(|shared| {
        let sleepers = [0, 1].map(|me| {
            let shared = shared.clone();
            thread::spawn(move || {
                shared.event_count.wait_until(|| shared.has_reached(me + 1));
                assert_eq!(shared.read(me), me + 1);
            })
        });
        for at in 0..2 {
            shared.write(at, at + 1);
            shared.announce();
        }
        sleepers.into_iter().for_each(|sleeper| sleeper.join().unwrap());
    });
}

#[test]
fn a_sleeper_waits_for_both_notifications() {
    model(|shared| {
        let ringers = [0, 1].map(|me| {
            let shared = shared.clone();
            thread::spawn(move || {
                shared.write(me, me + 1);
                shared.announce();
            })
        });
        shared.look_and_sleep(2);
        assert_eq!(shared.read(0) + shared.read(1), 3);
        ringers.into_iter().for_each(|ringer| ringer.join().unwrap());
    });
}

#[test]
fn threads_that_take_turns_wake_each_other() {
    model(|shared| {
        let theirs = shared.clone();
        let other = thread::spawn(move || {
            theirs.event_count.wait_until(|| theirs.has_reached(1));
            theirs.write(1, theirs.read(0) + 1);
            theirs.announce();
        });
        shared.write(0, 1);
        shared.announce();
        shared.look_and_sleep(2);
        assert_eq!(shared.read(1), 2);
        other.join().unwrap();
    });
}
