//! The locks and atomics of the ordering code, replaced by loom's under `cfg(loom)`.

#[cfg(not(loom))]
pub(crate) use parking_lot::Mutex;
#[cfg(not(loom))]
pub(crate) use std::{
    hint::spin_loop,
    sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence},
};

/// The locks of `std`, for threads that are started here, and how those are started.
#[cfg(not(loom))]
pub(crate) mod threads {
    pub(crate) use std::{
        sync::{Condvar, Mutex, MutexGuard},
        thread::Builder,
    };
}

/// A lock that is held for a few dozen instructions or a call of the driver at a time, and hardly ever met: giving it back
/// is a plain store, where other locks look whether a thread sleeps on them with an atomic instruction, of which work of a
/// microsecond notices each. Who has waited in vain for a while sleeps between looks.
#[cfg(not(loom))]
#[derive(Debug)]
pub(crate) struct ShortMutex<T>(spin::mutex::SpinMutex<T>);
#[cfg(not(loom))]
pub(crate) type ShortMutexGuard<'a, T> = spin::mutex::SpinMutexGuard<'a, T>;

#[cfg(not(loom))]
impl<T> ShortMutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(spin::mutex::SpinMutex::new(value))
    }

    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }

    #[inline]
    pub(crate) fn try_lock(&self) -> Option<ShortMutexGuard<'_, T>> {
        self.0.try_lock()
    }

    #[inline]
    pub(crate) fn lock(&self) -> ShortMutexGuard<'_, T> {
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
pub(crate) use self::Mutex as ShortMutex;
#[cfg(loom)]
pub(crate) use MutexGuard as ShortMutexGuard;

#[cfg(loom)]
pub(crate) use loom::{
    hint::spin_loop,
    sync::{
        MutexGuard,
        atomic::{AtomicU64, AtomicUsize, Ordering, fence},
    },
};

#[cfg(loom)]
pub(crate) mod threads {
    pub(crate) use loom::{
        sync::{Condvar, Mutex, MutexGuard},
        thread::Builder,
    };
}

/// loom's mutex with the interface of `parking_lot`'s: no poisoning.
#[cfg(loom)]
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

#[cfg(loom)]
impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(loom::sync::Mutex::new(value))
    }

    pub(crate) fn get_mut(&mut self) -> &mut T {
        match self.0.get_mut() {
            Ok(value) => value,
            Err(poisoned) => poisoned.into_inner(),
        }
    }

    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.0.try_lock().ok()
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        match self.0.lock() {
            Ok(guard) => guard,
            Err(poisoned) => poisoned.into_inner(),
        }
    }
}
