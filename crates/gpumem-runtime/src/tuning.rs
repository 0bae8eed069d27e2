//! The constants of transfers that were measured on a machine.

use std::time::Duration;

macro_rules! profile {
    ($($(#[$about:meta])* $name:ident: $type:ty = $value:expr,)*) => {
        /// The measured constants of transfers. A profile for another machine belongs here, and nowhere else.
        #[derive(Debug)]
        pub(crate) struct TuningProfile {
            $($(#[$about])* pub(crate) $name: $type,)*
        }

        /// The profile in use. A constant, so that every use is folded.
        pub(crate) const TUNING: TuningProfile = TuningProfile { $($name: $value,)* };
    };
}

// Measured on one H100 80GB HBM3 (driver 580.159.04) beside 16 processors of an Intel Xeon with AVX-512 and CLDEMOTE, in
// November 2026, each choice in turns with its alternatives (medians of at least six runs).
profile! {
    // ---- threads ----
    /// Most threads of a transfer by default: more do not fill the link any better (13 and 16 were tried).
    max_threads: usize = 15,
    /// Threads of the shortest transfers of several: each takes some ten microseconds to wake up.
    min_threads: usize = 4,
    /// After so many bytes it is one thread more.
    bytes_of_a_thread: usize = 4 << 20,
    /// Above this number of threads the calling one only submits copies: a late submission idles the copy engine,
    /// which costs more than one copying thread gains.
    dedicated_submitter_above: usize = 8,
    /// Helpers that have come before the calling thread stops moving parts.
    enough_helpers: usize = 4,
    /// Parts for each thread that lie open in an upload, so that none runs out of them while the calling thread is
    /// busy.
    parts_ahead: usize = 4,
    /// The same where the calling thread moves parts too, which it is to begin with soon.
    few_parts_ahead: usize = 2,
    /// Looks before a thread sleeps: some hundred microseconds, in which a part is filled and a block copied. Waking
    /// up takes up to that long.
    spins: u32 = if cfg!(any(miri, loom)) { 1 } else { 1 << 12 },
    /// The driver is queried at one of so many checks whether a copy is over.
    looks_per_query: u32 = 16,
    /// The thread that waits for helpers takes the lock, which they need to leave, at one look of so many.
    looks_per_lock: u32 = 32,
    /// A helper without work ends after this time. The next work starts a new one.
    #[cfg_attr(loom, expect(dead_code, reason = "no time passes in a model"))]
    helper_idle: Duration = Duration::from_secs(10),
    // ---- blocks ----
    /// Blocks of a transfer by several threads. Downloads of 64 and 256 MiB reach 0.61 and 0.49 of pinned with four,
    /// 0.86 and 0.70 with six, 0.88 and 0.93 with eight, 0.76 and 0.89 with twelve, 0.70 and 0.86 with sixteen.
    blocks: usize = 8,
    /// The staging ring of an upload is so many blocks long: fewer stay in the caches. 64 MiB reach 0.897 of pinned
    /// with four, 0.887 with six and 0.874 with eight.
    ring_blocks: usize = 4,
    /// Blocks of a transfer by the calling thread alone: one is filled or drained while the other one is copied.
    blocks_of_one_thread: usize = 2,
    /// The shortest block: copies of less take the engine longer to begin than to do.
    min_block: usize = 256 << 10,
    /// The shortest one of a staging ring: 1 MiB in blocks of 256 KiB takes 55 or 110 us by turns, and 60 in one.
    min_ring_block: usize = 1 << 20,
    /// The least that one thread moves at a time, and the size in a staging ring: less is not worth taking.
    min_part: usize = 64 << 10,
    /// The most that one thread moves at a time: with more, threads wait for each other at the end of a block.
    max_part: usize = 128 << 10,
    /// Each block or copy of an upload is at most about a fourth of the bytes before it. Threads fill hardly faster
    /// than the engine copies; it pauses 2.5 us between copies and would wait for the end of a longer one.
    ramp: usize = 4,
    /// A staging ring that is filled again is sent in at least so many copies: two are under way while the bytes of the
    /// next one are filled.
    copies_of_a_ring: usize = 3,
    /// The smallest staging block.
    min_staging: usize = 64 << 10,
    /// Most bytes of staging blocks that are kept for later, or eight blocks if that is more: page-locking takes
    /// milliseconds a MiB.
    staging_kept: usize = 64 << 20,
    /// So many of the blocks that were returned first are queried, each by a driver call.
    staging_asked: usize = 4,
    /// Blocks of a copy between two backends: one going down, one going up, one to spare.
    cross_backend_blocks: usize = 3,
    // ---- files ----
    /// Threads that read a file, or write one, at least: they sleep in the system's calls, so there may be more of them than
    /// processors.
    file_threads: usize = 8,
    /// Bytes of one read. From 64 KiB to 4 MiB it makes no difference to a disk.
    file_part: usize = 128 << 10,
    /// As `ring_blocks`, for files: threads come back from the system's calls by turns, and four blocks gave 0.55 of the speed from
    /// memory.
    file_ring_blocks: usize = 16,
    /// Bytes between the runs of a part are read with them while all together are at most so many times the bytes of the runs.
    file_extent: usize = 4,
    /// Elements that would be read or written in shorter pieces go through a block of the device.
    file_run: usize = 32 << 10,
    /// Most arrays that one submission of a pass over a file fills: their access logs are locked together.
    arrays_of_a_copy: usize = 64,
    /// Bytes of a file between two arrays that are read in the same pass: about what a pass costs at its ends.
    file_gap: usize = 1 << 20,
    // ---- one block ----
    /// Longer downloads through one block come in pieces, so that one is taken out while the next one comes: a thread
    /// takes about three times as long for a byte as the engine.
    single_block_whole: usize = 256 << 10,
    /// The first of several such pieces.
    single_block_first: usize = 128 << 10,
    /// So many times as far as the one before ends each other piece.
    single_block_growth: usize = 4,
    /// Pieces of an upload through one block.
    single_block_piece: usize = 128 << 10,
    /// Longer uploads through one block are written around the caches: 64 KiB are in the destination after 13 instead
    /// of 15 us.
    single_block_cached: usize = 16 << 10,
    /// Bytes of short uploads that may be on their way before a blocking one waits for them.
    bytes_in_flight: usize = 4 << 20,
    /// Short uploads that may be on their way, at least.
    min_uploads_in_flight: usize = 4,
    /// Short uploads that may be on their way, at most: one wait says of all blocks that they are free again.
    max_uploads_in_flight: usize = 64,
    // ---- stores ----
    /// Stores go around the caches in uploads that are shorter, and in downloads that are not: the engine reads lines
    /// in a core's own cache at a third of its speed, until the blocks are more than those caches hold.
    non_temporal_bytes: usize = 96 << 20,
    /// So many threads fill the shared cache as fast as the engine reads it; ten do not: 0.83 of pinned at 64 MiB and
    /// 0.94 at 256 MiB, where stores around the caches reach 0.73 and 0.83.
    demote_threads: usize = 12,
    /// Shorter runs are copied the ordinary way.
    min_stored_run: usize = 4 << 10,
    /// Shorter runs are gathered and scattered by loops over strides.
    gathered_run: usize = 64,
    /// Steps of a tile along both of its axes, where the two sides are contiguous along different ones.
    tile: usize = 32,
    /// Bytes gathered at a time and then stored around the caches: a part of the first-level cache.
    gathered_bytes: usize = 8 << 10,
    /// New arrays of at least so many bytes have huge pages, which one thread each makes ready.
    prefault_from: usize = 4 << 20,
    // ---- layouts ----
    /// More driver calls than this for one copy are slower than the way through the host.
    max_driver_calls: usize = 4096,
    /// Shorter runs are slow as the rows of a driver's copy within a device, which fetches whole cache lines for
    /// each.
    short_run: usize = 256,
    /// Shorter runs are slow as the rows of a driver's upload: 4 bytes of every 8 go up at 1.7 GB/s, and at 25 by
    /// threads that share the lines; 32 of 64 at 23 and 27; 64 of 128 at 41 both ways. Down it is the other way
    /// round: 3.2 and 2.0 GB/s for 4 bytes.
    short_run_up: usize = 64,
    /// A copy of less is not worth a kernel: the driver has it done when that begins.
    kernel_from: usize = 64 << 10,
    /// Calls of fewer bytes, and of fewer than `few_rows`, take longer to begin than a kernel takes for all that one
    /// of them does.
    short_call: usize = 128 << 10,
    /// See `short_call`.
    few_rows: usize = 2048,
    /// With shorter runs a strided transfer goes through a packed block on the device.
    pack_below: usize = 64,
    /// Smaller transfers are not worth a kernel of their own.
    pack_from: usize = 64 << 10,
    /// Chunk size of a direct copy that reports progress.
    watched_chunk: usize = 16 << 20,
    /// Bytes that are uploaded before a fill goes on by doubling.
    fill_seed: usize = 64 << 10,
    /// New arrays of the host of at least so many bytes are backed by huge pages where the system has them.
    huge_pages_from: usize = 4 << 20,
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
