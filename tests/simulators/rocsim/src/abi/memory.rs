//! Memory flags, pointer information, shared memory and SVM attributes.
#![allow(missing_docs)] // The fields carry AMD's names; AMD's header describes them.

use std::ffi::c_void;

/// `HsaMemFlags`: how memory is allocated or registered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct MemFlags(pub u32);

impl MemFlags {
    pub const NON_PAGED: u32 = 1;
    pub const HOST_ACCESS: u32 = 1 << 6;
    pub const SCRATCH: u32 = 1 << 9;
    pub const EXECUTE_ACCESS: u32 = 1 << 12;
    pub const FIXED_ADDRESS: u32 = 1 << 15;

    /// Whether a flag is set.
    pub fn has(self, flag: u32) -> bool {
        self.0 & flag != 0
    }
}

/// Values of [`PointerInfo::kind`].
pub mod pointer {
    pub const UNKNOWN: u32 = 0;
    pub const ALLOCATED: u32 = 1;
    pub const REGISTERED_USER: u32 = 2;
    pub const REGISTERED_SHARED: u32 = 4;
}

#[derive(Debug, Clone, Copy)]
#[repr(C, packed(4))]
pub struct PointerInfo {
    pub kind: u32,
    pub node: u32,
    pub mem_flags: MemFlags,
    pub cpu_address: *const c_void,
    pub gpu_address: u64,
    pub size_in_bytes: u64,
    pub n_registered_nodes: u32,
    pub n_mapped_nodes: u32,
    pub registered_nodes: *const u32,
    pub mapped_nodes: *const u32,
    pub user_data: *mut c_void,
}

impl PointerInfo {
    /// The answer for an unknown address.
    pub const UNKNOWN: Self = {
        // SAFETY: the structure holds integers and raw pointers only, for which all-zero bytes are a value.
        unsafe { std::mem::zeroed() }
    };
}

/// `HsaSharedMemoryHandle`: eight words that another process can turn back into memory.
pub type SharedMemoryHandle = [u32; 8];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C, packed(4))]
pub struct SvmAttribute {
    pub kind: u32,
    pub value: u32,
}

/// Values of [`SvmAttribute::kind`].
pub mod svm {
    pub const PREFERRED_LOC: u32 = 0;
    pub const PREFETCH_LOC: u32 = 1;
    pub const ACCESS: u32 = 2;
    pub const ACCESS_IN_PLACE: u32 = 3;
    pub const NO_ACCESS: u32 = 4;
    pub const SET_FLAGS: u32 = 5;
    pub const CLR_FLAGS: u32 = 6;
    pub const GRANULARITY: u32 = 7;
    /// The location "don't care".
    pub const NO_NODE: u32 = u32::MAX;
}
