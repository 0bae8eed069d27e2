//! Failures that no call can return. The subscriber of `tracing` hears of them, which is code of the user: it may panic, and it may
//! call the library.

use gpumem_core::process::PerProcess;
use std::{
    mem,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

/// What has been found under locks. A forked child begins with a list of its own.
static FOUND: PerProcess<Mutex<Vec<String>>> = PerProcess::new(Mutex::default);
/// Whether something may have been found: operations look here first.
static IS_ANY: AtomicBool = AtomicBool::new(false);

fn found() -> MutexGuard<'static, Vec<String>> {
    // A leaf, taken under any lock of the crate: nothing is called under it.
    FOUND.get().lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes a failure that is found under a lock, for [`tell`].
pub(crate) fn note(failure: String) {
    found().push(failure);
    // Release: who sees it finds the failure in the list.
    IS_ANY.store(true, Ordering::Release);
}

/// Tells what has been noted. The caller holds no lock.
#[inline]
pub(crate) fn tell() {
    // Relaxed: a hint, which is nearly always false.
    if IS_ANY.load(Ordering::Relaxed) {
        tell_all();
    }
}

#[cold]
fn tell_all() {
    // AcqRel: before the list is looked at, so that what is noted later sets it again.
    IS_ANY.swap(false, Ordering::AcqRel);
    let all = mem::take(&mut *found());
    all.iter().for_each(|failure| warn(failure));
}

/// Tells of a failure. The caller holds no lock. A panic of the subscriber ends here.
pub(crate) fn warn(failure: &str) {
    gpumem_core::tell!(warn: "{failure}");
}
