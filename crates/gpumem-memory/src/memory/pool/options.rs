//! How a pool grows and shrinks.

use std::time::Duration;

const MIB: usize = 1 << 20;

/// How a [`Pool`](super::Pool) grows and shrinks.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct PoolOptions {
    /// Every block starts at a multiple of so many bytes, and is a multiple of it long: a power of two from 16 on.
    pub alignment: usize,
    /// Bytes of the first piece, at least, as far as there are as many: one large piece has the fewest holes.
    pub initial_size: usize,
    /// The pool takes memory in pieces of at least so many bytes, as far as there is as much.
    pub smallest_chunk: usize,
    /// Pieces grow with the pool up to this. A larger request gets a piece of its size.
    pub largest_chunk: usize,
    /// Whether unused pieces are freed before the pool takes another one, if together they are more than a sixteenth of
    /// it; the new piece takes their place. A request that no free block serves then uses free memory all the same, and
    /// the pool is hardly larger than its allocations. Each time there are fewer pieces or larger ones, so a steady
    /// program comes to rest. Without it the pool reserves up to 2.07 times what best fit does in RMM's random
    /// workload, with it at most 1.105 times (`rmm/reserved`). Not inside `defer_cleanup`, and not in callbacks.
    pub release_empty_before_grow: bool,
    /// Most bytes that the pool takes; `None` for no limit.
    pub max_size: Option<usize>,
    /// The part of the reserved memory that may be unused; the next request that has to look further than the free
    /// lists frees the rest. 1 keeps everything.
    pub max_idle_ratio: f64,
    /// Memory that has been unused for this time is freed on the same occasion. `None` keeps it.
    pub idle_timeout: Option<Duration>,
}

impl PoolOptions {
    /// Returns the options for device memory: pieces of 32 MiB to 1 GiB.
    ///
    /// # Examples
    /// ```
    /// use gpumem_runtime::memory::PoolOptions;
    ///
    /// let options = PoolOptions::device(256).initial_size(1 << 30).max_size(8 << 30);
    /// assert_eq!(options.max_size, Some(8 << 30));
    /// ```
    pub fn device(alignment: usize) -> Self {
        Self {
            alignment,
            initial_size: 0,
            smallest_chunk: 32 * MIB,
            largest_chunk: 1024 * MIB,
            release_empty_before_grow: true,
            max_size: None,
            max_idle_ratio: 1.0,
            idle_timeout: None,
        }
    }

    /// Returns the options for page-locked memory: pieces of 1 to 64 MiB, which stay, because page-locking takes a
    /// millisecond for every few MiB. A request of more than half of the largest piece gets one of its size, which
    /// smaller requests do not use while the pool can grow.
    pub fn page_locked(alignment: usize) -> Self {
        Self {
            smallest_chunk: MIB,
            largest_chunk: 64 * MIB,
            release_empty_before_grow: false,
            ..Self::device(alignment)
        }
    }

    /// Sets the maximum number of bytes that the pool takes.
    #[must_use]
    pub fn max_size(mut self, bytes: usize) -> Self {
        self.max_size = Some(bytes);
        self
    }

    /// Sets the minimum size of the first piece in bytes.
    #[must_use]
    pub fn initial_size(mut self, bytes: usize) -> Self {
        self.initial_size = bytes;
        self
    }

    /// Sets whether empty pieces are [released before it grows](Self::release_empty_before_grow).
    #[must_use]
    pub fn release_empty_before_grow(mut self, release_empty_before_grow: bool) -> Self {
        self.release_empty_before_grow = release_empty_before_grow;
        self
    }

    /// Sets the sizes of the smallest and the largest piece, for any size of the pool.
    #[must_use]
    pub fn chunks(mut self, smallest: usize, largest: usize) -> Self {
        (self.smallest_chunk, self.largest_chunk) = (smallest, largest.max(smallest));
        self
    }

    /// Sets the part of the reserved memory that may be idle; the rest is freed.
    ///
    /// # Examples
    /// ```
    /// use gpumem_runtime::memory::PoolOptions;
    ///
    /// let options = PoolOptions::device(256).max_idle_ratio(0.5);
    /// assert_eq!(options.max_idle_ratio, 0.5);
    /// ```
    #[must_use]
    pub fn max_idle_ratio(mut self, ratio: f64) -> Self {
        self.max_idle_ratio = ratio.clamp(0.0, 1.0);
        self
    }

    /// Sets how long memory may be idle before it is freed.
    ///
    /// # Examples
    /// ```
    /// use gpumem_runtime::memory::PoolOptions;
    /// use std::time::Duration;
    ///
    /// let options = PoolOptions::device(256).idle_timeout(Duration::from_secs(10));
    /// assert!(options.idle_timeout.is_some());
    /// ```
    #[must_use]
    pub fn idle_timeout(mut self, time: Duration) -> Self {
        self.idle_timeout = Some(time);
        self
    }

    /// Returns the bytes of the piece that a pool takes for a request of `bytes` bytes that no free block serves,
    /// where pieces of `gone` bytes have just gone back for it and `reserved` bytes are left.
    pub fn next_chunk(&self, bytes: usize, gone: usize, reserved: usize) -> usize {
        match gone >= bytes {
            true => gone.min(bytes.saturating_mul(4)).max(bytes),
            false => self.chunk(bytes, reserved),
        }
    }

    /// Bytes of the largest free block that a request for `bytes` bytes may be cut from. Where pieces stay, small requests leave
    /// those of one large request whole: any of them would keep all of the piece.
    #[inline]
    pub(super) fn largest_cut(&self, bytes: u64) -> u64 {
        match self.release_empty_before_grow || bytes > (self.largest_chunk / 2) as u64 {
            true => u64::MAX,
            false => self.largest_chunk.max(self.initial_size) as u64,
        }
    }

    /// Bytes of the next piece, for a request that nothing free serves.
    pub(super) fn chunk(&self, bytes: usize, reserved: usize) -> usize {
        let with_the_pool = (reserved / 32).min(self.largest_chunk).max(self.smallest_chunk);
        // A piece that holds two such requests loses less at its end. Where pieces stay, the rest of a piece that holds
        // only one would never be used.
        let several = match bytes.saturating_mul(2) {
            two if two <= self.largest_chunk => two,
            _ if self.release_empty_before_grow => self.largest_chunk,
            _ => bytes,
        };
        let first = if reserved == 0 { self.initial_size } else { 0 };
        let wanted = with_the_pool.max(several).max(bytes).max(first);
        if !self.release_empty_before_grow && wanted == bytes {
            // Without a rest, which others would use: they would keep all of the piece.
            return bytes;
        }
        // Drivers count in pages of up to 2 MiB; no more than a part in 32 is lost by rounding up.
        let unit = (1 << (wanted / 32).checked_ilog2().unwrap_or(0)).min(2 * MIB);
        let rounded = wanted.checked_next_multiple_of(unit).unwrap_or(wanted);
        match self.max_size {
            Some(max_size) => rounded.min(max_size.saturating_sub(reserved)).max(bytes),
            None => rounded,
        }
    }
}
