//! How memory of the caller is moved.

use std::{env, str::FromStr, thread};

/// The environment variable with the number of threads of a transfer.
pub(crate) const THREADS_VARIABLE: &str = "GPUMEM_TRANSFER_THREADS";
/// The environment variable with the KiB of a staging block.
pub(crate) const BLOCK_VARIABLE: &str = "GPUMEM_TRANSFER_BLOCK_KIB";
/// The environment variable with the KiB from which on several threads help.
pub(crate) const PARALLEL_VARIABLE: &str = "GPUMEM_TRANSFER_PARALLEL_KIB";

/// Most threads by default: more do not fill the link any better.
const MOST_THREADS: usize = 12;

/// Whether threads write around the caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum StreamingStores {
    /// For downloads of 8 MiB and more: what they write is not in a cache afterwards in any case. Uploads are read by the
    /// copy engine right away, out of the cache.
    #[default]
    Auto,
    /// Wherever whole runs are moved.
    Always,
    /// Nowhere.
    Never,
}

/// How memory of the caller that is not page-locked is moved to and from a device: through a ring of page-locked blocks
/// that several threads fill and drain while the copy engine works
/// ([`Device::set_transfer_options`](crate::Device::set_transfer_options)). Without meaning on a device that reaches
/// the caller's memory itself ([`Capabilities::pageable_direct`](gpumem_core::Capabilities::pageable_direct)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TransferOptions {
    /// Threads that move one transfer, the calling one among them, at least 1. By default `GPUMEM_TRANSFER_THREADS`, or
    /// else three quarters of the processors, at most 12.
    pub threads: usize,
    /// Bytes of a block, at least 4 KiB; each thread has two. By default `GPUMEM_TRANSFER_BLOCK_KIB`, or else 4 MiB: less
    /// does not fill the link of a current GPU.
    pub block_bytes: usize,
    /// Transfers of at least so many bytes get more than the calling thread. By default `GPUMEM_TRANSFER_PARALLEL_KIB`,
    /// or else 2 MiB: waking a thread takes as long as moving some hundred KiB.
    pub parallel_bytes: usize,
    /// Whether threads write around the caches.
    pub streaming_stores: StreamingStores,
}

/// Reads a number, and says so if it is none: opening a device must not fail for it.
fn variable<T: FromStr>(name: &str) -> Option<T> {
    let text = env::var_os(name)?.to_string_lossy().into_owned();
    let number = text.trim().parse().ok();
    if number.is_none() && !text.trim().is_empty() {
        tracing::warn!("{name} is no number: {text:?}");
    }
    number
}

impl TransferOptions {
    /// The defaults without a look at the environment.
    pub fn new() -> Self {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        Self {
            threads: (processors * 3).div_ceil(4).clamp(1, MOST_THREADS),
            block_bytes: 4 << 20,
            parallel_bytes: 2 << 20,
            streaming_stores: StreamingStores::Auto,
        }
    }

    /// The defaults, with what the environment says.
    pub fn from_environment() -> Self {
        let kib = |name| variable::<usize>(name).map(|kib| kib.saturating_mul(1 << 10));
        let mut options = Self::new();
        options.threads = variable(THREADS_VARIABLE).unwrap_or(options.threads);
        options.block_bytes = kib(BLOCK_VARIABLE).unwrap_or(options.block_bytes);
        options.parallel_bytes = kib(PARALLEL_VARIABLE).unwrap_or(options.parallel_bytes);
        options.bounded()
    }

    /// With so many threads, the calling one among them.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// With blocks of so many bytes.
    #[must_use]
    pub fn block_bytes(mut self, bytes: usize) -> Self {
        self.block_bytes = bytes;
        self
    }

    /// With several threads from so many bytes on.
    #[must_use]
    pub fn parallel_bytes(mut self, bytes: usize) -> Self {
        self.parallel_bytes = bytes;
        self
    }

    /// With these stores.
    #[must_use]
    pub fn streaming_stores(mut self, stores: StreamingStores) -> Self {
        self.streaming_stores = stores;
        self
    }

    /// Within what makes sense: no more than four threads for a processor, blocks of 4 KiB to 1 GiB.
    pub(crate) fn bounded(mut self) -> Self {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        self.threads = self.threads.clamp(1, processors.saturating_mul(4));
        self.block_bytes = self.block_bytes.clamp(4 << 10, 1 << 30);
        self
    }

    /// Threads and bytes of a piece for a transfer of so many bytes.
    pub(crate) fn share(&self, bytes: usize) -> (usize, usize) {
        let threads = if bytes >= self.parallel_bytes { self.threads } else { 1 };
        // So small that the first copy begins soon and every thread gets two pieces, but not so small that the copy engine
        // waits for the next one all the time.
        let (pieces, least) = if threads > 1 { (2 * threads, 512 << 10) } else { (4, 256 << 10) };
        let piece = bytes.div_ceil(pieces).max(least).min(self.block_bytes);
        (threads.min(bytes.div_ceil(piece)).max(1), piece)
    }
}

impl Default for TransferOptions {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_bounded_and_leave_nobody_idle() {
        let options = TransferOptions::new().threads(6);
        assert_eq!(options.share(1), (1, 256 << 10));
        assert_eq!(options.share(1 << 20), (1, 256 << 10));
        assert_eq!(options.share(2 << 20), (4, 512 << 10));
        assert_eq!(options.share(64 << 20), (6, 4 << 20));
        assert_eq!(options.share(1 << 30), (6, 4 << 20));
        for bytes in [1, 4096, 3 << 20, 100 << 20] {
            let (threads, piece) = options.block_bytes(64 << 10).share(bytes);
            assert!(threads >= 1 && piece <= 64 << 10);
        }
        let odd = TransferOptions::new().threads(0).block_bytes(0).bounded();
        assert_eq!((odd.threads, odd.block_bytes), (1, 4 << 10));
    }
}
