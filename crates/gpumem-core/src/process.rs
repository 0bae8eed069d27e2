//! Facts about this process that decide whether a driver may still be called.
//!
//! A driver does not survive a `fork`, and at exit it may be gone before our last drops run. Both are looked up in one
//! atomic, so that asking costs next to nothing.

mod driver_use;
mod forked;

pub use driver_use::DriverUse;
#[cfg(all(test, unix, not(miri)))]
pub(crate) use forked::tests::holds_in_a_child;
pub use forked::{OnceBeforeFork, PerProcess};

use crate::{Error, ErrorKind, Result};
use std::sync::{
    Once, OnceLock,
    atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
};

/// How often the process has forked away from its ancestors, in steps of [`FORK`], and whether it is [`EXITING`].
static STATE: AtomicU64 = AtomicU64::new(0);
const FORK: u64 = 2;
const EXITING: u64 = 1;
static WATCH: Once = Once::new();

/// The process in which something was made. A forked child is another process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessGuard(u64);

impl ProcessGuard {
    /// This process.
    pub fn current() -> Self {
        WATCH.call_once(watch);
        Self(forks())
    }

    /// This process, in which a driver has just been initialised: the end is noticed before the driver cleans up, also where
    /// something else was made earlier. For each driver once.
    pub fn of_driver() -> Self {
        let guard = Self::current();
        watch_exit();
        guard
    }

    /// Whether we are still in the process that made this, and it is not ending: the driver may be called.
    #[inline]
    pub fn is_valid(self) -> bool {
        STATE.load(Ordering::Relaxed) == self.0
    }

    /// Whether this is a child of the process that made this.
    pub fn is_forked(self) -> bool {
        forks() != self.0
    }

    /// As [`is_valid`](Self::is_valid), as an error for `operation`.
    ///
    /// # Errors
    /// Returns [`ErrorKind::ForkedChild`] in a child of the process that made this, [`ErrorKind::Exiting`] at its
    /// end.
    #[inline]
    pub fn check(self, backend: &'static str, operation: &'static str) -> Result<()> {
        if self.is_valid() { Ok(()) } else { Err(self.refusal(backend, operation)) }
    }

    #[cold]
    fn refusal(self, backend: &'static str, operation: &'static str) -> Error {
        Error::new(
            backend,
            operation,
            if self.is_forked() { ErrorKind::ForkedChild } else { ErrorKind::Exiting },
        )
    }
}

/// The thread that runs the exit handlers, as the system names it. 0 before the end.
static ENDS: AtomicUsize = AtomicUsize::new(0);

/// Keeps this thread here while the process ends, unless it is the one that ends it: for a thread whose caller would get memory back that
/// a device may still use, and which can no longer be waited for.
pub fn stay_while_exiting() {
    let is_exiting = STATE.load(Ordering::Acquire) & EXITING != 0;
    while is_exiting && ENDS.load(Ordering::Relaxed) != this_thread() {
        std::thread::park();
    }
}

fn this_thread() -> usize {
    #[cfg(all(unix, not(miri)))]
    // SAFETY: the call only returns a name.
    let this = unsafe { libc::pthread_self() } as usize;
    #[cfg(not(all(unix, not(miri))))]
    let this = 0;
    this
}

pub(crate) fn forks() -> u64 {
    STATE.load(Ordering::Relaxed) & !EXITING
}

/// Functions to be called at the end of the process.
static AT_EXIT: [OnceLock<extern "C" fn()>; 4] = [const { OnceLock::new() }; 4];

/// Registers `run` to be called when the process ends by itself, before [`ProcessGuard`] reports that it is ending.
/// Other threads may still be running then. Returns whether the system supports that, and fewer than four others are
/// registered. It does not run if the process is killed.
pub fn at_exit(run: extern "C" fn()) -> bool {
    WATCH.call_once(watch);
    cfg!(all(unix, not(miri))) && AT_EXIT.iter().any(|place| place.set(run).is_ok())
}

/// Bytes of a page of memory, the unit of page-locking.
pub fn page_size() -> usize {
    #[cfg(all(unix, not(miri)))]
    // SAFETY: the call only returns a number.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    #[cfg(any(not(unix), miri))]
    let size = 4096;
    usize::try_from(size).ok().filter(|size| size.is_power_of_two()).unwrap_or(4096)
}

