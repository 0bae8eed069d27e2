//! What all host devices of one process share.
//!
//! A forked child gets a state of its own and never looks at its parent's: a lock there may have been held by a thread
//! that does not exist in the child.

use crate::Device;
use crate::memory::Table;
use gpumem_core::process::ProcessGuard;
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

/// Ordinals from here on belong to devices that [`Host::open_with`](crate::Host::open_with) made.
pub(crate) const FIRST_PRIVATE: usize = 1000;

static CURRENT: AtomicPtr<ProcessState> = AtomicPtr::new(ptr::null_mut());

/// The state of one process. It is never freed: devices and threads refer to it until the end.
#[derive(Debug)]
pub(crate) struct ProcessState {
    origin: ProcessGuard,
    /// All live memory.
    pub(crate) table: Table,
    /// The devices that [`open`](gpumem_core::Backend::open) gave out, by ordinal.
    pub(crate) devices: Mutex<Vec<Option<Device>>>,
    private: AtomicUsize,
    serial: AtomicU64,
}

impl ProcessState {
    /// The state of this process.
    pub(crate) fn here() -> &'static Self {
        let origin = ProcessGuard::current();
        loop {
            let current = CURRENT.load(Ordering::Acquire);
            // SAFETY: the pointer is null or comes from a box that is never freed.
            if let Some(state) = unsafe { current.as_ref() }
                && state.origin == origin
            {
                return state;
            }
            let new = Box::into_raw(Box::new(Self {
                origin,
                table: Table::default(),
                devices: Mutex::default(),
                private: AtomicUsize::new(FIRST_PRIVATE),
                // Streams are known to other libraries by such numbers, and there 1 and 2 name default streams.
                serial: AtomicU64::new(3),
            }));
            if CURRENT.compare_exchange(current, new, Ordering::AcqRel, Ordering::Acquire).is_err() {
                // SAFETY: made above, and no other thread has seen it.
                drop(unsafe { Box::from_raw(new) });
            }
        }
    }

    /// The process that this belongs to.
    pub(crate) fn origin(&self) -> ProcessGuard {
        self.origin
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
