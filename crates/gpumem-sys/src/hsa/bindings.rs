// Made by `cargo xtask bindings` from the headers of the HSA runtime of ROCm 5.2. Not to be edited.

#![allow(
    missing_docs,
    missing_debug_implementations,
    non_camel_case_types,
    non_upper_case_globals,
    non_snake_case,
    unused_imports,
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    clippy::missing_safety_doc,
    reason = "generated, in the names of the library"
)]

use crate::functions;
use core::ffi::*;

pub type hsa_agent_t = hsa_agent_s;
pub type hsa_amd_memory_pool_t = hsa_amd_memory_pool_s;
pub type hsa_amd_pointer_info_t = hsa_amd_pointer_info_s;
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct hsa_status_t(pub c_uint);
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
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of hsa_agent_s"][::core::mem::size_of::<hsa_agent_s>() - 8usize];
    ["Alignment of hsa_agent_s"][::core::mem::align_of::<hsa_agent_s>() - 8usize];
    ["Offset of field: hsa_agent_s::handle"][::core::mem::offset_of!(hsa_agent_s, handle) - 0usize];
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
pub use self::hsa_amd_agent_info_s as hsa_amd_agent_info_t;
pub use self::hsa_amd_memory_pool_global_flag_s as hsa_amd_memory_pool_global_flag_t;
functions! {
    /// The HSA runtime (`libhsa-runtime64`).
    Hsa {
        fn hsa_init() -> hsa_status_t;
        fn hsa_agent_get_info(agent: hsa_agent_t, attribute: hsa_agent_info_t, value: *mut c_void) -> hsa_status_t;
        fn hsa_iterate_agents(callback: ::core::option::Option<unsafe extern "C" fn (agent : hsa_agent_t , data : *mut c_void) -> hsa_status_t>, data: *mut c_void) -> hsa_status_t;
        fn hsa_memory_register(ptr: *mut c_void, size: usize) -> hsa_status_t;
        fn hsa_memory_deregister(ptr: *mut c_void, size: usize) -> hsa_status_t;
        fn hsa_amd_memory_pool_get_info(memory_pool: hsa_amd_memory_pool_t, attribute: hsa_amd_memory_pool_info_t, value: *mut c_void) -> hsa_status_t;
        fn hsa_amd_agent_iterate_memory_pools(agent: hsa_agent_t, callback: ::core::option::Option<unsafe extern "C" fn (memory_pool : hsa_amd_memory_pool_t , data : *mut c_void) -> hsa_status_t>, data: *mut c_void) -> hsa_status_t;
        fn hsa_amd_memory_pool_allocate(memory_pool: hsa_amd_memory_pool_t, size: usize, flags: u32, ptr: *mut *mut c_void) -> hsa_status_t;
        fn hsa_amd_memory_pool_free(ptr: *mut c_void) -> hsa_status_t;
        fn hsa_amd_agents_allow_access(num_agents: u32, agents: *const hsa_agent_t, flags: *const u32, ptr: *const c_void) -> hsa_status_t;
        fn hsa_amd_memory_lock(host_ptr: *mut c_void, size: usize, agents: *mut hsa_agent_t, num_agent: c_int, agent_ptr: *mut *mut c_void) -> hsa_status_t;
        fn hsa_amd_memory_lock_to_pool(host_ptr: *mut c_void, size: usize, agents: *mut hsa_agent_t, num_agent: c_int, pool: hsa_amd_memory_pool_t, flags: u32, agent_ptr: *mut *mut c_void) -> hsa_status_t;
        fn hsa_amd_memory_unlock(host_ptr: *mut c_void) -> hsa_status_t;
        fn hsa_amd_pointer_info(ptr: *const c_void, info: *mut hsa_amd_pointer_info_t, alloc: ::core::option::Option<unsafe extern "C" fn (arg1 : usize) -> *mut c_void>, num_agents_accessible: *mut u32, accessible: *mut *mut hsa_agent_t) -> hsa_status_t;
    }
}
