//! The definition of a bench.

use std::fmt;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// The measured quantity, which gives the numbers their meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// GB/s of a call that moves so many bytes. Routines are [`Routine::Timed`].
    Throughput {
        /// Bytes that one call moves.
        bytes: u64,
    },
    /// Nanoseconds of a call. Routines are [`Routine::Timed`].
    Latency,
    /// Nanoseconds of a call whose cost must not depend on a size: ours with a large one, the reference with a small
    /// one. Routines are [`Routine::Timed`].
    Scaling,
    /// How many of something a call makes. Routines are [`Routine::Counted`].
    Count,
}

impl Measure {
    /// The unit of the numbers.
    pub fn unit(self) -> &'static str {
        match self {
            Measure::Throughput { .. } => "GB/s",
            Measure::Latency | Measure::Scaling => "ns",
            Measure::Count => "count",
        }
    }

    /// The number to report for one call that takes `nanoseconds`.
    pub(crate) fn value(self, nanoseconds: f64) -> f64 {
        match self {
            // Bytes in a nanosecond are gigabytes in a second.
            Measure::Throughput { bytes } => bytes as f64 / nanoseconds,
            Measure::Latency | Measure::Scaling | Measure::Count => nanoseconds,
        }
    }
}

/// One side of a bench.
pub enum Routine {
    /// Runs that many calls and returns the time they took. Work enqueued on a device must be done when it returns.
    Timed(Box<dyn FnMut(u64) -> anyhow::Result<Duration>>),
    /// Makes one call and counts.
    Counted(Box<dyn FnMut() -> anyhow::Result<u64>>),
}

impl Routine {
    /// A call that is done when it returns. Its result is kept from the optimiser.
    pub fn call<T>(mut call: impl FnMut() -> anyhow::Result<T> + 'static) -> Self {
        Self::batch(move |iterations| {
            for _ in 0..iterations {
                black_box(call()?);
            }
            Ok(())
        })
    }

    /// That many calls at once, for example enqueued one after the other and waited for at the end.
    pub fn batch(mut batch: impl FnMut(u64) -> anyhow::Result<()> + 'static) -> Self {
        Routine::Timed(Box::new(move |iterations| {
            let start = Instant::now();
            batch(iterations)?;
            Ok(start.elapsed())
        }))
    }

    /// That many calls with the caller's own clock: device events, or the time of a part.
    pub fn clocked(clocked: impl FnMut(u64) -> anyhow::Result<Duration> + 'static) -> Self {
        Routine::Timed(Box::new(clocked))
    }

    /// A call that counts.
    pub fn count(count: impl FnMut() -> anyhow::Result<u64> + 'static) -> Self {
        Routine::Counted(Box::new(count))
    }
}

impl fmt::Debug for Routine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Routine::Timed(_) => "Timed",
            Routine::Counted(_) => "Counted",
        })
    }
}

/// Both sides, with their memory allocated and ready to run.
#[derive(Debug)]
pub struct Pair {
    /// The routine of gpumem.
    pub ours: Routine,
    /// The routine that it is measured against.
    pub reference: Routine,
}

/// Why a bench cannot run on this machine. Any other error of a bench is a failure.
#[derive(Debug)]
pub struct Unavailable(pub String);

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unavailable {}

/// A bench by name. Nothing is allocated before it is prepared.
pub struct Bench {
    /// Its name: words joined by slashes, from the general to the special (`copy/h2d/pinned/64MiB`).
    pub name: String,
    /// The name of the reference.
    pub reference_name: &'static str,
    /// The measured quantity.
    pub measure: Measure,
    pub(crate) prepare: Box<dyn FnOnce() -> anyhow::Result<Pair>>,
}

impl Bench {
    /// A bench that `prepare` makes ready. It fails with [`Unavailable`] if the machine lacks something that it needs.
    pub fn new(
        name: impl Into<String>,
        reference_name: &'static str,
        measure: Measure,
        prepare: impl FnOnce() -> anyhow::Result<Pair> + 'static,
    ) -> Self {
        Self { name: name.into(), reference_name, measure, prepare: Box::new(prepare) }
    }
}

impl fmt::Debug for Bench {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bench")
            .field("name", &self.name)
            .field("measure", &self.measure)
            .finish_non_exhaustive()
    }
}
