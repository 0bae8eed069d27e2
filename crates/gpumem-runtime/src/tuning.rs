//! The constants of transfers that were measured on a machine.

use std::time::Duration;

/// The measured constants of transfers. A profile for another machine belongs here, and nowhere else.
#[derive(Debug)]
pub(crate) struct TuningProfile {
    // ---- threads ----
    /// Most threads of a transfer by default: more do not fill the link any better (13 and 16 were tried).
    pub(crate) max_threads: usize,
    /// Threads of the shortest transfers of several: each takes some ten microseconds to wake up.
    pub(crate) min_threads: usize,
    /// After so many bytes it is one thread more.
    pub(crate) bytes_of_a_thread: usize,
    /// Above this number of threads the calling one only submits copies: a late submission idles the copy engine,
    /// which costs more than one copying thread gains.
    pub(crate) dedicated_submitter_above: usize,
    /// Helpers that have come before the calling thread stops moving parts.
    pub(crate) enough_helpers: usize,
    /// Parts for each thread that lie open in an upload, so that none runs out of them while the calling thread is
    /// busy.
    pub(crate) parts_ahead: usize,
    /// The same where the calling thread moves parts too, which it is to begin with soon.
    pub(crate) few_parts_ahead: usize,
    /// Looks before a thread sleeps: some hundred microseconds, in which a part is filled and a block copied. Waking
    /// up takes up to that long.
    pub(crate) spins: u32,
    /// The driver is queried at one of so many checks whether a copy is over.
    pub(crate) looks_per_query: u32,
    /// The thread that waits for helpers takes the lock, which they need to leave, at one look of so many.
    pub(crate) looks_per_lock: u32,
    /// A helper without work ends after this time. The next work starts a new one.
    #[cfg_attr(loom, expect(dead_code, reason = "no time passes in a model"))]
    pub(crate) helper_idle: Duration,
    // ---- blocks ----
    /// Blocks of a transfer by several threads. Downloads of 64 and 256 MiB reach 0.61 and 0.49 of pinned with four,
    /// 0.86 and 0.70 with six, 0.88 and 0.93 with eight, 0.76 and 0.89 with twelve, 0.70 and 0.86 with sixteen.
    pub(crate) blocks: usize,
    /// The staging ring of an upload is so many blocks long: fewer stay in the caches. 64 MiB reach 0.897 of pinned
    /// with four, 0.887 with six and 0.874 with eight.
    pub(crate) ring_blocks: usize,
    /// Blocks of a transfer by the calling thread alone: one is filled or drained while the other one is copied.
    pub(crate) blocks_of_one_thread: usize,
    /// The shortest block: copies of less take the engine longer to begin than to do.
    pub(crate) min_block: usize,
    /// The shortest one of a staging ring: 1 MiB in blocks of 256 KiB takes 55 or 110 us by turns, and 60 in one.
    pub(crate) min_ring_block: usize,
    /// The least that one thread moves at a time, and the size in a staging ring: less is not worth taking.
    pub(crate) min_part: usize,
    /// The most that one thread moves at a time: with more, threads wait for each other at the end of a block.
    pub(crate) max_part: usize,
    /// Each block or copy of an upload is at most about a fourth of the bytes before it. Threads fill hardly faster
    /// than the engine copies; it pauses 2.5 us between copies and would wait for the end of a longer one.
    pub(crate) ramp: usize,
    /// A staging ring that is filled again is sent in at least so many copies: two are under way while the bytes of the
    /// next one are filled.
    pub(crate) copies_of_a_ring: usize,
    /// The smallest staging block.
    pub(crate) min_staging: usize,
    /// Most bytes of staging blocks that are kept for later, or eight blocks if that is more: page-locking takes
    /// milliseconds a MiB.
    pub(crate) staging_kept: usize,
    /// So many of the blocks that were returned first are queried, each by a driver call.
    pub(crate) staging_asked: usize,
    /// Blocks of a copy between two backends: one going down, one going up, one to spare.
    pub(crate) cross_backend_blocks: usize,
    // ---- files ----
    /// Threads that read a file, or write one, at least: they sleep in the system's calls, so there may be more of them than
    /// processors.
    pub(crate) file_threads: usize,
    /// Bytes of one read. From 64 KiB to 4 MiB it makes no difference to a disk.
    pub(crate) file_part: usize,
    /// As `ring_blocks`, for files: threads come back from the system's calls by turns, and four blocks gave 0.55 of the speed from
    /// memory.
    pub(crate) file_ring_blocks: usize,
    /// Bytes between the runs of a part are read with them while all together are at most so many times the bytes of the runs.
    pub(crate) file_extent: usize,
    /// Elements that would be read or written in shorter pieces go through a block of the device.
    pub(crate) file_run: usize,
    /// Most arrays that one submission of a pass over a file fills: their access logs are locked together.
    pub(crate) arrays_of_a_copy: usize,
    /// Bytes of a file between two arrays that are read in the same pass: about what a pass costs at its ends.
    pub(crate) file_gap: usize,
    // ---- one block ----
    /// Longer downloads through one block come in pieces, so that one is taken out while the next one comes: a thread
    /// takes about three times as long for a byte as the engine.
    pub(crate) single_block_whole: usize,
    /// The first of several such pieces.
    pub(crate) single_block_first: usize,
    /// So many times as far as the one before ends each other piece.
    pub(crate) single_block_growth: usize,
    /// Pieces of an upload through one block.
    pub(crate) single_block_piece: usize,
    /// Longer uploads through one block are written around the caches: 64 KiB are in the destination after 13 instead
    /// of 15 us.
    pub(crate) single_block_cached: usize,
    /// Bytes of short uploads that may be on their way before a blocking one waits for them.
    pub(crate) bytes_in_flight: usize,
    /// Short uploads that may be on their way, at least.
    pub(crate) min_uploads_in_flight: usize,
    /// Short uploads that may be on their way, at most: one wait says of all blocks that they are free again.
    pub(crate) max_uploads_in_flight: usize,
    // ---- stores ----
    /// Stores go around the caches in uploads that are shorter, and in downloads that are not: the engine reads lines
    /// in a core's own cache at a third of its speed, until the blocks are more than those caches hold.
    pub(crate) non_temporal_bytes: usize,
    /// So many threads fill the shared cache as fast as the engine reads it; ten do not: 0.83 of pinned at 64 MiB and
    /// 0.94 at 256 MiB, where stores around the caches reach 0.73 and 0.83.
    pub(crate) demote_threads: usize,
    /// Shorter runs are copied the ordinary way.
    pub(crate) min_stored_run: usize,
    /// Shorter runs are gathered and scattered by loops over strides.
    pub(crate) gathered_run: usize,
    /// Steps of a tile along both of its axes, where the two sides are contiguous along different ones.
    pub(crate) tile: usize,
    /// Bytes gathered at a time and then stored around the caches: a part of the first-level cache.
    pub(crate) gathered_bytes: usize,
    /// New arrays of at least so many bytes have huge pages, which one thread each makes ready.
    pub(crate) prefault_from: usize,
    // ---- layouts ----
    /// More driver calls than this for one copy are slower than the way through the host.
    pub(crate) max_driver_calls: usize,
    /// Shorter runs are slow as the rows of a driver's copy within a device, which fetches whole cache lines for
    /// each.
    pub(crate) short_run: usize,
    /// Shorter runs are slow as the rows of a driver's upload: 4 bytes of every 8 go up at 1.7 GB/s, and at 25 by
    /// threads that share the lines; 32 of 64 at 23 and 27; 64 of 128 at 41 both ways. Down it is the other way
    /// round: 3.2 and 2.0 GB/s for 4 bytes.
    pub(crate) short_run_up: usize,
    /// A copy of less is not worth a kernel: the driver has it done when that begins.
    pub(crate) kernel_from: usize,
    /// Calls of fewer bytes, and of fewer than `few_rows`, take longer to begin than a kernel takes for all that one
    /// of them does.
    pub(crate) short_call: usize,
    /// See `short_call`.
    pub(crate) few_rows: usize,
    /// With shorter runs a strided transfer goes through a packed block on the device.
    pub(crate) pack_below: usize,
    /// Smaller transfers are not worth a kernel of their own.
    pub(crate) pack_from: usize,
    /// Chunk size of a direct copy that reports progress.
    pub(crate) watched_chunk: usize,
    /// Bytes that are uploaded before a fill goes on by doubling.
    pub(crate) fill_seed: usize,
    /// New arrays of the host of at least so many bytes are backed by huge pages where the system has them.
    pub(crate) huge_pages_from: usize,
}

