//! User-mode queues as the thunk makes them.
#![allow(missing_docs)] // The fields carry AMD's names; AMD's header describes them.

/// Values of `HSA_QUEUE_TYPE`.
pub mod queue_type {
    pub const SDMA: u32 = 2;
    pub const SDMA_XGMI: u32 = 5;
    pub const COMPUTE_AQL: u32 = 21;
}

#[derive(Debug, Clone, Copy)]
#[repr(C, packed(4))]
pub struct QueueResource {
    pub queue_id: u64,
    pub doorbell: *mut u64,
    pub write_ptr: *mut u64,
    pub read_ptr: *mut u64,
    pub error_reason: *mut i64,
}
