//! Drivers that give memory back some time after they were told to.
//!
//! HIP 5.2 frees memory on another thread, and takes 10 to 20 ms for each 64 MiB: meanwhile the memory is neither
//! allocated nor free, and a request for it fails.

use crate::{
    memory::DeviceCore,
    sync::{PlainMutex, Rank},
};
use gpumem_core::{Backend, DriverDevice};
use std::{
    thread,
    time::{Duration, Instant},
};

/// How long free memory may stay as it is before no more is expected: on a busy machine the driver may not get a
/// processor for long. It is paid once, because memory that is not free by then is not expected again.
const PATIENCE: Duration = Duration::from_secs(3);
/// The longest wait, however much still comes.
const LONGEST: Duration = Duration::from_secs(20);
/// From one look to the next.
const PAUSE: Duration = Duration::from_millis(2);
/// Bytes that a driver may keep for itself.
const SLACK: usize = 4 << 20;

/// How much of a device's memory must be free once the driver has freed everything.
#[derive(Debug)]
pub struct LateMemory(PlainMutex<State>);

#[derive(Debug, Default, Clone, Copy)]
struct State {
    /// Free memory when it was last known that nothing was to come; `None` where that was never looked at.
    settled: Option<usize>,
    /// Bytes that were allocated and released since.
    allocated: usize,
    released: usize,
}

impl State {
    /// Bytes that must become free; `None` where that is unknown.
    fn expected(&self) -> Option<usize> {
        let free = self.settled?.saturating_add(self.released);
        Some(free.saturating_sub(self.allocated).saturating_sub(SLACK))
    }
}

impl LateMemory {
    pub(super) fn new() -> Self {
        Self(PlainMutex::new(Rank::LateMemory, State::default()))
    }

    /// Notes that the driver has given memory of the device.
    pub(super) fn note_allocated(&self, bytes: usize) {
        // A leaf, for one addition: the driver was called before.
        self.0.lock().allocated += bytes;
    }

    /// Notes that the driver was given memory of the device back.
    pub(super) fn note_released(&self, bytes: usize) {
        self.0.lock().released += bytes;
    }

    /// Forgets everything: the device was reset.
    pub fn forget(&self) {
        *self.0.lock() = State::default();
    }

    /// Waits until the released memory is free, while free memory grows, and at most some seconds. Calls `on_growth`
    /// once and after each growth, and stops if that says so. Does not wait if no memory was released since the last
    /// wait, or if the driver frees at once.
    pub fn wait<B: Backend>(&self, core: &DeviceCore<B>, mut on_growth: impl FnMut() -> bool) {
        // A copy: the driver is asked and the thread sleeps without the lock.
        let before = *self.0.lock();
        // Nothing is to come, so there is nothing to wait for.
        if before.released == 0 || !core.raw.capabilities().frees_late {
            return;
        }
        let begin = Instant::now();
        let (mut most, mut grown_at) = (None, begin);
        while let Ok(memory) = core.note_loss(core.raw.memory_info()) {
            if most.is_none_or(|most| memory.free > most) {
                (most, grown_at) = (Some(memory.free), Instant::now());
                if on_growth() {
                    return;
                }
            }
            let has_come = before.expected().is_some_and(|expected| memory.free >= expected);
            if has_come || grown_at.elapsed() > PATIENCE || begin.elapsed() > LONGEST {
                // Other threads have counted meanwhile: only what was there before is settled.
                let mut state = self.0.lock();
                state.settled = Some(memory.free);
                // Releases by other threads meanwhile are still to be counted.
                state.allocated = state.allocated.saturating_sub(before.allocated);
                state.released = state.released.saturating_sub(before.released);
                return;
            }
            // The driver frees on a thread of its own, and does not say when.
            thread::sleep(PAUSE);
        }
    }
}
