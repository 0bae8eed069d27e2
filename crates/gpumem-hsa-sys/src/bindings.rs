// Made by `cargo xtask bindings` from the headers of the HSA runtime of ROCm 5.2. Not to be edited.

use crate::functions;
use core::ffi::*;

pub type hsa_dim3_t = hsa_dim3_s;
pub type hsa_agent_t = hsa_agent_s;
pub type hsa_signal_t = hsa_signal_s;
pub type hsa_signal_value_t = i64;
pub type hsa_region_t = hsa_region_s;
pub type hsa_isa_t = hsa_isa_s;
pub type hsa_wavefront_t = hsa_wavefront_s;
pub type hsa_amd_memory_pool_t = hsa_amd_memory_pool_s;
pub type hsa_pitched_ptr_t = hsa_pitched_ptr_s;
pub type hsa_amd_memory_pool_link_info_t = hsa_amd_memory_pool_link_info_s;
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
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct hsa_access_permission_t(pub c_uint);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct hsa_system_info_t(pub c_uint);
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
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, PartialEq, Eq)]
pub struct hsa_region_s {
    pub handle: u64,
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct hsa_region_segment_t(pub c_uint);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct hsa_region_global_flag_t(pub c_uint);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct hsa_region_info_t(pub c_uint);
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, PartialEq, Eq)]
pub struct hsa_isa_s {
    pub handle: u64,
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct hsa_isa_info_t(pub c_uint);
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, PartialEq, Eq)]
pub struct hsa_wavefront_s {
    pub handle: u64,
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct hsa_wavefront_info_t(pub c_uint);
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
pub struct hsa_amd_link_info_type_t(pub c_uint);
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub struct hsa_amd_memory_pool_link_info_s {
    pub min_latency: u32,
    pub max_latency: u32,
    pub min_bandwidth: u32,
    pub max_bandwidth: u32,
    pub atomic_support_32bit: bool,
    pub atomic_support_64bit: bool,
    pub coherent_support: bool,
    pub link_type: hsa_amd_link_info_type_t,
    pub numa_distance: u32,
}
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
    ["Size of hsa_region_s"][::core::mem::size_of::<hsa_region_s>() - 8usize];
    ["Alignment of hsa_region_s"][::core::mem::align_of::<hsa_region_s>() - 8usize];
    ["Offset of field: hsa_region_s::handle"][::core::mem::offset_of!(hsa_region_s, handle) - 0usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of hsa_isa_s"][::core::mem::size_of::<hsa_isa_s>() - 8usize];
    ["Alignment of hsa_isa_s"][::core::mem::align_of::<hsa_isa_s>() - 8usize];
    ["Offset of field: hsa_isa_s::handle"][::core::mem::offset_of!(hsa_isa_s, handle) - 0usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of hsa_wavefront_s"][::core::mem::size_of::<hsa_wavefront_s>() - 8usize];
    ["Alignment of hsa_wavefront_s"][::core::mem::align_of::<hsa_wavefront_s>() - 8usize];
    ["Offset of field: hsa_wavefront_s::handle"][::core::mem::offset_of!(hsa_wavefront_s, handle) - 0usize];
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
    ["Size of hsa_amd_memory_pool_link_info_s"]
        [::core::mem::size_of::<hsa_amd_memory_pool_link_info_s>() - 28usize];
    ["Alignment of hsa_amd_memory_pool_link_info_s"]
        [::core::mem::align_of::<hsa_amd_memory_pool_link_info_s>() - 4usize];
    ["Offset of field: hsa_amd_memory_pool_link_info_s::min_latency"]
        [::core::mem::offset_of!(hsa_amd_memory_pool_link_info_s, min_latency) - 0usize];
    ["Offset of field: hsa_amd_memory_pool_link_info_s::max_latency"]
        [::core::mem::offset_of!(hsa_amd_memory_pool_link_info_s, max_latency) - 4usize];
    ["Offset of field: hsa_amd_memory_pool_link_info_s::min_bandwidth"]
        [::core::mem::offset_of!(hsa_amd_memory_pool_link_info_s, min_bandwidth) - 8usize];
    ["Offset of field: hsa_amd_memory_pool_link_info_s::max_bandwidth"]
        [::core::mem::offset_of!(hsa_amd_memory_pool_link_info_s, max_bandwidth) - 12usize];
    ["Offset of field: hsa_amd_memory_pool_link_info_s::atomic_support_32bit"]
        [::core::mem::offset_of!(hsa_amd_memory_pool_link_info_s, atomic_support_32bit) - 16usize];
    ["Offset of field: hsa_amd_memory_pool_link_info_s::atomic_support_64bit"]
        [::core::mem::offset_of!(hsa_amd_memory_pool_link_info_s, atomic_support_64bit) - 17usize];
    ["Offset of field: hsa_amd_memory_pool_link_info_s::coherent_support"]
        [::core::mem::offset_of!(hsa_amd_memory_pool_link_info_s, coherent_support) - 18usize];
    ["Offset of field: hsa_amd_memory_pool_link_info_s::link_type"]
        [::core::mem::offset_of!(hsa_amd_memory_pool_link_info_s, link_type) - 20usize];
    ["Offset of field: hsa_amd_memory_pool_link_info_s::numa_distance"]
        [::core::mem::offset_of!(hsa_amd_memory_pool_link_info_s, numa_distance) - 24usize];
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
    pub const HSA_STATUS_INFO_BREAK: hsa_status_t = hsa_status_t(1);
    pub const HSA_STATUS_ERROR: hsa_status_t = hsa_status_t(4096);
    pub const HSA_STATUS_ERROR_INVALID_ARGUMENT: hsa_status_t = hsa_status_t(4097);
    pub const HSA_STATUS_ERROR_INVALID_QUEUE_CREATION: hsa_status_t = hsa_status_t(4098);
    pub const HSA_STATUS_ERROR_INVALID_ALLOCATION: hsa_status_t = hsa_status_t(4099);
    pub const HSA_STATUS_ERROR_INVALID_AGENT: hsa_status_t = hsa_status_t(4100);
    pub const HSA_STATUS_ERROR_INVALID_REGION: hsa_status_t = hsa_status_t(4101);
    pub const HSA_STATUS_ERROR_INVALID_SIGNAL: hsa_status_t = hsa_status_t(4102);
    pub const HSA_STATUS_ERROR_INVALID_QUEUE: hsa_status_t = hsa_status_t(4103);
    pub const HSA_STATUS_ERROR_OUT_OF_RESOURCES: hsa_status_t = hsa_status_t(4104);
    pub const HSA_STATUS_ERROR_INVALID_PACKET_FORMAT: hsa_status_t = hsa_status_t(4105);
    pub const HSA_STATUS_ERROR_RESOURCE_FREE: hsa_status_t = hsa_status_t(4106);
    pub const HSA_STATUS_ERROR_NOT_INITIALIZED: hsa_status_t = hsa_status_t(4107);
    pub const HSA_STATUS_ERROR_REFCOUNT_OVERFLOW: hsa_status_t = hsa_status_t(4108);
    pub const HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS: hsa_status_t = hsa_status_t(4109);
    pub const HSA_STATUS_ERROR_INVALID_INDEX: hsa_status_t = hsa_status_t(4110);
    pub const HSA_STATUS_ERROR_INVALID_ISA: hsa_status_t = hsa_status_t(4111);
    pub const HSA_STATUS_ERROR_INVALID_ISA_NAME: hsa_status_t = hsa_status_t(4119);
    pub const HSA_STATUS_ERROR_INVALID_CODE_OBJECT: hsa_status_t = hsa_status_t(4112);
    pub const HSA_STATUS_ERROR_INVALID_EXECUTABLE: hsa_status_t = hsa_status_t(4113);
    pub const HSA_STATUS_ERROR_FROZEN_EXECUTABLE: hsa_status_t = hsa_status_t(4114);
    pub const HSA_STATUS_ERROR_INVALID_SYMBOL_NAME: hsa_status_t = hsa_status_t(4115);
    pub const HSA_STATUS_ERROR_VARIABLE_ALREADY_DEFINED: hsa_status_t = hsa_status_t(4116);
    pub const HSA_STATUS_ERROR_VARIABLE_UNDEFINED: hsa_status_t = hsa_status_t(4117);
    pub const HSA_STATUS_ERROR_EXCEPTION: hsa_status_t = hsa_status_t(4118);
    pub const HSA_STATUS_ERROR_INVALID_CODE_SYMBOL: hsa_status_t = hsa_status_t(4120);
    pub const HSA_STATUS_ERROR_INVALID_EXECUTABLE_SYMBOL: hsa_status_t = hsa_status_t(4121);
    pub const HSA_STATUS_ERROR_INVALID_FILE: hsa_status_t = hsa_status_t(4128);
    pub const HSA_STATUS_ERROR_INVALID_CODE_OBJECT_READER: hsa_status_t = hsa_status_t(4129);
    pub const HSA_STATUS_ERROR_INVALID_CACHE: hsa_status_t = hsa_status_t(4130);
    pub const HSA_STATUS_ERROR_INVALID_WAVEFRONT: hsa_status_t = hsa_status_t(4131);
    pub const HSA_STATUS_ERROR_INVALID_SIGNAL_GROUP: hsa_status_t = hsa_status_t(4132);
    pub const HSA_STATUS_ERROR_INVALID_RUNTIME_STATE: hsa_status_t = hsa_status_t(4133);
    pub const HSA_STATUS_ERROR_FATAL: hsa_status_t = hsa_status_t(4134);
}
impl hsa_access_permission_t {
    pub const HSA_ACCESS_PERMISSION_RO: hsa_access_permission_t = hsa_access_permission_t(1);
    pub const HSA_ACCESS_PERMISSION_WO: hsa_access_permission_t = hsa_access_permission_t(2);
    pub const HSA_ACCESS_PERMISSION_RW: hsa_access_permission_t = hsa_access_permission_t(3);
}
impl hsa_system_info_t {
    pub const HSA_SYSTEM_INFO_VERSION_MAJOR: hsa_system_info_t = hsa_system_info_t(0);
    pub const HSA_SYSTEM_INFO_VERSION_MINOR: hsa_system_info_t = hsa_system_info_t(1);
    pub const HSA_SYSTEM_INFO_TIMESTAMP: hsa_system_info_t = hsa_system_info_t(2);
    pub const HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY: hsa_system_info_t = hsa_system_info_t(3);
    pub const HSA_SYSTEM_INFO_SIGNAL_MAX_WAIT: hsa_system_info_t = hsa_system_info_t(4);
    pub const HSA_SYSTEM_INFO_ENDIANNESS: hsa_system_info_t = hsa_system_info_t(5);
    pub const HSA_SYSTEM_INFO_MACHINE_MODEL: hsa_system_info_t = hsa_system_info_t(6);
    pub const HSA_SYSTEM_INFO_EXTENSIONS: hsa_system_info_t = hsa_system_info_t(7);
    pub const HSA_AMD_SYSTEM_INFO_BUILD_VERSION: hsa_system_info_t = hsa_system_info_t(512);
    pub const HSA_AMD_SYSTEM_INFO_SVM_SUPPORTED: hsa_system_info_t = hsa_system_info_t(513);
    pub const HSA_AMD_SYSTEM_INFO_SVM_ACCESSIBLE_BY_DEFAULT: hsa_system_info_t = hsa_system_info_t(514);
}
impl hsa_device_type_t {
    pub const HSA_DEVICE_TYPE_CPU: hsa_device_type_t = hsa_device_type_t(0);
    pub const HSA_DEVICE_TYPE_GPU: hsa_device_type_t = hsa_device_type_t(1);
    pub const HSA_DEVICE_TYPE_DSP: hsa_device_type_t = hsa_device_type_t(2);
}
impl hsa_agent_info_t {
    pub const HSA_AGENT_INFO_NAME: hsa_agent_info_t = hsa_agent_info_t(0);
    pub const HSA_AGENT_INFO_VENDOR_NAME: hsa_agent_info_t = hsa_agent_info_t(1);
    pub const HSA_AGENT_INFO_FEATURE: hsa_agent_info_t = hsa_agent_info_t(2);
    pub const HSA_AGENT_INFO_MACHINE_MODEL: hsa_agent_info_t = hsa_agent_info_t(3);
    pub const HSA_AGENT_INFO_PROFILE: hsa_agent_info_t = hsa_agent_info_t(4);
    pub const HSA_AGENT_INFO_DEFAULT_FLOAT_ROUNDING_MODE: hsa_agent_info_t = hsa_agent_info_t(5);
    pub const HSA_AGENT_INFO_BASE_PROFILE_DEFAULT_FLOAT_ROUNDING_MODES: hsa_agent_info_t =
        hsa_agent_info_t(23);
    pub const HSA_AGENT_INFO_FAST_F16_OPERATION: hsa_agent_info_t = hsa_agent_info_t(24);
    pub const HSA_AGENT_INFO_WAVEFRONT_SIZE: hsa_agent_info_t = hsa_agent_info_t(6);
    pub const HSA_AGENT_INFO_WORKGROUP_MAX_DIM: hsa_agent_info_t = hsa_agent_info_t(7);
    pub const HSA_AGENT_INFO_WORKGROUP_MAX_SIZE: hsa_agent_info_t = hsa_agent_info_t(8);
    pub const HSA_AGENT_INFO_GRID_MAX_DIM: hsa_agent_info_t = hsa_agent_info_t(9);
    pub const HSA_AGENT_INFO_GRID_MAX_SIZE: hsa_agent_info_t = hsa_agent_info_t(10);
    pub const HSA_AGENT_INFO_FBARRIER_MAX_SIZE: hsa_agent_info_t = hsa_agent_info_t(11);
    pub const HSA_AGENT_INFO_QUEUES_MAX: hsa_agent_info_t = hsa_agent_info_t(12);
    pub const HSA_AGENT_INFO_QUEUE_MIN_SIZE: hsa_agent_info_t = hsa_agent_info_t(13);
    pub const HSA_AGENT_INFO_QUEUE_MAX_SIZE: hsa_agent_info_t = hsa_agent_info_t(14);
    pub const HSA_AGENT_INFO_QUEUE_TYPE: hsa_agent_info_t = hsa_agent_info_t(15);
    pub const HSA_AGENT_INFO_NODE: hsa_agent_info_t = hsa_agent_info_t(16);
    pub const HSA_AGENT_INFO_DEVICE: hsa_agent_info_t = hsa_agent_info_t(17);
    pub const HSA_AGENT_INFO_CACHE_SIZE: hsa_agent_info_t = hsa_agent_info_t(18);
    pub const HSA_AGENT_INFO_ISA: hsa_agent_info_t = hsa_agent_info_t(19);
    pub const HSA_AGENT_INFO_EXTENSIONS: hsa_agent_info_t = hsa_agent_info_t(20);
    pub const HSA_AGENT_INFO_VERSION_MAJOR: hsa_agent_info_t = hsa_agent_info_t(21);
    pub const HSA_AGENT_INFO_VERSION_MINOR: hsa_agent_info_t = hsa_agent_info_t(22);
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
impl hsa_region_segment_t {
    pub const HSA_REGION_SEGMENT_GLOBAL: hsa_region_segment_t = hsa_region_segment_t(0);
    pub const HSA_REGION_SEGMENT_READONLY: hsa_region_segment_t = hsa_region_segment_t(1);
    pub const HSA_REGION_SEGMENT_PRIVATE: hsa_region_segment_t = hsa_region_segment_t(2);
    pub const HSA_REGION_SEGMENT_GROUP: hsa_region_segment_t = hsa_region_segment_t(3);
    pub const HSA_REGION_SEGMENT_KERNARG: hsa_region_segment_t = hsa_region_segment_t(4);
}
impl hsa_region_global_flag_t {
    pub const HSA_REGION_GLOBAL_FLAG_KERNARG: hsa_region_global_flag_t = hsa_region_global_flag_t(1);
    pub const HSA_REGION_GLOBAL_FLAG_FINE_GRAINED: hsa_region_global_flag_t = hsa_region_global_flag_t(2);
    pub const HSA_REGION_GLOBAL_FLAG_COARSE_GRAINED: hsa_region_global_flag_t = hsa_region_global_flag_t(4);
}
impl hsa_region_info_t {
    pub const HSA_REGION_INFO_SEGMENT: hsa_region_info_t = hsa_region_info_t(0);
    pub const HSA_REGION_INFO_GLOBAL_FLAGS: hsa_region_info_t = hsa_region_info_t(1);
    pub const HSA_REGION_INFO_SIZE: hsa_region_info_t = hsa_region_info_t(2);
    pub const HSA_REGION_INFO_ALLOC_MAX_SIZE: hsa_region_info_t = hsa_region_info_t(4);
    pub const HSA_REGION_INFO_ALLOC_MAX_PRIVATE_WORKGROUP_SIZE: hsa_region_info_t = hsa_region_info_t(8);
    pub const HSA_REGION_INFO_RUNTIME_ALLOC_ALLOWED: hsa_region_info_t = hsa_region_info_t(5);
    pub const HSA_REGION_INFO_RUNTIME_ALLOC_GRANULE: hsa_region_info_t = hsa_region_info_t(6);
    pub const HSA_REGION_INFO_RUNTIME_ALLOC_ALIGNMENT: hsa_region_info_t = hsa_region_info_t(7);
}
impl hsa_isa_info_t {
    pub const HSA_ISA_INFO_NAME_LENGTH: hsa_isa_info_t = hsa_isa_info_t(0);
    pub const HSA_ISA_INFO_NAME: hsa_isa_info_t = hsa_isa_info_t(1);
    pub const HSA_ISA_INFO_CALL_CONVENTION_COUNT: hsa_isa_info_t = hsa_isa_info_t(2);
    pub const HSA_ISA_INFO_CALL_CONVENTION_INFO_WAVEFRONT_SIZE: hsa_isa_info_t = hsa_isa_info_t(3);
    pub const HSA_ISA_INFO_CALL_CONVENTION_INFO_WAVEFRONTS_PER_COMPUTE_UNIT: hsa_isa_info_t =
        hsa_isa_info_t(4);
    pub const HSA_ISA_INFO_MACHINE_MODELS: hsa_isa_info_t = hsa_isa_info_t(5);
    pub const HSA_ISA_INFO_PROFILES: hsa_isa_info_t = hsa_isa_info_t(6);
    pub const HSA_ISA_INFO_DEFAULT_FLOAT_ROUNDING_MODES: hsa_isa_info_t = hsa_isa_info_t(7);
    pub const HSA_ISA_INFO_BASE_PROFILE_DEFAULT_FLOAT_ROUNDING_MODES: hsa_isa_info_t = hsa_isa_info_t(8);
    pub const HSA_ISA_INFO_FAST_F16_OPERATION: hsa_isa_info_t = hsa_isa_info_t(9);
    pub const HSA_ISA_INFO_WORKGROUP_MAX_DIM: hsa_isa_info_t = hsa_isa_info_t(12);
    pub const HSA_ISA_INFO_WORKGROUP_MAX_SIZE: hsa_isa_info_t = hsa_isa_info_t(13);
    pub const HSA_ISA_INFO_GRID_MAX_DIM: hsa_isa_info_t = hsa_isa_info_t(14);
    pub const HSA_ISA_INFO_GRID_MAX_SIZE: hsa_isa_info_t = hsa_isa_info_t(16);
    pub const HSA_ISA_INFO_FBARRIER_MAX_SIZE: hsa_isa_info_t = hsa_isa_info_t(17);
}
impl hsa_wavefront_info_t {
    pub const HSA_WAVEFRONT_INFO_SIZE: hsa_wavefront_info_t = hsa_wavefront_info_t(0);
}
impl hsa_amd_agent_info_s {
    pub const HSA_AMD_AGENT_INFO_CHIP_ID: hsa_amd_agent_info_s = hsa_amd_agent_info_s(40960);
    pub const HSA_AMD_AGENT_INFO_CACHELINE_SIZE: hsa_amd_agent_info_s = hsa_amd_agent_info_s(40961);
    pub const HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT: hsa_amd_agent_info_s = hsa_amd_agent_info_s(40962);
    pub const HSA_AMD_AGENT_INFO_MAX_CLOCK_FREQUENCY: hsa_amd_agent_info_s = hsa_amd_agent_info_s(40963);
    pub const HSA_AMD_AGENT_INFO_DRIVER_NODE_ID: hsa_amd_agent_info_s = hsa_amd_agent_info_s(40964);
    pub const HSA_AMD_AGENT_INFO_MAX_ADDRESS_WATCH_POINTS: hsa_amd_agent_info_s = hsa_amd_agent_info_s(40965);
    pub const HSA_AMD_AGENT_INFO_BDFID: hsa_amd_agent_info_s = hsa_amd_agent_info_s(40966);
    pub const HSA_AMD_AGENT_INFO_MEMORY_WIDTH: hsa_amd_agent_info_s = hsa_amd_agent_info_s(40967);
    pub const HSA_AMD_AGENT_INFO_MEMORY_MAX_FREQUENCY: hsa_amd_agent_info_s = hsa_amd_agent_info_s(40968);
    pub const HSA_AMD_AGENT_INFO_PRODUCT_NAME: hsa_amd_agent_info_s = hsa_amd_agent_info_s(40969);
    pub const HSA_AMD_AGENT_INFO_MAX_WAVES_PER_CU: hsa_amd_agent_info_s = hsa_amd_agent_info_s(40970);
    pub const HSA_AMD_AGENT_INFO_NUM_SIMDS_PER_CU: hsa_amd_agent_info_s = hsa_amd_agent_info_s(40971);
    pub const HSA_AMD_AGENT_INFO_NUM_SHADER_ENGINES: hsa_amd_agent_info_s = hsa_amd_agent_info_s(40972);
    pub const HSA_AMD_AGENT_INFO_NUM_SHADER_ARRAYS_PER_SE: hsa_amd_agent_info_s = hsa_amd_agent_info_s(40973);
    pub const HSA_AMD_AGENT_INFO_HDP_FLUSH: hsa_amd_agent_info_s = hsa_amd_agent_info_s(40974);
    pub const HSA_AMD_AGENT_INFO_DOMAIN: hsa_amd_agent_info_s = hsa_amd_agent_info_s(40975);
    pub const HSA_AMD_AGENT_INFO_COOPERATIVE_QUEUES: hsa_amd_agent_info_s = hsa_amd_agent_info_s(40976);
    pub const HSA_AMD_AGENT_INFO_UUID: hsa_amd_agent_info_s = hsa_amd_agent_info_s(40977);
    pub const HSA_AMD_AGENT_INFO_ASIC_REVISION: hsa_amd_agent_info_s = hsa_amd_agent_info_s(40978);
    pub const HSA_AMD_AGENT_INFO_SVM_DIRECT_HOST_ACCESS: hsa_amd_agent_info_s = hsa_amd_agent_info_s(40979);
    pub const HSA_AMD_AGENT_INFO_COOPERATIVE_COMPUTE_UNIT_COUNT: hsa_amd_agent_info_s =
        hsa_amd_agent_info_s(40980);
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
impl hsa_amd_link_info_type_t {
    pub const HSA_AMD_LINK_INFO_TYPE_HYPERTRANSPORT: hsa_amd_link_info_type_t = hsa_amd_link_info_type_t(0);
    pub const HSA_AMD_LINK_INFO_TYPE_QPI: hsa_amd_link_info_type_t = hsa_amd_link_info_type_t(1);
    pub const HSA_AMD_LINK_INFO_TYPE_PCIE: hsa_amd_link_info_type_t = hsa_amd_link_info_type_t(2);
    pub const HSA_AMD_LINK_INFO_TYPE_INFINBAND: hsa_amd_link_info_type_t = hsa_amd_link_info_type_t(3);
    pub const HSA_AMD_LINK_INFO_TYPE_XGMI: hsa_amd_link_info_type_t = hsa_amd_link_info_type_t(4);
}
impl Default for hsa_amd_memory_pool_link_info_s {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
impl hsa_amd_agent_memory_pool_info_t {
    pub const HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS: hsa_amd_agent_memory_pool_info_t =
        hsa_amd_agent_memory_pool_info_t(0);
    pub const HSA_AMD_AGENT_MEMORY_POOL_INFO_NUM_LINK_HOPS: hsa_amd_agent_memory_pool_info_t =
        hsa_amd_agent_memory_pool_info_t(1);
    pub const HSA_AMD_AGENT_MEMORY_POOL_INFO_LINK_INFO: hsa_amd_agent_memory_pool_info_t =
        hsa_amd_agent_memory_pool_info_t(2);
}
impl hsa_amd_pointer_type_t {
    pub const HSA_EXT_POINTER_TYPE_UNKNOWN: hsa_amd_pointer_type_t = hsa_amd_pointer_type_t(0);
    pub const HSA_EXT_POINTER_TYPE_HSA: hsa_amd_pointer_type_t = hsa_amd_pointer_type_t(1);
    pub const HSA_EXT_POINTER_TYPE_LOCKED: hsa_amd_pointer_type_t = hsa_amd_pointer_type_t(2);
    pub const HSA_EXT_POINTER_TYPE_GRAPHICS: hsa_amd_pointer_type_t = hsa_amd_pointer_type_t(3);
    pub const HSA_EXT_POINTER_TYPE_IPC: hsa_amd_pointer_type_t = hsa_amd_pointer_type_t(4);
}
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
        fn hsa_status_string(status: hsa_status_t, status_string: *mut *const c_char) -> hsa_status_t;
        fn hsa_init() -> hsa_status_t;
        fn hsa_shut_down() -> hsa_status_t;
        fn hsa_system_get_info(attribute: hsa_system_info_t, value: *mut c_void) -> hsa_status_t;
        fn hsa_agent_get_info(agent: hsa_agent_t, attribute: hsa_agent_info_t, value: *mut c_void) -> hsa_status_t;
        fn hsa_iterate_agents(callback: ::core::option::Option<unsafe extern "C" fn (agent : hsa_agent_t , data : *mut c_void) -> hsa_status_t>, data: *mut c_void) -> hsa_status_t;
        fn hsa_signal_create(initial_value: hsa_signal_value_t, num_consumers: u32, consumers: *const hsa_agent_t, signal: *mut hsa_signal_t) -> hsa_status_t;
        fn hsa_signal_destroy(signal: hsa_signal_t) -> hsa_status_t;
        fn hsa_signal_load_scacquire(signal: hsa_signal_t) -> hsa_signal_value_t;
        fn hsa_signal_load_relaxed(signal: hsa_signal_t) -> hsa_signal_value_t;
        fn hsa_signal_store_relaxed(signal: hsa_signal_t, value: hsa_signal_value_t) -> ();
        fn hsa_signal_store_screlease(signal: hsa_signal_t, value: hsa_signal_value_t) -> ();
        fn hsa_signal_subtract_screlease(signal: hsa_signal_t, value: hsa_signal_value_t) -> ();
        fn hsa_signal_wait_scacquire(signal: hsa_signal_t, condition: hsa_signal_condition_t, compare_value: hsa_signal_value_t, timeout_hint: u64, wait_state_hint: hsa_wait_state_t) -> hsa_signal_value_t;
        fn hsa_signal_wait_relaxed(signal: hsa_signal_t, condition: hsa_signal_condition_t, compare_value: hsa_signal_value_t, timeout_hint: u64, wait_state_hint: hsa_wait_state_t) -> hsa_signal_value_t;
        fn hsa_region_get_info(region: hsa_region_t, attribute: hsa_region_info_t, value: *mut c_void) -> hsa_status_t;
        fn hsa_agent_iterate_regions(agent: hsa_agent_t, callback: ::core::option::Option<unsafe extern "C" fn (region : hsa_region_t , data : *mut c_void) -> hsa_status_t>, data: *mut c_void) -> hsa_status_t;
        fn hsa_memory_allocate(region: hsa_region_t, size: usize, ptr: *mut *mut c_void) -> hsa_status_t;
        fn hsa_memory_free(ptr: *mut c_void) -> hsa_status_t;
        fn hsa_memory_copy(dst: *mut c_void, src: *const c_void, size: usize) -> hsa_status_t;
        fn hsa_memory_assign_agent(ptr: *mut c_void, agent: hsa_agent_t, access: hsa_access_permission_t) -> hsa_status_t;
        fn hsa_memory_register(ptr: *mut c_void, size: usize) -> hsa_status_t;
        fn hsa_memory_deregister(ptr: *mut c_void, size: usize) -> hsa_status_t;
        fn hsa_agent_iterate_isas(agent: hsa_agent_t, callback: ::core::option::Option<unsafe extern "C" fn (isa : hsa_isa_t , data : *mut c_void) -> hsa_status_t>, data: *mut c_void) -> hsa_status_t;
        fn hsa_isa_get_info_alt(isa: hsa_isa_t, attribute: hsa_isa_info_t, value: *mut c_void) -> hsa_status_t;
        fn hsa_wavefront_get_info(wavefront: hsa_wavefront_t, attribute: hsa_wavefront_info_t, value: *mut c_void) -> hsa_status_t;
        fn hsa_isa_iterate_wavefronts(isa: hsa_isa_t, callback: ::core::option::Option<unsafe extern "C" fn (wavefront : hsa_wavefront_t , data : *mut c_void) -> hsa_status_t>, data: *mut c_void) -> hsa_status_t;
        fn hsa_amd_memory_pool_get_info(memory_pool: hsa_amd_memory_pool_t, attribute: hsa_amd_memory_pool_info_t, value: *mut c_void) -> hsa_status_t;
        fn hsa_amd_agent_iterate_memory_pools(agent: hsa_agent_t, callback: ::core::option::Option<unsafe extern "C" fn (memory_pool : hsa_amd_memory_pool_t , data : *mut c_void) -> hsa_status_t>, data: *mut c_void) -> hsa_status_t;
        fn hsa_amd_memory_pool_allocate(memory_pool: hsa_amd_memory_pool_t, size: usize, flags: u32, ptr: *mut *mut c_void) -> hsa_status_t;
        fn hsa_amd_memory_pool_free(ptr: *mut c_void) -> hsa_status_t;
        fn hsa_amd_memory_async_copy(dst: *mut c_void, dst_agent: hsa_agent_t, src: *const c_void, src_agent: hsa_agent_t, size: usize, num_dep_signals: u32, dep_signals: *const hsa_signal_t, completion_signal: hsa_signal_t) -> hsa_status_t;
        fn hsa_amd_memory_async_copy_rect(dst: *const hsa_pitched_ptr_t, dst_offset: *const hsa_dim3_t, src: *const hsa_pitched_ptr_t, src_offset: *const hsa_dim3_t, range: *const hsa_dim3_t, copy_agent: hsa_agent_t, dir: hsa_amd_copy_direction_t, num_dep_signals: u32, dep_signals: *const hsa_signal_t, completion_signal: hsa_signal_t) -> hsa_status_t;
        fn hsa_amd_agent_memory_pool_get_info(agent: hsa_agent_t, memory_pool: hsa_amd_memory_pool_t, attribute: hsa_amd_agent_memory_pool_info_t, value: *mut c_void) -> hsa_status_t;
        fn hsa_amd_agents_allow_access(num_agents: u32, agents: *const hsa_agent_t, flags: *const u32, ptr: *const c_void) -> hsa_status_t;
        fn hsa_amd_memory_pool_can_migrate(src_memory_pool: hsa_amd_memory_pool_t, dst_memory_pool: hsa_amd_memory_pool_t, result: *mut bool) -> hsa_status_t;
        fn hsa_amd_memory_migrate(ptr: *const c_void, memory_pool: hsa_amd_memory_pool_t, flags: u32) -> hsa_status_t;
        fn hsa_amd_memory_lock(host_ptr: *mut c_void, size: usize, agents: *mut hsa_agent_t, num_agent: c_int, agent_ptr: *mut *mut c_void) -> hsa_status_t;
        fn hsa_amd_memory_lock_to_pool(host_ptr: *mut c_void, size: usize, agents: *mut hsa_agent_t, num_agent: c_int, pool: hsa_amd_memory_pool_t, flags: u32, agent_ptr: *mut *mut c_void) -> hsa_status_t;
        fn hsa_amd_memory_unlock(host_ptr: *mut c_void) -> hsa_status_t;
        fn hsa_amd_memory_fill(ptr: *mut c_void, value: u32, count: usize) -> hsa_status_t;
        fn hsa_amd_pointer_info(ptr: *const c_void, info: *mut hsa_amd_pointer_info_t, alloc: ::core::option::Option<unsafe extern "C" fn (arg1 : usize) -> *mut c_void>, num_agents_accessible: *mut u32, accessible: *mut *mut hsa_agent_t) -> hsa_status_t;
        fn hsa_amd_pointer_info_set_userdata(ptr: *const c_void, userdata: *mut c_void) -> hsa_status_t;
        fn hsa_amd_ipc_memory_create(ptr: *mut c_void, len: usize, handle: *mut hsa_amd_ipc_memory_t) -> hsa_status_t;
        fn hsa_amd_ipc_memory_attach(handle: *const hsa_amd_ipc_memory_t, len: usize, num_agents: u32, mapping_agents: *const hsa_agent_t, mapped_ptr: *mut *mut c_void) -> hsa_status_t;
        fn hsa_amd_ipc_memory_detach(mapped_ptr: *mut c_void) -> hsa_status_t;
        fn hsa_amd_register_system_event_handler(callback: hsa_amd_system_event_callback_t, data: *mut c_void) -> hsa_status_t;
    }
}
