//! How a host device is set up, in code or by environment variables.

use crate::error::invalid;
use gpumem_core::Result;
use std::{env, thread};

/// The environment variable with the number of host devices.
pub const DEVICES_VARIABLE: &str = "GPUMEM_HOST_DEVICES";
/// The environment variable with the bytes of device memory, with an optional `K`, `M` or `G`.
pub const MEMORY_VARIABLE: &str = "GPUMEM_HOST_MEMORY";
/// The environment variable with the seed of the adversarial schedule.
pub const SEED_VARIABLE: &str = "GPUMEM_HOST_SEED";

/// Ordinals from here on belong to devices that [`Host::open_with`](crate::Host::open_with) made.
pub(crate) const FIRST_PRIVATE: usize = 1000;

/// Copies and fills up to this many bytes run on the calling thread where the stream is idle: handing them to another
/// thread would take longer.
const BRIEF_BYTES: usize = 128 << 10;

/// Which threads run enqueued commands, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Schedule {
    /// Worker threads run the streams at the same time; a thread that waits for a stream helps.
    #[default]
    Concurrent,
    /// No threads: every call is a point at which a seeded random choice decides which streams run how far. Work is
    /// delayed as long as is legal, reordered between streams in every legal way, and torn into pieces that
    /// interleave with other streams. Kernels run only in calls that wait or query, as their bodies may use what another call has
    /// locked. The same program on one thread with the same seed gets the same schedule.
    Adversarial {
        /// Where the choices come from.
        seed: u64,
    },
}

/// How a host device is set up.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostOptions {
    /// Bytes of device memory. By default `GPUMEM_HOST_MEMORY`, or else the physical memory of the machine.
    pub memory: usize,
    /// How the streams run. By default adversarial where `GPUMEM_HOST_SEED` is set, or else concurrent.
    pub schedule: Schedule,
    /// Most worker threads, at least 1. By default the number of processors, at least 2 and at most 8.
    pub workers: usize,
    /// Work-items in a wavefront: 32 (the default) or 64.
    pub wave_size: u32,
    /// Copies and fills of up to this many bytes run on the calling thread where the stream is idle; 0 leaves
    /// everything to the workers. Has no effect in the adversarial schedule. By default 128 KiB.
    pub brief_bytes: usize,
    /// Whether work that uses what failed work was to write does not run, and fails.
    pub(crate) survives_faults: bool,
}

impl HostOptions {
    /// The defaults without a look at the environment.
    pub fn new() -> Self {
        let processors = thread::available_parallelism().map_or(2, usize::from);
        Self {
            memory: physical_memory(),
            schedule: Schedule::Concurrent,
            workers: processors.clamp(2, 8),
            wave_size: 32,
            brief_bytes: BRIEF_BYTES,
            survives_faults: true,
        }
    }

    /// Returns the defaults, changed by the environment variables.
    ///
    /// # Errors
    /// Returns [`InvalidArgument`](gpumem_core::ErrorKind::InvalidArgument) for a variable that cannot be read.
    pub fn from_environment() -> Result<Self> {
        let mut options = Self::new();
        if let Some(text) = variable(MEMORY_VARIABLE) {
            options.memory = parse_bytes(&text)
                .ok_or_else(|| invalid("open", "GPUMEM_HOST_MEMORY is a number of bytes, with K, M or G"))?;
        }
        if let Some(text) = variable(SEED_VARIABLE) {
            let seed = text
                .trim()
                .parse()
                .map_err(|_| invalid("open", "GPUMEM_HOST_SEED is a number below 2 to the power of 64"))?;
            options.schedule = Schedule::Adversarial { seed };
        }
        Ok(options)
    }

    /// With so many bytes of device memory.
    #[must_use]
    pub fn memory(mut self, bytes: usize) -> Self {
        self.memory = bytes;
        self
    }

    /// With this schedule.
    #[must_use]
    pub fn schedule(mut self, schedule: Schedule) -> Self {
        self.schedule = schedule;
        self
    }

    /// With the adversarial schedule of this seed.
    #[must_use]
    pub fn adversarial(self, seed: u64) -> Self {
        self.schedule(Schedule::Adversarial { seed })
    }

    /// With at most so many worker threads.
    #[must_use]
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers;
        self
    }

    /// With wavefronts of so many work-items: 32 or 64.
    #[must_use]
    pub fn wave_size(mut self, wave_size: u32) -> Self {
        self.wave_size = wave_size;
        self
    }

    /// With this limit for work that runs on the calling thread.
    #[must_use]
    pub fn brief_bytes(mut self, bytes: usize) -> Self {
        self.brief_bytes = bytes;
        self
    }

    /// For the double of a GPU that does not go on after a fault: work that uses what failed work was to write runs all the same.
    ///
    /// # Safety
    /// The double answers for what is read after a fault.
    #[must_use]
    pub unsafe fn without_poison(mut self) -> Self {
        self.survives_faults = false;
        self
    }

    pub(crate) fn check(&self) -> Result<()> {
        if !matches!(self.wave_size, 32 | 64) {
            return Err(invalid("open", "a wavefront has 32 or 64 work-items"));
        }
        if self.workers == 0 {
            return Err(invalid("open", "a device needs at least one worker thread"));
        }
        Ok(())
    }
}

impl Default for HostOptions {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns the number of host devices that the environment sets.
pub(crate) fn device_count() -> Result<usize> {
    match variable(DEVICES_VARIABLE) {
        None => Ok(1),
        Some(text) => text
            .trim()
            .parse()
            .ok()
            .filter(|count| *count <= FIRST_PRIVATE)
            .ok_or_else(|| invalid("devices", "GPUMEM_HOST_DEVICES is a number of at most 1000")),
    }
}

/// Bytes of physical memory; where the system does not say, as much as can be addressed.
fn physical_memory() -> usize {
    #[cfg(all(unix, not(miri)))]
    {
        // SAFETY: `sysconf` only takes a number and returns one.
        let (pages, size) =
            unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
        if let (Ok(pages), Ok(size)) = (usize::try_from(pages), usize::try_from(size))
            && let Some(bytes) = pages.checked_mul(size).filter(|bytes| *bytes > 0)
        {
            return bytes;
        }
    }
    isize::MAX.unsigned_abs()
}

fn variable(name: &str) -> Option<String> {
    env::var_os(name)
        .map(|value| value.to_string_lossy().into_owned())
        .filter(|value| !value.trim().is_empty())
}

fn parse_bytes(text: &str) -> Option<usize> {
    let text = text.trim();
    let (digits, shift) = match text.char_indices().next_back()? {
        (at, 'k' | 'K') => (&text[..at], 10),
        (at, 'm' | 'M') => (&text[..at], 20),
        (at, 'g' | 'G') => (&text[..at], 30),
        _ => (text, 0),
    };
    digits.trim().parse::<usize>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        assert_eq!(parse_bytes("12"), Some(12));
        assert_eq!(parse_bytes(" 3 k "), Some(3 << 10));
        assert_eq!(parse_bytes("5M"), Some(5 << 20));
        assert_eq!(parse_bytes("2G"), Some(2 << 30));
        for text in ["", "G", "-1", "1T", "1.5G", "99999999999999999999", "18446744073709551615K"] {
            assert_eq!(parse_bytes(text), None, "{text:?}");
        }
    }

    #[test]
    fn senseless_options_are_refused() {
        assert!(HostOptions::new().check().is_ok());
        assert!(HostOptions::new().wave_size(48).check().is_err());
        assert!(HostOptions::new().workers(0).check().is_err());
    }
}
