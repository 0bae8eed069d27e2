// Made by `cargo xtask bindings` from the headers of HIP 5.2. Not to be edited.

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

pub type hipUUID = hipUUID_t;
pub type hipDeviceptr_t = *mut c_void;
pub type hipArray_t = *mut hipArray;
pub type hipDevice_t = c_int;
pub type hipStream_t = *mut ihipStream_t;
pub type hipIpcMemHandle_t = hipIpcMemHandle_st;
pub type hipModule_t = *mut ihipModule_t;
pub type hipFunction_t = *mut ihipModuleSymbol_t;
pub type hipEvent_t = *mut ihipEvent_t;
pub type hipGraph_t = *mut ihipGraph;
pub type hipGraphNode_t = *mut hipGraphNode;
pub type hipGraphExec_t = *mut hipGraphExec;
pub type hiprtcProgram = *mut _hiprtcProgram;
#[repr(C)]
#[repr(align(4))]
#[derive(Debug, Default, Copy, Clone, PartialEq, Eq)]
pub struct hipDeviceArch_t {
    pub _bindgen_opaque_blob: u32,
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, PartialEq, Eq)]
pub struct hipUUID_t {
    pub bytes: [c_char; 16usize],
}
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub struct hipDeviceProp_t {
    pub name: [c_char; 256usize],
    pub totalGlobalMem: usize,
    pub sharedMemPerBlock: usize,
    pub regsPerBlock: c_int,
    pub warpSize: c_int,
    pub maxThreadsPerBlock: c_int,
    pub maxThreadsDim: [c_int; 3usize],
    pub maxGridSize: [c_int; 3usize],
    pub clockRate: c_int,
    pub memoryClockRate: c_int,
    pub memoryBusWidth: c_int,
    pub totalConstMem: usize,
    pub major: c_int,
    pub minor: c_int,
    pub multiProcessorCount: c_int,
    pub l2CacheSize: c_int,
    pub maxThreadsPerMultiProcessor: c_int,
    pub computeMode: c_int,
    pub clockInstructionRate: c_int,
    pub arch: hipDeviceArch_t,
    pub concurrentKernels: c_int,
    pub pciDomainID: c_int,
    pub pciBusID: c_int,
    pub pciDeviceID: c_int,
    pub maxSharedMemoryPerMultiProcessor: usize,
    pub isMultiGpuBoard: c_int,
    pub canMapHostMemory: c_int,
    pub gcnArch: c_int,
    pub gcnArchName: [c_char; 256usize],
    pub integrated: c_int,
    pub cooperativeLaunch: c_int,
    pub cooperativeMultiDeviceLaunch: c_int,
    pub maxTexture1DLinear: c_int,
    pub maxTexture1D: c_int,
    pub maxTexture2D: [c_int; 2usize],
    pub maxTexture3D: [c_int; 3usize],
    pub hdpMemFlushCntl: *mut c_uint,
    pub hdpRegFlushCntl: *mut c_uint,
    pub memPitch: usize,
    pub textureAlignment: usize,
    pub texturePitchAlignment: usize,
    pub kernelExecTimeoutEnabled: c_int,
    pub ECCEnabled: c_int,
    pub tccDriver: c_int,
    pub cooperativeMultiDeviceUnmatchedFunc: c_int,
    pub cooperativeMultiDeviceUnmatchedGridDim: c_int,
    pub cooperativeMultiDeviceUnmatchedBlockDim: c_int,
    pub cooperativeMultiDeviceUnmatchedSharedMem: c_int,
    pub isLargeBar: c_int,
    pub asicRevision: c_int,
    pub managedMemory: c_int,
    pub directManagedMemAccessFromHost: c_int,
    pub concurrentManagedAccess: c_int,
    pub pageableMemoryAccess: c_int,
    pub pageableMemoryAccessUsesHostPageTables: c_int,
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct hipMemoryType(pub c_uint);
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub struct hipPointerAttribute_t {
    pub memoryType: hipMemoryType,
    pub device: c_int,
    pub devicePointer: *mut c_void,
    pub hostPointer: *mut c_void,
    pub isManaged: c_int,
    pub allocationFlags: c_uint,
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct hipError_t(pub c_uint);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct hipDeviceAttribute_t(pub c_uint);
#[repr(C)]
#[repr(align(8))]
#[derive(Debug, Default, Copy, Clone, PartialEq, Eq)]
pub struct hipArray {
    pub _bindgen_opaque_blob: [u64; 8usize],
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct hipMemcpyKind(pub c_uint);
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub struct hipPitchedPtr {
    pub ptr: *mut c_void,
    pub pitch: usize,
    pub xsize: usize,
    pub ysize: usize,
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, PartialEq, Eq)]
pub struct hipExtent {
    pub width: usize,
    pub height: usize,
    pub depth: usize,
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, PartialEq, Eq)]
pub struct hipPos {
    pub x: usize,
    pub y: usize,
    pub z: usize,
}
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub struct hipMemcpy3DParms {
    pub srcArray: hipArray_t,
    pub srcPos: hipPos,
    pub srcPtr: hipPitchedPtr,
    pub dstArray: hipArray_t,
    pub dstPos: hipPos,
    pub dstPtr: hipPitchedPtr,
    pub extent: hipExtent,
    pub kind: hipMemcpyKind,
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct hipFunction_attribute(pub c_uint);
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct ihipStream_t {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub struct hipIpcMemHandle_st {
    pub reserved: [c_char; 64usize],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct ihipModule_t {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct ihipModuleSymbol_t {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct ihipEvent_t {
    _unused: [u8; 0],
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct hipMemoryAdvise(pub c_uint);
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, PartialEq, Eq)]
pub struct dim3 {
    pub x: u32,
    pub y: u32,
    pub z: u32,
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct ihipGraph {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct hipGraphNode {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct hipGraphExec {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub struct hipKernelNodeParams {
    pub blockDim: dim3,
    pub extra: *mut *mut c_void,
    pub func: *mut c_void,
    pub gridDim: dim3,
    pub kernelParams: *mut *mut c_void,
    pub sharedMemBytes: c_uint,
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct hipStreamCaptureMode(pub c_uint);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct hipStreamCaptureStatus(pub c_uint);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct hiprtcResult(pub c_uint);
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct _hiprtcProgram {
    _unused: [u8; 0],
}
pub const hipIpcMemLazyEnablePeerAccess: u32 = 0;
pub const hipStreamDefault: u32 = 0;
pub const hipStreamNonBlocking: u32 = 1;
pub const hipEventBlockingSync: u32 = 1;
pub const hipEventDisableTiming: u32 = 2;
pub const hipEventReleaseToSystem: u32 = 2147483648;
pub const hipHostMallocPortable: u32 = 1;
pub const hipHostMallocMapped: u32 = 2;
pub const hipHostMallocWriteCombined: u32 = 4;
pub const hipHostMallocCoherent: u32 = 1073741824;
pub const hipHostMallocNonCoherent: u32 = 2147483648;
pub const hipMemAttachGlobal: u32 = 1;
pub const hipMemAttachHost: u32 = 2;
pub const hipDeviceMallocFinegrained: u32 = 1;
pub const hipHostRegisterPortable: u32 = 1;
pub const hipHostRegisterMapped: u32 = 2;
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of hipDeviceArch_t"][::core::mem::size_of::<hipDeviceArch_t>() - 4usize];
    ["Alignment of hipDeviceArch_t"][::core::mem::align_of::<hipDeviceArch_t>() - 4usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of hipUUID_t"][::core::mem::size_of::<hipUUID_t>() - 16usize];
    ["Alignment of hipUUID_t"][::core::mem::align_of::<hipUUID_t>() - 1usize];
    ["Offset of field: hipUUID_t::bytes"][::core::mem::offset_of!(hipUUID_t, bytes) - 0usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of hipDeviceProp_t"][::core::mem::size_of::<hipDeviceProp_t>() - 792usize];
    ["Alignment of hipDeviceProp_t"][::core::mem::align_of::<hipDeviceProp_t>() - 8usize];
    ["Offset of field: hipDeviceProp_t::name"][::core::mem::offset_of!(hipDeviceProp_t, name) - 0usize];
    ["Offset of field: hipDeviceProp_t::totalGlobalMem"]
        [::core::mem::offset_of!(hipDeviceProp_t, totalGlobalMem) - 256usize];
    ["Offset of field: hipDeviceProp_t::sharedMemPerBlock"]
        [::core::mem::offset_of!(hipDeviceProp_t, sharedMemPerBlock) - 264usize];
    ["Offset of field: hipDeviceProp_t::regsPerBlock"]
        [::core::mem::offset_of!(hipDeviceProp_t, regsPerBlock) - 272usize];
    ["Offset of field: hipDeviceProp_t::warpSize"]
        [::core::mem::offset_of!(hipDeviceProp_t, warpSize) - 276usize];
    ["Offset of field: hipDeviceProp_t::maxThreadsPerBlock"]
        [::core::mem::offset_of!(hipDeviceProp_t, maxThreadsPerBlock) - 280usize];
    ["Offset of field: hipDeviceProp_t::maxThreadsDim"]
        [::core::mem::offset_of!(hipDeviceProp_t, maxThreadsDim) - 284usize];
    ["Offset of field: hipDeviceProp_t::maxGridSize"]
        [::core::mem::offset_of!(hipDeviceProp_t, maxGridSize) - 296usize];
    ["Offset of field: hipDeviceProp_t::clockRate"]
        [::core::mem::offset_of!(hipDeviceProp_t, clockRate) - 308usize];
    ["Offset of field: hipDeviceProp_t::memoryClockRate"]
        [::core::mem::offset_of!(hipDeviceProp_t, memoryClockRate) - 312usize];
    ["Offset of field: hipDeviceProp_t::memoryBusWidth"]
        [::core::mem::offset_of!(hipDeviceProp_t, memoryBusWidth) - 316usize];
    ["Offset of field: hipDeviceProp_t::totalConstMem"]
        [::core::mem::offset_of!(hipDeviceProp_t, totalConstMem) - 320usize];
    ["Offset of field: hipDeviceProp_t::major"][::core::mem::offset_of!(hipDeviceProp_t, major) - 328usize];
    ["Offset of field: hipDeviceProp_t::minor"][::core::mem::offset_of!(hipDeviceProp_t, minor) - 332usize];
    ["Offset of field: hipDeviceProp_t::multiProcessorCount"]
        [::core::mem::offset_of!(hipDeviceProp_t, multiProcessorCount) - 336usize];
    ["Offset of field: hipDeviceProp_t::l2CacheSize"]
        [::core::mem::offset_of!(hipDeviceProp_t, l2CacheSize) - 340usize];
    ["Offset of field: hipDeviceProp_t::maxThreadsPerMultiProcessor"]
        [::core::mem::offset_of!(hipDeviceProp_t, maxThreadsPerMultiProcessor) - 344usize];
    ["Offset of field: hipDeviceProp_t::computeMode"]
        [::core::mem::offset_of!(hipDeviceProp_t, computeMode) - 348usize];
    ["Offset of field: hipDeviceProp_t::clockInstructionRate"]
        [::core::mem::offset_of!(hipDeviceProp_t, clockInstructionRate) - 352usize];
    ["Offset of field: hipDeviceProp_t::arch"][::core::mem::offset_of!(hipDeviceProp_t, arch) - 356usize];
    ["Offset of field: hipDeviceProp_t::concurrentKernels"]
        [::core::mem::offset_of!(hipDeviceProp_t, concurrentKernels) - 360usize];
    ["Offset of field: hipDeviceProp_t::pciDomainID"]
        [::core::mem::offset_of!(hipDeviceProp_t, pciDomainID) - 364usize];
    ["Offset of field: hipDeviceProp_t::pciBusID"]
        [::core::mem::offset_of!(hipDeviceProp_t, pciBusID) - 368usize];
    ["Offset of field: hipDeviceProp_t::pciDeviceID"]
        [::core::mem::offset_of!(hipDeviceProp_t, pciDeviceID) - 372usize];
    ["Offset of field: hipDeviceProp_t::maxSharedMemoryPerMultiProcessor"]
        [::core::mem::offset_of!(hipDeviceProp_t, maxSharedMemoryPerMultiProcessor) - 376usize];
    ["Offset of field: hipDeviceProp_t::isMultiGpuBoard"]
        [::core::mem::offset_of!(hipDeviceProp_t, isMultiGpuBoard) - 384usize];
    ["Offset of field: hipDeviceProp_t::canMapHostMemory"]
        [::core::mem::offset_of!(hipDeviceProp_t, canMapHostMemory) - 388usize];
    ["Offset of field: hipDeviceProp_t::gcnArch"]
        [::core::mem::offset_of!(hipDeviceProp_t, gcnArch) - 392usize];
    ["Offset of field: hipDeviceProp_t::gcnArchName"]
        [::core::mem::offset_of!(hipDeviceProp_t, gcnArchName) - 396usize];
    ["Offset of field: hipDeviceProp_t::integrated"]
        [::core::mem::offset_of!(hipDeviceProp_t, integrated) - 652usize];
    ["Offset of field: hipDeviceProp_t::cooperativeLaunch"]
        [::core::mem::offset_of!(hipDeviceProp_t, cooperativeLaunch) - 656usize];
    ["Offset of field: hipDeviceProp_t::cooperativeMultiDeviceLaunch"]
        [::core::mem::offset_of!(hipDeviceProp_t, cooperativeMultiDeviceLaunch) - 660usize];
    ["Offset of field: hipDeviceProp_t::maxTexture1DLinear"]
        [::core::mem::offset_of!(hipDeviceProp_t, maxTexture1DLinear) - 664usize];
    ["Offset of field: hipDeviceProp_t::maxTexture1D"]
        [::core::mem::offset_of!(hipDeviceProp_t, maxTexture1D) - 668usize];
    ["Offset of field: hipDeviceProp_t::maxTexture2D"]
        [::core::mem::offset_of!(hipDeviceProp_t, maxTexture2D) - 672usize];
    ["Offset of field: hipDeviceProp_t::maxTexture3D"]
        [::core::mem::offset_of!(hipDeviceProp_t, maxTexture3D) - 680usize];
    ["Offset of field: hipDeviceProp_t::hdpMemFlushCntl"]
        [::core::mem::offset_of!(hipDeviceProp_t, hdpMemFlushCntl) - 696usize];
    ["Offset of field: hipDeviceProp_t::hdpRegFlushCntl"]
        [::core::mem::offset_of!(hipDeviceProp_t, hdpRegFlushCntl) - 704usize];
    ["Offset of field: hipDeviceProp_t::memPitch"]
        [::core::mem::offset_of!(hipDeviceProp_t, memPitch) - 712usize];
    ["Offset of field: hipDeviceProp_t::textureAlignment"]
        [::core::mem::offset_of!(hipDeviceProp_t, textureAlignment) - 720usize];
    ["Offset of field: hipDeviceProp_t::texturePitchAlignment"]
        [::core::mem::offset_of!(hipDeviceProp_t, texturePitchAlignment) - 728usize];
    ["Offset of field: hipDeviceProp_t::kernelExecTimeoutEnabled"]
        [::core::mem::offset_of!(hipDeviceProp_t, kernelExecTimeoutEnabled) - 736usize];
    ["Offset of field: hipDeviceProp_t::ECCEnabled"]
        [::core::mem::offset_of!(hipDeviceProp_t, ECCEnabled) - 740usize];
    ["Offset of field: hipDeviceProp_t::tccDriver"]
        [::core::mem::offset_of!(hipDeviceProp_t, tccDriver) - 744usize];
    ["Offset of field: hipDeviceProp_t::cooperativeMultiDeviceUnmatchedFunc"]
        [::core::mem::offset_of!(hipDeviceProp_t, cooperativeMultiDeviceUnmatchedFunc) - 748usize];
    ["Offset of field: hipDeviceProp_t::cooperativeMultiDeviceUnmatchedGridDim"]
        [::core::mem::offset_of!(hipDeviceProp_t, cooperativeMultiDeviceUnmatchedGridDim) - 752usize];
    ["Offset of field: hipDeviceProp_t::cooperativeMultiDeviceUnmatchedBlockDim"]
        [::core::mem::offset_of!(hipDeviceProp_t, cooperativeMultiDeviceUnmatchedBlockDim) - 756usize];
    ["Offset of field: hipDeviceProp_t::cooperativeMultiDeviceUnmatchedSharedMem"]
        [::core::mem::offset_of!(hipDeviceProp_t, cooperativeMultiDeviceUnmatchedSharedMem) - 760usize];
    ["Offset of field: hipDeviceProp_t::isLargeBar"]
        [::core::mem::offset_of!(hipDeviceProp_t, isLargeBar) - 764usize];
    ["Offset of field: hipDeviceProp_t::asicRevision"]
        [::core::mem::offset_of!(hipDeviceProp_t, asicRevision) - 768usize];
    ["Offset of field: hipDeviceProp_t::managedMemory"]
        [::core::mem::offset_of!(hipDeviceProp_t, managedMemory) - 772usize];
    ["Offset of field: hipDeviceProp_t::directManagedMemAccessFromHost"]
        [::core::mem::offset_of!(hipDeviceProp_t, directManagedMemAccessFromHost) - 776usize];
    ["Offset of field: hipDeviceProp_t::concurrentManagedAccess"]
        [::core::mem::offset_of!(hipDeviceProp_t, concurrentManagedAccess) - 780usize];
    ["Offset of field: hipDeviceProp_t::pageableMemoryAccess"]
        [::core::mem::offset_of!(hipDeviceProp_t, pageableMemoryAccess) - 784usize];
    ["Offset of field: hipDeviceProp_t::pageableMemoryAccessUsesHostPageTables"]
        [::core::mem::offset_of!(hipDeviceProp_t, pageableMemoryAccessUsesHostPageTables) - 788usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of hipPointerAttribute_t"][::core::mem::size_of::<hipPointerAttribute_t>() - 32usize];
    ["Alignment of hipPointerAttribute_t"][::core::mem::align_of::<hipPointerAttribute_t>() - 8usize];
    ["Offset of field: hipPointerAttribute_t::memoryType"]
        [::core::mem::offset_of!(hipPointerAttribute_t, memoryType) - 0usize];
    ["Offset of field: hipPointerAttribute_t::device"]
        [::core::mem::offset_of!(hipPointerAttribute_t, device) - 4usize];
    ["Offset of field: hipPointerAttribute_t::devicePointer"]
        [::core::mem::offset_of!(hipPointerAttribute_t, devicePointer) - 8usize];
    ["Offset of field: hipPointerAttribute_t::hostPointer"]
        [::core::mem::offset_of!(hipPointerAttribute_t, hostPointer) - 16usize];
    ["Offset of field: hipPointerAttribute_t::isManaged"]
        [::core::mem::offset_of!(hipPointerAttribute_t, isManaged) - 24usize];
    ["Offset of field: hipPointerAttribute_t::allocationFlags"]
        [::core::mem::offset_of!(hipPointerAttribute_t, allocationFlags) - 28usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of hipArray"][::core::mem::size_of::<hipArray>() - 64usize];
    ["Alignment of hipArray"][::core::mem::align_of::<hipArray>() - 8usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of hipPitchedPtr"][::core::mem::size_of::<hipPitchedPtr>() - 32usize];
    ["Alignment of hipPitchedPtr"][::core::mem::align_of::<hipPitchedPtr>() - 8usize];
    ["Offset of field: hipPitchedPtr::ptr"][::core::mem::offset_of!(hipPitchedPtr, ptr) - 0usize];
    ["Offset of field: hipPitchedPtr::pitch"][::core::mem::offset_of!(hipPitchedPtr, pitch) - 8usize];
    ["Offset of field: hipPitchedPtr::xsize"][::core::mem::offset_of!(hipPitchedPtr, xsize) - 16usize];
    ["Offset of field: hipPitchedPtr::ysize"][::core::mem::offset_of!(hipPitchedPtr, ysize) - 24usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of hipExtent"][::core::mem::size_of::<hipExtent>() - 24usize];
    ["Alignment of hipExtent"][::core::mem::align_of::<hipExtent>() - 8usize];
    ["Offset of field: hipExtent::width"][::core::mem::offset_of!(hipExtent, width) - 0usize];
    ["Offset of field: hipExtent::height"][::core::mem::offset_of!(hipExtent, height) - 8usize];
    ["Offset of field: hipExtent::depth"][::core::mem::offset_of!(hipExtent, depth) - 16usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of hipPos"][::core::mem::size_of::<hipPos>() - 24usize];
    ["Alignment of hipPos"][::core::mem::align_of::<hipPos>() - 8usize];
    ["Offset of field: hipPos::x"][::core::mem::offset_of!(hipPos, x) - 0usize];
    ["Offset of field: hipPos::y"][::core::mem::offset_of!(hipPos, y) - 8usize];
    ["Offset of field: hipPos::z"][::core::mem::offset_of!(hipPos, z) - 16usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of hipMemcpy3DParms"][::core::mem::size_of::<hipMemcpy3DParms>() - 160usize];
    ["Alignment of hipMemcpy3DParms"][::core::mem::align_of::<hipMemcpy3DParms>() - 8usize];
    ["Offset of field: hipMemcpy3DParms::srcArray"]
        [::core::mem::offset_of!(hipMemcpy3DParms, srcArray) - 0usize];
    ["Offset of field: hipMemcpy3DParms::srcPos"][::core::mem::offset_of!(hipMemcpy3DParms, srcPos) - 8usize];
    ["Offset of field: hipMemcpy3DParms::srcPtr"]
        [::core::mem::offset_of!(hipMemcpy3DParms, srcPtr) - 32usize];
    ["Offset of field: hipMemcpy3DParms::dstArray"]
        [::core::mem::offset_of!(hipMemcpy3DParms, dstArray) - 64usize];
    ["Offset of field: hipMemcpy3DParms::dstPos"]
        [::core::mem::offset_of!(hipMemcpy3DParms, dstPos) - 72usize];
    ["Offset of field: hipMemcpy3DParms::dstPtr"]
        [::core::mem::offset_of!(hipMemcpy3DParms, dstPtr) - 96usize];
    ["Offset of field: hipMemcpy3DParms::extent"]
        [::core::mem::offset_of!(hipMemcpy3DParms, extent) - 128usize];
    ["Offset of field: hipMemcpy3DParms::kind"][::core::mem::offset_of!(hipMemcpy3DParms, kind) - 152usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of hipIpcMemHandle_st"][::core::mem::size_of::<hipIpcMemHandle_st>() - 64usize];
    ["Alignment of hipIpcMemHandle_st"][::core::mem::align_of::<hipIpcMemHandle_st>() - 1usize];
    ["Offset of field: hipIpcMemHandle_st::reserved"]
        [::core::mem::offset_of!(hipIpcMemHandle_st, reserved) - 0usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of dim3"][::core::mem::size_of::<dim3>() - 12usize];
    ["Alignment of dim3"][::core::mem::align_of::<dim3>() - 4usize];
    ["Offset of field: dim3::x"][::core::mem::offset_of!(dim3, x) - 0usize];
    ["Offset of field: dim3::y"][::core::mem::offset_of!(dim3, y) - 4usize];
    ["Offset of field: dim3::z"][::core::mem::offset_of!(dim3, z) - 8usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of hipKernelNodeParams"][::core::mem::size_of::<hipKernelNodeParams>() - 64usize];
    ["Alignment of hipKernelNodeParams"][::core::mem::align_of::<hipKernelNodeParams>() - 8usize];
    ["Offset of field: hipKernelNodeParams::blockDim"]
        [::core::mem::offset_of!(hipKernelNodeParams, blockDim) - 0usize];
    ["Offset of field: hipKernelNodeParams::extra"]
        [::core::mem::offset_of!(hipKernelNodeParams, extra) - 16usize];
    ["Offset of field: hipKernelNodeParams::func"]
        [::core::mem::offset_of!(hipKernelNodeParams, func) - 24usize];
    ["Offset of field: hipKernelNodeParams::gridDim"]
        [::core::mem::offset_of!(hipKernelNodeParams, gridDim) - 32usize];
    ["Offset of field: hipKernelNodeParams::kernelParams"]
        [::core::mem::offset_of!(hipKernelNodeParams, kernelParams) - 48usize];
    ["Offset of field: hipKernelNodeParams::sharedMemBytes"]
        [::core::mem::offset_of!(hipKernelNodeParams, sharedMemBytes) - 56usize];
};
impl Default for hipDeviceProp_t {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
impl hipMemoryType {
    pub const hipMemoryTypeHost: hipMemoryType = hipMemoryType(0);
    pub const hipMemoryTypeDevice: hipMemoryType = hipMemoryType(1);
    pub const hipMemoryTypeArray: hipMemoryType = hipMemoryType(2);
    pub const hipMemoryTypeUnified: hipMemoryType = hipMemoryType(3);
}
impl Default for hipPointerAttribute_t {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
impl hipError_t {
    pub const hipSuccess: hipError_t = hipError_t(0);
    pub const hipErrorInvalidValue: hipError_t = hipError_t(1);
    pub const hipErrorOutOfMemory: hipError_t = hipError_t(2);
    pub const hipErrorMemoryAllocation: hipError_t = hipError_t(2);
    pub const hipErrorNotInitialized: hipError_t = hipError_t(3);
    pub const hipErrorInitializationError: hipError_t = hipError_t(3);
    pub const hipErrorDeinitialized: hipError_t = hipError_t(4);
    pub const hipErrorProfilerDisabled: hipError_t = hipError_t(5);
    pub const hipErrorProfilerNotInitialized: hipError_t = hipError_t(6);
    pub const hipErrorProfilerAlreadyStarted: hipError_t = hipError_t(7);
    pub const hipErrorProfilerAlreadyStopped: hipError_t = hipError_t(8);
    pub const hipErrorInvalidConfiguration: hipError_t = hipError_t(9);
    pub const hipErrorInvalidPitchValue: hipError_t = hipError_t(12);
    pub const hipErrorInvalidSymbol: hipError_t = hipError_t(13);
    pub const hipErrorInvalidDevicePointer: hipError_t = hipError_t(17);
    pub const hipErrorInvalidMemcpyDirection: hipError_t = hipError_t(21);
    pub const hipErrorInsufficientDriver: hipError_t = hipError_t(35);
    pub const hipErrorMissingConfiguration: hipError_t = hipError_t(52);
    pub const hipErrorPriorLaunchFailure: hipError_t = hipError_t(53);
    pub const hipErrorInvalidDeviceFunction: hipError_t = hipError_t(98);
    pub const hipErrorNoDevice: hipError_t = hipError_t(100);
    pub const hipErrorInvalidDevice: hipError_t = hipError_t(101);
    pub const hipErrorInvalidImage: hipError_t = hipError_t(200);
    pub const hipErrorInvalidContext: hipError_t = hipError_t(201);
    pub const hipErrorContextAlreadyCurrent: hipError_t = hipError_t(202);
    pub const hipErrorMapFailed: hipError_t = hipError_t(205);
    pub const hipErrorMapBufferObjectFailed: hipError_t = hipError_t(205);
    pub const hipErrorUnmapFailed: hipError_t = hipError_t(206);
    pub const hipErrorArrayIsMapped: hipError_t = hipError_t(207);
    pub const hipErrorAlreadyMapped: hipError_t = hipError_t(208);
    pub const hipErrorNoBinaryForGpu: hipError_t = hipError_t(209);
    pub const hipErrorAlreadyAcquired: hipError_t = hipError_t(210);
    pub const hipErrorNotMapped: hipError_t = hipError_t(211);
    pub const hipErrorNotMappedAsArray: hipError_t = hipError_t(212);
    pub const hipErrorNotMappedAsPointer: hipError_t = hipError_t(213);
    pub const hipErrorECCNotCorrectable: hipError_t = hipError_t(214);
    pub const hipErrorUnsupportedLimit: hipError_t = hipError_t(215);
    pub const hipErrorContextAlreadyInUse: hipError_t = hipError_t(216);
    pub const hipErrorPeerAccessUnsupported: hipError_t = hipError_t(217);
    pub const hipErrorInvalidKernelFile: hipError_t = hipError_t(218);
    pub const hipErrorInvalidGraphicsContext: hipError_t = hipError_t(219);
    pub const hipErrorInvalidSource: hipError_t = hipError_t(300);
    pub const hipErrorFileNotFound: hipError_t = hipError_t(301);
    pub const hipErrorSharedObjectSymbolNotFound: hipError_t = hipError_t(302);
    pub const hipErrorSharedObjectInitFailed: hipError_t = hipError_t(303);
    pub const hipErrorOperatingSystem: hipError_t = hipError_t(304);
    pub const hipErrorInvalidHandle: hipError_t = hipError_t(400);
    pub const hipErrorInvalidResourceHandle: hipError_t = hipError_t(400);
    pub const hipErrorIllegalState: hipError_t = hipError_t(401);
    pub const hipErrorNotFound: hipError_t = hipError_t(500);
    pub const hipErrorNotReady: hipError_t = hipError_t(600);
    pub const hipErrorIllegalAddress: hipError_t = hipError_t(700);
    pub const hipErrorLaunchOutOfResources: hipError_t = hipError_t(701);
    pub const hipErrorLaunchTimeOut: hipError_t = hipError_t(702);
    pub const hipErrorPeerAccessAlreadyEnabled: hipError_t = hipError_t(704);
    pub const hipErrorPeerAccessNotEnabled: hipError_t = hipError_t(705);
    pub const hipErrorSetOnActiveProcess: hipError_t = hipError_t(708);
    pub const hipErrorContextIsDestroyed: hipError_t = hipError_t(709);
    pub const hipErrorAssert: hipError_t = hipError_t(710);
    pub const hipErrorHostMemoryAlreadyRegistered: hipError_t = hipError_t(712);
    pub const hipErrorHostMemoryNotRegistered: hipError_t = hipError_t(713);
    pub const hipErrorLaunchFailure: hipError_t = hipError_t(719);
    pub const hipErrorCooperativeLaunchTooLarge: hipError_t = hipError_t(720);
    pub const hipErrorNotSupported: hipError_t = hipError_t(801);
    pub const hipErrorStreamCaptureUnsupported: hipError_t = hipError_t(900);
    pub const hipErrorStreamCaptureInvalidated: hipError_t = hipError_t(901);
    pub const hipErrorStreamCaptureMerge: hipError_t = hipError_t(902);
    pub const hipErrorStreamCaptureUnmatched: hipError_t = hipError_t(903);
    pub const hipErrorStreamCaptureUnjoined: hipError_t = hipError_t(904);
    pub const hipErrorStreamCaptureIsolation: hipError_t = hipError_t(905);
    pub const hipErrorStreamCaptureImplicit: hipError_t = hipError_t(906);
    pub const hipErrorCapturedEvent: hipError_t = hipError_t(907);
    pub const hipErrorStreamCaptureWrongThread: hipError_t = hipError_t(908);
    pub const hipErrorGraphExecUpdateFailure: hipError_t = hipError_t(910);
    pub const hipErrorUnknown: hipError_t = hipError_t(999);
    pub const hipErrorRuntimeMemory: hipError_t = hipError_t(1052);
    pub const hipErrorRuntimeOther: hipError_t = hipError_t(1053);
    pub const hipErrorTbd: hipError_t = hipError_t(1054);
}
impl hipDeviceAttribute_t {
    pub const hipDeviceAttributeCanMapHostMemory: hipDeviceAttribute_t = hipDeviceAttribute_t(3);
    pub const hipDeviceAttributeConcurrentManagedAccess: hipDeviceAttribute_t = hipDeviceAttribute_t(9);
    pub const hipDeviceAttributeManagedMemory: hipDeviceAttribute_t = hipDeviceAttribute_t(24);
    pub const hipDeviceAttributeMaxBlockDimX: hipDeviceAttribute_t = hipDeviceAttribute_t(26);
    pub const hipDeviceAttributeMaxBlockDimY: hipDeviceAttribute_t = hipDeviceAttribute_t(27);
    pub const hipDeviceAttributeMaxBlockDimZ: hipDeviceAttribute_t = hipDeviceAttribute_t(28);
    pub const hipDeviceAttributeMaxGridDimX: hipDeviceAttribute_t = hipDeviceAttribute_t(29);
    pub const hipDeviceAttributeMaxGridDimY: hipDeviceAttribute_t = hipDeviceAttribute_t(30);
    pub const hipDeviceAttributeMaxGridDimZ: hipDeviceAttribute_t = hipDeviceAttribute_t(31);
    pub const hipDeviceAttributeMaxThreadsPerBlock: hipDeviceAttribute_t = hipDeviceAttribute_t(56);
    pub const hipDeviceAttributeMaxPitch: hipDeviceAttribute_t = hipDeviceAttribute_t(58);
    pub const hipDeviceAttributeMultiprocessorCount: hipDeviceAttribute_t = hipDeviceAttribute_t(63);
    pub const hipDeviceAttributePciBusId: hipDeviceAttribute_t = hipDeviceAttribute_t(67);
    pub const hipDeviceAttributePciDeviceId: hipDeviceAttribute_t = hipDeviceAttribute_t(68);
    pub const hipDeviceAttributePciDomainID: hipDeviceAttribute_t = hipDeviceAttribute_t(69);
    pub const hipDeviceAttributeMaxSharedMemoryPerBlock: hipDeviceAttribute_t = hipDeviceAttribute_t(74);
    pub const hipDeviceAttributeTotalConstantMemory: hipDeviceAttribute_t = hipDeviceAttribute_t(83);
    pub const hipDeviceAttributeWarpSize: hipDeviceAttribute_t = hipDeviceAttribute_t(87);
}
impl hipMemcpyKind {
    pub const hipMemcpyHostToHost: hipMemcpyKind = hipMemcpyKind(0);
    pub const hipMemcpyHostToDevice: hipMemcpyKind = hipMemcpyKind(1);
    pub const hipMemcpyDeviceToHost: hipMemcpyKind = hipMemcpyKind(2);
    pub const hipMemcpyDeviceToDevice: hipMemcpyKind = hipMemcpyKind(3);
    pub const hipMemcpyDefault: hipMemcpyKind = hipMemcpyKind(4);
}
impl Default for hipPitchedPtr {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
impl Default for hipMemcpy3DParms {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
impl hipFunction_attribute {
    pub const HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: hipFunction_attribute = hipFunction_attribute(0);
    pub const HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: hipFunction_attribute = hipFunction_attribute(1);
}
impl Default for hipIpcMemHandle_st {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
impl hipMemoryAdvise {
    pub const hipMemAdviseSetReadMostly: hipMemoryAdvise = hipMemoryAdvise(1);
    pub const hipMemAdviseUnsetReadMostly: hipMemoryAdvise = hipMemoryAdvise(2);
    pub const hipMemAdviseSetPreferredLocation: hipMemoryAdvise = hipMemoryAdvise(3);
    pub const hipMemAdviseUnsetPreferredLocation: hipMemoryAdvise = hipMemoryAdvise(4);
    pub const hipMemAdviseSetAccessedBy: hipMemoryAdvise = hipMemoryAdvise(5);
    pub const hipMemAdviseUnsetAccessedBy: hipMemoryAdvise = hipMemoryAdvise(6);
    pub const hipMemAdviseSetCoarseGrain: hipMemoryAdvise = hipMemoryAdvise(100);
    pub const hipMemAdviseUnsetCoarseGrain: hipMemoryAdvise = hipMemoryAdvise(101);
}
impl Default for hipKernelNodeParams {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
impl hipStreamCaptureMode {
    pub const hipStreamCaptureModeGlobal: hipStreamCaptureMode = hipStreamCaptureMode(0);
    pub const hipStreamCaptureModeThreadLocal: hipStreamCaptureMode = hipStreamCaptureMode(1);
    pub const hipStreamCaptureModeRelaxed: hipStreamCaptureMode = hipStreamCaptureMode(2);
}
impl hipStreamCaptureStatus {
    pub const hipStreamCaptureStatusNone: hipStreamCaptureStatus = hipStreamCaptureStatus(0);
    pub const hipStreamCaptureStatusActive: hipStreamCaptureStatus = hipStreamCaptureStatus(1);
    pub const hipStreamCaptureStatusInvalidated: hipStreamCaptureStatus = hipStreamCaptureStatus(2);
}
impl hiprtcResult {
    pub const HIPRTC_SUCCESS: hiprtcResult = hiprtcResult(0);
    pub const HIPRTC_ERROR_OUT_OF_MEMORY: hiprtcResult = hiprtcResult(1);
    pub const HIPRTC_ERROR_PROGRAM_CREATION_FAILURE: hiprtcResult = hiprtcResult(2);
    pub const HIPRTC_ERROR_INVALID_INPUT: hiprtcResult = hiprtcResult(3);
    pub const HIPRTC_ERROR_INVALID_PROGRAM: hiprtcResult = hiprtcResult(4);
    pub const HIPRTC_ERROR_INVALID_OPTION: hiprtcResult = hiprtcResult(5);
    pub const HIPRTC_ERROR_COMPILATION: hiprtcResult = hiprtcResult(6);
    pub const HIPRTC_ERROR_BUILTIN_OPERATION_FAILURE: hiprtcResult = hiprtcResult(7);
    pub const HIPRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION: hiprtcResult = hiprtcResult(8);
    pub const HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION: hiprtcResult = hiprtcResult(9);
    pub const HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID: hiprtcResult = hiprtcResult(10);
    pub const HIPRTC_ERROR_INTERNAL_ERROR: hiprtcResult = hiprtcResult(11);
}
functions! {
    /// hipRTC, the run-time compiler.
    Hiprtc {
        fn hiprtcVersion(major: *mut c_int, minor: *mut c_int) -> hiprtcResult;
        fn hiprtcCompileProgram(prog: hiprtcProgram, numOptions: c_int, options: *mut *const c_char) -> hiprtcResult;
        fn hiprtcCreateProgram(prog: *mut hiprtcProgram, src: *const c_char, name: *const c_char, numHeaders: c_int, headers: *mut *const c_char, includeNames: *mut *const c_char) -> hiprtcResult;
        fn hiprtcDestroyProgram(prog: *mut hiprtcProgram) -> hiprtcResult;
        fn hiprtcGetProgramLog(prog: hiprtcProgram, log: *mut c_char) -> hiprtcResult;
        fn hiprtcGetProgramLogSize(prog: hiprtcProgram, logSizeRet: *mut usize) -> hiprtcResult;
        fn hiprtcGetCode(prog: hiprtcProgram, code: *mut c_char) -> hiprtcResult;
        fn hiprtcGetCodeSize(prog: hiprtcProgram, codeSizeRet: *mut usize) -> hiprtcResult;
    }
}

functions! {
    /// The HIP runtime (`libamdhip64`).
    Hip {
        fn hipInit(flags: c_uint) -> hipError_t;
        fn hipRuntimeGetVersion(runtimeVersion: *mut c_int) -> hipError_t;
        fn hipDeviceGetName(name: *mut c_char, len: c_int, device: hipDevice_t) -> hipError_t;
        fn hipDeviceGetUuid(uuid: *mut hipUUID, device: hipDevice_t) -> hipError_t;
        fn hipDeviceTotalMem(bytes: *mut usize, device: hipDevice_t) -> hipError_t;
        fn hipDeviceSynchronize() -> hipError_t;
        fn hipDeviceReset() -> hipError_t;
        fn hipSetDevice(deviceId: c_int) -> hipError_t;
        fn hipGetDevice(deviceId: *mut c_int) -> hipError_t;
        fn hipGetDeviceCount(count: *mut c_int) -> hipError_t;
        fn hipDeviceGetAttribute(pi: *mut c_int, attr: hipDeviceAttribute_t, deviceId: c_int) -> hipError_t;
        fn hipGetDeviceProperties(prop: *mut hipDeviceProp_t, deviceId: c_int) -> hipError_t;
        fn hipIpcGetMemHandle(handle: *mut hipIpcMemHandle_t, devPtr: *mut c_void) -> hipError_t;
        #[relaxed]
        fn hipIpcOpenMemHandle(devPtr: *mut *mut c_void, handle: hipIpcMemHandle_t, flags: c_uint) -> hipError_t;
        #[relaxed]
        fn hipIpcCloseMemHandle(devPtr: *mut c_void) -> hipError_t;
        fn hipGetLastError() -> hipError_t;
        fn hipGetErrorName(hip_error: hipError_t) -> *const c_char;
        #[relaxed]
        fn hipStreamCreateWithPriority(stream: *mut hipStream_t, flags: c_uint, priority: c_int) -> hipError_t;
        fn hipDeviceGetStreamPriorityRange(leastPriority: *mut c_int, greatestPriority: *mut c_int) -> hipError_t;
        #[relaxed]
        fn hipStreamDestroy(stream: hipStream_t) -> hipError_t;
        #[relaxed]
        fn hipStreamQuery(stream: hipStream_t) -> hipError_t;
        #[relaxed]
        fn hipStreamSynchronize(stream: hipStream_t) -> hipError_t;
        fn hipStreamWaitEvent(stream: hipStream_t, event: hipEvent_t, flags: c_uint) -> hipError_t;
        #[relaxed]
        fn hipEventCreateWithFlags(event: *mut hipEvent_t, flags: c_uint) -> hipError_t;
        fn hipEventRecord(event: hipEvent_t, stream: hipStream_t) -> hipError_t;
        #[relaxed]
        fn hipEventDestroy(event: hipEvent_t) -> hipError_t;
        #[relaxed]
        fn hipEventSynchronize(event: hipEvent_t) -> hipError_t;
        #[relaxed]
        fn hipEventElapsedTime(ms: *mut f32, start: hipEvent_t, stop: hipEvent_t) -> hipError_t;
        #[relaxed]
        fn hipEventQuery(event: hipEvent_t) -> hipError_t;
        fn hipPointerGetAttributes(attributes: *mut hipPointerAttribute_t, ptr: *const c_void) -> hipError_t;
        #[relaxed]
        fn hipMalloc(ptr: *mut *mut c_void, size: usize) -> hipError_t;
        #[relaxed]
        fn hipExtMallocWithFlags(ptr: *mut *mut c_void, sizeBytes: usize, flags: c_uint) -> hipError_t;
        #[relaxed]
        fn hipHostMalloc(ptr: *mut *mut c_void, size: usize, flags: c_uint) -> hipError_t;
        #[relaxed]
        fn hipMallocManaged(dev_ptr: *mut *mut c_void, size: usize, flags: c_uint) -> hipError_t;
        fn hipMemPrefetchAsync(dev_ptr: *const c_void, count: usize, device: c_int, stream: hipStream_t) -> hipError_t;
        #[relaxed]
        fn hipMemAdvise(dev_ptr: *const c_void, count: usize, advice: hipMemoryAdvise, device: c_int) -> hipError_t;
        fn hipHostGetDevicePointer(devPtr: *mut *mut c_void, hstPtr: *mut c_void, flags: c_uint) -> hipError_t;
        #[relaxed]
        fn hipHostRegister(hostPtr: *mut c_void, sizeBytes: usize, flags: c_uint) -> hipError_t;
        #[relaxed]
        fn hipHostUnregister(hostPtr: *mut c_void) -> hipError_t;
        #[relaxed]
        fn hipFree(ptr: *mut c_void) -> hipError_t;
        #[relaxed]
        fn hipHostFree(ptr: *mut c_void) -> hipError_t;
        fn hipMemcpyWithStream(dst: *mut c_void, src: *const c_void, sizeBytes: usize, kind: hipMemcpyKind, stream: hipStream_t) -> hipError_t;
        fn hipModuleGetGlobal(dptr: *mut hipDeviceptr_t, bytes: *mut usize, hmod: hipModule_t, name: *const c_char) -> hipError_t;
        fn hipMemcpyAsync(dst: *mut c_void, src: *const c_void, sizeBytes: usize, kind: hipMemcpyKind, stream: hipStream_t) -> hipError_t;
        fn hipMemsetD8Async(dest: hipDeviceptr_t, value: c_uchar, count: usize, stream: hipStream_t) -> hipError_t;
        fn hipMemsetD16Async(dest: hipDeviceptr_t, value: c_ushort, count: usize, stream: hipStream_t) -> hipError_t;
        fn hipMemsetD32Async(dst: hipDeviceptr_t, value: c_int, count: usize, stream: hipStream_t) -> hipError_t;
        fn hipMemset2DAsync(dst: *mut c_void, pitch: usize, value: c_int, width: usize, height: usize, stream: hipStream_t) -> hipError_t;
        fn hipMemGetInfo(free: *mut usize, total: *mut usize) -> hipError_t;
        fn hipMemcpy2DAsync(dst: *mut c_void, dpitch: usize, src: *const c_void, spitch: usize, width: usize, height: usize, kind: hipMemcpyKind, stream: hipStream_t) -> hipError_t;
        fn hipMemcpy3DAsync(p: *const hipMemcpy3DParms, stream: hipStream_t) -> hipError_t;
        fn hipDeviceCanAccessPeer(canAccessPeer: *mut c_int, deviceId: c_int, peerDeviceId: c_int) -> hipError_t;
        #[relaxed]
        fn hipDeviceEnablePeerAccess(peerDeviceId: c_int, flags: c_uint) -> hipError_t;
        #[relaxed]
        fn hipDeviceDisablePeerAccess(peerDeviceId: c_int) -> hipError_t;
        #[relaxed]
        fn hipMemGetAddressRange(pbase: *mut hipDeviceptr_t, psize: *mut usize, dptr: hipDeviceptr_t) -> hipError_t;
        fn hipMemcpyPeerAsync(dst: *mut c_void, dstDeviceId: c_int, src: *const c_void, srcDevice: c_int, sizeBytes: usize, stream: hipStream_t) -> hipError_t;
        #[relaxed]
        fn hipModuleUnload(module: hipModule_t) -> hipError_t;
        fn hipModuleGetFunction(function: *mut hipFunction_t, module: hipModule_t, kname: *const c_char) -> hipError_t;
        fn hipFuncGetAttribute(value: *mut c_int, attrib: hipFunction_attribute, hfunc: hipFunction_t) -> hipError_t;
        #[relaxed]
        fn hipModuleLoadData(module: *mut hipModule_t, image: *const c_void) -> hipError_t;
        fn hipModuleLaunchKernel(f: hipFunction_t, gridDimX: c_uint, gridDimY: c_uint, gridDimZ: c_uint, blockDimX: c_uint, blockDimY: c_uint, blockDimZ: c_uint, sharedMemBytes: c_uint, stream: hipStream_t, kernelParams: *mut *mut c_void, extra: *mut *mut c_void) -> hipError_t;
        #[relaxed]
        fn hipStreamBeginCapture(stream: hipStream_t, mode: hipStreamCaptureMode) -> hipError_t;
        #[relaxed]
        fn hipStreamEndCapture(stream: hipStream_t, pGraph: *mut hipGraph_t) -> hipError_t;
        fn hipStreamGetCaptureInfo_v2(stream: hipStream_t, captureStatus_out: *mut hipStreamCaptureStatus, id_out: *mut c_ulonglong, graph_out: *mut hipGraph_t, dependencies_out: *mut *const hipGraphNode_t, numDependencies_out: *mut usize) -> hipError_t;
        fn hipStreamIsCapturing(stream: hipStream_t, pCaptureStatus: *mut hipStreamCaptureStatus) -> hipError_t;
        fn hipThreadExchangeStreamCaptureMode(mode: *mut hipStreamCaptureMode) -> hipError_t;
        #[relaxed]
        fn hipGraphDestroy(graph: hipGraph_t) -> hipError_t;
        fn hipGraphGetNodes(graph: hipGraph_t, nodes: *mut hipGraphNode_t, numNodes: *mut usize) -> hipError_t;
        #[relaxed]
        fn hipGraphInstantiateWithFlags(pGraphExec: *mut hipGraphExec_t, graph: hipGraph_t, flags: c_ulonglong) -> hipError_t;
        fn hipGraphLaunch(graphExec: hipGraphExec_t, stream: hipStream_t) -> hipError_t;
        #[relaxed]
        fn hipGraphExecDestroy(graphExec: hipGraphExec_t) -> hipError_t;
        fn hipGraphExecKernelNodeSetParams(hGraphExec: hipGraphExec_t, node: hipGraphNode_t, pNodeParams: *const hipKernelNodeParams) -> hipError_t;
    }
}
