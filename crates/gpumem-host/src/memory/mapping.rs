//! Addresses of this process that are reserved, and get memory later.

use std::{io, ptr::NonNull};

/// A range of addresses. Freed with its last owner.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a mapping owns a range of addresses and never reads or writes it.
unsafe impl Send for Mapping {}
// SAFETY: as above; nothing in it changes.
unsafe impl Sync for Mapping {}

/// Whether this system can tell addresses from memory. Miri knows only memory.
pub(crate) const IS_SUPPORTED: bool = cfg!(all(unix, not(miri)));

#[cfg(all(unix, not(miri)))]
impl Mapping {
    /// Reserves addresses. `bytes` is a number of whole pages.
    pub(crate) fn reserve(bytes: usize) -> io::Result<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping at a place of the system's choice.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_NONE, flags, -1, 0) };
        match NonNull::new(start.cast::<u8>()) {
            Some(start) if start.as_ptr().cast() != libc::MAP_FAILED => {
                // Commands come with addresses; this lets them reach the memory.
                start.as_ptr().expose_provenance();
                Ok(Self { start, bytes })
            }
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Puts zeroed memory behind whole pages, or takes it back. The caller names pages of the mapping, and nothing uses
    /// those that lose theirs.
    pub(crate) fn set(&self, from: usize, bytes: usize, has_memory: bool) -> io::Result<()> {
        debug_assert!(from + bytes <= self.bytes);
        // SAFETY: inside the mapping, whose owner says who uses what.
        let outcome = unsafe {
            let place = self.start.as_ptr().wrapping_add(from).cast();
            match has_memory {
                true => libc::mprotect(place, bytes, libc::PROT_READ | libc::PROT_WRITE),
                // A new mapping in the same place: unlike advice to the system, it leaves nothing of what was there.
                false => {
                    let flags =
                        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
                    let new = libc::mmap(place, bytes, libc::PROT_NONE, flags, -1, 0);
                    if new == libc::MAP_FAILED { -1 } else { 0 }
                }
            }
        };
        if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

#[cfg(not(all(unix, not(miri))))]
impl Mapping {
    pub(crate) fn reserve(_: usize) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn set(&self, _: usize, _: usize, _: bool) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl Mapping {
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        #[cfg(all(unix, not(miri)))]
        // SAFETY: mapped in `reserve`, and this is its last owner.
        unsafe {
            libc::munmap(self.start.as_ptr().cast(), self.bytes);
        }
    }
}
