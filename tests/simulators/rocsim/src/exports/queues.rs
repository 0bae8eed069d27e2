//! User-mode queues.
#![allow(clippy::missing_safety_doc)] // The contract of each function is the one in `hsakmt.h`.

use super::{export, put, status, topology::gpu_list};
use crate::{
    abi::{Event, QueueResource, Status},
    engine,
};
use std::ffi::c_void;

export! {
    "hsaKmtCreateQueue" => unsafe fn create_queue(
        node: u32,
        kind: u32,
        _percentage: u32,
        _priority: i32,
        ring: *mut c_void,
        ring_bytes: u64,
        _event: *mut Event,
        resource: *mut QueueResource,
    ) -> Status {
        status(|| {
            if resource.is_null() {
                return Err(Status::INVALID_PARAMETER);
            }
            // SAFETY: the list is one node that this function owns.
            unsafe { gpu_list(&node, 1)? };
            // SAFETY: the caller passes an initialised structure, which need not be aligned.
            let mut value = unsafe { resource.read_unaligned() };
            // SAFETY: the ring and the pointers live as long as the queue, by the contract of the function.
            unsafe {
                engine::create(node, kind, ring as u64, ring_bytes, &mut value)?;
                put(resource, value)?;
            }
            Ok(Status::SUCCESS)
        })
    }

    /// A queue with a share of nothing stands still.
    "hsaKmtUpdateQueue" => unsafe fn update_queue(
        queue: u64,
        percentage: u32,
        _priority: i32,
        _ring: *mut c_void,
        _ring_bytes: u64,
        _event: *mut Event,
    ) -> Status {
        status(|| Ok(engine::pause(queue, percentage == 0)))
    }

    "hsaKmtDestroyQueue" => unsafe fn destroy_queue(queue: u64) -> Status {
        status(|| Ok(engine::destroy(queue)))
    }

    "hsaKmtSetQueueCUMask" => unsafe fn set_queue_cu_mask(
        _queue: u64,
        _count: u32,
        _mask: *const u32,
    ) -> Status {
        status(|| Ok(Status::SUCCESS))
    }
}
