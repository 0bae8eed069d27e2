//! Locks without poisoning.
//!
//! The locks of `std` and not those of `parking_lot`: the latter park threads in one table for the whole process, and
//! a child that was forked while another thread held a lock of that table could hang in locks of its own.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

/// Locks. No code here panics while it holds a lock, so the state in a poisoned one is consistent.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

/// Sleeps until another thread notifies, at most `limit`. Whether the time ran out.
pub(crate) fn sleep<'a, T>(
    condition: &Condvar,
    guard: MutexGuard<'a, T>,
    limit: Duration,
) -> (MutexGuard<'a, T>, bool) {
    let (guard, timeout) = condition.wait_timeout(guard, limit).unwrap_or_else(PoisonError::into_inner);
    (guard, timeout.timed_out())
}
