//! The time of events: the processor's counter where it can be trusted, which takes a fraction of what a system clock takes.

use std::sync::OnceLock;

/// The clock of the process. Its numbers only mean something to [`Clock::nanoseconds`].
#[derive(Debug)]
pub(super) struct Clock {
    #[cfg(not(miri))]
    inner: quanta::Clock,
    #[cfg(miri)]
    inner: std::time::Instant,
    epoch: u64,
}

/// The one clock, so that recordings of several devices can be laid over each other.
#[inline]
pub(super) fn clock() -> &'static Clock {
    static CLOCK: OnceLock<Clock> = OnceLock::new();
    CLOCK.get_or_init(Clock::new)
}

#[cfg(not(miri))]
impl Clock {
    fn new() -> Self {
        let inner = quanta::Clock::new();
        let epoch = inner.raw();
        Self { inner, epoch }
    }

    #[inline]
    pub(super) fn now(&self) -> u64 {
        self.inner.raw()
    }

    /// Nanoseconds since the clock was first asked.
    pub(super) fn nanoseconds(&self, now: u64) -> u64 {
        self.inner.delta_as_nanos(self.epoch, now)
    }

    /// Nanoseconds of so many of its ticks.
    pub(super) fn ticks(&self, ticks: u64) -> u64 {
        self.inner.delta_as_nanos(0, ticks)
    }
}

#[cfg(miri)]
impl Clock {
    fn new() -> Self {
        Self { inner: std::time::Instant::now(), epoch: 0 }
    }

    pub(super) fn now(&self) -> u64 {
        self.inner.elapsed().as_nanos() as u64
    }

    pub(super) fn nanoseconds(&self, now: u64) -> u64 {
        now - self.epoch
    }

    pub(super) fn ticks(&self, ticks: u64) -> u64 {
        ticks
    }
}
