//! Copying one run with stores that leave it where it is wanted.

use super::{Direction, TUNING};
use crate::transfer_options::NonTemporalStores;

/// The place of stored data afterwards: in the caches, in memory, or in the shared cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StorePolicy {
    /// In the caches, as the processor leaves it.
    Temporal,
    /// In memory and in no cache.
    NonTemporal,
    /// In the cache that all cores share, and in no core's own: the copy engine finds it there, and holds up neither the
    /// core nor memory. Takes more of a thread's time than the others.
    Demote,
}

impl StorePolicy {
    /// How a transfer of so many bytes by so many threads writes its blocks, or its destination.
    pub(super) fn of(
        streaming: NonTemporalStores,
        direction: Direction,
        threads: usize,
        bytes: usize,
    ) -> Self {
        Self::chosen(streaming, direction, threads, bytes, Self::has_shared())
    }

    fn chosen(
        streaming: NonTemporalStores,
        direction: Direction,
        threads: usize,
        bytes: usize,
        has_shared: bool,
    ) -> Self {
        match (streaming, direction) {
            (NonTemporalStores::Always, _) => Self::NonTemporal,
            (NonTemporalStores::Never, _) => Self::Temporal,
            (NonTemporalStores::Auto, Direction::HostToDevice)
                if has_shared && threads >= TUNING.demote_threads =>
            {
                Self::Demote
            }
            (NonTemporalStores::Auto, Direction::HostToDevice)
                if threads > 1 && bytes < TUNING.non_temporal_bytes =>
            {
                Self::NonTemporal
            }
            (NonTemporalStores::Auto, Direction::DeviceToHost) if bytes >= TUNING.non_temporal_bytes => {
                Self::NonTemporal
            }
            (NonTemporalStores::Auto, _) => Self::Temporal,
        }
    }

    /// Whether the processor can be told to move lines into the shared cache (Intel's CLDEMOTE).
    pub(super) fn has_shared() -> bool {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        {
            use std::sync::LazyLock;
            static HAS: LazyLock<bool> = LazyLock::new(|| {
                // Every processor with AVX-512 has leaf 7, whose bit 25 in ECX says so.
                #[allow(unused_unsafe, reason = "unsafe up to Rust 1.93")]
                // SAFETY: the instruction only reads.
                let features = || unsafe { std::arch::x86_64::__cpuid_count(7, 0) }.ecx;
                std::arch::is_x86_feature_detected!("avx512f") && features() & (1 << 25) != 0
            });
            *HAS
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        false
    }
}

/// Copies one run.
///
/// # Safety
/// Both sides are valid for `bytes` bytes and do not overlap.
#[inline]
pub(super) unsafe fn copy_run(source: *const u8, destination: *mut u8, bytes: usize, stores: StorePolicy) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if stores != StorePolicy::Temporal && bytes >= TUNING.min_stored_run {
        if stores == StorePolicy::Demote && StorePolicy::has_shared() {
            // SAFETY: the caller's promise; the processor has the instructions.
            return unsafe { shared(source, destination, bytes) };
        }
        if std::arch::is_x86_feature_detected!("avx512f") {
            // SAFETY: as above.
            return unsafe { streamed_lines(source, destination, bytes) };
        }
        if std::arch::is_x86_feature_detected!("avx") {
            // SAFETY: as above.
            return unsafe { streamed(source, destination, bytes) };
        }
    }
    let _ = (stores, TUNING.min_stored_run);
    // SAFETY: the caller's promise.
    unsafe { source.copy_to_nonoverlapping(destination, bytes) };
}

/// Copies four cache lines at a time through registers of a line each: `store` writes a line, and the other functions
/// run after four lines and after all. Whole lines, because a line that is written in two halves may go to memory
/// twice, which was measured to cost a fifth of the speed with several threads.
///
/// Head, lines and tail are the run, one after the other; there is at least one step, and the destination of every line is
/// aligned. As instructions, because the intrinsics came with Rust 1.89. The registers from the sixteenth on need no clean-up
/// for code without AVX.
#[cfg(all(target_arch = "x86_64", not(miri)))]
macro_rules! copy_lines {
    ($store:literal, [$($each:literal),*], [$($last:literal),*], $source:ident, $destination:ident, $bytes:ident) => {
        const LINES: usize = 256;
        let head = $destination.align_offset(64).min($bytes);
        let tail = head + ($bytes - head) / LINES * LINES;
        $source.copy_to_nonoverlapping($destination, head);
        if tail > head {
            std::arch::asm!(
                "2:",
                "vmovdqu64 zmm16, [{from}]",
                "vmovdqu64 zmm17, [{from} + 64]",
                "vmovdqu64 zmm18, [{from} + 128]",
                "vmovdqu64 zmm19, [{from} + 192]",
                concat!($store, " [{to}], zmm16"),
                concat!($store, " [{to} + 64], zmm17"),
                concat!($store, " [{to} + 128], zmm18"),
                concat!($store, " [{to} + 192], zmm19"),
                $($each,)*
                "add {from}, 256",
                "add {to}, 256",
                "cmp {from}, {end}",
                "jne 2b",
                $($last,)*
                from = inout(reg) $source.add(head) => _,
                to = inout(reg) $destination.add(head) => _,
                end = in(reg) $source.add(tail),
                out("zmm16") _, out("zmm17") _, out("zmm18") _, out("zmm19") _,
                options(nostack),
            );
        }
        $source.add(tail).copy_to_nonoverlapping($destination.add(tail), $bytes - tail);
    };
}

