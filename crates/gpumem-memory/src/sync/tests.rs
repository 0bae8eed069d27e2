//! Which orders of locks are refused.

use super::{Mutex, PlainMutex, Rank, ShortMutex, rank::checked::with_held};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The text of the panic in `code`, if there is any.
fn panic_in(code: impl FnOnce()) -> Option<String> {
    catch_unwind(AssertUnwindSafe(code)).err().map(|panic| *panic.downcast::<String>().unwrap())
}

#[test]
fn a_lower_or_equal_rank_is_refused_with_both_names() {
    let (log, queue) = (ShortMutex::numbered(Rank::AccessLog, 7, ()), ShortMutex::new(Rank::Queue, ()));
    let (other, errors) = (ShortMutex::new(Rank::Queue, ()), PlainMutex::new(Rank::Errors, ()));
    let all = (log.lock(), queue.lock(), errors.lock());
    let before = with_held(|held| held.clone());
    drop(all);
    assert_eq!(before, [(Rank::AccessLog, 7), (Rank::Queue, 0), (Rank::Errors, 0)]);
    let held = queue.lock();
    let text = panic_in(|| drop(log.lock())).unwrap();
    assert_eq!(text, "the lock AccessLog 7 is taken by a thread that holds Queue 0");
    assert!(panic_in(|| drop(other.lock())).is_some(), "two queues");
    assert!(panic_in(|| drop(errors.lock())).is_none());
    drop(held);
    assert!(with_held(|held| held.is_empty()), "a refused lock is not held");
    drop(log.lock());
}

#[test]
fn locks_of_one_rank_are_taken_by_rising_numbers() {
    let logs = [1, 2, 3].map(|number| Mutex::numbered(Rank::AccessLog, number, ()));
    let [first, second, third] = logs.each_ref();
    let held = (first.lock(), third.lock());
    assert!(panic_in(|| drop(second.lock())).is_some());
    drop(held.1);
    assert!(panic_in(|| drop(second.lock())).is_none(), "they may be unlocked in any order");
}

#[test]
fn what_is_only_tried_may_have_any_rank_and_counts_as_held() {
    let (queue, other) = (ShortMutex::new(Rank::Queue, ()), ShortMutex::new(Rank::Queue, ()));
    let _own = queue.lock();
    assert!(queue.try_lock().is_none());
    let tried = other.try_lock();
    assert!(tried.is_some());
    assert_eq!(with_held(|held| held.len()), 2);
}
