//! Telling AddressSanitizer about memory that a pool keeps.
//!
//! A pool's free blocks are parts of live allocations: the sanitizer cannot see that they must not be used. Built
//! with `RUSTFLAGS="-Zsanitizer=address --cfg gpumem_asan"`, they are poisoned until they are allocated again.

/// Whether this build is watched.
pub(crate) const IS_ON: bool = cfg!(gpumem_asan);

#[cfg(gpumem_asan)]
unsafe extern "C" {
    fn __asan_poison_memory_region(start: *const core::ffi::c_void, bytes: usize);
    fn __asan_unpoison_memory_region(start: *const core::ffi::c_void, bytes: usize);
}

/// Poisons memory that is not allocated.
///
/// # Safety
/// The range lies in memory of this backend, and no code reads or writes it before it is allocated again.
#[cfg(gpumem_asan)]
pub(crate) unsafe fn set_poisoned(address: u64, bytes: usize, is_lent: bool) {
    let start = address as usize as *const core::ffi::c_void;
    // SAFETY: the sanitizer only notes which bytes may be used; the range is the caller's promise.
    unsafe {
        match is_lent {
            true => __asan_unpoison_memory_region(start, bytes),
            false => __asan_poison_memory_region(start, bytes),
        }
    }
}

/// Nothing to tell.
///
/// # Safety
/// None.
#[cfg(not(gpumem_asan))]
pub(crate) unsafe fn set_poisoned(_: u64, _: usize, _: bool) {}
