//! Events.
#![allow(clippy::missing_safety_doc)] // The contract of each function is the one in `hsakmt.h`.

use super::{export, list, put, status};
use crate::{
    abi::{Event, EventDescriptor, Status},
    events as table,
};

/// The number of an event.
///
/// # Safety
/// `event` is null or an event that was not destroyed yet.
unsafe fn id(event: *const Event) -> Result<u32, Status> {
    if event.is_null() {
        return Err(Status::INVALID_HANDLE);
    }
    // SAFETY: the caller's promise. The number never changes.
    Ok(unsafe { (&raw const (*event).event_id).read_unaligned() })
}

export! {
    "hsaKmtCreateEvent" => unsafe fn create_event(
        descriptor: *const EventDescriptor,
        manual_reset: bool,
        signalled: bool,
        event: *mut *mut Event,
    ) -> Status {
        status(|| {
            if descriptor.is_null() {
                return Err(Status::INVALID_PARAMETER);
            }
            // SAFETY: the caller passes a descriptor, which need not be aligned.
            let descriptor = unsafe { descriptor.read_unaligned() };
            // SAFETY: the pointer is the caller's.
            unsafe { put(event, table::create(&descriptor, manual_reset, signalled)?)? };
            Ok(Status::SUCCESS)
        })
    }

    "hsaKmtDestroyEvent" => unsafe fn destroy_event(event: *mut Event) -> Status {
        // SAFETY: the event is the caller's.
        status(|| Ok(table::destroy(unsafe { id(event)? })))
    }

    "hsaKmtSetEvent" => unsafe fn set_event(event: *mut Event) -> Status {
        // SAFETY: the event is the caller's.
        status(|| Ok(table::set(unsafe { id(event)? }, true)))
    }

    "hsaKmtResetEvent" => unsafe fn reset_event(event: *mut Event) -> Status {
        // SAFETY: the event is the caller's.
        status(|| Ok(table::set(unsafe { id(event)? }, false)))
    }

    "hsaKmtQueryEventState" => unsafe fn query_event_state(event: *mut Event) -> Status {
        // SAFETY: the event is the caller's.
        status(|| match table::is_set(unsafe { id(event)? }) {
            Some(true) => Ok(Status::SUCCESS),
            Some(false) => Err(Status::WAIT_TIMEOUT),
            None => Err(Status::INVALID_HANDLE),
        })
    }

    "hsaKmtWaitOnEvent" => unsafe fn wait_on_event(event: *mut Event, milliseconds: u32) -> Status {
        // SAFETY: the event is the caller's.
        status(|| Ok(table::wait(&[unsafe { id(event)? }], true, milliseconds)))
    }

    "hsaKmtWaitOnMultipleEvents" => unsafe fn wait_on_multiple_events(
        events: *const *mut Event,
        count: u32,
        all: bool,
        milliseconds: u32,
    ) -> Status {
        status(|| {
            // SAFETY: the list and the events in it are the caller's.
            let ids: Vec<u32> = unsafe {
                list(events, u64::from(count))?.iter().map(|event| id(*event)).collect::<Result<_, _>>()?
            };
            Ok(table::wait(&ids, all, milliseconds))
        })
    }
}
