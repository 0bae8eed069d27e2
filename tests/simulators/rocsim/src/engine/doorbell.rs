//! Doorbells: words that a producer writes after it has put packets into a queue.
//!
//! The value is only a hint. With several producers a smaller one can overwrite a larger one, so that an engine treats
//! a write as a hint to look, and reads the position from the queue itself.

use crate::{abi::PAGE, memory};
use parking_lot::Mutex;
use std::{
    fs::File,
    io,
    os::fd::{AsRawFd, RawFd},
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

/// Bytes of the doorbells of one GPU that a process maps: one word for each queue.
pub(crate) const DOORBELLS_BYTES: u64 = 8192;

/// Memory for doorbells.
#[derive(Debug)]
pub(super) struct Page {
    words: NonNull<AtomicU64>,
    bytes: usize,
    /// What a process maps to reach the doorbells of a GPU.
    file: Option<File>,
    /// Which of the doorbells of a GPU have a queue.
    taken: Mutex<Vec<bool>>,
}

// SAFETY: the page is only used through atomics, and unmapped when the last owner is gone.
unsafe impl Send for Page {}
// SAFETY: as above.
unsafe impl Sync for Page {}

impl Page {
    /// A page of memory that this process alone has, or as much of a file.
    fn new(bytes: u64, file: Option<File>) -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let (flags, descriptor) = match &file {
            Some(file) => (libc::MAP_SHARED, file.as_raw_fd()),
            None => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1),
        };
        // SAFETY: a new mapping at an address that the kernel chooses.
        let page =
            unsafe { libc::mmap(std::ptr::null_mut(), bytes as usize, protection, flags, descriptor, 0) };
        if page == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let words = NonNull::new(page.cast()).ok_or_else(|| io::Error::other("mapped at address 0"))?;
        let taken = Mutex::new(vec![false; bytes as usize / 8]);
        Ok(Self { words, bytes: bytes as usize, file, taken })
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: the page was mapped by `new` and only this code decides when it is unmapped.
        unsafe { libc::munmap(self.words.as_ptr().cast(), self.bytes) };
    }
}

/// The doorbells of the GPUs, by node, made when they are asked for.
static OF_GPUS: Mutex<[Option<Arc<Page>>; 17]> = Mutex::new([const { None }; 17]);

/// The doorbells of a GPU.
fn of_gpu(node: u32) -> io::Result<Arc<Page>> {
    let mut pages = OF_GPUS.lock();
    let page = pages.get_mut(node as usize).ok_or_else(|| io::Error::other("no such GPU"))?;
    if let Some(page) = page {
        return Ok(Arc::clone(page));
    }
    let made = Page::new(DOORBELLS_BYTES, Some(memory::memory_file(DOORBELLS_BYTES, 0)?))?;
    Ok(Arc::clone(page.insert(Arc::new(made))))
}

/// Calls a function with the file of a GPU's doorbells.
pub(crate) fn with_doorbells<R>(node: u32, call: impl FnOnce(RawFd) -> R) -> Option<R> {
    let page = of_gpu(node).ok()?;
    page.file.as_ref().map(|file| call(file.as_raw_fd()))
}

/// The doorbell of one queue, and its read and write pointers where the thunk provides them.
#[derive(Debug)]
pub(super) struct Doorbell {
    page: Arc<Page>,
    index: usize,
}

impl Doorbell {
    /// A doorbell that is silent, in a page of its own.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self::at(Arc::new(Page::new(PAGE, None)?), 0))
    }

    /// One of the doorbells of a GPU that has no queue.
    pub(super) fn of_gpu(node: u32) -> io::Result<Self> {
        let page = of_gpu(node)?;
        let mut taken = page.taken.lock();
        let index =
            taken.iter().position(|taken| !taken).ok_or_else(|| io::Error::other("no doorbell is left"))?;
        taken[index] = true;
        drop(taken);
        Ok(Self::at(page, index))
    }

    fn at(page: Arc<Page>, index: usize) -> Self {
        let doorbell = Self { page, index };
        doorbell.word(index).store(SILENT, Ordering::Release);
        doorbell
    }

    fn word(&self, index: usize) -> &AtomicU64 {
        debug_assert!(index < self.page.bytes / 8);
        // SAFETY: the page is mapped while `self` lives, zeroed, and holds more words than are asked for.
        unsafe { self.page.words.add(index).as_ref() }
    }

    /// Where producers write.
    pub(super) fn address(&self) -> *mut u64 {
        self.word(self.index).as_ptr()
    }

    /// Its place among the doorbells of its GPU, in bytes.
    pub(super) fn offset(&self) -> u64 {
        self.index as u64 * 8
    }

    /// A read pointer for queues that bring none of their own and have a page of their own.
    pub(super) fn read_pointer(&self) -> *mut u64 {
        self.word(8).as_ptr()
    }

    /// A write pointer for such queues.
    pub(super) fn write_pointer(&self) -> *mut u64 {
        self.word(16).as_ptr()
    }

    /// Whether it was rung since the last call.
    pub(super) fn answer(&self) -> bool {
        self.word(self.index).swap(SILENT, Ordering::AcqRel) != SILENT
    }

    fn is_ringing(&self) -> bool {
        self.word(self.index).load(Ordering::Acquire) != SILENT
    }
}

impl Drop for Doorbell {
    fn drop(&mut self) {
        if let Some(taken) = self.page.taken.lock().get_mut(self.index) {
            *taken = false;
        }
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
