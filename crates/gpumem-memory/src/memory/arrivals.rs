//! How often memory has come to a device from outside of the library.

use std::sync::atomic::{AtomicU64, Ordering};

/// How often the driver, another library or a resource of the user's has given memory of a device to the library.
///
/// The drivers remember more of memory than its address: a captured copy refers to an allocation. While the count stays the same,
/// an address that the library can use is of the allocation that it was of before. Its end need not be seen, which another library may
/// not tell: before the address can be used again, it comes in again.
#[derive(Debug, Default)]
pub struct Arrivals(AtomicU64);

impl Arrivals {
    /// Notes that memory has come in, before anything can use it.
    pub fn note(&self) {
        // Relaxed: see `count`.
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the count, to a caller whose memory has come in already.
    #[inline]
    pub fn count(&self) -> u64 {
        // Relaxed: what gave the memory to this thread ordered its arrival before this look, and a look for memory that is gone
        // now before the arrival of the memory that has its address.
        self.0.load(Ordering::Relaxed)
    }
}
