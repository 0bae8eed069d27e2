//! The locks and atomics of the ordering code, replaced by loom's under `cfg(loom)`.
//!
//! Each lock has a `Rank`, which says what a thread may hold that waits for it.

pub mod event_count;
pub mod part_marks;
mod rank;
#[cfg(test)]
#[cfg(all(debug_assertions, not(loom)))]
mod tests;

pub(crate) use rank::Rank;

use rank::{Held, Place};
use std::ops::{Deref, DerefMut};

#[cfg(loom)]
use loom as base;
#[cfg(not(loom))]
use std as base;

pub use base::{
    hint::spin_loop,
    sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence},
};

/// The locks of `std`, for threads that are started here, and how those are started; the variables of a thread.
pub mod threads {
    pub use super::base::{
        sync::{Condvar, Mutex, MutexGuard},
        thread::{Builder, LocalKey, yield_now},
    };
}

#[cfg(loom)]
pub use loom::sync::MutexGuard as UnrankedGuard;
#[cfg(loom)]
use loom::sync::{Mutex as RawMutex, Mutex as RawShortMutex, MutexGuard as RawShortMutexGuard};
#[cfg(not(loom))]
use parking_lot::Mutex as RawMutex;
#[cfg(not(loom))]
pub use parking_lot::{Mutex as UnrankedMutex, MutexGuard as UnrankedGuard};
#[cfg(not(loom))]
use spin::mutex::{SpinMutex as RawShortMutex, SpinMutexGuard as RawShortMutexGuard};

/// A lock that may be contended for long.
pub(crate) type Mutex<T> = Ranked<RawMutex<T>>;

/// A lock that is held for a few dozen instructions or a call of the driver at a time, and is hardly ever contended.
/// Unlocking is a plain store; other locks need an atomic instruction there to find sleeping threads, which is
/// noticeable in work of a microsecond. A thread that has spun for a while sleeps between attempts.
pub(crate) type ShortMutex<T> = Ranked<RawShortMutex<T>>;
/// The guard of a `ShortMutex`.
pub type ShortMutexGuard<'a, T> = Guard<RawShortMutexGuard<'a, T>>;

/// A lock that no model looks at: loom would try every interleaving of it.
pub(crate) type PlainMutex<T> = Ranked<parking_lot::Mutex<T>>;
pub(crate) type PlainMutexGuard<'a, T> = Guard<parking_lot::MutexGuard<'a, T>>;

/// A lock with its rank.
#[derive(Debug)]
pub(crate) struct Ranked<L> {
    place: Place,
    lock: L,
}

/// A lock without poisoning, under its rank.
pub(crate) trait Lock {
    type Value;
    type Guard<'a>
    where
        Self: 'a;
    fn new(value: Self::Value) -> Self;
    fn get_mut(&mut self) -> &mut Self::Value;
    fn lock(&self) -> Self::Guard<'_>;
    fn try_lock(&self) -> Option<Self::Guard<'_>>;
}

impl<L: Lock> Ranked<L> {
    #[inline(always)]
    pub(crate) fn new(rank: Rank, value: L::Value) -> Self {
        Self::numbered(rank, 0, value)
    }

    /// A lock of which a thread may hold several, by rising numbers.
    #[inline(always)]
    pub(crate) fn numbered(rank: Rank, number: u64, value: L::Value) -> Self {
        Self { place: Place::new(rank, number), lock: L::new(value) }
    }

    /// Gives the lock another rank.
    pub(crate) fn set_rank(&mut self, rank: Rank) {
        self.place = Place::new(rank, 0);
    }

    #[inline]
    pub(crate) fn get_mut(&mut self) -> &mut L::Value {
        self.lock.get_mut()
    }

    #[inline]
    pub(crate) fn try_lock(&self) -> Option<Guard<L::Guard<'_>>> {
        // No rank is asked for: who does not wait closes no circle.
        let guard = self.lock.try_lock()?;
        Some(Guard { guard, _held: self.place.hold() })
    }

    /// As [`lock`](Self::lock), but gives up after some milliseconds: the holder may be inside a call of the driver for long.
    pub(crate) fn lock_soon(&self) -> Option<Guard<L::Guard<'_>>> {
        // Some turns are short: most holders are done in a microsecond.
        for turn in 0..TURNS {
            if let Some(guard) = self.try_lock() {
                return Some(guard);
            }
            pause(turn);
        }
        None
    }

    #[inline]
    pub(crate) fn lock(&self) -> Guard<L::Guard<'_>> {
        // Before the thread waits: a wrong order is told even where it would wait for ever.
        let _held = self.place.wait();
        Guard { guard: self.lock.lock(), _held }
    }
}

