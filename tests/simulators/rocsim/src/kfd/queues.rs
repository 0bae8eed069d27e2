//! User-mode queues.

use super::{
    device, errno,
    request::{gpu, status},
};
use crate::{
    abi::{
        KfdCreateQueue, KfdDestroyQueue, KfdSaveAreaHeader, KfdUpdateQueue, Status, kfd_queue, queue_type,
    },
    engine::{self, NewQueue},
    memory,
};
use std::ffi::c_int;

/// # Safety
/// The ring and the pointers in the arguments live as long as the queue.
pub(super) unsafe fn create(arguments: &mut KfdCreateQueue) -> Result<(), c_int> {
    let node = gpu(arguments.gpu_id)?;
    let kind = match arguments.queue_type {
        kfd_queue::COMPUTE_AQL => queue_type::COMPUTE_AQL,
        kfd_queue::SDMA | kfd_queue::SDMA_XGMI | kfd_queue::SDMA_BY_ENGINE => queue_type::SDMA,
        _ => return Err(libc::EINVAL),
    };
    let new = NewQueue {
        node,
        kind,
        ring: arguments.ring_base_address,
        ring_bytes: arguments.ring_size.into(),
        read_pointer: arguments.read_pointer_address as *mut u64,
        write_pointer: arguments.write_pointer_address as *mut u64,
        exceptions: exceptions(node, arguments.ctx_save_restore_address),
    };
    // SAFETY: the caller's promise.
    let (id, doorbell) = unsafe { engine::create_with_doorbell(&new) }.map_err(errno)?;
    arguments.queue_id = id as u32;
    arguments.doorbell_offset = device::doorbell_offset(node) + doorbell;
    Ok(())
}

/// Where the thunk wants to be told of exceptions, if it wants to.
fn exceptions(node: u32, save_area: u64) -> Option<(u64, u32)> {
    let header = memory::span(node, save_area, size_of::<KfdSaveAreaHeader>() as u64).ok()?;
    // SAFETY: the span is as long as the structure, which holds integers only.
    let header = unsafe { header.as_ptr().cast::<KfdSaveAreaHeader>().read_unaligned() };
    (header.err_payload_addr != 0).then_some((header.err_payload_addr, header.err_event_id))
}

/// A queue with a share of nothing stands still.
pub(super) fn update(arguments: &KfdUpdateQueue) -> Result<(), c_int> {
    done(engine::pause(arguments.queue_id.into(), arguments.queue_percentage == 0))
}

pub(super) fn destroy(arguments: &KfdDestroyQueue) -> Result<(), c_int> {
    done(engine::destroy(arguments.queue_id.into()))
}

fn done(outcome: Status) -> Result<(), c_int> {
    status(if outcome == Status::SUCCESS { Ok(()) } else { Err(outcome) })
}
