//! The engines of the simulated GPUs: one thread for each user-mode queue, and one that watches the doorbells of
//! queues that sleep.

mod aql;
mod doorbell;
mod queue;
mod sdma;
mod signal;

pub(crate) use doorbell::{DOORBELLS_BYTES, with_doorbells};
pub(crate) use queue::{NewQueue, create, create_with_doorbell, destroy, pause};

use crate::{events, memory::Fault, stats};
use std::{
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// One bit for each node whose engines have stopped after a fault.
static HALTED: AtomicU32 = AtomicU32::new(0);

/// Whether the GPU stands still because of a fault.
fn is_halted(node: u32) -> bool {
    HALTED.load(Ordering::Acquire) & 1 << node != 0
}

/// Stops the GPU and lets AMD's runtime report the fault, as the kernel driver does. Queued work will not run, as on
/// hardware.
fn halt(fault: &Fault, engine: &str) {
    eprintln!("rocsim: memory access fault in {engine}: {fault}");
    stats::stats().faults.add(1);
    stats::report();
    HALTED.fetch_or(1 << fault.node, Ordering::AcqRel);
    events::raise_memory_fault(fault);
}

/// Waiting for memory to change, politely: a few yields, then longer and longer naps.
#[derive(Debug, Default)]
struct Patience {
    rounds: u32,
}

impl Patience {
    /// How many rounds it makes sense to look again before going to sleep for good.
    const LIMIT: u32 = 128;

    fn pause(&mut self) {
        match self.rounds {
            0..16 => thread::yield_now(),
            16..Self::LIMIT => thread::sleep(Duration::from_micros(20)),
            _ => thread::sleep(Duration::from_micros(200)),
        }
        self.rounds = self.rounds.saturating_add(1);
    }

    fn is_exhausted(&self) -> bool {
        self.rounds >= Self::LIMIT
    }
}

/// Gives the calling thread priority over the program's threads, if the system allows it. AMD's runtime waits by
/// spinning, which would keep this thread off the processor until its time slice ends.
fn go_first() {
    // SAFETY: both only change how the calling thread is scheduled.
    unsafe {
        libc::setpriority(libc::PRIO_PROCESS, 0, -15);
        libc::prctl(libc::PR_SET_TIMERSLACK, 1000u64);
    }
}

/// The clock of the GPUs, in nanoseconds. AMD's runtime compares it with the host's `CLOCK_BOOTTIME`.
pub(crate) fn clock() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one structure that is ours.
    if unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &mut time) } == 0 {
        return time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
    }
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64)
}
