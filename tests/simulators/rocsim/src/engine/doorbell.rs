//! Doorbells: words that a producer writes after it has put packets into a queue.
//!
//! The value is only a hint. With several producers a smaller one can overwrite a larger one, so that an engine treats
//! a write as a hint to look, and reads the position from the queue itself.

use crate::abi::PAGE;
use parking_lot::Mutex;
use std::{
    io,
    ptr::NonNull,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle, Thread},
    time::Duration,
};

/// The value of a doorbell before the first write. No queue gets as far as this packet.
const SILENT: u64 = 0xdead_b311_0000_0001;

/// How often sleeping queues are looked at, soon after a doorbell has rung and later.
const WATCH_INTERVAL: (Duration, Duration) = (Duration::from_micros(200), Duration::from_millis(1));

/// After how many looks without a ring it is later.
const ALERT_ROUNDS: u32 = 100;

/// The doorbell page of one queue, and its read and write pointers where the thunk provides them.
#[derive(Debug)]
pub(super) struct Doorbell {
    page: NonNull<AtomicU64>,
}

// SAFETY: the page is only used through atomics, and unmapped when the last owner is gone.
unsafe impl Send for Doorbell {}
// SAFETY: as above.
unsafe impl Sync for Doorbell {}

impl Doorbell {
    /// A doorbell that is silent.
    pub(super) fn new() -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new page at an address that the kernel chooses.
        let page = unsafe { libc::mmap(std::ptr::null_mut(), PAGE as usize, protection, flags, -1, 0) };
        if page == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let page = NonNull::new(page.cast()).ok_or_else(|| io::Error::other("mapped at address 0"))?;
        let doorbell = Self { page };
        doorbell.word(0).store(SILENT, Ordering::Release);
        Ok(doorbell)
    }

    fn word(&self, index: usize) -> &AtomicU64 {
        debug_assert!(index < PAGE as usize / 8);
        // SAFETY: the page is mapped while `self` lives, zeroed, and holds more words than are asked for.
        unsafe { self.page.add(index).as_ref() }
    }

    /// Where producers write.
    pub(super) fn address(&self) -> *mut u64 {
        self.word(0).as_ptr()
    }

    /// A read pointer for queues that bring none of their own.
    pub(super) fn read_pointer(&self) -> *mut u64 {
        self.word(8).as_ptr()
    }

    /// A write pointer for queues that bring none of their own.
    pub(super) fn write_pointer(&self) -> *mut u64 {
        self.word(16).as_ptr()
    }

    /// Whether it was rung since the last call.
    pub(super) fn answer(&self) -> bool {
        self.word(0).swap(SILENT, Ordering::AcqRel) != SILENT
    }

    fn is_ringing(&self) -> bool {
        self.word(0).load(Ordering::Acquire) != SILENT
    }
}

impl Drop for Doorbell {
    fn drop(&mut self) {
        // SAFETY: the page was mapped by `new` and only this code decides when it is unmapped.
        unsafe { libc::munmap(self.page.as_ptr().cast(), PAGE as usize) };
    }
}

/// An engine that may sleep, and its wake-up.
struct Watched {
    doorbell: Weak<Doorbell>,
    engine: Thread,
}

/// The sleeping engines and the thread that watches for them.
struct Watch {
    engines: Vec<Watched>,
    watcher: Option<Watcher>,
}

struct Watcher {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

static WATCH: Mutex<Watch> = Mutex::new(Watch { engines: Vec::new(), watcher: None });

/// Wakes the engine from now on when its doorbell rings, until the doorbell is dropped and [`forget`] is called.
pub(super) fn watch(doorbell: &Arc<Doorbell>, engine: Thread) {
    let mut watch = WATCH.lock();
    watch.engines.push(Watched { doorbell: Arc::downgrade(doorbell), engine });
    if watch.watcher.is_none() {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let builder = thread::Builder::new().name("rocsim doorbells".into());
        // Without the thread the engines look for themselves, ten times a second.
        watch.watcher = builder.spawn(move || run(&stopped)).ok().map(|thread| Watcher { stop, thread });
    }
}

/// Forgets doorbells that are gone. Without any left the watching thread ends, so that the library can be unloaded.
pub(super) fn forget() {
    let watcher = {
        let mut watch = WATCH.lock();
        watch.engines.retain(|entry| entry.doorbell.strong_count() > 0);
        if watch.engines.is_empty() { watch.watcher.take() } else { None }
    };
    if let Some(Watcher { stop, thread }) = watcher {
        stop.store(true, Ordering::Release);
        // That it has panicked would change nothing.
        let _ = thread.join();
    }
}

fn run(stop: &AtomicBool) {
    super::go_first();
    let mut silent_rounds = 0u32;
    while !stop.load(Ordering::Acquire) {
        silent_rounds = silent_rounds.saturating_add(1);
        for entry in &WATCH.lock().engines {
            if entry.doorbell.upgrade().is_some_and(|doorbell| doorbell.is_ringing()) {
                silent_rounds = 0;
                entry.engine.unpark();
            }
        }
        let (alert, idle) = WATCH_INTERVAL;
        thread::sleep(if silent_rounds < ALERT_ROUNDS { alert } else { idle });
    }
}
