//! Events. Their mailboxes lie in memory that the thunk has allocated.

use super::{errno, request::list};
use crate::{
    abi::{
        KfdCreateEvent, KfdEvent, KfdEventData, KfdEventPayload, KfdMemoryException, KfdWaitEvents, Status,
        kfd_wait,
    },
    events::{self as table, Waited},
};
use std::ffi::c_int;

pub(super) fn create(arguments: &mut KfdCreateEvent) -> Result<(), c_int> {
    let id = table::create_numbered(arguments.event_type, arguments.auto_reset == 0).map_err(errno)?;
    (arguments.event_id, arguments.event_trigger_data, arguments.event_slot_index) = (id, id, id);
    // The thunk allocates the page and names it in the first request; it uses the page while the answer is not 0.
    arguments.event_page_offset = arguments.event_page_offset.max(1);
    Ok(())
}

fn done(status: Status) -> Result<(), c_int> {
    if status == Status::SUCCESS { Ok(()) } else { Err(errno(status)) }
}

pub(super) fn destroy(arguments: &KfdEvent) -> Result<(), c_int> {
    done(table::destroy(arguments.event_id))
}

pub(super) fn set(arguments: &KfdEvent, signalled: bool) -> Result<(), c_int> {
    done(table::set(arguments.event_id, signalled))
}

/// # Safety
/// The list of events in the arguments is as long as they say.
pub(super) unsafe fn wait(arguments: &mut KfdWaitEvents) -> Result<(), c_int> {
    // SAFETY: the caller's promise.
    let entries: &mut [KfdEventData] = unsafe { list(arguments.events_ptr, arguments.num_events)? };
    let mut waited: Vec<Waited> = entries
        .iter()
        .map(|entry| {
            // SAFETY: both payloads are plain integers. Ages are those of signals only.
            let age = unsafe { entry.payload.last_event_age };
            Waited::new(entry.event_id, Some(age).filter(|age| *age != 0 && table::has_age(entry.event_id)))
        })
        .collect();
    let outcome = table::wait_for(&mut waited, arguments.wait_for_all != 0, arguments.timeout);
    for (entry, waited) in entries.iter_mut().zip(&waited) {
        if let Some(age) = waited.age {
            entry.payload.last_event_age = age;
        }
        if let Some(fault) = waited.fault {
            let memory_exception = KfdMemoryException {
                not_present: 1,
                read_only: 0,
                no_execute: 0,
                imprecise: 0,
                va: fault.virtual_address,
                gpu_id: fault.node_id,
                error_type: 0,
            };
            entry.payload = KfdEventPayload { memory_exception };
        }
    }
    arguments.wait_result = match outcome {
        Status::SUCCESS => kfd_wait::COMPLETE,
        Status::WAIT_TIMEOUT => kfd_wait::TIMEOUT,
        _ => kfd_wait::FAIL,
    };
    // An event that is gone is an error of the request, too.
    if arguments.wait_result == kfd_wait::FAIL { Err(libc::EINVAL) } else { Ok(()) }
}