/// The profile in use. A constant, so that every use is folded.
pub(crate) const TUNING: TuningProfile = TuningProfile::H100;

impl TuningProfile {
    /// Measured on one H100 80GB HBM3 (driver 580.159.04) beside 16 processors of an Intel Xeon with AVX-512 and CLDEMOTE, in
    /// November 2026, each choice in turns with its alternatives (medians of at least six runs).
    const H100: Self = Self {
        max_threads: 15,
        min_threads: 4,
        bytes_of_a_thread: 4 << 20,
        dedicated_submitter_above: 8,
        enough_helpers: 4,
        parts_ahead: 4,
        few_parts_ahead: 2,
        spins: if cfg!(any(miri, loom)) { 1 } else { 1 << 12 },
        looks_per_query: 16,
        looks_per_lock: 32,
        helper_idle: Duration::from_secs(10),
        blocks: 8,
        ring_blocks: 4,
        blocks_of_one_thread: 2,
        min_block: 256 << 10,
        min_ring_block: 1 << 20,
        min_part: 64 << 10,
        max_part: 128 << 10,
        ramp: 4,
        copies_of_a_ring: 3,
        min_staging: 64 << 10,
        staging_kept: 64 << 20,
        staging_asked: 4,
        cross_backend_blocks: 3,
        file_threads: 8,
        file_part: 128 << 10,
        file_ring_blocks: 16,
        file_extent: 4,
        file_run: 32 << 10,
        arrays_of_a_copy: 64,
        file_gap: 1 << 20,
        single_block_whole: 256 << 10,
        single_block_first: 128 << 10,
        single_block_growth: 4,
        single_block_piece: 128 << 10,
        single_block_cached: 16 << 10,
        bytes_in_flight: 4 << 20,
        min_uploads_in_flight: 4,
        max_uploads_in_flight: 64,
        non_temporal_bytes: 96 << 20,
        demote_threads: 12,
        min_stored_run: 4 << 10,
        gathered_run: 64,
        tile: 32,
        gathered_bytes: 8 << 10,
        prefault_from: 4 << 20,
        max_driver_calls: 4096,
        short_run: 256,
        short_run_up: 64,
        kernel_from: 64 << 10,
        short_call: 128 << 10,
        few_rows: 2048,
        pack_below: 64,
        pack_from: 64 << 10,
        watched_chunk: 16 << 20,
        fill_seed: 64 << 10,
        huge_pages_from: 4 << 20,
    };
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    /// Constants that no measurement chose: widths of instructions and of huge pages.
    const OTHERS: [&str; 3] = ["LINES", "LINE", "STEP"];

