//! How memory of the caller is moved.

use crate::tuning::TUNING;
use std::{env, str::FromStr, thread};

/// The environment variable with the number of threads of a transfer.
pub(crate) const ENV_TRANSFER_THREADS: &str = "GPUMEM_TRANSFER_THREADS";
/// The environment variable with the KiB of a staging block.
pub(crate) const ENV_TRANSFER_BLOCK_KIB: &str = "GPUMEM_TRANSFER_BLOCK_KIB";
/// The environment variable with the KiB from which on several threads help.
pub(crate) const ENV_TRANSFER_PARALLEL_MIN_KIB: &str = "GPUMEM_TRANSFER_PARALLEL_MIN_KIB";
/// The environment variable with the KiB up to which a transfer takes the shortest path.
pub(crate) const ENV_TRANSFER_SINGLE_BLOCK_MAX_KIB: &str = "GPUMEM_TRANSFER_SINGLE_BLOCK_MAX_KIB";
/// The environment variable with the stores: `auto`, `always` or `never`.
pub(crate) const ENV_TRANSFER_NON_TEMPORAL: &str = "GPUMEM_TRANSFER_NON_TEMPORAL";

/// How one transfer is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TransferConfig {
    /// Threads, the calling one among them, at least one.
    pub(crate) threads: usize,
    /// Most bytes of a block, and least, as long as more are left.
    pub(crate) block: usize,
    pub(crate) shortest: usize,
    /// Most blocks.
    pub(crate) blocks: usize,
    /// They are contiguous, and parts of them are sent while others are filled.
    pub(crate) is_ring: bool,
    /// Least and most bytes that a thread moves at a time.
    least_part: usize,
    most_part: usize,
}

impl TransferConfig {
    /// Bytes that a thread moves at a time, of a block of so many: all threads are to have some.
    pub(crate) fn part(&self, block: usize) -> usize {
        page(block.div_ceil(self.threads)).clamp(self.least_part, self.most_part)
    }
}

fn page(bytes: usize) -> usize {
    bytes.next_multiple_of(4 << 10)
}

/// Whether threads write around the caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum NonTemporalStores {
    /// Where it is faster: in uploads whose data would otherwise still be in the caches of single cores when the copy
    /// engine reads it, and in downloads that are longer than a cache. Uploads by twelve threads or more leave their
    /// data in the shared cache instead, if the processor supports it.
    #[default]
    Auto,
    /// For all copies of whole runs.
    Always,
    /// Nowhere.
    Never,
}

/// How memory of the caller that is not page-locked is moved to and from a device: through a pipeline of page-locked blocks
/// that several threads fill and drain while the copy engine works
/// ([`Device::set_transfer_options`](crate::Device::set_transfer_options)). Without meaning on a device that reaches
/// the caller's memory itself ([`Capabilities::pageable_direct`](gpumem_core::Capabilities::pageable_direct)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TransferOptions {
    /// Threads that move one transfer, the calling one among them, at least 1. By default `GPUMEM_TRANSFER_THREADS`, or
    /// else fifteen of sixteen processors, at most 15. Shorter transfers use fewer. Of many, the calling one moves nothing but
    /// keeps the copy engine busy.
    pub threads: usize,
    /// Bytes of a block, at least 4 KiB; a transfer has up to eight, and an upload of one run four contiguous ones. By
    /// default `GPUMEM_TRANSFER_BLOCK_KIB`, or else 4 MiB: less does not fill the link of a current GPU.
    pub block_bytes: usize,
    /// Transfers of at least so many bytes get more than the calling thread. By default `GPUMEM_TRANSFER_PARALLEL_MIN_KIB`,
    /// or else 512 KiB: waking threads takes as long as moving some hundred KiB.
    pub parallel_bytes: usize,
    /// Packed transfers of at most so many bytes take the shortest path instead of the pipeline: the calling thread moves them
    /// through one block, up only where several threads do not help (`parallel_bytes`). By default
    /// `GPUMEM_TRANSFER_SINGLE_BLOCK_MAX_KIB`, or else 1 MiB.
    pub single_block_bytes: usize,
    /// Whether threads write around the caches. By default `GPUMEM_TRANSFER_NON_TEMPORAL` (`auto`, `always`, `never`), or else
    /// [`Auto`](NonTemporalStores::Auto).
    pub non_temporal_stores: NonTemporalStores,
}

