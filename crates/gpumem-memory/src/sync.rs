//! The locks and atomics of the ordering code, replaced by loom's under `cfg(loom)`.

#[cfg(not(loom))]
pub use parking_lot::Mutex;
#[cfg(not(loom))]
pub use std::{
    hint::spin_loop,
    sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence},
};

/// The locks of `std`, for threads that are started here, and how those are started.
#[cfg(not(loom))]
pub mod threads {
    pub use std::{
        sync::{Condvar, Mutex, MutexGuard},
        thread::Builder,
    };
}

/// A lock that is held for a few dozen instructions or a call of the driver at a time, and is hardly ever contended.
/// Unlocking is a plain store; other locks need an atomic instruction there to find sleeping threads, which is
/// noticeable in work of a microsecond. A thread that has spun for a while sleeps between attempts.
#[cfg(not(loom))]
#[derive(Debug)]
pub struct ShortMutex<T>(spin::mutex::SpinMutex<T>);
#[cfg(not(loom))]
pub type ShortMutexGuard<'a, T> = spin::mutex::SpinMutexGuard<'a, T>;

#[cfg(not(loom))]
impl<T> ShortMutex<T> {
    pub fn new(value: T) -> Self {
        Self(spin::mutex::SpinMutex::new(value))
    }

    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }

    #[inline]
    pub fn try_lock(&self) -> Option<ShortMutexGuard<'_, T>> {
        self.0.try_lock()
    }

    #[inline]
    pub fn lock(&self) -> ShortMutexGuard<'_, T> {
        match self.0.try_lock() {
            Some(guard) => guard,
            None => self.wait(),
        }
    }

    /// The thread that holds the lock may have been preempted, and needs a processor: spinning alone could go on for as
    /// long as a time slice lasts.
    #[cold]
    fn wait(&self) -> ShortMutexGuard<'_, T> {
        for turn in 0.. {
            match turn {
                0..128 => std::hint::spin_loop(),
                128..144 => std::thread::yield_now(),
                _ => std::thread::sleep(std::time::Duration::from_micros(50)),
            }
            if let Some(guard) = self.0.try_lock() {
                return guard;
            }
        }
        self.0.lock()
    }
}

#[cfg(loom)]
pub use self::Mutex as ShortMutex;
#[cfg(loom)]
pub use MutexGuard as ShortMutexGuard;

#[cfg(loom)]
pub use loom::{
    hint::spin_loop,
    sync::{
        MutexGuard,
        atomic::{AtomicU64, AtomicUsize, Ordering, fence},
    },
};

/// The locks of loom, for threads that are started here, and how those are started.
#[cfg(loom)]
pub mod threads {
    pub use loom::{
        sync::{Condvar, Mutex, MutexGuard},
        thread::Builder,
    };
}

/// loom's mutex with the interface of `parking_lot`'s: no poisoning.
#[cfg(loom)]
#[derive(Debug, Default)]
pub struct Mutex<T>(loom::sync::Mutex<T>);

#[cfg(loom)]
impl<T> Mutex<T> {
    pub fn new(value: T) -> Self {
        Self(loom::sync::Mutex::new(value))
    }

    pub fn get_mut(&mut self) -> &mut T {
        match self.0.get_mut() {
            Ok(value) => value,
            Err(poisoned) => poisoned.into_inner(),
        }
    }

    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.0.try_lock().ok()
    }

    pub fn lock(&self) -> MutexGuard<'_, T> {
        match self.0.lock() {
            Ok(guard) => guard,
            Err(poisoned) => poisoned.into_inner(),
        }
    }
}
