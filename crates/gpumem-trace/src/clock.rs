//! The time of events: the processor's counter where it can be trusted, which takes a fraction of what a system clock takes.

use gpumem_core::process::{OnceBeforeFork, PerProcess};

/// The clock of the process. Its numbers only mean something to [`Clock::nanoseconds`].
#[derive(Debug)]
pub struct Clock {
    #[cfg(not(miri))]
    inner: Option<quanta::Clock>,
    #[cfg(miri)]
    inner: std::time::Instant,
    epoch: u64,
}

static CLOCK: OnceBeforeFork<Clock> = OnceBeforeFork::new();
/// Counts nothing: for a forked child that cannot record, because its parent was measuring the counter at the fork.
static STOPPED: PerProcess<Clock> = PerProcess::new(Clock::stopped);

/// The one clock, so that recordings of several devices can be laid over each other.
#[inline]
pub fn clock() -> &'static Clock {
    CLOCK.get_or_init(Clock::new).unwrap_or_else(|| STOPPED.get())
}

/// Whether there is a clock.
pub fn is_available() -> bool {
    CLOCK.get_or_init(Clock::new).is_some()
}

#[cfg(not(miri))]
impl Clock {
    fn stopped() -> Self {
        Self { inner: None, epoch: 0 }
    }

    fn new() -> Self {
        let inner = quanta::Clock::new();
        let epoch = inner.raw();
        Self { inner: Some(inner), epoch }
    }

    /// Returns the ticks now.
    #[inline]
    pub fn now(&self) -> u64 {
        self.inner.as_ref().map_or(0, quanta::Clock::raw)
    }

    /// Nanoseconds since the clock was first asked.
    pub fn nanoseconds(&self, now: u64) -> u64 {
        self.inner.as_ref().map_or(0, |inner| inner.delta_as_nanos(self.epoch, now))
    }

    /// Nanoseconds of so many of its ticks.
    pub fn ticks(&self, ticks: u64) -> u64 {
        self.inner.as_ref().map_or(0, |inner| inner.delta_as_nanos(0, ticks))
    }
}

#[cfg(miri)]
impl Clock {
    fn stopped() -> Self {
        Self::new()
    }

    fn new() -> Self {
        Self { inner: std::time::Instant::now(), epoch: 0 }
    }

    /// Returns the ticks now.
    pub fn now(&self) -> u64 {
        self.inner.elapsed().as_nanos() as u64
    }

    /// Returns the nanoseconds since the clock was first asked.
    pub fn nanoseconds(&self, now: u64) -> u64 {
        now - self.epoch
    }

    /// Returns the nanoseconds of so many ticks.
    pub fn ticks(&self, ticks: u64) -> u64 {
        ticks
    }
}
