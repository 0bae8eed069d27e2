// Made by `cargo xtask bindings` from the headers of the HSA runtime of ROCm 5.2. Not to be edited.

use crate::functions;
use core::ffi::*;

pub type hsa_dim3_t = hsa_dim3_s;
pub type hsa_agent_t = hsa_agent_s;
pub type hsa_signal_t = hsa_signal_s;
pub type hsa_signal_value_t = i64;
pub type hsa_amd_memory_pool_t = hsa_amd_memory_pool_s;
pub type hsa_pitched_ptr_t = hsa_pitched_ptr_s;
pub type hsa_amd_pointer_info_t = hsa_amd_pointer_info_s;
pub type hsa_amd_ipc_memory_t = hsa_amd_ipc_memory_s;
pub type hsa_amd_gpu_memory_fault_info_t = hsa_amd_gpu_memory_fault_info_s;
pub type hsa_amd_event_t = hsa_amd_event_s;
pub type hsa_amd_system_event_callback_t = ::core::option::Option<
    unsafe extern "C" fn(event: *const hsa_amd_event_t, data: *mut c_void) -> hsa_status_t,
>;
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct hsa_status_t(pub c_uint);
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, PartialEq, Eq)]
pub struct hsa_dim3_s {
    pub x: u32,
    pub y: u32,
    pub z: u32,
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, PartialEq, Eq)]
pub struct hsa_agent_s {
    pub handle: u64,
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct hsa_device_type_t(pub c_uint);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct hsa_agent_info_t(pub c_uint);
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, PartialEq, Eq)]
pub struct hsa_signal_s {
    pub handle: u64,
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct hsa_signal_condition_t(pub c_uint);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct hsa_wait_state_t(pub c_uint);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct hsa_amd_agent_info_s(pub c_uint);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct hsa_amd_segment_t(pub c_uint);
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, PartialEq, Eq)]
pub struct hsa_amd_memory_pool_s {
    pub handle: u64,
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct hsa_amd_memory_pool_global_flag_s(pub c_uint);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct hsa_amd_memory_pool_info_t(pub c_uint);
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub struct hsa_pitched_ptr_s {
    pub base: *mut c_void,
    pub pitch: usize,
    pub slice: usize,
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct hsa_amd_copy_direction_t(pub c_uint);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct hsa_amd_memory_pool_access_t(pub c_uint);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct hsa_amd_agent_memory_pool_info_t(pub c_uint);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct hsa_amd_pointer_type_t(pub c_uint);
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub struct hsa_amd_pointer_info_s {
    pub size: u32,
    pub type_: hsa_amd_pointer_type_t,
    pub agentBaseAddress: *mut c_void,
    pub hostBaseAddress: *mut c_void,
    pub sizeInBytes: usize,
    pub userData: *mut c_void,
    pub agentOwner: hsa_agent_t,
    pub global_flags: u32,
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, PartialEq, Eq)]
pub struct hsa_amd_ipc_memory_s {
    pub handle: [u32; 8usize],
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct hsa_amd_event_type_s(pub c_uint);
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, PartialEq, Eq)]
pub struct hsa_amd_gpu_memory_fault_info_s {
    pub agent: hsa_agent_t,
    pub virtual_address: u64,
    pub fault_reason_mask: u32,
}
#[repr(C)]
#[derive(Copy, Clone)]
pub struct hsa_amd_event_s {
    pub event_type: hsa_amd_event_type_t,
    pub __bindgen_anon_1: hsa_amd_event_s__bindgen_ty_1,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of hsa_dim3_s"][::core::mem::size_of::<hsa_dim3_s>() - 12usize];
    ["Alignment of hsa_dim3_s"][::core::mem::align_of::<hsa_dim3_s>() - 4usize];
    ["Offset of field: hsa_dim3_s::x"][::core::mem::offset_of!(hsa_dim3_s, x) - 0usize];
    ["Offset of field: hsa_dim3_s::y"][::core::mem::offset_of!(hsa_dim3_s, y) - 4usize];
    ["Offset of field: hsa_dim3_s::z"][::core::mem::offset_of!(hsa_dim3_s, z) - 8usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of hsa_agent_s"][::core::mem::size_of::<hsa_agent_s>() - 8usize];
    ["Alignment of hsa_agent_s"][::core::mem::align_of::<hsa_agent_s>() - 8usize];
    ["Offset of field: hsa_agent_s::handle"][::core::mem::offset_of!(hsa_agent_s, handle) - 0usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of hsa_signal_s"][::core::mem::size_of::<hsa_signal_s>() - 8usize];
    ["Alignment of hsa_signal_s"][::core::mem::align_of::<hsa_signal_s>() - 8usize];
    ["Offset of field: hsa_signal_s::handle"][::core::mem::offset_of!(hsa_signal_s, handle) - 0usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of hsa_amd_memory_pool_s"][::core::mem::size_of::<hsa_amd_memory_pool_s>() - 8usize];
    ["Alignment of hsa_amd_memory_pool_s"][::core::mem::align_of::<hsa_amd_memory_pool_s>() - 8usize];
    ["Offset of field: hsa_amd_memory_pool_s::handle"]
        [::core::mem::offset_of!(hsa_amd_memory_pool_s, handle) - 0usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of hsa_pitched_ptr_s"][::core::mem::size_of::<hsa_pitched_ptr_s>() - 24usize];
    ["Alignment of hsa_pitched_ptr_s"][::core::mem::align_of::<hsa_pitched_ptr_s>() - 8usize];
    ["Offset of field: hsa_pitched_ptr_s::base"][::core::mem::offset_of!(hsa_pitched_ptr_s, base) - 0usize];
    ["Offset of field: hsa_pitched_ptr_s::pitch"][::core::mem::offset_of!(hsa_pitched_ptr_s, pitch) - 8usize];
    ["Offset of field: hsa_pitched_ptr_s::slice"]
        [::core::mem::offset_of!(hsa_pitched_ptr_s, slice) - 16usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of hsa_amd_pointer_info_s"][::core::mem::size_of::<hsa_amd_pointer_info_s>() - 56usize];
    ["Alignment of hsa_amd_pointer_info_s"][::core::mem::align_of::<hsa_amd_pointer_info_s>() - 8usize];
    ["Offset of field: hsa_amd_pointer_info_s::size"]
        [::core::mem::offset_of!(hsa_amd_pointer_info_s, size) - 0usize];
    ["Offset of field: hsa_amd_pointer_info_s::type_"]
        [::core::mem::offset_of!(hsa_amd_pointer_info_s, type_) - 4usize];
    ["Offset of field: hsa_amd_pointer_info_s::agentBaseAddress"]
        [::core::mem::offset_of!(hsa_amd_pointer_info_s, agentBaseAddress) - 8usize];
    ["Offset of field: hsa_amd_pointer_info_s::hostBaseAddress"]
        [::core::mem::offset_of!(hsa_amd_pointer_info_s, hostBaseAddress) - 16usize];
    ["Offset of field: hsa_amd_pointer_info_s::sizeInBytes"]
        [::core::mem::offset_of!(hsa_amd_pointer_info_s, sizeInBytes) - 24usize];
    ["Offset of field: hsa_amd_pointer_info_s::userData"]
        [::core::mem::offset_of!(hsa_amd_pointer_info_s, userData) - 32usize];
    ["Offset of field: hsa_amd_pointer_info_s::agentOwner"]
        [::core::mem::offset_of!(hsa_amd_pointer_info_s, agentOwner) - 40usize];
    ["Offset of field: hsa_amd_pointer_info_s::global_flags"]
        [::core::mem::offset_of!(hsa_amd_pointer_info_s, global_flags) - 48usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of hsa_amd_ipc_memory_s"][::core::mem::size_of::<hsa_amd_ipc_memory_s>() - 32usize];
    ["Alignment of hsa_amd_ipc_memory_s"][::core::mem::align_of::<hsa_amd_ipc_memory_s>() - 4usize];
    ["Offset of field: hsa_amd_ipc_memory_s::handle"]
        [::core::mem::offset_of!(hsa_amd_ipc_memory_s, handle) - 0usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of hsa_amd_gpu_memory_fault_info_s"]
        [::core::mem::size_of::<hsa_amd_gpu_memory_fault_info_s>() - 24usize];
    ["Alignment of hsa_amd_gpu_memory_fault_info_s"]
        [::core::mem::align_of::<hsa_amd_gpu_memory_fault_info_s>() - 8usize];
    ["Offset of field: hsa_amd_gpu_memory_fault_info_s::agent"]
        [::core::mem::offset_of!(hsa_amd_gpu_memory_fault_info_s, agent) - 0usize];
    ["Offset of field: hsa_amd_gpu_memory_fault_info_s::virtual_address"]
        [::core::mem::offset_of!(hsa_amd_gpu_memory_fault_info_s, virtual_address) - 8usize];
    ["Offset of field: hsa_amd_gpu_memory_fault_info_s::fault_reason_mask"]
        [::core::mem::offset_of!(hsa_amd_gpu_memory_fault_info_s, fault_reason_mask) - 16usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of hsa_amd_event_s__bindgen_ty_1"]
        [::core::mem::size_of::<hsa_amd_event_s__bindgen_ty_1>() - 24usize];
    ["Alignment of hsa_amd_event_s__bindgen_ty_1"]
        [::core::mem::align_of::<hsa_amd_event_s__bindgen_ty_1>() - 8usize];
    ["Offset of field: hsa_amd_event_s__bindgen_ty_1::memory_fault"]
        [::core::mem::offset_of!(hsa_amd_event_s__bindgen_ty_1, memory_fault) - 0usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of hsa_amd_event_s"][::core::mem::size_of::<hsa_amd_event_s>() - 32usize];
    ["Alignment of hsa_amd_event_s"][::core::mem::align_of::<hsa_amd_event_s>() - 8usize];
    ["Offset of field: hsa_amd_event_s::event_type"]
        [::core::mem::offset_of!(hsa_amd_event_s, event_type) - 0usize];
};
#[repr(C)]
#[derive(Copy, Clone)]
pub union hsa_amd_event_s__bindgen_ty_1 {
    pub memory_fault: hsa_amd_gpu_memory_fault_info_t,
}
impl hsa_status_t {
    pub const HSA_STATUS_SUCCESS: hsa_status_t = hsa_status_t(0);
    pub const HSA_STATUS_ERROR: hsa_status_t = hsa_status_t(4096);
    pub const HSA_STATUS_ERROR_INVALID_ALLOCATION: hsa_status_t = hsa_status_t(4099);
    pub const HSA_STATUS_ERROR_OUT_OF_RESOURCES: hsa_status_t = hsa_status_t(4104);
    pub const HSA_STATUS_ERROR_EXCEPTION: hsa_status_t = hsa_status_t(4118);
}
impl hsa_device_type_t {
    pub const HSA_DEVICE_TYPE_CPU: hsa_device_type_t = hsa_device_type_t(0);
    pub const HSA_DEVICE_TYPE_GPU: hsa_device_type_t = hsa_device_type_t(1);
    pub const HSA_DEVICE_TYPE_DSP: hsa_device_type_t = hsa_device_type_t(2);
}
impl hsa_agent_info_t {
    pub const HSA_AGENT_INFO_NAME: hsa_agent_info_t = hsa_agent_info_t(0);
    pub const HSA_AGENT_INFO_WAVEFRONT_SIZE: hsa_agent_info_t = hsa_agent_info_t(6);
    pub const HSA_AGENT_INFO_DEVICE: hsa_agent_info_t = hsa_agent_info_t(17);
}
impl hsa_signal_condition_t {
    pub const HSA_SIGNAL_CONDITION_EQ: hsa_signal_condition_t = hsa_signal_condition_t(0);
    pub const HSA_SIGNAL_CONDITION_NE: hsa_signal_condition_t = hsa_signal_condition_t(1);
    pub const HSA_SIGNAL_CONDITION_LT: hsa_signal_condition_t = hsa_signal_condition_t(2);
    pub const HSA_SIGNAL_CONDITION_GTE: hsa_signal_condition_t = hsa_signal_condition_t(3);
}
impl hsa_wait_state_t {
    pub const HSA_WAIT_STATE_BLOCKED: hsa_wait_state_t = hsa_wait_state_t(0);
    pub const HSA_WAIT_STATE_ACTIVE: hsa_wait_state_t = hsa_wait_state_t(1);
}
impl hsa_amd_agent_info_s {
    pub const HSA_AMD_AGENT_INFO_DRIVER_NODE_ID: hsa_amd_agent_info_s = hsa_amd_agent_info_s(40964);
    pub const HSA_AMD_AGENT_INFO_BDFID: hsa_amd_agent_info_s = hsa_amd_agent_info_s(40966);
    pub const HSA_AMD_AGENT_INFO_DOMAIN: hsa_amd_agent_info_s = hsa_amd_agent_info_s(40975);
}
impl hsa_amd_segment_t {
    pub const HSA_AMD_SEGMENT_GLOBAL: hsa_amd_segment_t = hsa_amd_segment_t(0);
    pub const HSA_AMD_SEGMENT_READONLY: hsa_amd_segment_t = hsa_amd_segment_t(1);
    pub const HSA_AMD_SEGMENT_PRIVATE: hsa_amd_segment_t = hsa_amd_segment_t(2);
    pub const HSA_AMD_SEGMENT_GROUP: hsa_amd_segment_t = hsa_amd_segment_t(3);
}
impl hsa_amd_memory_pool_global_flag_s {
    pub const HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT: hsa_amd_memory_pool_global_flag_s =
        hsa_amd_memory_pool_global_flag_s(1);
    pub const HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED: hsa_amd_memory_pool_global_flag_s =
        hsa_amd_memory_pool_global_flag_s(2);
    pub const HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED: hsa_amd_memory_pool_global_flag_s =
        hsa_amd_memory_pool_global_flag_s(4);
}
impl hsa_amd_memory_pool_info_t {
    pub const HSA_AMD_MEMORY_POOL_INFO_SEGMENT: hsa_amd_memory_pool_info_t = hsa_amd_memory_pool_info_t(0);
    pub const HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS: hsa_amd_memory_pool_info_t =
        hsa_amd_memory_pool_info_t(1);
    pub const HSA_AMD_MEMORY_POOL_INFO_SIZE: hsa_amd_memory_pool_info_t = hsa_amd_memory_pool_info_t(2);
    pub const HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED: hsa_amd_memory_pool_info_t =
        hsa_amd_memory_pool_info_t(5);
    pub const HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_GRANULE: hsa_amd_memory_pool_info_t =
        hsa_amd_memory_pool_info_t(6);
    pub const HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALIGNMENT: hsa_amd_memory_pool_info_t =
        hsa_amd_memory_pool_info_t(7);
    pub const HSA_AMD_MEMORY_POOL_INFO_ACCESSIBLE_BY_ALL: hsa_amd_memory_pool_info_t =
        hsa_amd_memory_pool_info_t(15);
    pub const HSA_AMD_MEMORY_POOL_INFO_ALLOC_MAX_SIZE: hsa_amd_memory_pool_info_t =
        hsa_amd_memory_pool_info_t(16);
}
impl Default for hsa_pitched_ptr_s {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
impl hsa_amd_copy_direction_t {
    pub const hsaHostToHost: hsa_amd_copy_direction_t = hsa_amd_copy_direction_t(0);
    pub const hsaHostToDevice: hsa_amd_copy_direction_t = hsa_amd_copy_direction_t(1);
    pub const hsaDeviceToHost: hsa_amd_copy_direction_t = hsa_amd_copy_direction_t(2);
    pub const hsaDeviceToDevice: hsa_amd_copy_direction_t = hsa_amd_copy_direction_t(3);
}
impl hsa_amd_memory_pool_access_t {
    pub const HSA_AMD_MEMORY_POOL_ACCESS_NEVER_ALLOWED: hsa_amd_memory_pool_access_t =
        hsa_amd_memory_pool_access_t(0);
    pub const HSA_AMD_MEMORY_POOL_ACCESS_ALLOWED_BY_DEFAULT: hsa_amd_memory_pool_access_t =
        hsa_amd_memory_pool_access_t(1);
    pub const HSA_AMD_MEMORY_POOL_ACCESS_DISALLOWED_BY_DEFAULT: hsa_amd_memory_pool_access_t =
        hsa_amd_memory_pool_access_t(2);
}
impl hsa_amd_agent_memory_pool_info_t {}
impl hsa_amd_pointer_type_t {}
impl Default for hsa_amd_pointer_info_s {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
impl hsa_amd_event_type_s {
    pub const HSA_AMD_GPU_MEMORY_FAULT_EVENT: hsa_amd_event_type_s = hsa_amd_event_type_s(0);
}
impl Default for hsa_amd_event_s__bindgen_ty_1 {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
impl Default for hsa_amd_event_s {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
pub use self::hsa_amd_agent_info_s as hsa_amd_agent_info_t;
pub use self::hsa_amd_event_type_s as hsa_amd_event_type_t;
pub use self::hsa_amd_memory_pool_global_flag_s as hsa_amd_memory_pool_global_flag_t;
functions! {
    /// The HSA runtime (`libhsa-runtime64`).
    Hsa {
        fn hsa_init() -> hsa_status_t;
        fn hsa_shut_down() -> hsa_status_t;
        fn hsa_agent_get_info(agent: hsa_agent_t, attribute: hsa_agent_info_t, value: *mut c_void) -> hsa_status_t;
        fn hsa_iterate_agents(callback: ::core::option::Option<unsafe extern "C" fn (agent : hsa_agent_t , data : *mut c_void) -> hsa_status_t>, data: *mut c_void) -> hsa_status_t;
        fn hsa_signal_create(initial_value: hsa_signal_value_t, num_consumers: u32, consumers: *const hsa_agent_t, signal: *mut hsa_signal_t) -> hsa_status_t;
        fn hsa_signal_destroy(signal: hsa_signal_t) -> hsa_status_t;
        fn hsa_signal_load_scacquire(signal: hsa_signal_t) -> hsa_signal_value_t;
        fn hsa_signal_store_screlease(signal: hsa_signal_t, value: hsa_signal_value_t) -> ();
        fn hsa_signal_wait_scacquire(signal: hsa_signal_t, condition: hsa_signal_condition_t, compare_value: hsa_signal_value_t, timeout_hint: u64, wait_state_hint: hsa_wait_state_t) -> hsa_signal_value_t;
        fn hsa_memory_copy(dst: *mut c_void, src: *const c_void, size: usize) -> hsa_status_t;
        fn hsa_memory_register(ptr: *mut c_void, size: usize) -> hsa_status_t;
        fn hsa_memory_deregister(ptr: *mut c_void, size: usize) -> hsa_status_t;
        fn hsa_amd_memory_pool_get_info(memory_pool: hsa_amd_memory_pool_t, attribute: hsa_amd_memory_pool_info_t, value: *mut c_void) -> hsa_status_t;
        fn hsa_amd_agent_iterate_memory_pools(agent: hsa_agent_t, callback: ::core::option::Option<unsafe extern "C" fn (memory_pool : hsa_amd_memory_pool_t , data : *mut c_void) -> hsa_status_t>, data: *mut c_void) -> hsa_status_t;
        fn hsa_amd_memory_pool_allocate(memory_pool: hsa_amd_memory_pool_t, size: usize, flags: u32, ptr: *mut *mut c_void) -> hsa_status_t;
        fn hsa_amd_memory_pool_free(ptr: *mut c_void) -> hsa_status_t;
        fn hsa_amd_memory_async_copy(dst: *mut c_void, dst_agent: hsa_agent_t, src: *const c_void, src_agent: hsa_agent_t, size: usize, num_dep_signals: u32, dep_signals: *const hsa_signal_t, completion_signal: hsa_signal_t) -> hsa_status_t;
        fn hsa_amd_memory_async_copy_rect(dst: *const hsa_pitched_ptr_t, dst_offset: *const hsa_dim3_t, src: *const hsa_pitched_ptr_t, src_offset: *const hsa_dim3_t, range: *const hsa_dim3_t, copy_agent: hsa_agent_t, dir: hsa_amd_copy_direction_t, num_dep_signals: u32, dep_signals: *const hsa_signal_t, completion_signal: hsa_signal_t) -> hsa_status_t;
        fn hsa_amd_agent_memory_pool_get_info(agent: hsa_agent_t, memory_pool: hsa_amd_memory_pool_t, attribute: hsa_amd_agent_memory_pool_info_t, value: *mut c_void) -> hsa_status_t;
        fn hsa_amd_agents_allow_access(num_agents: u32, agents: *const hsa_agent_t, flags: *const u32, ptr: *const c_void) -> hsa_status_t;
        fn hsa_amd_memory_lock(host_ptr: *mut c_void, size: usize, agents: *mut hsa_agent_t, num_agent: c_int, agent_ptr: *mut *mut c_void) -> hsa_status_t;
        fn hsa_amd_memory_lock_to_pool(host_ptr: *mut c_void, size: usize, agents: *mut hsa_agent_t, num_agent: c_int, pool: hsa_amd_memory_pool_t, flags: u32, agent_ptr: *mut *mut c_void) -> hsa_status_t;
        fn hsa_amd_memory_unlock(host_ptr: *mut c_void) -> hsa_status_t;
        fn hsa_amd_memory_fill(ptr: *mut c_void, value: u32, count: usize) -> hsa_status_t;
        fn hsa_amd_pointer_info(ptr: *const c_void, info: *mut hsa_amd_pointer_info_t, alloc: ::core::option::Option<unsafe extern "C" fn (arg1 : usize) -> *mut c_void>, num_agents_accessible: *mut u32, accessible: *mut *mut hsa_agent_t) -> hsa_status_t;
        fn hsa_amd_ipc_memory_create(ptr: *mut c_void, len: usize, handle: *mut hsa_amd_ipc_memory_t) -> hsa_status_t;
        fn hsa_amd_ipc_memory_attach(handle: *const hsa_amd_ipc_memory_t, len: usize, num_agents: u32, mapping_agents: *const hsa_agent_t, mapped_ptr: *mut *mut c_void) -> hsa_status_t;
        fn hsa_amd_ipc_memory_detach(mapped_ptr: *mut c_void) -> hsa_status_t;
        fn hsa_amd_register_system_event_handler(callback: hsa_amd_system_event_callback_t, data: *mut c_void) -> hsa_status_t;
    }
}
