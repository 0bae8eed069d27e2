//! The time of events: the processor's counter where it can be trusted, which takes a fraction of what a system clock takes.

use gpumem_core::process::{OnceBeforeFork, PerProcess};

/// The clock of the process, with its ticks when it was first asked. Its numbers only mean something to
/// [`Clock::nanoseconds`].
#[derive(Debug)]
pub struct Clock(Option<(quanta::Clock, u64)>);

static CLOCK: OnceBeforeFork<Clock> = OnceBeforeFork::new();
/// Counts nothing: for a forked child that cannot record, because its parent was measuring the counter at the fork.
static STOPPED: PerProcess<Clock> = PerProcess::new(|| Clock(None));

/// The one clock, so that recordings of several devices can be laid over each other.
#[inline]
pub fn clock() -> &'static Clock {
    CLOCK.get_or_init(Clock::new).unwrap_or_else(|| STOPPED.get())
}

/// Whether there is a clock.
pub fn is_available() -> bool {
    CLOCK.get_or_init(Clock::new).is_some()
}

impl Clock {
    fn new() -> Self {
        let counter = quanta::Clock::new();
        let epoch = counter.raw();
        Self(Some((counter, epoch)))
    }

    /// Returns the ticks now.
    #[inline]
    pub fn now(&self) -> u64 {
        self.0.as_ref().map_or(0, |(counter, _)| counter.raw())
    }

    /// Nanoseconds since the clock was first asked.
    pub fn nanoseconds(&self, now: u64) -> u64 {
        self.0.as_ref().map_or(0, |(counter, epoch)| counter.delta_as_nanos(*epoch, now))
    }

    /// Nanoseconds of so many of its ticks.
    pub fn ticks(&self, ticks: u64) -> u64 {
        self.0.as_ref().map_or(0, |(counter, _)| counter.delta_as_nanos(0, ticks))
    }
}
