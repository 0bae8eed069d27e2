//! The functions of the driver and of NVRTC, resolved once.
//!
//! cudarc gives the types, the constants and the library names. Its functions are not called: they panic when a
//! symbol is missing, and they return the status as a Rust enum, in which a code that a newer driver has added is
//! undefined behaviour. That the signatures below are those of cudarc's bindings is checked by the compiler.

use crate::error::Status;
use cudarc::{
    driver::sys::{self as cuda, *},
    nvrtc::sys::{self as nvrtc, nvrtcProgram, nvrtcResult},
};
use libloading::Library;
use std::ffi::{c_char, c_int, c_uchar, c_uint, c_ulonglong, c_ushort, c_void};

macro_rules! functions {
    ($(#[$meta:meta])* $table:ident: $sys:ident -> $result:ty {
        $($(#[$mode:ident])? fn $name:ident($($arg:ident: $type:ty),*);)*
    }) => {
        $(#[$meta])*
        #[allow(non_snake_case, reason = "the names of the library")]
        pub(crate) struct $table {
            $($name: unsafe extern "C" fn($($type),*) -> Status,)*
        }

        $(const _: unsafe fn($($type),*) -> $result = $sys::$name;)*

        #[allow(non_snake_case, clippy::too_many_arguments, reason = "the functions of the library")]
        impl $table {
            /// Finds every function, or names the first that is missing.
            ///
            /// # Safety
            /// The library with this file name is the driver: its functions of these names have these signatures.
            pub(crate) unsafe fn resolve(library: &Library) -> Result<Self, &'static str> {
                $(
                    let symbol = concat!(stringify!($name), "\0").as_bytes();
                    // SAFETY: the caller vouches for the signature; `Status` is the C enum as an integer.
                    let $name = *unsafe { library.get::<unsafe extern "C" fn($($type),*) -> Status>(symbol) }
                        .map_err(|_| stringify!($name))?;
                )*
                Ok(Self { $($name,)* })
            }

            $(
                /// # Safety
                /// The call meets the conditions in the library's documentation.
                #[inline]
                pub(crate) unsafe fn $name(&self, $($arg: $type),*) -> Status {
                    $(let _mode = functions!($mode self);)?
                    // SAFETY: passed on to the caller.
                    unsafe { (self.$name)($($arg),*) }
                }
            )*
        }
    };
    (relaxed $api:ident) => {
        RelaxedMode::enter($api)
    };
}

functions! {
    /// The driver API as of CUDA 12.0, as far as it is used here.
    ///
    /// While a thread captures a stream in the mode that is CUDA's default, the driver refuses calls that wait or allocate, on every
    /// thread, and the refused call invalidates that capture. A thread in the relaxed mode may make them: that is what `relaxed` says.
    /// Which functions these are was found by calling each beside a capture; those that a test cannot call there have it too.
    DriverApi: cuda -> CUresult {
        fn cuInit(flags: c_uint);
        fn cuDriverGetVersion(version: *mut c_int);
        fn cuDeviceGet(device: *mut CUdevice, ordinal: c_int);
        fn cuDeviceGetCount(count: *mut c_int);
        fn cuDeviceGetName(name: *mut c_char, length: c_int, device: CUdevice);
        fn cuDeviceGetUuid_v2(uuid: *mut CUuuid, device: CUdevice);
        fn cuDeviceTotalMem_v2(bytes: *mut usize, device: CUdevice);
        fn cuDeviceGetAttribute(value: *mut c_int, attribute: CUdevice_attribute, device: CUdevice);
        fn cuDeviceCanAccessPeer(can: *mut c_int, device: CUdevice, peer: CUdevice);
        fn cuDevicePrimaryCtxRetain(context: *mut CUcontext, device: CUdevice);
        fn cuDevicePrimaryCtxRelease_v2(device: CUdevice);
        fn cuDevicePrimaryCtxReset_v2(device: CUdevice);
        fn cuCtxGetCurrent(context: *mut CUcontext);
        fn cuCtxPushCurrent_v2(context: CUcontext);
        fn cuCtxPopCurrent_v2(context: *mut CUcontext);
        fn cuCtxGetDevice(device: *mut CUdevice);
        fn cuCtxSynchronize();
        fn cuCtxGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int);
        #[relaxed]
        fn cuCtxEnablePeerAccess(peer: CUcontext, flags: c_uint);
        #[relaxed]
        fn cuCtxDisablePeerAccess(peer: CUcontext);
        fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
        #[relaxed]
        fn cuMemAlloc_v2(address: *mut CUdeviceptr, bytes: usize);
        #[relaxed]
        fn cuMemFree_v2(address: CUdeviceptr);
        #[relaxed]
        fn cuMemAllocManaged(address: *mut CUdeviceptr, bytes: usize, flags: c_uint);
        #[relaxed]
        fn cuMemAdvise(address: CUdeviceptr, bytes: usize, advice: CUmem_advise, device: CUdevice);
        fn cuMemPrefetchAsync(address: CUdeviceptr, bytes: usize, device: CUdevice, stream: CUstream);
        #[relaxed]
        fn cuMemHostAlloc(host: *mut *mut c_void, bytes: usize, flags: c_uint);
        #[relaxed]
        fn cuMemFreeHost(host: *mut c_void);
        fn cuMemHostGetDevicePointer_v2(address: *mut CUdeviceptr, host: *mut c_void, flags: c_uint);
        #[relaxed]
        fn cuMemHostRegister_v2(host: *mut c_void, bytes: usize, flags: c_uint);
        #[relaxed]
        fn cuMemHostUnregister(host: *mut c_void);
        fn cuMemGetAddressRange_v2(base: *mut CUdeviceptr, bytes: *mut usize, address: CUdeviceptr);
        fn cuPointerGetAttributes(
            count: c_uint, attributes: *mut CUpointer_attribute, values: *mut *mut c_void, address: CUdeviceptr
        );
        fn cuIpcGetMemHandle(handle: *mut CUipcMemHandle, address: CUdeviceptr);
        #[relaxed]
        fn cuIpcOpenMemHandle_v2(address: *mut CUdeviceptr, handle: CUipcMemHandle, flags: c_uint);
        #[relaxed]
        fn cuIpcCloseMemHandle(address: CUdeviceptr);
        fn cuMemcpyAsync(to: CUdeviceptr, from: CUdeviceptr, bytes: usize, stream: CUstream);
        fn cuMemcpyHtoDAsync_v2(to: CUdeviceptr, from: *const c_void, bytes: usize, stream: CUstream);
        fn cuMemcpyDtoHAsync_v2(to: *mut c_void, from: CUdeviceptr, bytes: usize, stream: CUstream);
        fn cuMemcpyDtoDAsync_v2(to: CUdeviceptr, from: CUdeviceptr, bytes: usize, stream: CUstream);
        fn cuMemcpyPeerAsync(
            to: CUdeviceptr, to_context: CUcontext, from: CUdeviceptr, from_context: CUcontext,
            bytes: usize, stream: CUstream
        );
        fn cuMemcpy2DAsync_v2(copy: *const CUDA_MEMCPY2D, stream: CUstream);
        fn cuMemcpy3DAsync_v2(copy: *const CUDA_MEMCPY3D, stream: CUstream);
        fn cuMemcpy3DPeerAsync(copy: *const CUDA_MEMCPY3D_PEER, stream: CUstream);
        fn cuMemsetD8Async(address: CUdeviceptr, value: c_uchar, count: usize, stream: CUstream);
        fn cuMemsetD16Async(address: CUdeviceptr, value: c_ushort, count: usize, stream: CUstream);
        fn cuMemsetD32Async(address: CUdeviceptr, value: c_uint, count: usize, stream: CUstream);
        fn cuMemsetD2D8Async(
            address: CUdeviceptr, pitch: usize, value: c_uchar, width: usize, height: usize,
            stream: CUstream
        );
        fn cuMemsetD2D16Async(
            address: CUdeviceptr, pitch: usize, value: c_ushort, width: usize, height: usize,
            stream: CUstream
        );
        fn cuMemsetD2D32Async(
            address: CUdeviceptr, pitch: usize, value: c_uint, width: usize, height: usize,
            stream: CUstream
        );
        fn cuStreamCreateWithPriority(stream: *mut CUstream, flags: c_uint, priority: c_int);
        #[relaxed]
        fn cuStreamDestroy_v2(stream: CUstream);
        #[relaxed]
        fn cuStreamQuery(stream: CUstream);
        #[relaxed]
        fn cuStreamSynchronize(stream: CUstream);
        fn cuStreamWaitEvent(stream: CUstream, event: CUevent, flags: c_uint);
        fn cuStreamGetId(stream: CUstream, id: *mut c_ulonglong);
        fn cuStreamIsCapturing(stream: CUstream, status: *mut CUstreamCaptureStatus);
        #[relaxed]
        fn cuStreamBeginCapture_v2(stream: CUstream, mode: CUstreamCaptureMode);
        fn cuStreamGetCaptureInfo_v2(
            stream: CUstream, status: *mut CUstreamCaptureStatus, id: *mut cuuint64_t, graph: *mut CUgraph,
            dependencies: *mut *const CUgraphNode, count: *mut usize
        );
        #[relaxed]
        fn cuStreamEndCapture(stream: CUstream, graph: *mut CUgraph);
        fn cuThreadExchangeStreamCaptureMode(mode: *mut CUstreamCaptureMode);
        #[relaxed]
        fn cuGraphInstantiateWithFlags(executable: *mut CUgraphExec, graph: CUgraph, flags: c_ulonglong);
        fn cuGraphExecKernelNodeSetParams_v2(
            executable: CUgraphExec, node: CUgraphNode, parameters: *const CUDA_KERNEL_NODE_PARAMS
        );
        fn cuGraphLaunch(executable: CUgraphExec, stream: CUstream);
        #[relaxed]
        fn cuGraphExecDestroy(executable: CUgraphExec);
        #[relaxed]
        fn cuGraphDestroy(graph: CUgraph);
        fn cuEventCreate(event: *mut CUevent, flags: c_uint);
        #[relaxed]
        fn cuEventDestroy_v2(event: CUevent);
        fn cuEventRecord(event: CUevent, stream: CUstream);
        #[relaxed]
        fn cuEventQuery(event: CUevent);
        #[relaxed]
        fn cuEventSynchronize(event: CUevent);
        #[relaxed]
        fn cuEventElapsedTime(milliseconds: *mut f32, start: CUevent, end: CUevent);
        #[relaxed]
        fn cuModuleLoadDataEx(
            module: *mut CUmodule, image: *const c_void, options: c_uint, keys: *mut CUjit_option,
            values: *mut *mut c_void
        );
        #[relaxed]
        fn cuModuleUnload(module: CUmodule);
        fn cuModuleGetFunction(function: *mut CUfunction, module: CUmodule, name: *const c_char);
        fn cuModuleGetGlobal_v2(
            address: *mut CUdeviceptr, bytes: *mut usize, module: CUmodule, name: *const c_char
        );
        fn cuFuncGetAttribute(value: *mut c_int, attribute: CUfunction_attribute, function: CUfunction);
        fn cuFuncSetAttribute(function: CUfunction, attribute: CUfunction_attribute, value: c_int);
        fn cuLaunchKernel(
            function: CUfunction, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint,
            block_y: c_uint, block_z: c_uint, shared: c_uint, stream: CUstream,
            arguments: *mut *mut c_void, extra: *mut *mut c_void
        );
    }
}

functions! {
    /// NVRTC, as far as it is used here.
    NvrtcApi: nvrtc -> nvrtcResult {
        fn nvrtcVersion(major: *mut c_int, minor: *mut c_int);
        fn nvrtcGetNumSupportedArchs(count: *mut c_int);
        fn nvrtcGetSupportedArchs(architectures: *mut c_int);
        fn nvrtcCreateProgram(
            program: *mut nvrtcProgram, source: *const c_char, name: *const c_char, headers: c_int,
            texts: *const *const c_char, names: *const *const c_char
        );
        fn nvrtcDestroyProgram(program: *mut nvrtcProgram);
        fn nvrtcCompileProgram(program: nvrtcProgram, count: c_int, options: *const *const c_char);
        fn nvrtcGetProgramLogSize(program: nvrtcProgram, bytes: *mut usize);
        fn nvrtcGetProgramLog(program: nvrtcProgram, log: *mut c_char);
        fn nvrtcGetCUBINSize(program: nvrtcProgram, bytes: *mut usize);
        fn nvrtcGetCUBIN(program: nvrtcProgram, cubin: *mut c_char);
    }
}

/// The mode of a thread whose calls no capture minds.
pub(crate) const RELAXED: CUstreamCaptureMode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;

/// While it lives, its thread is in the relaxed mode.
struct RelaxedMode<'a> {
    api: &'a DriverApi,
    before: CUstreamCaptureMode,
}

impl<'a> RelaxedMode<'a> {
    /// With its drop, this costs 20 ns.
    #[inline]
    fn enter(api: &'a DriverApi) -> Self {
        let mut before = RELAXED;
        // SAFETY: a place for the mode, which the driver exchanges with that of the thread.
        let _ = unsafe { api.cuThreadExchangeStreamCaptureMode(&mut before) };
        Self { api, before }
    }
}

impl Drop for RelaxedMode<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: as above.
        let _ = unsafe { self.api.cuThreadExchangeStreamCaptureMode(&mut self.before) };
    }
}
