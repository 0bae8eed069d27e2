//! Values of the whole process that a forked child can ask for: a lock that another thread held at the fork is never
//! released in the child.

use super::{ProcessGuard, forks};
use std::{
    fmt, ptr,
    sync::{
        OnceLock,
        atomic::{AtomicPtr, AtomicU64, Ordering},
    },
};

/// A value that each process makes for itself: a forked child does not look at that of its parent.
pub struct PerProcess<T: 'static> {
    current: AtomicPtr<Entry<T>>,
    make: fn() -> T,
}

struct Entry<T> {
    origin: ProcessGuard,
    value: T,
}

impl<T: Send + Sync> PerProcess<T> {
    /// Describes a value that `make` makes when it is first asked for.
    pub const fn new(make: fn() -> T) -> Self {
        Self { current: AtomicPtr::new(ptr::null_mut()), make }
    }

    /// Returns the value of this process. Two threads that ask at the same time may both make one, and one is dropped.
    pub fn get(&self) -> &T {
        let origin = ProcessGuard::current();
        loop {
            let current = self.current.load(Ordering::Acquire);
            // SAFETY: the pointer is null, or from a box below that others can see, which stays as long as `self`.
            if let Some(entry) = unsafe { current.as_ref() }
                && entry.origin == origin
            {
                return &entry.value;
            }
            let fresh = Box::into_raw(Box::new(Entry { origin, value: (self.make)() }));
            if self.current.compare_exchange(current, fresh, Ordering::AcqRel, Ordering::Acquire).is_err() {
                // SAFETY: no other thread has seen `fresh`.
                drop(unsafe { Box::from_raw(fresh) });
            }
        }
    }
}

impl<T> Drop for PerProcess<T> {
    fn drop(&mut self) {
        let current = *self.current.get_mut();
        // SAFETY: as in `get`.
        if unsafe { current.as_ref() }.is_some_and(|entry| entry.origin == ProcessGuard::current()) {
            // SAFETY: from a box of this process, which nothing refers to any more. One of a parent's is leaked.
            drop(unsafe { Box::from_raw(current) });
        }
    }
}

impl<T> fmt::Debug for PerProcess<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PerProcess").finish_non_exhaustive()
    }
}

/// A value that is made once, and that a forked child inherits if it was there at the fork.
#[derive(Debug)]
pub struct OnceBeforeFork<T> {
    value: OnceLock<T>,
    /// Which process has begun to make the value: its number of forks, plus 1.
    began: AtomicU64,
}

impl<T> OnceBeforeFork<T> {
    /// Makes a place without a value.
    pub const fn new() -> Self {
        Self { value: OnceLock::new(), began: AtomicU64::new(0) }
    }

    /// Returns the value, which `make` makes if there is none. `None` in a forked child whose parent was making it at the
    /// fork: the thread that would have finished is not there.
    pub fn get_or_init(&self, make: impl FnOnce() -> T) -> Option<&T> {
        self.value.get().or_else(|| self.init(make))
    }

    /// Returns the value, if it has been made.
    pub fn get(&self) -> Option<&T> {
        self.value.get()
    }

    #[cold]
    fn init(&self, make: impl FnOnce() -> T) -> Option<&T> {
        let _ = ProcessGuard::current();
        let this = forks() + 1;
        match self.began.compare_exchange(0, this, Ordering::Relaxed, Ordering::Relaxed) {
            Err(began) if began != this => self.value.get(),
            _ => Some(self.value.get_or_init(make)),
        }
    }
}

impl<T> Default for OnceBeforeFork<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(all(test, unix, not(miri)))]
pub(super) mod tests {
    use super::*;
    use std::{
        sync::{Mutex, mpsc::channel},
        thread,
    };

    /// Runs `body` in a forked child, which ends by a signal if it hangs.
    pub(crate) fn holds_in_a_child(body: impl FnOnce() -> bool) -> bool {
        // SAFETY: the child calls only functions that Linux allows after a fork, and leaves by `_exit`.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            // SAFETY: as above.
            unsafe {
                libc::alarm(10);
                libc::_exit(i32::from(!body()));
            }
        }
        let mut status = 0;
        // SAFETY: our own child, and a place for its status.
        let waited = unsafe { libc::waitpid(pid, &raw mut status, 0) };
        waited == pid && status == 0
    }

    #[test]
    fn a_forked_child_gets_new_values_while_parent_threads_hold_locks() {
        static NUMBERS: PerProcess<Mutex<Vec<u32>>> = PerProcess::new(|| Mutex::new(Vec::new()));
        let mut held = NUMBERS.get().lock().unwrap();
        held.push(1);
        assert!(holds_in_a_child(|| {
            let mut own = NUMBERS.get().lock().unwrap();
            own.push(2);
            *own == [2] && ptr::eq(NUMBERS.get(), NUMBERS.get())
        }));
        assert_eq!(*held, [1]);
        drop(held);
        assert_eq!(*NUMBERS.get().lock().unwrap(), [1]);
    }

    #[test]
    fn a_forked_child_does_not_wait_for_an_initialisation_of_its_parent() {
        static VALUE: OnceBeforeFork<u32> = OnceBeforeFork::new();
        let (started, has_started) = channel();
        let (go_on, may_go_on) = channel::<()>();
        let making = thread::spawn(move || {
            VALUE.get_or_init(|| {
                started.send(()).unwrap();
                may_go_on.recv().unwrap();
                7
            })
        });
        has_started.recv().unwrap();
        assert!(holds_in_a_child(|| VALUE.get_or_init(|| 8).is_none()));
        go_on.send(()).unwrap();
        assert_eq!(making.join().unwrap(), Some(&7));
        assert!(holds_in_a_child(|| VALUE.get_or_init(|| 8) == Some(&7)));
        static LATER: OnceBeforeFork<u32> = OnceBeforeFork::new();
        assert!(holds_in_a_child(|| LATER.get_or_init(|| 9) == Some(&9)));
    }
}