/// Reads a value, and says so if it is none: opening a device must not fail for it.
fn variable<T: FromStr>(name: &str) -> Option<T> {
    let text = env::var_os(name)?.to_string_lossy().into_owned();
    let value = text.trim().parse().ok();
    if value.is_none() && !text.trim().is_empty() {
        gpumem_core::tell!(warn: "{name} has no meaning here: {text:?}");
    }
    value
}

impl FromStr for NonTemporalStores {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "auto" => Ok(Self::Auto),
            "always" => Ok(Self::Always),
            "never" => Ok(Self::Never),
            _ => Err(()),
        }
    }
}

impl TransferOptions {
    /// The defaults without a look at the environment.
    pub fn new() -> Self {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        Self {
            threads: (processors * 15).div_ceil(16).clamp(1, TUNING.max_threads),
            block_bytes: 4 << 20,
            parallel_bytes: 512 << 10,
            single_block_bytes: 1 << 20,
            non_temporal_stores: NonTemporalStores::Auto,
        }
    }

    /// Returns the defaults, changed by the environment variables.
    pub fn from_environment() -> Self {
        let kib = |name| variable::<usize>(name).map(|kib| kib.saturating_mul(1 << 10));
        let mut options = Self::new();
        options.threads = variable(ENV_TRANSFER_THREADS).unwrap_or(options.threads);
        options.block_bytes = kib(ENV_TRANSFER_BLOCK_KIB).unwrap_or(options.block_bytes);
        options.parallel_bytes = kib(ENV_TRANSFER_PARALLEL_MIN_KIB).unwrap_or(options.parallel_bytes);
        options.single_block_bytes =
            kib(ENV_TRANSFER_SINGLE_BLOCK_MAX_KIB).unwrap_or(options.single_block_bytes);
        options.non_temporal_stores =
            variable(ENV_TRANSFER_NON_TEMPORAL).unwrap_or(options.non_temporal_stores);
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

    /// With the shortest path up to so many bytes.
    #[must_use]
    pub fn single_block_bytes(mut self, bytes: usize) -> Self {
        self.single_block_bytes = bytes;
        self
    }

    /// With these stores.
    #[must_use]
    pub fn non_temporal_stores(mut self, stores: NonTemporalStores) -> Self {
        self.non_temporal_stores = stores;
        self
    }

    /// Clamps the options: no more than four threads for a processor, blocks of 4 KiB to 1 GiB, one
    /// block for no more than that.
    pub(crate) fn bounded(mut self) -> Self {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        self.threads = self.threads.clamp(1, processors.saturating_mul(4));
        self.block_bytes = self.block_bytes.clamp(4 << 10, 1 << 30);
        self.single_block_bytes = self.single_block_bytes.min(1 << 30);
        self
    }

    /// How a transfer of so many bytes is done, by the calling thread alone or by several.
    pub(crate) fn config(&self, bytes: usize, is_alone: bool) -> TransferConfig {
        // Blocks of which the engine has some to do while others are filled; large ones for long transfers only.
        let block = page(bytes / 8).max(TUNING.min_block).min(self.block_bytes);
        let shortest = TUNING.min_block.min(block);
        let worth = (TUNING.min_threads + bytes / TUNING.bytes_of_a_thread)
            .min(bytes.div_ceil(TUNING.min_part.min(block)));
        let several = !is_alone && bytes >= self.parallel_bytes;
        let threads = if several { worth.clamp(1, self.threads.max(1)) } else { 1 };
        let blocks = if threads > 1 { TUNING.blocks } else { TUNING.blocks_of_one_thread };
        let (least_part, most_part) = (TUNING.min_part, TUNING.max_part);
        TransferConfig { threads, block, shortest, blocks, is_ring: false, least_part, most_part }
    }

    /// As [`config`](Self::config), for an upload: in one run, or in several.
    pub(crate) fn upload_config(&self, bytes: usize, is_run: bool, is_alone: bool) -> TransferConfig {
        let config = self.config(bytes, is_alone);
        match is_run && config.threads > 1 {
            true => TransferConfig {
                block: config.block.max(TUNING.min_ring_block).min(self.block_bytes),
                blocks: TUNING.ring_blocks,
                is_ring: true,
                least_part: 0,
                most_part: TUNING.min_part,
                ..config
            },
            false => config,
        }
    }

    /// How so many bytes are read from a file, or written to one. The calling thread only submits copies, unless it is alone: one
    /// that sleeps in the system's call idles the copy engine.
    pub(crate) fn file_config(&self, bytes: usize, is_ring: bool, is_alone: bool) -> TransferConfig {
        let block = self.block_bytes;
        let part = page(TUNING.file_part).min(block);
        let several = !is_alone && self.threads > 1 && bytes > part;
        let most = self.threads.max(TUNING.file_threads);
        let threads = if several { bytes.div_ceil(part).min(most) + 1 } else { 1 };
        let is_ring = is_ring && several;
        let blocks = match (several, is_ring) {
            (false, _) => TUNING.blocks_of_one_thread,
            (true, true) => TUNING.file_ring_blocks,
            (true, false) => TUNING.blocks,
        };
        let shortest = TUNING.min_block.min(block);
        TransferConfig { threads, block, shortest, blocks, is_ring, least_part: part, most_part: part }
    }

    /// As [`config`](Self::config), for a download inside a scope: its blocks are as long as they may be, because a copy is
    /// enqueued for each, and there are as many as the stream holds between two calls.
    pub(crate) fn scoped_config(&self, bytes: usize, is_alone: bool) -> TransferConfig {
        let block = self.block_bytes;
        TransferConfig { block, shortest: block, blocks: TUNING.blocks, ..self.config(bytes, is_alone) }
    }

    /// Returns the most bytes of staging memory that the downloads of scopes hold between two calls, for each stream: eight
    /// blocks. A call takes as many again while it runs.
    pub fn scoped_staging_bytes(&self) -> usize {
        Self::staging_length(self.block_bytes).saturating_mul(TUNING.blocks)
    }

    /// Bytes of staging memory that a download of so many bytes inside a scope takes, as far as its chunks fill their blocks.
    pub(crate) fn scoped_staging_of(&self, bytes: usize) -> usize {
        let block = Self::staging_length(bytes.min(self.block_bytes));
        bytes.div_ceil(self.block_bytes).saturating_mul(block)
    }

    /// Bytes of the staging block that a chunk of so many bytes gets.
    pub(crate) fn staging_length(bytes: usize) -> usize {
        bytes.max(TUNING.min_staging).checked_next_power_of_two().unwrap_or(bytes)
    }

    /// Whether a packed upload of so many bytes needs no pipeline: the calling thread moves it alone.
    pub(crate) fn is_single_block_upload(&self, bytes: usize, is_alone: bool) -> bool {
        bytes <= self.single_block_bytes && (is_alone || self.threads == 1 || bytes < self.parallel_bytes)
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
    fn configs_are_bounded_and_leave_no_thread_idle() {
        let options = TransferOptions::new().threads(6);
        assert_eq!(options.config(1, false).threads, 1);
        assert_eq!(options.config(1 << 30, true).threads, 1);
        let long = options.config(1 << 30, false);
        assert_eq!((long.threads, long.block), (6, 4 << 20));
        assert!(options.config(1 << 20, false).threads < 6, "short transfers have fewer");
        for bytes in [1, 4096, 3 << 20, 100 << 20] {
            let config = options.block_bytes(64 << 10).config(bytes, false);
            assert!(config.threads >= 1 && config.block <= 64 << 10 && config.blocks >= 2);
            assert!(config.shortest <= config.block && config.part(config.block) > 0);
        }
        for (bytes, alone, short) in
            [(1, false, true), (512 << 10, false, false), (512 << 10, true, true), (3 << 20, true, false)]
        {
            assert_eq!(options.is_single_block_upload(bytes, alone), short, "{bytes}");
        }
        let upload = |options: TransferOptions, bytes, is_run| {
            let config = options.upload_config(bytes, is_run, false);
            (config.is_ring, config.block)
        };
        let block = |bytes| options.config(bytes, false).block;
        assert_eq!(upload(options, 2 << 20, true), (true, 1 << 20));
        assert_eq!(upload(options, 2 << 20, false), (false, block(2 << 20)), "in several runs");
        assert_eq!(upload(options, 32 << 20, true), (true, block(32 << 20)), "long blocks anyway");
        assert_eq!(
            upload(options.threads(1), 2 << 20, true),
            (false, block(2 << 20)),
            "one thread fills the rest alone"
        );
        assert_eq!(
            upload(options.block_bytes(64 << 10), 2 << 20, true),
            (true, 64 << 10),
            "as the caller wants"
        );
        let odd = TransferOptions::new().threads(0).block_bytes(0).bounded();
        assert_eq!((odd.threads, odd.block_bytes), (1, 4 << 10));
    }
}