/// Asks the system to back memory with huge pages where it has them for the asking (Linux): the first write of it
/// then takes a fault for every 2 MiB instead of every 4 KiB. A hint, which changes no contents and fails quietly.
/// Only for memory of the library's own, because it is a decision about the memory of the process.
pub fn advise_huge_pages(start: *const u8, bytes: usize) {
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        let page = page_size();
        let skip = start.addr().next_multiple_of(page) - start.addr();
        let length = bytes.saturating_sub(skip) / page * page;
        if length > 0 {
            // SAFETY: whole pages inside the range; the call changes how they are backed and nothing that they hold.
            unsafe { libc::madvise(start.wrapping_add(skip).cast_mut().cast(), length, libc::MADV_HUGEPAGE) };
        }
    }
    #[cfg(not(all(target_os = "linux", not(miri))))]
    let _ = (start, bytes);
}

/// Asks the system to make the whole pages inside a range ready for writing (Linux 5.14): many pages at once, without a
/// fault for each. Their contents stay. Returns `false` if the system cannot, or is out of memory.
///
/// # Safety
/// The range is memory of the caller's that may be written.
pub unsafe fn prefault_pages(start: *mut u8, bytes: usize) -> bool {
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        let page = page_size();
        let skip = start.addr().next_multiple_of(page) - start.addr();
        let length = bytes.saturating_sub(skip) / page * page;
        let pages = start.wrapping_add(skip).cast();
        // SAFETY: whole pages inside the range, which may be written; nothing that they hold changes.
        length == 0 || unsafe { libc::madvise(pages, length, libc::MADV_POPULATE_WRITE) } == 0
    }
    #[cfg(not(all(target_os = "linux", not(miri))))]
    {
        let _ = (start, bytes);
        false
    }
}

/// Whether the pages of a range have been touched, judged by a sample: an allocator may reuse freed pages. Returns
/// `false` if the system cannot tell.
pub fn has_touched_pages(start: *const u8, bytes: usize) -> bool {
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        const SAMPLES: usize = 4;
        let page = page_size();
        bytes >= SAMPLES * page
            && (0..SAMPLES).all(|sample| {
                let inside = start.wrapping_add(bytes / SAMPLES * sample + bytes / SAMPLES / 2);
                let begin = inside.wrapping_sub(inside.addr() % page).cast_mut().cast();
                let mut present = 0;
                // SAFETY: one whole page, which need not be mapped, and a place for its answer.
                unsafe { libc::mincore(begin, page, &mut present) == 0 && present & 1 == 1 }
            })
    }
    #[cfg(not(all(target_os = "linux", not(miri))))]
    {
        let _ = (start, bytes);
        false
    }
}

#[cfg(unix)]
fn watch() {
    extern "C" fn forked() {
        STATE.fetch_add(FORK, Ordering::Relaxed);
        driver_use::forget_all();
    }
    #[cfg(not(miri))]
    // SAFETY: the handler only touches atomics, which is allowed after a fork; it lives as long as the program. That registering it
    // can fail (no memory) leaves the flag as it is.
    unsafe {
        libc::pthread_atfork(None, None, Some(forked));
    }
    #[cfg(miri)]
    let _ = forked as extern "C" fn();
    watch_exit();
}

/// Registers the handler that notes the end of the process. The last one registered is the first to run.
#[cfg(unix)]
fn watch_exit() {
    extern "C" fn exiting() {
        static BEGUN: AtomicBool = AtomicBool::new(false);
        if BEGUN.swap(true, Ordering::Relaxed) {
            return;
        }
        for run in AT_EXIT.iter().filter_map(OnceLock::get) {
            run();
        }
        ENDS.store(this_thread(), Ordering::Relaxed);
        // Release: a thread that sees the end sees which thread it is.
        STATE.fetch_or(EXITING, Ordering::Release);
        driver_use::wait_for_others();
    }
    #[cfg(not(miri))]
    // SAFETY: the handler touches atomics, calls functions and may wait, which is allowed at exit; it lives as long as the program. That registering
    // it can fail (no memory) leaves the flag as it is.
    unsafe {
        libc::atexit(exiting);
    }
    #[cfg(miri)]
    let _ = exiting as extern "C" fn();
}

#[cfg(not(unix))]
fn watch() {}

#[cfg(not(unix))]
fn watch_exit() {}

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn pages_show_whether_they_were_touched() {
        // So long that every allocator asks the system for it.
        let bytes = 64 << 20;
        let mut memory: Vec<u8> = Vec::with_capacity(bytes);
        assert!(!has_touched_pages(memory.as_ptr(), bytes));
        memory.resize(bytes, 7);
        assert!(has_touched_pages(memory.as_ptr(), bytes));
        assert!(!has_touched_pages(memory.as_ptr(), 100), "less than a few pages");
    }
}
