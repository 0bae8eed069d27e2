//! Events, by which a GPU's interrupts reach user space.

use crate::{
    abi::{
        Event, EventData, EventDescriptor, EventPayload, FAILURE_NOT_PRESENT, MEMORY_FATAL_PROCESS,
        MemoryAccessFault, PAGE, Status, SyncVar, event_type,
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
    /// How often it was set, by which a waiter that knows the number misses nothing.
    age: u64,
    /// How many wait for it. All of them see it set, and then one that resets itself is not set for who comes later.
    waiters: usize,
}

impl Slot {
    fn set(&mut self) {
        self.signalled = self.manual_reset || self.waiters == 0;
        self.age += 1;
        SIGNALLED.notify_all();
    }
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
    let sync_var = descriptor.sync_var;
    events.insert(descriptor.event_type, sync_var, Some(mailboxes), manual_reset, signalled)
}

/// Makes an event of a type whose memory is the caller's. Returns its number.
pub(crate) fn create_numbered(event_type: u32, manual_reset: bool) -> Result<u32, Status> {
    let nothing = SyncVar { user_data: 0, sync_var_size: 0 };
    let event = EVENTS.lock().insert(event_type, nothing, None, manual_reset, false)?;
    // SAFETY: the event was just made, and its number never changes.
    Ok(unsafe { (&raw const (*event).event_id).read_unaligned() })
}

impl Events {
    fn insert(
        &mut self,
        event_type: u32,
        sync_var: SyncVar,
        mailboxes: Option<u64>,
        manual_reset: bool,
        signalled: bool,
    ) -> Result<*mut Event, Status> {
        // Numbers are not reused at once, so that a late interrupt does not wake the wrong waiter.
        let last = self.last_id;
        let id = (1..MAX_EVENTS)
            .map(|step| 1 + (last + step - 1) % (MAX_EVENTS - 1))
            .find(|id| !self.slots.contains_key(id))
            .ok_or(Status::OUT_OF_RESOURCES)?;
        self.last_id = id;
        let payload = if event_type == event_type::MEMORY {
            let nothing = MemoryAccessFault { node_id: 0, virtual_address: 0, failure: 0, flags: 0 };
            EventPayload { memory_access_fault: nothing }
        } else {
            EventPayload { sync_var }
        };
        let event_data = EventData {
            event_type,
            payload,
            hw_data1: u64::from(id),
            hw_data2: mailboxes.map_or(0, |mailboxes| mailboxes + u64::from(id) * 8),
            hw_data3: id,
        };
        let mut event = Box::new(Event { event_id: id, event_data });
        let address: *mut Event = &mut *event;
        self.slots.insert(id, Slot { event, manual_reset, signalled, age: 1, waiters: 0 });
        stats().events_created.add(1);
        Ok(address)
    }
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
    if signalled {
        slot.set();
    } else {
        slot.signalled = false;
    }
    Status::SUCCESS
}

/// Whether an event is set, or `None` if there is none of that number.
pub(crate) fn is_set(id: u32) -> Option<bool> {
    EVENTS.lock().slots.get(&id).map(|slot| slot.signalled)
}

/// How many wait for an event.
#[cfg(test)]
pub(crate) fn waiters(id: u32) -> usize {
    EVENTS.lock().slots.get(&id).map_or(0, |slot| slot.waiters)
}

/// Whether the waiters of an event may know its age.
pub(crate) fn has_age(id: u32) -> bool {
    EVENTS
        .lock()
        .slots
        .get(&id)
        .is_some_and(|slot| { slot.event.event_data.event_type } == event_type::SIGNAL)
}

/// An event that is waited for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waited {
    pub(crate) id: u32,
    /// The age at which it was seen last, if the waiter knows it: one that is older now is taken as set.
    pub(crate) age: Option<u64>,
    /// After the wait: the fault, if it is an event of memory that was set.
    pub(crate) fault: Option<MemoryAccessFault>,
}

impl Waited {
    pub(crate) fn new(id: u32, age: Option<u64>) -> Self {
        Self { id, age, fault: None }
    }
}

/// An event of one wait.
struct Waiter<'a> {
    waited: &'a mut Waited,
    /// The age of the event when it was looked at last.
    seen: u64,
    is_set: bool,
}

impl<'a> Waiter<'a> {
    /// Takes an event that is set, and resets what resets itself; otherwise joins those that wait for it.
    fn new(waited: &'a mut Waited, slot: &mut Slot) -> Self {
        let is_set = slot.signalled || waited.age.is_some_and(|age| age != slot.age);
        slot.signalled &= slot.manual_reset;
        slot.waiters += 1;
        Self { waited, seen: slot.age, is_set }
    }

    fn look(&mut self, slot: &Slot) -> bool {
        self.is_set |= slot.age != self.seen;
        self.seen = slot.age;
        self.is_set
    }

    /// Leaves those that wait, and tells what is asked for. A wait that has failed gives back what it took.
    fn end(self, slot: &mut Slot, status: Status) {
        // The number may be another event's by now.
        slot.waiters = slot.waiters.saturating_sub(1);
        if !self.is_set {
            return;
        }
        if status != Status::SUCCESS {
            if !slot.manual_reset {
                slot.set();
            }
            return;
        }
        self.waited.age = self.waited.age.map(|_| self.seen);
        if slot.event.event_data.event_type == event_type::MEMORY {
            // SAFETY: the payload of such an event is this one, from its beginning on.
            self.waited.fault = Some(unsafe { slot.event.event_data.payload.memory_access_fault });
        }
    }
}

/// Waits until one or all of the events are set, or for that many milliseconds; `u32::MAX` is for ever.
pub(crate) fn wait(ids: &[u32], all: bool, milliseconds: u32) -> Status {
    let mut waited: Vec<Waited> = ids.iter().map(|id| Waited::new(*id, None)).collect();
    wait_for(&mut waited, all, milliseconds)
}

/// As [`wait`], and says of each event that was set what is known of it.
pub(crate) fn wait_for(waited: &mut [Waited], all: bool, milliseconds: u32) -> Status {
    let deadline =
        (milliseconds != u32::MAX).then(|| Instant::now() + Duration::from_millis(u64::from(milliseconds)));
    let mut events = EVENTS.lock();
    if waited.iter().any(|waited| !events.slots.contains_key(&waited.id)) {
        return Status::INVALID_HANDLE;
    }
    let mut waiters = Vec::new();
    for waited in waited {
        // It was looked for above, under this lock.
        let Some(slot) = events.slots.get_mut(&waited.id) else { continue };
        waiters.push(Waiter::new(waited, slot));
    }
    let status = loop {
        let set = waiters.iter_mut().try_fold(0, |set, waiter| {
            let slot = events.slots.get(&waiter.waited.id)?;
            Some(set + usize::from(waiter.look(slot)))
        });
        match set {
            None => break Status::INVALID_HANDLE,
            Some(set) if set > 0 && (!all || set == waiters.len()) => break Status::SUCCESS,
            Some(_) => {}
        }
        match deadline {
            None => SIGNALLED.wait(&mut events),
            Some(deadline) if SIGNALLED.wait_until(&mut events, deadline).timed_out() => {
                break Status::WAIT_TIMEOUT;
            }
            Some(_) => {}
        }
    };
    for waiter in waiters {
        if let Some(slot) = events.slots.get_mut(&waiter.waited.id) {
            waiter.end(slot, status);
        }
    }
    status
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
            slot.set();
        }
    }
}
