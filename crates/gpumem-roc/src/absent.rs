//! The types of a backend without devices. None of them has a value.

use gpumem_core::{BarrierPoint, Lowering, MemoryKind, RawStream, Result};
use std::ptr::NonNull;

macro_rules! absent {
    ($($(#[$meta:meta])* $name:ident)*) => { $(
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name {}
    )* };
}

absent! {
    /// A device. There is none.
    Device
    /// A block of memory. There is none.
    Buffer
    /// A stream. There is none.
    Stream
    /// An event. There is none.
    Event
    /// A barrier. There is none.
    Barrier
    /// A module. There is none.
    Module
    /// A kernel. There is none.
    Kernel
}

impl gpumem_core::DeviceBuffer for Buffer {
    fn address(&self) -> u64 {
        match *self {}
    }

    fn host_address(&self) -> Option<NonNull<u8>> {
        match *self {}
    }

    fn len(&self) -> usize {
        match *self {}
    }

    fn kind(&self) -> MemoryKind {
        match *self {}
    }
}

impl gpumem_core::Stream for Stream {
    fn synchronize(&self) -> Result<()> {
        match *self {}
    }

    fn query(&self) -> Result<bool> {
        match *self {}
    }

    fn raw(&self) -> RawStream {
        match *self {}
    }
}

impl gpumem_core::Event for Event {
    fn query(&self) -> Result<bool> {
        match *self {}
    }

    fn synchronize(&self) -> Result<()> {
        match *self {}
    }
}

impl gpumem_core::Barrier for Barrier {
    fn wave_size(&self) -> u32 {
        match *self {}
    }

    fn lowering(&self, _: BarrierPoint) -> Lowering {
        match *self {}
    }
}
