//! Copying one run, around the caches where that pays.

/// Shorter runs are copied the ordinary way.
const SHORTEST: usize = 4 << 10;

/// Copies one run; with `streaming`, its bytes go to memory without being kept in the cache.
///
/// # Safety
/// Both sides are valid for `bytes` bytes and do not overlap.
#[inline]
pub(super) unsafe fn copy_run(source: *const u8, destination: *mut u8, bytes: usize, streaming: bool) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if streaming && bytes >= SHORTEST && std::arch::is_x86_feature_detected!("avx") {
        // SAFETY: the caller's promise; the processor has the instructions.
        return unsafe { streamed(source, destination, bytes) };
    }
    let _ = (streaming, SHORTEST);
    // SAFETY: the caller's promise.
    unsafe { source.copy_to_nonoverlapping(destination, bytes) };
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
        // Such stores are not ordered with what other threads are told afterwards, until this.
        _mm_sfence();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "minutes of looking at bytes; the streaming stores are not there under Miri")]
    fn every_length_and_alignment() {
        let source: Vec<u8> = (0..3 * SHORTEST).map(|index| (index * 7 + index / 256) as u8).collect();
        for (from, to) in [(0, 0), (1, 0), (0, 1), (3, 31), (32, 64)] {
            for bytes in [0, 1, SHORTEST - 1, SHORTEST, SHORTEST + 1, SHORTEST + 127, 2 * SHORTEST + 33] {
                for streaming in [false, true] {
                    let mut destination = vec![0xEE; 3 * SHORTEST];
                    // SAFETY: both blocks are long enough.
                    unsafe {
                        copy_run(
                            source.as_ptr().add(from),
                            destination.as_mut_ptr().add(to),
                            bytes,
                            streaming,
                        );
                    }
                    assert_eq!(destination[to..to + bytes], source[from..from + bytes]);
                    let around = destination[..to].iter().chain(&destination[to + bytes..]);
                    assert!(around.into_iter().all(|byte| *byte == 0xEE));
                }
            }
        }
    }
}
