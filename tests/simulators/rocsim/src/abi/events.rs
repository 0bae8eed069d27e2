//! Events, by which a GPU's interrupts reach user space.
#![allow(missing_docs)] // The fields carry AMD's names; AMD's header describes them.

/// Values of [`EventData::event_type`].
pub mod event_type {
    pub const SIGNAL: u32 = 0;
    pub const MEMORY: u32 = 8;
}

#[derive(Debug, Clone, Copy)]
#[repr(C, packed(4))]
pub struct SyncVar {
    pub user_data: u64,
    pub sync_var_size: u64,
}

#[derive(Debug, Clone, Copy)]
#[repr(C, packed(4))]
pub struct MemoryAccessFault {
    pub node_id: u32,
    pub virtual_address: u64,
    pub failure: u32,
    pub flags: u32,
}

/// Bit 0 of [`MemoryAccessFault::failure`]: the page is not present.
pub const FAILURE_NOT_PRESENT: u32 = 1;
/// [`MemoryAccessFault::flags`]: the process cannot go on.
pub const MEMORY_FATAL_PROCESS: u32 = 1;

#[derive(Clone, Copy)]
#[repr(C, packed(4))]
pub union EventPayload {
    pub sync_var: SyncVar,
    pub memory_access_fault: MemoryAccessFault,
}

impl std::fmt::Debug for EventPayload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EventPayload")
    }
}

#[derive(Debug, Clone, Copy)]
#[repr(C, packed(4))]
pub struct EventData {
    pub event_type: u32,
    pub payload: EventPayload,
    pub hw_data1: u64,
    pub hw_data2: u64,
    pub hw_data3: u32,
}

#[derive(Debug, Clone, Copy)]
#[repr(C, packed(4))]
pub struct EventDescriptor {
    pub event_type: u32,
    pub node_id: u32,
    pub sync_var: SyncVar,
}

#[derive(Debug, Clone, Copy)]
#[repr(C, packed(4))]
pub struct Event {
    pub event_id: u32,
    pub event_data: EventData,
}
