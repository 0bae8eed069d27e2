//! The binary interface of AMD's thunk library, as of `hsakmttypes.h` in ROCm 5.2, of the kernel driver, and of the HSA
//! runtime's queues.
//!
//! The thunk's structures are packed to four bytes. `tests/abi.rs` compares every layout with AMD's headers where
//! they are installed.

mod events;
mod hsa;
mod kfd;
mod memory;
mod queue;
mod topology;

pub use events::*;
pub use hsa::*;
pub use kfd::*;
pub use memory::*;
pub use queue::*;
pub use topology::*;

/// `HSAKMT_STATUS`: the result of every function of the thunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct Status(pub u32);

#[allow(missing_docs)] // AMD's own names.
impl Status {
    pub const SUCCESS: Self = Self(0);
    pub const ERROR: Self = Self(1);
    pub const INVALID_PARAMETER: Self = Self(3);
    pub const INVALID_HANDLE: Self = Self(4);
    pub const INVALID_NODE_UNIT: Self = Self(5);
    pub const NO_MEMORY: Self = Self(6);
    pub const NOT_IMPLEMENTED: Self = Self(10);
    pub const NOT_SUPPORTED: Self = Self(11);
    pub const OUT_OF_RESOURCES: Self = Self(13);
    pub const KERNEL_IO_CHANNEL_NOT_OPENED: Self = Self(20);
    pub const KERNEL_ALREADY_OPENED: Self = Self(22);
    pub const WAIT_TIMEOUT: Self = Self(31);
    pub const MEMORY_NOT_REGISTERED: Self = Self(36);
}

/// The unit of the simulated memory management, in bytes.
pub const PAGE: u64 = 4096;

/// Rounds up to whole pages, or `None` on overflow.
pub fn round_up(bytes: u64) -> Option<u64> {
    bytes.checked_next_multiple_of(PAGE)
}
