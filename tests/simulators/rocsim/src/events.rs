//! Events, by which a GPU's interrupts reach user space.

use crate::{
    abi::{
        Event, EventData, EventDescriptor, EventPayload, FAILURE_NOT_PRESENT, MEMORY_FATAL_PROCESS,
        MemoryAccessFault, PAGE, Status, event_type,
    },
    memory::{self, Fault},
    stats::stats,
};
use parking_lot::{Condvar, Mutex};
use std::{
    collections::HashMap,
    sync::LazyLock,
    time::{Duration, Instant},
};

/// The driver's limit for one process.
const MAX_EVENTS: u32 = 4096;

struct Slot {
    /// The memory that the runtime reads; it stays at its address until the event is destroyed.
    event: Box<Event>,
    manual_reset: bool,
    signalled: bool,
}

#[derive(Default)]
struct Events {
    slots: HashMap<u32, Slot>,
    last_id: u32,
    /// The page into which GPUs write the number of the event before they interrupt.
    mailboxes: Option<u64>,
}

static EVENTS: LazyLock<Mutex<Events>> = LazyLock::new(Mutex::default);
static SIGNALLED: Condvar = Condvar::new();

/// Makes an event. The result stays valid until [`destroy`].
pub(crate) fn create(
    descriptor: &EventDescriptor,
    manual_reset: bool,
    signalled: bool,
) -> Result<*mut Event, Status> {
    let mut events = EVENTS.lock();
    let mailboxes = match events.mailboxes {
        Some(page) => page,
        None => {
            let bytes = (u64::from(MAX_EVENTS) * 8).next_multiple_of(PAGE);
            *events.mailboxes.insert(memory::allocate_internal(bytes)?)
        }
    };
    // Numbers are not reused at once, so that a late interrupt does not wake the wrong waiter.
    let last = events.last_id;
    let id = (1..MAX_EVENTS)
        .map(|step| 1 + (last + step - 1) % (MAX_EVENTS - 1))
        .find(|id| !events.slots.contains_key(id))
        .ok_or(Status::OUT_OF_RESOURCES)?;
    events.last_id = id;
    let payload = if descriptor.event_type == event_type::MEMORY {
        EventPayload {
            memory_access_fault: MemoryAccessFault { node_id: 0, virtual_address: 0, failure: 0, flags: 0 },
        }
    } else {
        EventPayload { sync_var: descriptor.sync_var }
    };
    let event_data = EventData {
        event_type: descriptor.event_type,
        payload,
        hw_data1: u64::from(id),
        hw_data2: mailboxes + u64::from(id) * 8,
        hw_data3: id,
    };
    let mut event = Box::new(Event { event_id: id, event_data });
    let address: *mut Event = &mut *event;
    events.slots.insert(id, Slot { event, manual_reset, signalled });
    stats().events_created.add(1);
    Ok(address)
}

/// Destroys an event. Its waiters are told so.
pub(crate) fn destroy(id: u32) -> Status {
    let removed = EVENTS.lock().slots.remove(&id);
    SIGNALLED.notify_all();
    if removed.is_some() { Status::SUCCESS } else { Status::INVALID_HANDLE }
}

/// Sets or clears an event.
pub(crate) fn set(id: u32, signalled: bool) -> Status {
    let mut events = EVENTS.lock();
    let Some(slot) = events.slots.get_mut(&id) else { return Status::INVALID_HANDLE };
    slot.signalled = signalled;
    if signalled {
        SIGNALLED.notify_all();
    }
    Status::SUCCESS
}

/// Whether an event is set, or `None` if there is none of that number.
pub(crate) fn is_set(id: u32) -> Option<bool> {
    EVENTS.lock().slots.get(&id).map(|slot| slot.signalled)
}

/// Waits until one or all of the events are set, or for that many milliseconds; `u32::MAX` is for ever.
pub(crate) fn wait(ids: &[u32], all: bool, milliseconds: u32) -> Status {
    let deadline =
        (milliseconds != u32::MAX).then(|| Instant::now() + Duration::from_millis(u64::from(milliseconds)));
    let mut events = EVENTS.lock();
    loop {
        let mut set = 0;
        for id in ids {
            match events.slots.get(id) {
                Some(slot) => set += usize::from(slot.signalled),
                None => return Status::INVALID_HANDLE,
            }
        }
        if set > 0 && (!all || set == ids.len()) {
            for id in ids {
                if let Some(slot) = events.slots.get_mut(id) {
                    slot.signalled &= slot.manual_reset;
                }
            }
            return Status::SUCCESS;
        }
        match deadline {
            None => SIGNALLED.wait(&mut events),
            Some(deadline) if SIGNALLED.wait_until(&mut events, deadline).timed_out() => {
                return Status::WAIT_TIMEOUT;
            }
            Some(_) => {}
        }
    }
}

/// Raises the memory events that the runtime listens to, which makes it report the fault.
pub(crate) fn raise_memory_fault(fault: &Fault) {
    let mut events = EVENTS.lock();
    for slot in events.slots.values_mut() {
        if slot.event.event_data.event_type == event_type::MEMORY {
            slot.event.event_data.payload.memory_access_fault = MemoryAccessFault {
                node_id: fault.node,
                virtual_address: fault.address & !(PAGE - 1),
                failure: FAILURE_NOT_PRESENT,
                flags: MEMORY_FATAL_PROCESS,
            };
            slot.signalled = true;
        }
    }
    SIGNALLED.notify_all();
}
