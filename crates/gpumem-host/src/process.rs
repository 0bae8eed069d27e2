//! State that all host devices of one process share.
//!
//! A forked child gets a new state and never uses its parent's: a thread that does not exist in the child may hold a
//! lock there.

use crate::memory::Table;
use crate::options::FIRST_PRIVATE;
use crate::sync::lock;
use gpumem_core::process::{PerProcess, ProcessGuard};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

/// A device without threads, which only moves when a thread calls it.
pub(crate) trait Adversary: std::fmt::Debug + Send + Sync {
    /// One step of any stream, if one can run.
    fn step(&self) -> bool;
}

static CURRENT: PerProcess<ProcessState> = PerProcess::new(ProcessState::new);

/// The state of one process. It is never freed: devices and threads refer to it until the end.
#[derive(Debug)]
pub(crate) struct ProcessState {
    origin: ProcessGuard,
    /// All live memory.
    pub(crate) table: Table,
    adversaries: Mutex<Vec<Weak<dyn Adversary>>>,
    private: AtomicUsize,
    serial: AtomicU64,
}

impl ProcessState {
    /// The state of this process.
    pub(crate) fn here() -> &'static Self {
        CURRENT.get()
    }

    fn new() -> Self {
        Self {
            origin: ProcessGuard::current(),
            table: Table::default(),
            adversaries: Mutex::default(),
            private: AtomicUsize::new(FIRST_PRIVATE),
            // Streams are known to other libraries by such numbers, and there 1 and 2 name default streams.
            serial: AtomicU64::new(3),
        }
    }

    /// The process that this belongs to.
    pub(crate) fn origin(&self) -> ProcessGuard {
        self.origin
    }

    /// Adds a device without threads.
    pub(crate) fn add_adversary(&self, engine: Weak<dyn Adversary>) {
        let mut adversaries = lock(&self.adversaries);
        adversaries.retain(|engine| engine.strong_count() > 0);
        adversaries.push(engine);
    }

    /// One step of a device without threads, for a thread that waits for a future: what wakes it may run on any of them.
    /// `false` if nothing can run.
    pub(crate) fn step_adversaries(&self) -> bool {
        let engines: Vec<Arc<dyn Adversary>> =
            lock(&self.adversaries).iter().filter_map(Weak::upgrade).collect();
        engines.iter().any(|engine| engine.step())
    }

    /// An ordinal that no other device has.
    pub(crate) fn private_ordinal(&self) -> usize {
        self.private.fetch_add(1, Ordering::Relaxed)
    }

    /// A number that is given out once, from 3.
    pub(crate) fn serial(&self) -> u64 {
        self.serial.fetch_add(1, Ordering::Relaxed)
    }
}
