//! HIP's types, under HIP's names, with the layout of its headers.
//!
//! `tests/headers.rs` compares them with AMD's headers. Types that ROCm 6 has changed are there again with the suffix
//! `6`.
#![allow(non_camel_case_types, non_snake_case, missing_docs, reason = "names, meanings and order are HIP's")]

use cudarc::driver::sys as cuda;
use std::ffi::{c_char, c_int, c_uchar, c_uint, c_void};

pub type hipDevice_t = c_int;
pub type hipDeviceptr_t = *mut c_void;
pub type hipStream_t = cuda::CUstream;
pub type hipEvent_t = cuda::CUevent;
pub type hipModule_t = cuda::CUmodule;
pub type hipFunction_t = cuda::CUfunction;
pub type hipGraph_t = cuda::CUgraph;
pub type hipGraphExec_t = cuda::CUgraphExec;
pub type hipGraphNode_t = cuda::CUgraphNode;
pub type hipArray_t = *mut c_void;

pub type hipDeviceAttribute_t = c_uint;
pub type hipDeviceP2PAttr = c_uint;
pub type hipFunction_attribute = c_uint;
pub type hipJitOption = c_uint;
/// The header has `enum hipLimit_t` and no other name.
pub type hipLimit_t = c_uint;
pub type hipMemcpyKind = c_uint;
pub type hipMemRangeAttribute = c_uint;
pub type hipMemoryAdvise = c_uint;
pub type hipMemoryType = c_uint;
pub type hipPointer_attribute = c_uint;
pub type hipStreamCaptureMode = c_uint;
pub type hipStreamCaptureStatus = c_uint;

pub type hipStreamCallback_t = Option<unsafe extern "C" fn(hipStream_t, hipError_t, *mut c_void)>;
pub type hipHostFn_t = Option<unsafe extern "C" fn(*mut c_void)>;

/// A status: the C enumeration as an integer, because a caller may pass any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
#[must_use]
pub struct hipError_t(pub c_uint);

/// A status of hipRTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
#[must_use]
pub struct hiprtcResult(pub c_uint);

