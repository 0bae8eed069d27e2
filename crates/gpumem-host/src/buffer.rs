//! Buffers: descriptions of memory.

use gpumem_core::{DeviceBuffer, MemoryKind};
use std::ptr::NonNull;

/// A block of memory of a host device, or memory of the caller that was registered.
#[derive(Debug)]
pub struct Buffer {
    pub(crate) start: NonNull<u8>,
    pub(crate) bytes: usize,
    pub(crate) kind: MemoryKind,
    /// Ordinal of the device that made it.
    pub(crate) ordinal: usize,
    /// Resets of the device before this was made.
    pub(crate) generation: u64,
    /// The number of the block; 0 for registered memory.
    pub(crate) serial: u64,
}

// SAFETY: a buffer only describes memory and never reads or writes it.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

// SAFETY: the address and the length of an allocation, which do not change.
unsafe impl DeviceBuffer for Buffer {
    fn address(&self) -> u64 {
        self.start.as_ptr().addr() as u64
    }

    fn host_address(&self) -> Option<NonNull<u8>> {
        self.kind.is_host_accessible().then_some(self.start)
    }

    fn len(&self) -> usize {
        self.bytes
    }

    fn kind(&self) -> MemoryKind {
        self.kind
    }
}
