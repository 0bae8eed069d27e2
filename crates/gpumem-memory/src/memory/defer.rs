//! `defer_cleanup`: while a guard lives, memory is queued and not freed.

use crate::memory::DeviceCore;
use gpumem_core::{
    Backend,
    process::{PerProcess, ProcessGuard},
};
use std::{
    fmt,
    sync::Arc,
    sync::atomic::{AtomicUsize, Ordering},
};

/// How many [`defer_cleanup_everywhere`] are in force. A forked child has not the threads that hold its parent's, and would never free.
static EVERYWHERE: PerProcess<AtomicUsize> = PerProcess::new(|| AtomicUsize::new(0));

#[inline]
pub(super) fn is_deferred_everywhere() -> bool {
    // Acquire: a thread that was told of the guard must see it.
    EVERYWHERE.get().load(Ordering::Acquire) > 0
}

/// While this is alive, nothing is freed, trimmed or waited for on its device, so that no call takes longer than it
/// must. Made by `Device::defer_cleanup`; may be nested. Its end frees nothing by itself: the next allocation does,
/// if enough is pending. Forgetting it defers for ever, and does no other harm.
#[must_use = "cleanup is deferred until this is dropped"]
pub struct DeferCleanup<B: Backend>(Arc<DeviceCore<B>>);

impl<B: Backend> DeferCleanup<B> {
    #[doc(hidden)]
    pub fn new(core: &Arc<DeviceCore<B>>) -> Self {
        // AcqRel: with `is_deferred`. Guards of several threads are counted one after the other.
        core.deferred_frees.deferred.fetch_add(1, Ordering::AcqRel);
        Self(core.clone())
    }
}

impl<B: Backend> Drop for DeferCleanup<B> {
    fn drop(&mut self) {
        // Not below zero: the device may have been closed meanwhile.
        let _ = self
            .0
            .deferred_frees
            .deferred
            // AcqRel: with `is_deferred`. What happened under the guard comes before the frees after it.
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |depth| depth.checked_sub(1));
    }
}

impl<B: Backend> fmt::Debug for DeferCleanup<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DeferCleanup").field(&self.0.name()).finish()
    }
}

/// As [`DeferCleanup`], for every device of the process, those that are opened later included. In a forked child it counts no more.
#[must_use = "cleanup is deferred until this is dropped"]
#[derive(Debug)]
pub struct DeferCleanupEverywhere {
    origin: ProcessGuard,
}

/// Defers cleanup on every device of the process until the result is dropped. May be nested.
/// ```
/// # use gpumem_runtime::memory; let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
/// let critical = memory::defer_cleanup_everywhere();
/// drop(device.device_array::<f32, _>(1000)?); // frees nothing
/// drop(critical);
/// # Ok::<(), gpumem_core::Error>(())
/// ```
pub fn defer_cleanup_everywhere() -> DeferCleanupEverywhere {
    // AcqRel: as for one device.
    EVERYWHERE.get().fetch_add(1, Ordering::AcqRel);
    DeferCleanupEverywhere { origin: ProcessGuard::current() }
}

impl Drop for DeferCleanupEverywhere {
    fn drop(&mut self) {
        // That of a parent's is not counted here, and at the end of the process nothing is freed any more.
        if self.origin.is_valid() {
            // AcqRel: as for one device.
            EVERYWHERE.get().fetch_sub(1, Ordering::AcqRel);
        }
    }
}

#[cfg(all(test, target_os = "linux", not(miri), not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_forked_child_does_not_defer_for_a_thread_of_its_parent() {
        let everywhere = defer_cleanup_everywhere();
        // SAFETY: the child calls only functions that Linux allows after a fork, and leaves by `_exit`.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let begins_without = !is_deferred_everywhere();
            let own = defer_cleanup_everywhere();
            drop(everywhere);
            let counts_its_own = is_deferred_everywhere();
            drop(own);
            let is_right = begins_without && counts_its_own && !is_deferred_everywhere();
            // SAFETY: as above.
            unsafe { libc::_exit(i32::from(!is_right)) };
        }
        let mut status = 0;
        // SAFETY: our own child, and a place for its status.
        let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!((waited, status), (child, 0));
        assert!(is_deferred_everywhere());
        drop(everywhere);
        assert!(!is_deferred_everywhere());
    }
}