/// A program of hipRTC, which is [`Program`](crate::compile::Program).
pub type hiprtcProgram = *mut crate::compile::Program;

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct hipUUID {
    pub bytes: [c_char; 16],
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct hipIpcMemHandle_t {
    pub reserved: [c_char; 64],
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct hipIpcEventHandle_t {
    pub reserved: [c_char; 64],
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct hipPointerAttribute_t {
    pub memoryType: hipMemoryType,
    pub device: c_int,
    pub devicePointer: *mut c_void,
    pub hostPointer: *mut c_void,
    pub isManaged: c_int,
    pub allocationFlags: c_uint,
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct hipPitchedPtr {
    pub ptr: *mut c_void,
    pub pitch: usize,
    pub xsize: usize,
    pub ysize: usize,
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct hipExtent {
    pub width: usize,
    pub height: usize,
    pub depth: usize,
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct hipPos {
    pub x: usize,
    pub y: usize,
    pub z: usize,
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
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

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct hip_Memcpy2D {
    pub srcXInBytes: usize,
    pub srcY: usize,
    pub srcMemoryType: hipMemoryType,
    pub srcHost: *const c_void,
    pub srcDevice: hipDeviceptr_t,
    pub srcArray: hipArray_t,
    pub srcPitch: usize,
    pub dstXInBytes: usize,
    pub dstY: usize,
    pub dstMemoryType: hipMemoryType,
    pub dstHost: *mut c_void,
    pub dstDevice: hipDeviceptr_t,
    pub dstArray: hipArray_t,
    pub dstPitch: usize,
    pub WidthInBytes: usize,
    pub Height: usize,
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct dim3 {
    pub x: c_uint,
    pub y: c_uint,
    pub z: c_uint,
}

#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct hipKernelNodeParams {
    pub blockDim: dim3,
    pub extra: *mut *mut c_void,
    pub func: *mut c_void,
    pub gridDim: dim3,
    pub kernelParams: *mut *mut c_void,
    pub sharedMemBytes: c_uint,
}

/// `HIP_MEMCPY3D` with the integer that a major version of ROCm has for distances.
macro_rules! memcpy3d {
    ($(#[$meta:meta])* $name:ident: $size:ty) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy)]
        #[repr(C)]
        pub struct $name {
            pub srcXInBytes: $size,
            pub srcY: $size,
            pub srcZ: $size,
            pub srcLOD: $size,
            pub srcMemoryType: hipMemoryType,
            pub srcHost: *const c_void,
            pub srcDevice: hipDeviceptr_t,
            pub srcArray: hipArray_t,
            pub srcPitch: $size,
            pub srcHeight: $size,
            pub dstXInBytes: $size,
            pub dstY: $size,
            pub dstZ: $size,
            pub dstLOD: $size,
            pub dstMemoryType: hipMemoryType,
            pub dstHost: *mut c_void,
            pub dstDevice: hipDeviceptr_t,
            pub dstArray: hipArray_t,
            pub dstPitch: $size,
            pub dstHeight: $size,
            pub WidthInBytes: $size,
            pub Height: $size,
            pub Depth: $size,
        }
    };
}
memcpy3d!(HIP_MEMCPY3D: c_uint);
memcpy3d!(
    /// Since ROCm 6.
    HIP_MEMCPY3D6: usize
);

/// The properties of ROCm 5, which later versions fill under `hipGetDevicePropertiesR0000` and the old name.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct hipDeviceProp_t {
    pub name: [c_uchar; 256],
    pub totalGlobalMem: usize,
    pub sharedMemPerBlock: usize,
    pub regsPerBlock: c_int,
    pub warpSize: c_int,
    pub maxThreadsPerBlock: c_int,
    pub maxThreadsDim: [c_int; 3],
    pub maxGridSize: [c_int; 3],
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
    pub arch: c_uint,
    pub concurrentKernels: c_int,
    pub pciDomainID: c_int,
    pub pciBusID: c_int,
    pub pciDeviceID: c_int,
    pub maxSharedMemoryPerMultiProcessor: usize,
    pub isMultiGpuBoard: c_int,
    pub canMapHostMemory: c_int,
    pub gcnArch: c_int,
    pub gcnArchName: [c_uchar; 256],
    pub integrated: c_int,
    pub cooperativeLaunch: c_int,
    pub cooperativeMultiDeviceLaunch: c_int,
    pub maxTexture1DLinear: c_int,
    pub maxTexture1D: c_int,
    pub maxTexture2D: [c_int; 2],
    pub maxTexture3D: [c_int; 3],
    pub hdpMemFlushCntl: *mut c_uint,
    pub hdpRegFlushCntl: *mut c_uint,
    pub memPitch: usize,
    pub textureAlignment: usize,
    pub texturePitchAlignment: usize,
    pub kernelExecTimeoutEnabled: c_int,
    pub ECCEnabled: c_int,
    pub tccDriver: c_int,
    pub cooperativeMultiDeviceUnmatched: [c_int; 4],
    pub isLargeBar: c_int,
    pub asicRevision: c_int,
    pub managedMemory: c_int,
    pub directManagedMemAccessFromHost: c_int,
    pub concurrentManagedAccess: c_int,
    pub pageableMemoryAccess: c_int,
    pub pageableMemoryAccessUsesHostPageTables: c_int,
}

/// The properties since ROCm 6.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct hipDeviceProp6_t {
    pub name: [c_uchar; 256],
    pub uuid: hipUUID,
    pub luid: [c_char; 8],
    pub luidDeviceNodeMask: c_uint,
    pub totalGlobalMem: usize,
    pub sharedMemPerBlock: usize,
    pub regsPerBlock: c_int,
    pub warpSize: c_int,
    pub memPitch: usize,
    pub maxThreadsPerBlock: c_int,
    pub maxThreadsDim: [c_int; 3],
    pub maxGridSize: [c_int; 3],
    pub clockRate: c_int,
    pub totalConstMem: usize,
    pub major: c_int,
    pub minor: c_int,
    pub textureAlignment: usize,
    pub texturePitchAlignment: usize,
    pub deviceOverlap: c_int,
    pub multiProcessorCount: c_int,
    pub kernelExecTimeoutEnabled: c_int,
    pub integrated: c_int,
    pub canMapHostMemory: c_int,
    pub computeMode: c_int,
    /// Limits of textures and surfaces, which are not filled in.
    pub images: [c_int; 40],
    pub surfaceAlignment: usize,
    pub concurrentKernels: c_int,
    pub ECCEnabled: c_int,
    pub pciBusID: c_int,
    pub pciDeviceID: c_int,
    pub pciDomainID: c_int,
    pub tccDriver: c_int,
    pub asyncEngineCount: c_int,
    pub unifiedAddressing: c_int,
    pub memoryClockRate: c_int,
    pub memoryBusWidth: c_int,
    pub l2CacheSize: c_int,
    pub persistingL2CacheMaxSize: c_int,
    pub maxThreadsPerMultiProcessor: c_int,
    pub streamPrioritiesSupported: c_int,
    pub globalL1CacheSupported: c_int,
    pub localL1CacheSupported: c_int,
    pub sharedMemPerMultiprocessor: usize,
    pub regsPerMultiprocessor: c_int,
    pub managedMemory: c_int,
    pub isMultiGpuBoard: c_int,
    pub multiGpuBoardGroupID: c_int,
    pub hostNativeAtomicSupported: c_int,
    pub singleToDoublePrecisionPerfRatio: c_int,
    pub pageableMemoryAccess: c_int,
    pub concurrentManagedAccess: c_int,
    pub computePreemptionSupported: c_int,
    pub canUseHostPointerForRegisteredMem: c_int,
    pub cooperativeLaunch: c_int,
    pub cooperativeMultiDeviceLaunch: c_int,
    pub sharedMemPerBlockOptin: usize,
    pub pageableMemoryAccessUsesHostPageTables: c_int,
    pub directManagedMemAccessFromHost: c_int,
    pub maxBlocksPerMultiProcessor: c_int,
    pub accessPolicyMaxWindowSize: c_int,
    pub reservedSharedMemPerBlock: usize,
    pub hostRegisterSupported: c_int,
    /// From `sparseHipArraySupported` to `unifiedFunctionPointers`, then reserved fields: 0.
    pub later: [c_int; 12 + 63 + 32],
    pub gcnArchName: [c_uchar; 256],
    pub maxSharedMemoryPerMultiProcessor: usize,
    pub clockInstructionRate: c_int,
    pub arch: c_uint,
    pub hdpMemFlushCntl: *mut c_uint,
    pub hdpRegFlushCntl: *mut c_uint,
    pub cooperativeMultiDeviceUnmatched: [c_int; 4],
    pub isLargeBar: c_int,
    pub asicRevision: c_int,
}

/// Offsets that were measured with the headers of ROCm 6.4 and 7.2.
#[cfg(target_pointer_width = "64")]
const _: () = {
    use std::mem::offset_of;
    assert!(size_of::<hipDeviceProp_t>() == 792 && size_of::<hipDeviceProp6_t>() == 1472);
    assert!(offset_of!(hipDeviceProp6_t, totalGlobalMem) == 288);
    assert!(offset_of!(hipDeviceProp6_t, warpSize) == 308);
    assert!(offset_of!(hipDeviceProp6_t, multiProcessorCount) == 388);
    assert!(offset_of!(hipDeviceProp6_t, integrated) == 396);
    assert!(offset_of!(hipDeviceProp6_t, canMapHostMemory) == 400);
    assert!(offset_of!(hipDeviceProp6_t, pciBusID) == 584);
    assert!(offset_of!(hipDeviceProp6_t, managedMemory) == 652);
    assert!(offset_of!(hipDeviceProp6_t, gcnArchName) == 1160);
    assert!(offset_of!(hipDeviceProp6_t, isLargeBar) == 1464);
};
