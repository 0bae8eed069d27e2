//! Runs copies and fills. They use raw pointers, because other work may use the same device memory; the caller orders
//! such accesses.

mod fill;
mod region;
mod strided;
mod transpose;

pub(crate) use fill::{extent_of_fill, fill_bytes, run_fill};
pub(crate) use region::run_region;
pub(crate) use strided::{Span, StridedPlan};

use std::ptr;

/// Bytes of a piece where a run is copied in pieces: less than what the C library copies with `rep movsb`.
const PIECE: usize = 1 << 10;
/// From this length on the C library copies with vector registers anyway (the second-level cache of AMD's processors).
const LONG: usize = 1 << 20;

/// Copies one contiguous run.
///
/// Where the destination lies a few bytes after the source, up to multiples of 4096, `rep movsb` is 10 to 20 times
/// slower than it should be on AMD's processors (measured; the C library avoids it on Intel's only). That distance is
/// common: allocators put large arrays 16 bytes into a page, and device memory begins on a cache line. Shorter pieces
/// go through vector registers at full speed. On Intel's processors pieces are a sixth slower than one copy.
///
/// # Safety
/// Both sides are valid for `bytes` bytes and do not overlap.
#[inline]
pub(crate) unsafe fn copy_run(source: *const u8, destination: *mut u8, bytes: usize) {
    let distance = destination.addr().wrapping_sub(source.addr()) % 4096;
    let slow = bytes > 2 * PIECE && bytes < LONG && (1..64).contains(&distance) && pieces_are_faster();
    let piece = if slow { PIECE } else { bytes };
    let mut at = 0;
    while at < bytes {
        let length = piece.min(bytes - at);
        // SAFETY: inside the run.
        unsafe { source.add(at).copy_to_nonoverlapping(destination.add(at), length) };
        at += length;
    }
}

/// Whether the processor is one on which the C library does not avoid `rep movsb` at such distances by itself.
#[cfg(all(target_arch = "x86_64", not(miri)))]
fn pieces_are_faster() -> bool {
    use std::{arch::x86_64::__cpuid, sync::LazyLock};
    // Asking takes microseconds in a virtual machine.
    static IS_OTHER: LazyLock<bool> = LazyLock::new(|| {
        #[allow(unused_unsafe)] // safe since Rust 1.93
        // SAFETY: every processor of this architecture has the instruction.
        let found = unsafe { __cpuid(0) };
        [found.ebx, found.edx, found.ecx].map(u32::to_le_bytes).as_flattened() != b"GenuineIntel"
    });
    *IS_OTHER
}

#[cfg(any(not(target_arch = "x86_64"), miri))]
fn pieces_are_faster() -> bool {
    false
}

/// The pointer for an address that a command names.
pub(crate) fn pointer(address: u64) -> *mut u8 {
    // An address of this process fits.
    ptr::with_exposed_provenance_mut(address as usize)
}
