// Made by `cargo xtask bindings` from the headers of NCCL 2.32.3. Not to be edited.

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

pub type cudaStream_t = *mut c_void;
pub type cudaEvent_t = *mut c_void;
pub type ncclComm_t = *mut ncclComm;
pub type ncclWindow_t = *mut ncclWindow_vidmem;
pub type ncclConfig_t = ncclConfig_v23100;
pub type ncclConfigExt_t = ncclConfigExt;
pub type ncclCollConfig_t = ncclCollConfig_v23200;
pub type ncclSimInfo_t = ncclSimInfo_v22200;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct ncclComm {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct ncclWindow_vidmem {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub struct ncclUniqueId {
    pub internal: [c_char; 128usize],
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct ncclResult_t(pub c_uint);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct ncclHostCftMode_t(pub c_int);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct ncclNvlsHostMode_t(pub c_int);
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub struct ncclConfig_v23100 {
    pub size: usize,
    pub magic: c_uint,
    pub version: c_uint,
    pub blocking: c_int,
    pub cgaClusterSize: c_int,
    pub minCTAs: c_int,
    pub maxCTAs: c_int,
    pub netName: *const c_char,
    pub splitShare: c_int,
    pub trafficClass: c_int,
    pub commName: *const c_char,
    pub collnetEnable: c_int,
    pub CTAPolicy: c_int,
    pub shrinkShare: c_int,
    pub nvlsCTAs: c_int,
    pub nChannelsPerNetPeer: c_int,
    pub nvlinkCentricSched: c_int,
    pub graphUsageMode: c_int,
    pub numRmaCtx: c_int,
    pub maxP2pPeers: c_int,
    pub graphStreamOrdering: c_int,
    pub launchOrderImplicit: c_int,
    pub numRmaSig: c_int,
    pub rmaEagerInit: c_int,
    pub hostCftMode: c_int,
    pub nvlsHostMode: c_int,
}
#[repr(C)]
#[derive(Copy, Clone)]
pub struct ncclConfigExt {
    pub next: *mut ncclConfigExt,
    pub key: ncclConfigExt__bindgen_ty_1,
    pub val: ncclConfigExt__bindgen_ty_2,
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, PartialEq, Eq)]
pub struct ncclConfigExt__bindgen_ty_1 {
    pub vendorId: c_int,
    pub optionId: c_int,
}
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub struct ncclCollConfig_v23200 {
    pub size: usize,
    pub magic: c_uint,
    pub version: c_uint,
    pub ext: *mut ncclConfigExt_t,
    pub minCTAs: c_int,
    pub maxCTAs: c_int,
    pub nvlsCTAs: c_int,
    pub cgaClusterSize: c_int,
    pub algSelection: *const c_char,
    pub forceAlgSelection: c_int,
    pub CTAPolicy: c_int,
    pub userProfilerTag: u64,
    pub launchCompletionEvent: cudaEvent_t,
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, PartialEq)]
pub struct ncclSimInfo_v22200 {
    pub size: usize,
    pub magic: c_uint,
    pub version: c_uint,
    pub estimatedTime: f32,
}
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct ncclCommMemStat_t(pub c_uint);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct ncclRedOp_t(pub c_uint);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct ncclDataType_t(pub c_uint);
#[repr(transparent)]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct ncclScalarResidence_t(pub c_uint);
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, PartialEq, Eq)]
pub struct ncclWaitSignalDesc_t {
    pub opCnt: c_int,
    pub peer: c_int,
    pub sigIdx: c_int,
    pub ctx: c_int,
}
pub const NCCL_VERSION_CODE: u32 = 23203;
pub const NCCL_UNIQUE_ID_BYTES: u32 = 128;
pub const NCCL_SPLIT_NOCOLOR: i32 = -1;
pub const NCCL_API_MAGIC: u32 = 3405692655;
pub const NCCL_WIN_DEFAULT: u32 = 0;
pub const NCCL_WIN_COLL_SYMMETRIC: u32 = 1;
pub const NCCL_WIN_STRICT_ORDERING: u32 = 2;
pub const NCCL_WIN_GIN_ONLY: u32 = 4;
pub const NCCL_WIN_CFT_COUNTED: u32 = 8;
pub const NCCL_WIN_REQUIRED_ALIGNMENT: u32 = 4096;
pub const NCCL_CTA_POLICY_DEFAULT: u32 = 0;
pub const NCCL_CTA_POLICY_EFFICIENCY: u32 = 1;
pub const NCCL_CTA_POLICY_ZERO: u32 = 2;
pub const NCCL_SHRINK_DEFAULT: u32 = 0;
pub const NCCL_SHRINK_ABORT: u32 = 1;
pub const NCCL_REVOKE_DEFAULT: u32 = 0;
pub const NCCL_SUSPEND_MEM: u32 = 1;
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ncclUniqueId"][::core::mem::size_of::<ncclUniqueId>() - 128usize];
    ["Alignment of ncclUniqueId"][::core::mem::align_of::<ncclUniqueId>() - 1usize];
    ["Offset of field: ncclUniqueId::internal"][::core::mem::offset_of!(ncclUniqueId, internal) - 0usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ncclConfig_v23100"][::core::mem::size_of::<ncclConfig_v23100>() - 120usize];
    ["Alignment of ncclConfig_v23100"][::core::mem::align_of::<ncclConfig_v23100>() - 8usize];
    ["Offset of field: ncclConfig_v23100::size"][::core::mem::offset_of!(ncclConfig_v23100, size) - 0usize];
    ["Offset of field: ncclConfig_v23100::magic"][::core::mem::offset_of!(ncclConfig_v23100, magic) - 8usize];
    ["Offset of field: ncclConfig_v23100::version"]
        [::core::mem::offset_of!(ncclConfig_v23100, version) - 12usize];
    ["Offset of field: ncclConfig_v23100::blocking"]
        [::core::mem::offset_of!(ncclConfig_v23100, blocking) - 16usize];
    ["Offset of field: ncclConfig_v23100::cgaClusterSize"]
        [::core::mem::offset_of!(ncclConfig_v23100, cgaClusterSize) - 20usize];
    ["Offset of field: ncclConfig_v23100::minCTAs"]
        [::core::mem::offset_of!(ncclConfig_v23100, minCTAs) - 24usize];
    ["Offset of field: ncclConfig_v23100::maxCTAs"]
        [::core::mem::offset_of!(ncclConfig_v23100, maxCTAs) - 28usize];
    ["Offset of field: ncclConfig_v23100::netName"]
        [::core::mem::offset_of!(ncclConfig_v23100, netName) - 32usize];
    ["Offset of field: ncclConfig_v23100::splitShare"]
        [::core::mem::offset_of!(ncclConfig_v23100, splitShare) - 40usize];
    ["Offset of field: ncclConfig_v23100::trafficClass"]
        [::core::mem::offset_of!(ncclConfig_v23100, trafficClass) - 44usize];
    ["Offset of field: ncclConfig_v23100::commName"]
        [::core::mem::offset_of!(ncclConfig_v23100, commName) - 48usize];
    ["Offset of field: ncclConfig_v23100::collnetEnable"]
        [::core::mem::offset_of!(ncclConfig_v23100, collnetEnable) - 56usize];
    ["Offset of field: ncclConfig_v23100::CTAPolicy"]
        [::core::mem::offset_of!(ncclConfig_v23100, CTAPolicy) - 60usize];
    ["Offset of field: ncclConfig_v23100::shrinkShare"]
        [::core::mem::offset_of!(ncclConfig_v23100, shrinkShare) - 64usize];
    ["Offset of field: ncclConfig_v23100::nvlsCTAs"]
        [::core::mem::offset_of!(ncclConfig_v23100, nvlsCTAs) - 68usize];
    ["Offset of field: ncclConfig_v23100::nChannelsPerNetPeer"]
        [::core::mem::offset_of!(ncclConfig_v23100, nChannelsPerNetPeer) - 72usize];
    ["Offset of field: ncclConfig_v23100::nvlinkCentricSched"]
        [::core::mem::offset_of!(ncclConfig_v23100, nvlinkCentricSched) - 76usize];
    ["Offset of field: ncclConfig_v23100::graphUsageMode"]
        [::core::mem::offset_of!(ncclConfig_v23100, graphUsageMode) - 80usize];
    ["Offset of field: ncclConfig_v23100::numRmaCtx"]
        [::core::mem::offset_of!(ncclConfig_v23100, numRmaCtx) - 84usize];
    ["Offset of field: ncclConfig_v23100::maxP2pPeers"]
        [::core::mem::offset_of!(ncclConfig_v23100, maxP2pPeers) - 88usize];
    ["Offset of field: ncclConfig_v23100::graphStreamOrdering"]
        [::core::mem::offset_of!(ncclConfig_v23100, graphStreamOrdering) - 92usize];
    ["Offset of field: ncclConfig_v23100::launchOrderImplicit"]
        [::core::mem::offset_of!(ncclConfig_v23100, launchOrderImplicit) - 96usize];
    ["Offset of field: ncclConfig_v23100::numRmaSig"]
        [::core::mem::offset_of!(ncclConfig_v23100, numRmaSig) - 100usize];
    ["Offset of field: ncclConfig_v23100::rmaEagerInit"]
        [::core::mem::offset_of!(ncclConfig_v23100, rmaEagerInit) - 104usize];
    ["Offset of field: ncclConfig_v23100::hostCftMode"]
        [::core::mem::offset_of!(ncclConfig_v23100, hostCftMode) - 108usize];
    ["Offset of field: ncclConfig_v23100::nvlsHostMode"]
        [::core::mem::offset_of!(ncclConfig_v23100, nvlsHostMode) - 112usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ncclConfigExt__bindgen_ty_1"][::core::mem::size_of::<ncclConfigExt__bindgen_ty_1>() - 8usize];
    ["Alignment of ncclConfigExt__bindgen_ty_1"]
        [::core::mem::align_of::<ncclConfigExt__bindgen_ty_1>() - 4usize];
    ["Offset of field: ncclConfigExt__bindgen_ty_1::vendorId"]
        [::core::mem::offset_of!(ncclConfigExt__bindgen_ty_1, vendorId) - 0usize];
    ["Offset of field: ncclConfigExt__bindgen_ty_1::optionId"]
        [::core::mem::offset_of!(ncclConfigExt__bindgen_ty_1, optionId) - 4usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ncclConfigExt__bindgen_ty_2"][::core::mem::size_of::<ncclConfigExt__bindgen_ty_2>() - 8usize];
    ["Alignment of ncclConfigExt__bindgen_ty_2"]
        [::core::mem::align_of::<ncclConfigExt__bindgen_ty_2>() - 8usize];
    ["Offset of field: ncclConfigExt__bindgen_ty_2::i"]
        [::core::mem::offset_of!(ncclConfigExt__bindgen_ty_2, i) - 0usize];
    ["Offset of field: ncclConfigExt__bindgen_ty_2::s"]
        [::core::mem::offset_of!(ncclConfigExt__bindgen_ty_2, s) - 0usize];
    ["Offset of field: ncclConfigExt__bindgen_ty_2::raw"]
        [::core::mem::offset_of!(ncclConfigExt__bindgen_ty_2, raw) - 0usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ncclConfigExt"][::core::mem::size_of::<ncclConfigExt>() - 24usize];
    ["Alignment of ncclConfigExt"][::core::mem::align_of::<ncclConfigExt>() - 8usize];
    ["Offset of field: ncclConfigExt::next"][::core::mem::offset_of!(ncclConfigExt, next) - 0usize];
    ["Offset of field: ncclConfigExt::key"][::core::mem::offset_of!(ncclConfigExt, key) - 8usize];
    ["Offset of field: ncclConfigExt::val"][::core::mem::offset_of!(ncclConfigExt, val) - 16usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ncclCollConfig_v23200"][::core::mem::size_of::<ncclCollConfig_v23200>() - 72usize];
    ["Alignment of ncclCollConfig_v23200"][::core::mem::align_of::<ncclCollConfig_v23200>() - 8usize];
    ["Offset of field: ncclCollConfig_v23200::size"]
        [::core::mem::offset_of!(ncclCollConfig_v23200, size) - 0usize];
    ["Offset of field: ncclCollConfig_v23200::magic"]
        [::core::mem::offset_of!(ncclCollConfig_v23200, magic) - 8usize];
    ["Offset of field: ncclCollConfig_v23200::version"]
        [::core::mem::offset_of!(ncclCollConfig_v23200, version) - 12usize];
    ["Offset of field: ncclCollConfig_v23200::ext"]
        [::core::mem::offset_of!(ncclCollConfig_v23200, ext) - 16usize];
    ["Offset of field: ncclCollConfig_v23200::minCTAs"]
        [::core::mem::offset_of!(ncclCollConfig_v23200, minCTAs) - 24usize];
    ["Offset of field: ncclCollConfig_v23200::maxCTAs"]
        [::core::mem::offset_of!(ncclCollConfig_v23200, maxCTAs) - 28usize];
    ["Offset of field: ncclCollConfig_v23200::nvlsCTAs"]
        [::core::mem::offset_of!(ncclCollConfig_v23200, nvlsCTAs) - 32usize];
    ["Offset of field: ncclCollConfig_v23200::cgaClusterSize"]
        [::core::mem::offset_of!(ncclCollConfig_v23200, cgaClusterSize) - 36usize];
    ["Offset of field: ncclCollConfig_v23200::algSelection"]
        [::core::mem::offset_of!(ncclCollConfig_v23200, algSelection) - 40usize];
    ["Offset of field: ncclCollConfig_v23200::forceAlgSelection"]
        [::core::mem::offset_of!(ncclCollConfig_v23200, forceAlgSelection) - 48usize];
    ["Offset of field: ncclCollConfig_v23200::CTAPolicy"]
        [::core::mem::offset_of!(ncclCollConfig_v23200, CTAPolicy) - 52usize];
    ["Offset of field: ncclCollConfig_v23200::userProfilerTag"]
        [::core::mem::offset_of!(ncclCollConfig_v23200, userProfilerTag) - 56usize];
    ["Offset of field: ncclCollConfig_v23200::launchCompletionEvent"]
        [::core::mem::offset_of!(ncclCollConfig_v23200, launchCompletionEvent) - 64usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ncclSimInfo_v22200"][::core::mem::size_of::<ncclSimInfo_v22200>() - 24usize];
    ["Alignment of ncclSimInfo_v22200"][::core::mem::align_of::<ncclSimInfo_v22200>() - 8usize];
    ["Offset of field: ncclSimInfo_v22200::size"][::core::mem::offset_of!(ncclSimInfo_v22200, size) - 0usize];
    ["Offset of field: ncclSimInfo_v22200::magic"]
        [::core::mem::offset_of!(ncclSimInfo_v22200, magic) - 8usize];
    ["Offset of field: ncclSimInfo_v22200::version"]
        [::core::mem::offset_of!(ncclSimInfo_v22200, version) - 12usize];
    ["Offset of field: ncclSimInfo_v22200::estimatedTime"]
        [::core::mem::offset_of!(ncclSimInfo_v22200, estimatedTime) - 16usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ncclWaitSignalDesc_t"][::core::mem::size_of::<ncclWaitSignalDesc_t>() - 16usize];
    ["Alignment of ncclWaitSignalDesc_t"][::core::mem::align_of::<ncclWaitSignalDesc_t>() - 4usize];
    ["Offset of field: ncclWaitSignalDesc_t::opCnt"]
        [::core::mem::offset_of!(ncclWaitSignalDesc_t, opCnt) - 0usize];
    ["Offset of field: ncclWaitSignalDesc_t::peer"]
        [::core::mem::offset_of!(ncclWaitSignalDesc_t, peer) - 4usize];
    ["Offset of field: ncclWaitSignalDesc_t::sigIdx"]
        [::core::mem::offset_of!(ncclWaitSignalDesc_t, sigIdx) - 8usize];
    ["Offset of field: ncclWaitSignalDesc_t::ctx"]
        [::core::mem::offset_of!(ncclWaitSignalDesc_t, ctx) - 12usize];
};
#[repr(C)]
#[derive(Copy, Clone)]
pub union ncclConfigExt__bindgen_ty_2 {
    pub i: c_int,
    pub s: *const c_char,
    pub raw: *mut c_void,
}
impl Default for ncclUniqueId {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
impl ncclResult_t {
    pub const ncclSuccess: ncclResult_t = ncclResult_t(0);
    pub const ncclUnhandledCudaError: ncclResult_t = ncclResult_t(1);
    pub const ncclSystemError: ncclResult_t = ncclResult_t(2);
    pub const ncclInternalError: ncclResult_t = ncclResult_t(3);
    pub const ncclInvalidArgument: ncclResult_t = ncclResult_t(4);
    pub const ncclInvalidUsage: ncclResult_t = ncclResult_t(5);
    pub const ncclRemoteError: ncclResult_t = ncclResult_t(6);
    pub const ncclInProgress: ncclResult_t = ncclResult_t(7);
    pub const ncclTimeout: ncclResult_t = ncclResult_t(8);
    pub const ncclNumResults: ncclResult_t = ncclResult_t(9);
}
impl ncclHostCftMode_t {
    pub const ncclHostCftDefault: ncclHostCftMode_t = ncclHostCftMode_t(-2147483648);
    pub const ncclHostCftEnable: ncclHostCftMode_t = ncclHostCftMode_t(1);
    pub const ncclHostCftDisable: ncclHostCftMode_t = ncclHostCftMode_t(2);
    pub const ncclHostCftFallback: ncclHostCftMode_t = ncclHostCftMode_t(3);
}
impl ncclNvlsHostMode_t {
    pub const ncclNvlsHostModeDefault: ncclNvlsHostMode_t = ncclNvlsHostMode_t(-2147483648);
    pub const ncclNvlsHostModeEnable: ncclNvlsHostMode_t = ncclNvlsHostMode_t(0);
    pub const ncclNvlsHostModeDisableTransport: ncclNvlsHostMode_t = ncclNvlsHostMode_t(1);
    pub const ncclNvlsHostModeDisableSymmetricMultimem: ncclNvlsHostMode_t = ncclNvlsHostMode_t(2);
    pub const ncclNvlsHostModeDisable: ncclNvlsHostMode_t = ncclNvlsHostMode_t(2147483647);
}
impl Default for ncclConfig_v23100 {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
impl Default for ncclConfigExt__bindgen_ty_2 {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
impl Default for ncclConfigExt {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
impl Default for ncclCollConfig_v23200 {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
impl ncclCommMemStat_t {
    pub const ncclStatGpuMemSuspend: ncclCommMemStat_t = ncclCommMemStat_t(0);
    pub const ncclStatGpuMemSuspended: ncclCommMemStat_t = ncclCommMemStat_t(1);
    pub const ncclStatGpuMemPersist: ncclCommMemStat_t = ncclCommMemStat_t(2);
    pub const ncclStatGpuMemTotal: ncclCommMemStat_t = ncclCommMemStat_t(3);
}
impl ncclRedOp_t {
    pub const ncclSum: ncclRedOp_t = ncclRedOp_t(0);
    pub const ncclProd: ncclRedOp_t = ncclRedOp_t(1);
    pub const ncclMax: ncclRedOp_t = ncclRedOp_t(2);
    pub const ncclMin: ncclRedOp_t = ncclRedOp_t(3);
    pub const ncclAvg: ncclRedOp_t = ncclRedOp_t(4);
    pub const ncclNumOps: ncclRedOp_t = ncclRedOp_t(5);
    pub const ncclMaxRedOp: ncclRedOp_t = ncclRedOp_t(2147483647);
}
impl ncclDataType_t {
    pub const ncclInt8: ncclDataType_t = ncclDataType_t(0);
    pub const ncclChar: ncclDataType_t = ncclDataType_t(0);
    pub const ncclUint8: ncclDataType_t = ncclDataType_t(1);
    pub const ncclInt32: ncclDataType_t = ncclDataType_t(2);
    pub const ncclInt: ncclDataType_t = ncclDataType_t(2);
    pub const ncclUint32: ncclDataType_t = ncclDataType_t(3);
    pub const ncclInt64: ncclDataType_t = ncclDataType_t(4);
    pub const ncclUint64: ncclDataType_t = ncclDataType_t(5);
    pub const ncclFloat16: ncclDataType_t = ncclDataType_t(6);
    pub const ncclHalf: ncclDataType_t = ncclDataType_t(6);
    pub const ncclFloat32: ncclDataType_t = ncclDataType_t(7);
    pub const ncclFloat: ncclDataType_t = ncclDataType_t(7);
    pub const ncclFloat64: ncclDataType_t = ncclDataType_t(8);
    pub const ncclDouble: ncclDataType_t = ncclDataType_t(8);
    pub const ncclBfloat16: ncclDataType_t = ncclDataType_t(9);
    pub const ncclFloat8e4m3: ncclDataType_t = ncclDataType_t(10);
    pub const ncclFloat8e5m2: ncclDataType_t = ncclDataType_t(11);
    pub const ncclNumTypes: ncclDataType_t = ncclDataType_t(12);
}
impl ncclScalarResidence_t {
    pub const ncclScalarDevice: ncclScalarResidence_t = ncclScalarResidence_t(0);
    pub const ncclScalarHostImmediate: ncclScalarResidence_t = ncclScalarResidence_t(1);
}
functions! {
    /// NCCL (`libnccl`) and RCCL (`librccl`).
    Nccl {
        fn ncclMemAlloc(ptr: *mut *mut c_void, size: usize) -> ncclResult_t;
        fn ncclMemFree(ptr: *mut c_void) -> ncclResult_t;
        fn ncclGetVersion(version: *mut c_int) -> ncclResult_t;
        fn ncclGetUniqueId(uniqueId: *mut ncclUniqueId) -> ncclResult_t;
        fn ncclCommInitRankConfig(comm: *mut ncclComm_t, nranks: c_int, commId: ncclUniqueId, rank: c_int, config: *mut ncclConfig_t) -> ncclResult_t;
        fn ncclCommInitRank(comm: *mut ncclComm_t, nranks: c_int, commId: ncclUniqueId, rank: c_int) -> ncclResult_t;
        fn ncclCommInitAll(comm: *mut ncclComm_t, ndev: c_int, devlist: *const c_int) -> ncclResult_t;
        fn ncclCommFinalize(comm: ncclComm_t) -> ncclResult_t;
        fn ncclCommDestroy(comm: ncclComm_t) -> ncclResult_t;
        fn ncclCommAbort(comm: ncclComm_t) -> ncclResult_t;
        fn ncclCommRevoke(comm: ncclComm_t, revokeFlags: c_int) -> ncclResult_t;
        fn ncclCommSplit(comm: ncclComm_t, color: c_int, key: c_int, newcomm: *mut ncclComm_t, config: *mut ncclConfig_t) -> ncclResult_t;
        fn ncclCommShrink(comm: ncclComm_t, excludeRanksList: *mut c_int, excludeRanksCount: c_int, newcomm: *mut ncclComm_t, config: *mut ncclConfig_t, shrinkFlags: c_int) -> ncclResult_t;
        fn ncclCommGetUniqueId(comm: ncclComm_t, uniqueId: *mut ncclUniqueId) -> ncclResult_t;
        fn ncclCommGrow(comm: ncclComm_t, nRanks: c_int, uniqueId: *const ncclUniqueId, rank: c_int, newcomm: *mut ncclComm_t, config: *mut ncclConfig_t) -> ncclResult_t;
        fn ncclCommInitRankScalable(newcomm: *mut ncclComm_t, nranks: c_int, myrank: c_int, nId: c_int, commIds: *mut ncclUniqueId, config: *mut ncclConfig_t) -> ncclResult_t;
        fn ncclGetErrorString(result: ncclResult_t) -> *const c_char;
        fn ncclGetLastError(comm: ncclComm_t) -> *const c_char;
        fn ncclCommGetAsyncError(comm: ncclComm_t, asyncError: *mut ncclResult_t) -> ncclResult_t;
        fn ncclCommCount(comm: ncclComm_t, count: *mut c_int) -> ncclResult_t;
        fn ncclCommCuDevice(comm: ncclComm_t, device: *mut c_int) -> ncclResult_t;
        fn ncclCommUserRank(comm: ncclComm_t, rank: *mut c_int) -> ncclResult_t;
        fn ncclCommRegister(comm: ncclComm_t, buff: *mut c_void, size: usize, handle: *mut *mut c_void) -> ncclResult_t;
        fn ncclCommDeregister(comm: ncclComm_t, handle: *mut c_void) -> ncclResult_t;
        fn ncclCommSuspend(comm: ncclComm_t, flags: c_int) -> ncclResult_t;
        fn ncclCommResume(comm: ncclComm_t) -> ncclResult_t;
        fn ncclCommMemStats(comm: ncclComm_t, stat: ncclCommMemStat_t, value: *mut u64) -> ncclResult_t;
        fn ncclCommWindowRegister(comm: ncclComm_t, buff: *mut c_void, size: usize, win: *mut ncclWindow_t, winFlags: c_int) -> ncclResult_t;
        fn ncclCommWindowDeregister(comm: ncclComm_t, win: ncclWindow_t) -> ncclResult_t;
        fn ncclWinGetUserPtr(comm: ncclComm_t, win: ncclWindow_t, outUserPtr: *mut *mut c_void) -> ncclResult_t;
        fn ncclRedOpCreatePreMulSum(op: *mut ncclRedOp_t, scalar: *mut c_void, datatype: ncclDataType_t, residence: ncclScalarResidence_t, comm: ncclComm_t) -> ncclResult_t;
        fn ncclRedOpDestroy(op: ncclRedOp_t, comm: ncclComm_t) -> ncclResult_t;
        fn ncclReduce(sendbuff: *const c_void, recvbuff: *mut c_void, count: usize, datatype: ncclDataType_t, op: ncclRedOp_t, root: c_int, comm: ncclComm_t, stream: cudaStream_t) -> ncclResult_t;
        fn ncclBcast(buff: *mut c_void, count: usize, datatype: ncclDataType_t, root: c_int, comm: ncclComm_t, stream: cudaStream_t) -> ncclResult_t;
        fn ncclBroadcast(sendbuff: *const c_void, recvbuff: *mut c_void, count: usize, datatype: ncclDataType_t, root: c_int, comm: ncclComm_t, stream: cudaStream_t) -> ncclResult_t;
        fn ncclAllReduce(sendbuff: *const c_void, recvbuff: *mut c_void, count: usize, datatype: ncclDataType_t, op: ncclRedOp_t, comm: ncclComm_t, stream: cudaStream_t) -> ncclResult_t;
        fn ncclReduceScatter(sendbuff: *const c_void, recvbuff: *mut c_void, recvcount: usize, datatype: ncclDataType_t, op: ncclRedOp_t, comm: ncclComm_t, stream: cudaStream_t) -> ncclResult_t;
        fn ncclAllGather(sendbuff: *const c_void, recvbuff: *mut c_void, sendcount: usize, datatype: ncclDataType_t, comm: ncclComm_t, stream: cudaStream_t) -> ncclResult_t;
        fn ncclAlltoAll(sendbuff: *const c_void, recvbuff: *mut c_void, count: usize, datatype: ncclDataType_t, comm: ncclComm_t, stream: cudaStream_t) -> ncclResult_t;
        fn ncclGather(sendbuff: *const c_void, recvbuff: *mut c_void, count: usize, datatype: ncclDataType_t, root: c_int, comm: ncclComm_t, stream: cudaStream_t) -> ncclResult_t;
        fn ncclScatter(sendbuff: *const c_void, recvbuff: *mut c_void, count: usize, datatype: ncclDataType_t, root: c_int, comm: ncclComm_t, stream: cudaStream_t) -> ncclResult_t;
        fn ncclAllReduceConfig(sendbuff: *const c_void, recvbuff: *mut c_void, count: usize, datatype: ncclDataType_t, op: ncclRedOp_t, comm: ncclComm_t, stream: cudaStream_t, config: *const ncclCollConfig_t) -> ncclResult_t;
        fn ncclBroadcastConfig(sendbuff: *const c_void, recvbuff: *mut c_void, count: usize, datatype: ncclDataType_t, root: c_int, comm: ncclComm_t, stream: cudaStream_t, config: *const ncclCollConfig_t) -> ncclResult_t;
        fn ncclReduceConfig(sendbuff: *const c_void, recvbuff: *mut c_void, count: usize, datatype: ncclDataType_t, op: ncclRedOp_t, root: c_int, comm: ncclComm_t, stream: cudaStream_t, config: *const ncclCollConfig_t) -> ncclResult_t;
        fn ncclAllGatherConfig(sendbuff: *const c_void, recvbuff: *mut c_void, sendcount: usize, datatype: ncclDataType_t, comm: ncclComm_t, stream: cudaStream_t, config: *const ncclCollConfig_t) -> ncclResult_t;
        fn ncclReduceScatterConfig(sendbuff: *const c_void, recvbuff: *mut c_void, recvcount: usize, datatype: ncclDataType_t, op: ncclRedOp_t, comm: ncclComm_t, stream: cudaStream_t, config: *const ncclCollConfig_t) -> ncclResult_t;
        fn ncclAlltoAllConfig(sendbuff: *const c_void, recvbuff: *mut c_void, count: usize, datatype: ncclDataType_t, comm: ncclComm_t, stream: cudaStream_t, config: *const ncclCollConfig_t) -> ncclResult_t;
        fn ncclGatherConfig(sendbuff: *const c_void, recvbuff: *mut c_void, count: usize, datatype: ncclDataType_t, root: c_int, comm: ncclComm_t, stream: cudaStream_t, config: *const ncclCollConfig_t) -> ncclResult_t;
        fn ncclScatterConfig(sendbuff: *const c_void, recvbuff: *mut c_void, count: usize, datatype: ncclDataType_t, root: c_int, comm: ncclComm_t, stream: cudaStream_t, config: *const ncclCollConfig_t) -> ncclResult_t;
        fn ncclSend(sendbuff: *const c_void, count: usize, datatype: ncclDataType_t, peer: c_int, comm: ncclComm_t, stream: cudaStream_t) -> ncclResult_t;
        fn ncclRecv(recvbuff: *mut c_void, count: usize, datatype: ncclDataType_t, peer: c_int, comm: ncclComm_t, stream: cudaStream_t) -> ncclResult_t;
        fn ncclPutSignal(localbuff: *const c_void, count: usize, datatype: ncclDataType_t, peer: c_int, peerWin: ncclWindow_t, peerWinOffset: usize, sigIdx: c_int, ctx: c_int, flags: c_uint, comm: ncclComm_t, stream: cudaStream_t) -> ncclResult_t;
        fn ncclSignal(peer: c_int, sigIdx: c_int, ctx: c_int, flags: c_uint, comm: ncclComm_t, stream: cudaStream_t) -> ncclResult_t;
        fn ncclWaitSignal(nDesc: c_int, signalDescs: *mut ncclWaitSignalDesc_t, comm: ncclComm_t, stream: cudaStream_t) -> ncclResult_t;
        fn ncclGroupStart() -> ncclResult_t;
        fn ncclGroupEnd() -> ncclResult_t;
        fn ncclGroupSimulateEnd(simInfo: *mut ncclSimInfo_t) -> ncclResult_t;
    }
}