/// A lock that is held. It is unlocked first, and then no longer counted as held.
#[derive(Debug)]
pub struct Guard<G> {
    guard: G,
    _held: Held,
}

impl<G: Deref> Deref for Guard<G> {
    type Target = G::Target;

    #[inline(always)]
    fn deref(&self) -> &G::Target {
        &self.guard
    }
}

impl<G: DerefMut> DerefMut for Guard<G> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut G::Target {
        &mut self.guard
    }
}

impl<T> PlainMutexGuard<'_, T> {
    /// Unlocks while the thread sleeps, until it is woken. It holds no other lock then.
    pub(crate) fn wait(&mut self, woken: &parking_lot::Condvar) {
        woken.wait(&mut self.guard);
    }
}

impl<T> Lock for parking_lot::Mutex<T> {
    type Value = T;
    type Guard<'a>
        = parking_lot::MutexGuard<'a, T>
    where
        T: 'a;

    fn new(value: T) -> Self {
        Self::new(value)
    }

    fn get_mut(&mut self) -> &mut T {
        self.get_mut()
    }

    #[inline]
    fn lock(&self) -> Self::Guard<'_> {
        self.lock()
    }

    fn try_lock(&self) -> Option<Self::Guard<'_>> {
        self.try_lock()
    }
}

#[cfg(not(loom))]
impl<T> Lock for RawShortMutex<T> {
    type Value = T;
    type Guard<'a>
        = RawShortMutexGuard<'a, T>
    where
        T: 'a;

    #[inline(always)]
    fn new(value: T) -> Self {
        Self::new(value)
    }

    #[inline]
    fn get_mut(&mut self) -> &mut T {
        self.get_mut()
    }

    #[inline]
    fn lock(&self) -> Self::Guard<'_> {
        self.try_lock().unwrap_or_else(|| wait_for(self))
    }

    #[inline]
    fn try_lock(&self) -> Option<Self::Guard<'_>> {
        self.try_lock()
    }
}

/// The thread that holds the lock may have been preempted, and needs a processor: spinning alone could go on for as
/// long as a time slice lasts.
#[cfg(not(loom))]
#[cold]
fn wait_for<T>(lock: &RawShortMutex<T>) -> RawShortMutexGuard<'_, T> {
    for turn in 0.. {
        pause(turn);
        if let Some(guard) = lock.try_lock() {
            return guard;
        }
    }
    lock.lock()
}

/// Attempts of a thread that gives up: it sleeps in the last hundred of them.
#[cfg(not(loom))]
const TURNS: u32 = 244;
/// A model needs one that fails.
#[cfg(loom)]
const TURNS: u32 = 1;

/// Waits for the next attempt.
#[cfg(not(loom))]
fn pause(turn: u32) {
    match turn {
        0..128 => std::hint::spin_loop(),
        128..144 => std::thread::yield_now(),
        _ => std::thread::sleep(std::time::Duration::from_micros(50)),
    }
}

#[cfg(loom)]
fn pause(_: u32) {}

/// The lock of the crates above, which has no rank: as parking_lot's.
#[cfg(loom)]
#[derive(Debug)]
pub struct UnrankedMutex<T>(RawMutex<T>);

#[cfg(loom)]
impl<T> UnrankedMutex<T> {
    pub fn new(value: T) -> Self {
        Self(RawMutex::new(value))
    }

    pub fn lock(&self) -> UnrankedGuard<'_, T> {
        Lock::lock(&self.0)
    }

    pub fn try_lock(&self) -> Option<UnrankedGuard<'_, T>> {
        Lock::try_lock(&self.0)
    }
}

#[cfg(loom)]
impl<T> Lock for RawMutex<T> {
    type Value = T;
    type Guard<'a>
        = RawShortMutexGuard<'a, T>
    where
        T: 'a;

    fn new(value: T) -> Self {
        Self::new(value)
    }

    fn get_mut(&mut self) -> &mut T {
        self.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn lock(&self) -> Self::Guard<'_> {
        self.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn try_lock(&self) -> Option<Self::Guard<'_>> {
        self.try_lock().ok()
    }
}
