//! How a pool grows and shrinks.

use std::time::Duration;

const MIB: usize = 1 << 20;

/// How a [`Pool`](super::Pool) grows and shrinks.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct PoolOptions {
    /// Every block starts at a multiple of so many bytes, and is a multiple of it long: a power of two from 16 on.
    pub granule: usize,
    /// Bytes of the first piece, at least, as far as there are as many: one large piece has the fewest holes.
    pub first_chunk: usize,
    /// The pool takes memory in pieces of at least so many bytes, as far as there is as much.
    pub smallest_chunk: usize,
    /// Pieces grow with the pool up to this. A larger request gets a piece of its own size.
    pub largest_chunk: usize,
    /// Whether pieces of which nothing is used go back to the driver before the pool takes another one, if together they
    /// are more than a sixteenth of it; the new piece takes their place. What no free block serves is then served by what
    /// is free all the same, and the pool is hardly larger than what it has lent. Each time there are fewer pieces or
    /// larger ones, so a steady program comes to rest. Not inside
    /// [`defer_cleanup`](crate::Device::defer_cleanup), and not in callbacks.
    pub exchange: bool,
    /// Whether the pool grows in place where its upstream can ([`MemoryResource::growing`](super::super::MemoryResource)):
    /// one range of addresses with more and more memory behind it, by steps as large as pieces would be. Blocks then have
    /// no borders between pieces to lie within, and the pool reserves hardly more than best fit over endless memory
    /// would; in exchange only what is free at its end can go back, and no part of it has a handle for another process
    /// ([`exportable_array`](crate::Device::exportable_array) has). Where the upstream cannot, or has no addresses left,
    /// the pool takes pieces.
    pub in_place: bool,
    /// Most bytes that the pool takes; `None` for no limit.
    pub limit: Option<usize>,
    /// Of what is reserved, so much may be unused; what exceeds it is given back by the next request that has to look
    /// further than the free lists. 1 keeps everything.
    pub keep_ratio: f64,
    /// What has been unused for as long is given back on the same occasion. `None` keeps it.
    pub keep_time: Option<Duration>,
}

impl PoolOptions {
    /// Pieces of 32 MiB to 1 GiB, as for device memory.
    pub fn device(granule: usize) -> Self {
        Self {
            granule,
            first_chunk: 0,
            smallest_chunk: 32 * MIB,
            largest_chunk: 1024 * MIB,
            exchange: true,
            in_place: false,
            limit: None,
            keep_ratio: 1.0,
            keep_time: None,
        }
    }

    /// Pieces of 1 to 64 MiB, which stay: page-locking takes a millisecond for every few MiB. A request of more than half
    /// of the largest piece gets one of its own size.
    pub fn page_locked(granule: usize) -> Self {
        Self { smallest_chunk: MIB, largest_chunk: 64 * MIB, exchange: false, ..Self::device(granule) }
    }

    /// With at most so many bytes.
    #[must_use]
    pub fn limit(mut self, bytes: usize) -> Self {
        self.limit = Some(bytes);
        self
    }

    /// With a first piece of at least so many bytes.
    #[must_use]
    pub fn first_chunk(mut self, bytes: usize) -> Self {
        self.first_chunk = bytes;
        self
    }

    /// Whether pieces of which nothing is used are [exchanged](Self::exchange) for others.
    #[must_use]
    pub fn exchange(mut self, exchange: bool) -> Self {
        self.exchange = exchange;
        self
    }

    /// Whether the pool [grows in place](Self::in_place) where it can.
    #[must_use]
    pub fn in_place(mut self, in_place: bool) -> Self {
        self.in_place = in_place;
        self
    }

    /// With pieces of that size, whatever the pool holds.
    #[must_use]
    pub fn chunks(mut self, smallest: usize, largest: usize) -> Self {
        (self.smallest_chunk, self.largest_chunk) = (smallest, largest.max(smallest));
        self
    }

    /// Gives back what is unused beyond that part of what is reserved.
    #[must_use]
    pub fn keep_ratio(mut self, ratio: f64) -> Self {
        self.keep_ratio = ratio.clamp(0.0, 1.0);
        self
    }

    /// Gives back what has been unused for so long.
    #[must_use]
    pub fn keep_time(mut self, time: Duration) -> Self {
        self.keep_time = Some(time);
        self
    }

    /// Bytes of the piece that a pool takes for a request of `bytes` bytes that nothing free serves, where pieces of `gone`
    /// bytes have just gone back for it and `reserved` bytes are left.
    pub fn next_chunk(&self, bytes: usize, gone: usize, reserved: usize) -> usize {
        match gone >= bytes {
            true => gone.min(bytes.saturating_mul(4)).max(bytes),
            false => self.chunk(bytes, reserved),
        }
    }

    /// Bytes to grow by in place, where `missing` more serve the request. The caller rounds it to pages.
    pub fn next_step(&self, missing: usize, reserved: usize) -> usize {
        let with_the_pool = (reserved / 32).min(self.largest_chunk).max(self.smallest_chunk);
        let first = if reserved == 0 { self.first_chunk } else { 0 };
        let wanted = with_the_pool.max(missing).max(first);
        match self.limit {
            Some(limit) => wanted.min(limit.saturating_sub(reserved)).max(missing),
            None => wanted,
        }
    }

    /// Bytes of the next piece, for a request that nothing free serves.
    pub(super) fn chunk(&self, bytes: usize, reserved: usize) -> usize {
        let with_the_pool = (reserved / 32).min(self.largest_chunk).max(self.smallest_chunk);
        // A piece that holds two such requests loses less at its end. Where pieces stay, nothing would ever be done about
        // what one has to spare that holds only one.
        let several = match bytes.saturating_mul(2) {
            two if two <= self.largest_chunk => two,
            _ if self.exchange => self.largest_chunk,
            _ => bytes,
        };
        let first = if reserved == 0 { self.first_chunk } else { 0 };
        let wanted = with_the_pool.max(several).max(bytes).max(first);
        // Drivers count in pages of up to 2 MiB; no more than a part in 32 is lost by rounding up.
        let unit = (1 << (wanted / 32).checked_ilog2().unwrap_or(0)).min(2 * MIB);
        let rounded = wanted.checked_next_multiple_of(unit).unwrap_or(wanted);
        match self.limit {
            Some(limit) => rounded.min(limit.saturating_sub(reserved)).max(bytes),
            None => rounded,
        }
    }
}