/// Lines which leave the core's own caches as soon as they are written.
///
/// # Safety
/// As for [`copy_run`], on a processor with AVX-512F and CLDEMOTE.
#[cfg(all(target_arch = "x86_64", not(miri)))]
unsafe fn shared(source: *const u8, destination: *mut u8, bytes: usize) {
    // SAFETY: the caller promises valid sides. The stores are ordinary ones, and demoting a line does not change its
    // contents.
    unsafe {
        copy_lines!(
            "vmovdqa64",
            ["cldemote [{to}]", "cldemote [{to} + 64]", "cldemote [{to} + 128]", "cldemote [{to} + 192]"],
            [],
            source,
            destination,
            bytes
        );
    }
}

/// Lines which go around the caches.
///
/// # Safety
/// As for [`copy_run`], on a processor with AVX-512F.
#[cfg(all(target_arch = "x86_64", not(miri)))]
unsafe fn streamed_lines(source: *const u8, destination: *mut u8, bytes: usize) {
    // SAFETY: the caller promises valid sides. Other threads may not see such stores until the fence.
    unsafe {
        copy_lines!("vmovntdq", [], ["sfence"], source, destination, bytes);
    }
}

/// # Safety
/// As for [`copy_run`], on a processor with AVX.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "avx")]
unsafe fn streamed(source: *const u8, destination: *mut u8, bytes: usize) {
    use std::arch::x86_64::{__m256i, _mm_sfence, _mm256_loadu_si256, _mm256_stream_si256};
    const LINE: usize = 128;
    let head = destination.align_offset(32).min(bytes);
    let lines = (bytes - head) / LINE;
    let tail = head + lines * LINE;
    // SAFETY: head, lines and tail are the run, one after the other; the destination of every line is aligned to 32.
    unsafe {
        source.copy_to_nonoverlapping(destination, head);
        for at in (head..tail).step_by(LINE) {
            let (from, to) = (source.add(at).cast::<__m256i>(), destination.add(at).cast::<__m256i>());
            let parts = [
                _mm256_loadu_si256(from),
                _mm256_loadu_si256(from.add(1)),
                _mm256_loadu_si256(from.add(2)),
                _mm256_loadu_si256(from.add(3)),
            ];
            for (index, part) in parts.into_iter().enumerate() {
                _mm256_stream_si256(to.add(index), part);
            }
        }
        source.add(tail).copy_to_nonoverlapping(destination.add(tail), bytes - tail);
        // Makes such stores visible to other threads before later stores.
        _mm_sfence();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_fit_the_transfer_and_the_processor() {
        let auto = |direction, threads, bytes, has| {
            StorePolicy::chosen(NonTemporalStores::Auto, direction, threads, bytes, has)
        };
        let (short, long) = (TUNING.non_temporal_bytes - 1, TUNING.non_temporal_bytes);
        for bytes in [short, long] {
            assert_eq!(
                auto(Direction::HostToDevice, TUNING.demote_threads, bytes, true),
                StorePolicy::Demote
            );
            assert_eq!(auto(Direction::HostToDevice, 1, bytes, true), StorePolicy::Temporal);
        }
        for (threads, has) in [(TUNING.demote_threads, false), (TUNING.demote_threads - 1, true)] {
            assert_eq!(auto(Direction::HostToDevice, threads, short, has), StorePolicy::NonTemporal);
            assert_eq!(auto(Direction::HostToDevice, threads, long, has), StorePolicy::Temporal);
        }
        assert_eq!(auto(Direction::DeviceToHost, TUNING.demote_threads, short, true), StorePolicy::Temporal);
        assert_eq!(
            auto(Direction::DeviceToHost, TUNING.demote_threads, long, true),
            StorePolicy::NonTemporal
        );
        for direction in [Direction::HostToDevice, Direction::DeviceToHost] {
            assert_eq!(
                StorePolicy::chosen(NonTemporalStores::Always, direction, 1, 1, true),
                StorePolicy::NonTemporal
            );
            assert_eq!(
                StorePolicy::chosen(NonTemporalStores::Never, direction, TUNING.demote_threads, long, true),
                StorePolicy::Temporal
            );
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "minutes of looking at bytes; the streaming stores are not there under Miri")]
    fn every_length_and_alignment() {
        let source: Vec<u8> =
            (0..3 * TUNING.min_stored_run).map(|index| (index * 7 + index / 256) as u8).collect();
        for (from, to) in [(0, 0), (1, 0), (0, 1), (3, 31), (32, 64)] {
            for bytes in [
                0,
                1,
                TUNING.min_stored_run - 1,
                TUNING.min_stored_run,
                TUNING.min_stored_run + 1,
                TUNING.min_stored_run + 127,
                2 * TUNING.min_stored_run + 33,
            ] {
                for stores in [StorePolicy::Temporal, StorePolicy::NonTemporal, StorePolicy::Demote] {
                    let mut destination = vec![0xEE; 3 * TUNING.min_stored_run];
                    // SAFETY: both blocks are long enough.
                    unsafe {
                        copy_run(source.as_ptr().add(from), destination.as_mut_ptr().add(to), bytes, stores);
                    }
                    assert_eq!(destination[to..to + bytes], source[from..from + bytes]);
                    let around = destination[..to].iter().chain(&destination[to + bytes..]);
                    assert!(around.into_iter().all(|byte| *byte == 0xEE));
                }
            }
        }
    }
}
