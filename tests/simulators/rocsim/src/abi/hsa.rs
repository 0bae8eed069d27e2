//! The structures that a GPU's command processor reads and writes: signals, the queue structure and AQL packets.
#![allow(missing_docs)] // The fields carry AMD's names; AMD's headers describe them.

use std::sync::atomic::AtomicI64;

/// `amd_signal_t`, the memory of an HSA signal handle.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct AmdSignal {
    pub kind: i64,
    pub value: AtomicI64,
    pub event_mailbox_ptr: u64,
    pub event_id: u32,
    pub reserved1: u32,
    pub start_ts: u64,
    pub end_ts: u64,
    pub queue_ptr: u64,
    pub reserved3: [u32; 2],
}

/// `amd_queue_t`, the memory that a queue shares with the command processor.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct AmdQueue {
    pub hsa_queue: [u64; 5],
    pub reserved1: [u32; 4],
    pub write_dispatch_id: u64,
    pub group_segment_aperture_base_hi: u32,
    pub private_segment_aperture_base_hi: u32,
    pub max_cu_id: u32,
    pub max_wave_id: u32,
    pub max_legacy_doorbell_dispatch_id_plus_1: u64,
    pub legacy_doorbell_lock: u32,
    pub reserved2: [u32; 9],
    pub read_dispatch_id: u64,
    pub read_dispatch_id_field_base_byte_offset: u32,
    pub compute_tmpring_size: u32,
    pub scratch_resource_descriptor: [u32; 4],
    pub scratch_backing_memory_location: u64,
    pub scratch_backing_memory_byte_size: u64,
    pub scratch_wave64_lane_byte_size: u32,
    pub queue_properties: u32,
    pub reserved3: [u32; 2],
    pub queue_inactive_signal: u64,
    pub reserved4: [u32; 14],
}

/// Packet types: the low byte of an AQL packet's header.
pub mod packet {
    pub const VENDOR_SPECIFIC: u16 = 0;
    pub const INVALID: u16 = 1;
    pub const KERNEL_DISPATCH: u16 = 2;
    pub const BARRIER_AND: u16 = 3;
    pub const BARRIER_OR: u16 = 5;
}

/// `hsa_kernel_dispatch_packet_t`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct DispatchPacket {
    pub header: u16,
    pub setup: u16,
    pub workgroup_size: [u16; 3],
    pub reserved0: u16,
    pub grid_size: [u32; 3],
    pub private_segment_size: u32,
    pub group_segment_size: u32,
    pub kernel_object: u64,
    pub kernarg_address: u64,
    pub reserved2: u64,
    pub completion_signal: u64,
}

/// `hsa_barrier_and_packet_t` and `hsa_barrier_or_packet_t`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct BarrierPacket {
    pub header: u16,
    pub reserved0: u16,
    pub reserved1: u32,
    pub dep_signal: [u64; 5],
    pub reserved2: u64,
    pub completion_signal: u64,
}

/// `hsa_amd_barrier_value_packet_t`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct BarrierValuePacket {
    pub header: u16,
    pub amd_format: u8,
    pub reserved: u8,
    pub reserved0: u32,
    pub signal: u64,
    pub value: i64,
    pub mask: i64,
    pub cond: u32,
    pub reserved1: u32,
    pub reserved2: u64,
    pub reserved3: u64,
    pub completion_signal: u64,
}

/// Values of [`BarrierValuePacket::amd_format`].
pub mod amd_format {
    /// An indirect buffer of PM4 commands: cache maintenance, nothing that moves data.
    pub const PM4_IB: u8 = 1;
    pub const BARRIER_VALUE: u8 = 2;
}