    /// The code of transfers: folders and files of `src`.
    const TRANSFERS: [&str; 4] = ["transfer", "transfer_options.rs", "device/staging.rs", "worker_pool.rs"];

    fn numbers_in(path: &Path, found: &mut Vec<String>) {
        if path.is_dir() {
            fs::read_dir(path).unwrap().for_each(|entry| numbers_in(&entry.unwrap().path(), found));
            return;
        }
        let text = fs::read_to_string(path).unwrap();
        let (library, _) = text.split_once("\nmod tests {").unwrap_or((&text, ""));
        for line in library.lines() {
            let Some((_, constant)) = line.split_once("const ") else { continue };
            let Some((name, kind)) = constant.split_once(": ") else { continue };
            let is_number = ["usize", "u32", "u64", "Duration"].iter().any(|number| kind.starts_with(number));
            let is_constant = name.chars().all(|letter| letter.is_ascii_uppercase() || letter == '_');
            // A parameter of a generic item has no value.
            if is_number && is_constant && kind.contains(" = ") && !OTHERS.contains(&name) {
                found.push(format!("{}: {name}", path.display()));
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "reads the sources")]
    fn no_other_file_of_transfers_has_a_measured_constant() {
        let mut found = Vec::new();
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        TRANSFERS.iter().for_each(|path| numbers_in(&sources.join(path), &mut found));
        assert!(found.is_empty(), "these belong to the profile, or to the exceptions: {found:?}");
    }
}
