//! The kernel driver's interface: the arguments of `ioctl` on `/dev/kfd`, as of `linux/kfd_ioctl.h` 1.17.
#![allow(missing_docs)] // The fields carry the header's names; the header describes them.

/// The letter of the driver's requests.
pub const KFD_IOCTL_TYPE: u8 = b'K';

/// The version of the interface.
pub const KFD_VERSION: (u32, u32) = (1, 17);

/// Numbers of requests.
pub mod kfd_request {
    pub const GET_VERSION: u8 = 0x01;
    pub const CREATE_QUEUE: u8 = 0x02;
    pub const DESTROY_QUEUE: u8 = 0x03;
    pub const SET_MEMORY_POLICY: u8 = 0x04;
    pub const GET_CLOCK_COUNTERS: u8 = 0x05;
    pub const UPDATE_QUEUE: u8 = 0x07;
    pub const CREATE_EVENT: u8 = 0x08;
    pub const DESTROY_EVENT: u8 = 0x09;
    pub const SET_EVENT: u8 = 0x0a;
    pub const RESET_EVENT: u8 = 0x0b;
    pub const WAIT_EVENTS: u8 = 0x0c;
    pub const SET_SCRATCH_BACKING_VA: u8 = 0x11;
    pub const GET_TILE_CONFIG: u8 = 0x12;
    pub const SET_TRAP_HANDLER: u8 = 0x13;
    pub const GET_PROCESS_APERTURES_NEW: u8 = 0x14;
    pub const ACQUIRE_VM: u8 = 0x15;
    pub const ALLOC_MEMORY_OF_GPU: u8 = 0x16;
    pub const FREE_MEMORY_OF_GPU: u8 = 0x17;
    pub const MAP_MEMORY_TO_GPU: u8 = 0x18;
    pub const UNMAP_MEMORY_FROM_GPU: u8 = 0x19;
    pub const SET_CU_MASK: u8 = 0x1a;
    pub const GET_DMABUF_INFO: u8 = 0x1c;
    pub const IMPORT_DMABUF: u8 = 0x1d;
    pub const SVM: u8 = 0x20;
    pub const SET_XNACK_MODE: u8 = 0x21;
    pub const AVAILABLE_MEMORY: u8 = 0x23;
    pub const EXPORT_DMABUF: u8 = 0x24;
    pub const RUNTIME_ENABLE: u8 = 0x25;
    // Of AMD's own driver, which the one in Linux lacks.
    pub const IPC_IMPORT_HANDLE: u8 = 0x80;
    pub const IPC_EXPORT_HANDLE: u8 = 0x81;
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct KfdGetVersion {
    pub major_version: u32,
    pub minor_version: u32,
}

/// Values of [`KfdCreateQueue::queue_type`].
pub mod kfd_queue {
    pub const SDMA: u32 = 1;
    pub const COMPUTE_AQL: u32 = 2;
    pub const SDMA_XGMI: u32 = 3;
    pub const SDMA_BY_ENGINE: u32 = 4;
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct KfdCreateQueue {
    pub ring_base_address: u64,
    pub write_pointer_address: u64,
    pub read_pointer_address: u64,
    pub doorbell_offset: u64,
    pub ring_size: u32,
    pub gpu_id: u32,
    pub queue_type: u32,
    pub queue_percentage: u32,
    pub queue_priority: u32,
    pub queue_id: u32,
    pub eop_buffer_address: u64,
    pub eop_buffer_size: u64,
    pub ctx_save_restore_address: u64,
    pub ctx_save_restore_size: u32,
    pub ctl_stack_size: u32,
}

/// `kfd_context_save_area_header`: in front of the memory for the state of a queue's waves.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct KfdSaveAreaHeader {
    pub wave_state: [u32; 4],
    pub debug_offset: u32,
    pub debug_size: u32,
    pub err_payload_addr: u64,
    pub err_event_id: u32,
    pub reserved1: u32,
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct KfdDestroyQueue {
    pub queue_id: u32,
    pub pad: u32,
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct KfdUpdateQueue {
    pub ring_base_address: u64,
    pub queue_id: u32,
    pub ring_size: u32,
    pub queue_percentage: u32,
    pub queue_priority: u32,
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct KfdGetClockCounters {
    pub gpu_clock_counter: u64,
    pub cpu_clock_counter: u64,
    pub system_clock_counter: u64,
    pub system_clock_freq: u64,
    pub gpu_id: u32,
    pub pad: u32,
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct KfdProcessDeviceApertures {
    pub lds_base: u64,
    pub lds_limit: u64,
    pub scratch_base: u64,
    pub scratch_limit: u64,
    pub gpuvm_base: u64,
    pub gpuvm_limit: u64,
    pub gpu_id: u32,
    pub pad: u32,
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct KfdGetProcessAperturesNew {
    pub kfd_process_device_apertures_ptr: u64,
    pub num_of_nodes: u32,
    pub pad: u32,
}

/// Values of [`KfdCreateEvent::event_type`].
pub mod kfd_event {
    pub const HW_EXCEPTION: u32 = 3;
    pub const MEMORY: u32 = 8;
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct KfdCreateEvent {
    pub event_page_offset: u64,
    pub event_trigger_data: u32,
    pub event_type: u32,
    pub auto_reset: u32,
    pub node_id: u32,
    pub event_id: u32,
    pub event_slot_index: u32,
}

/// The arguments of destroying, setting and resetting an event.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct KfdEvent {
    pub event_id: u32,
    pub pad: u32,
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct KfdMemoryException {
    pub not_present: u32,
    pub read_only: u32,
    pub no_execute: u32,
    pub imprecise: u32,
    pub va: u64,
    pub gpu_id: u32,
    pub error_type: u32,
}

/// The payload is a memory exception, or begins with the age of a signal's event.
#[derive(Clone, Copy)]
#[repr(C)]
pub union KfdEventPayload {
    pub memory_exception: KfdMemoryException,
    pub last_event_age: u64,
}

impl std::fmt::Debug for KfdEventPayload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KfdEventPayload")
    }
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct KfdEventData {
    pub payload: KfdEventPayload,
    pub kfd_event_data_ext: u64,
    pub event_id: u32,
    pub pad: u32,
}

/// Values of [`KfdWaitEvents::wait_result`].
pub mod kfd_wait {
    pub const COMPLETE: u32 = 0;
    pub const TIMEOUT: u32 = 1;
    pub const FAIL: u32 = 2;
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct KfdWaitEvents {
    pub events_ptr: u64,
    pub num_events: u32,
    pub wait_for_all: u32,
    pub timeout: u32,
    pub wait_result: u32,
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct KfdGetTileConfig {
    pub tile_config_ptr: u64,
    pub macro_tile_config_ptr: u64,
    pub num_tile_configs: u32,
    pub num_macro_tile_configs: u32,
    pub gpu_id: u32,
    pub gb_addr_config: u32,
    pub num_banks: u32,
    pub num_ranks: u32,
}

/// Bits of [`KfdAllocMemoryOfGpu::flags`].
pub mod kfd_memory {
    pub const VRAM: u32 = 1;
    pub const GTT: u32 = 1 << 1;
    pub const USERPTR: u32 = 1 << 2;
    pub const DOORBELL: u32 = 1 << 3;
    pub const MMIO_REMAP: u32 = 1 << 4;
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct KfdAllocMemoryOfGpu {
    pub va_addr: u64,
    pub size: u64,
    pub handle: u64,
    pub mmap_offset: u64,
    pub gpu_id: u32,
    pub flags: u32,
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct KfdFreeMemoryOfGpu {
    pub handle: u64,
}

/// The arguments of mapping and unmapping.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct KfdMapMemoryToGpu {
    pub handle: u64,
    pub device_ids_array_ptr: u64,
    pub n_devices: u32,
    pub n_success: u32,
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct KfdGetDmabufInfo {
    pub size: u64,
    pub metadata_ptr: u64,
    pub metadata_size: u32,
    pub gpu_id: u32,
    pub flags: u32,
    pub dmabuf_fd: u32,
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct KfdImportDmabuf {
    pub va_addr: u64,
    pub handle: u64,
    pub gpu_id: u32,
    pub dmabuf_fd: u32,
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct KfdExportDmabuf {
    pub handle: u64,
    pub flags: u32,
    pub dmabuf_fd: u32,
}

/// The fixed part; `nattr` attributes follow, as [`SvmAttribute`](super::SvmAttribute) has them.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct KfdSvm {
    pub start_addr: u64,
    pub size: u64,
    pub op: u32,
    pub nattr: u32,
}

/// [`KfdSvm::op`] of a query.
pub const KFD_SVM_GET_ATTR: u32 = 1;

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct KfdSetXnackMode {
    pub xnack_enabled: i32,
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct KfdAvailableMemory {
    pub available: u64,
    pub gpu_id: u32,
    pub pad: u32,
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct KfdIpcExportHandle {
    pub handle: u64,
    pub share_handle: [u32; 4],
    pub gpu_id: u32,
    pub flags: u32,
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct KfdIpcImportHandle {
    pub handle: u64,
    pub va_addr: u64,
    pub mmap_offset: u64,
    pub share_handle: [u32; 4],
    pub gpu_id: u32,
    pub flags: u32,
}
