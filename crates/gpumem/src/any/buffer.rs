//! What is asked of a block of memory.

use super::typed::{Named, OnBuffer, Typed};
use enum_dispatch::enum_dispatch;
use gpumem_core::{Backend, DeviceBuffer, MemoryKind};
use std::ptr::NonNull;

/// The functions of [`DeviceBuffer`].
#[enum_dispatch]
pub(crate) trait BufferOps {
    fn address(&self) -> u64;
    fn host_address(&self) -> Option<NonNull<u8>>;
    fn len(&self) -> usize;
    fn is_empty(&self) -> bool;
    fn kind(&self) -> MemoryKind;
}

backends! { any!
    /// A block of memory of one of the enabled backends.
    AnyBuffer(OnBuffer, Buffer): Named, BufferOps
}

impl<B: Backend> BufferOps for OnBuffer<B> {
    #[inline]
    fn address(&self) -> u64 {
        self.0.address()
    }

    #[inline]
    fn host_address(&self) -> Option<NonNull<u8>> {
        self.0.host_address()
    }

    #[inline]
    fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[inline]
    fn kind(&self) -> MemoryKind {
        self.0.kind()
    }
}

// SAFETY: what the backend behind it promises.
unsafe impl DeviceBuffer for AnyBuffer {
    #[inline]
    fn address(&self) -> u64 {
        BufferOps::address(self)
    }

    #[inline]
    fn host_address(&self) -> Option<NonNull<u8>> {
        BufferOps::host_address(self)
    }

    #[inline]
    fn len(&self) -> usize {
        BufferOps::len(self)
    }

    #[inline]
    fn is_empty(&self) -> bool {
        BufferOps::is_empty(self)
    }

    #[inline]
    fn kind(&self) -> MemoryKind {
        BufferOps::kind(self)
    }
}
