//! A lock under which code of the user may run that comes back to the same lock.

use crate::sync::{Mutex, MutexGuard};
use std::{
    ops::{Deref, DerefMut},
    sync::atomic::{AtomicUsize, Ordering},
};

/// A lock that refuses the thread that holds it, which would otherwise wait for itself.
#[derive(Debug, Default)]
pub(super) struct OnceAThread<T> {
    value: Mutex<T>,
    /// The mark of the thread that holds the lock, or 0.
    holder: AtomicUsize,
}

pub(super) struct OnceAThreadGuard<'a, T> {
    holder: &'a AtomicUsize,
    value: MutexGuard<'a, T>,
}

/// Returns a number that no other thread has at the same time, and that is not 0.
fn mark() -> usize {
    thread_local!(static MARK: u8 = const { 0 });
    MARK.with(|mark| std::ptr::from_ref(mark).addr())
}

impl<T> OnceAThread<T> {
    pub(super) fn new(value: T) -> Self {
        Self { value: Mutex::new(value), holder: AtomicUsize::new(0) }
    }

    /// Waits for the lock. `None` if this thread holds it.
    pub(super) fn lock(&self) -> Option<OnceAThreadGuard<'_, T>> {
        // Only this thread writes its own mark, so that the load need not be ordered.
        if self.holder.load(Ordering::Relaxed) == mark() {
            return None;
        }
        let value = self.value.lock();
        self.holder.store(mark(), Ordering::Relaxed);
        Some(OnceAThreadGuard { holder: &self.holder, value })
    }
}

impl<T> Drop for OnceAThreadGuard<'_, T> {
    fn drop(&mut self) {
        self.holder.store(0, Ordering::Relaxed);
    }
}

impl<T> Deref for OnceAThreadGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for OnceAThreadGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_it_once_and_others_wait() {
        let lock = OnceAThread::new(0u32);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..if cfg!(miri) { 10 } else { 1000 } {
                        let mut value = lock.lock().unwrap();
                        *value += 1;
                        assert!(lock.lock().is_none());
                    }
                });
            }
        });
        assert_eq!(*lock.lock().unwrap(), if cfg!(miri) { 40 } else { 4000 });
        let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _value = lock.lock().unwrap();
            std::panic::resume_unwind(Box::new(()));
        }));
        assert!(unwound.is_err() && lock.lock().is_some());
    }
}
