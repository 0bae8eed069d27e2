//! The threads of transfers for the loom models in `tests/loom`. Compiled with `--cfg loom` only.

use super::{bell, crew};

/// The event count of transfers, as it is.
#[derive(Debug, Default)]
pub struct Bell(bell::Bell);

impl Bell {
    /// Wakes all threads that sleep.
    pub fn ring(&self) {
        self.0.ring();
    }

    /// Sleeps until `holds`, which another thread rings for.
    pub fn sleep(&self, holds: impl FnMut() -> bool) {
        self.0.sleep(holds);
    }

    /// Looks whether it `holds`, and then sleeps until it does.
    pub fn look_and_sleep(&self, mut holds: impl FnMut() -> bool) {
        if !bell::look(|_| holds()) {
            self.0.sleep(holds);
        }
    }
}

/// The worker pool of a device, as it is but for the time after which a thread without work ends.
#[derive(Debug)]
pub struct Crew(crew::Crew);

impl Crew {
    /// Makes a pool whose threads end at once where there is no work, or wait for work without a limit.
    pub fn new(ends_at_once: bool) -> Self {
        Self(crew::Crew::for_a_model(ends_at_once))
    }

    /// Calls `ours` on this thread and `theirs` on up to `helpers` others, and returns when all calls have returned.
    pub fn run(&self, helpers: usize, theirs: &(dyn Fn() + Sync), ours: impl FnOnce()) {
        self.0.run(helpers, theirs, ours);
    }
}
