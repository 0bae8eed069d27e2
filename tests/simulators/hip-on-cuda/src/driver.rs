//! The functions of the CUDA driver and of NVRTC, loaded at run time.
//!
//! cudarc gives the types. That the signatures below are those of its bindings is checked by the compiler; statuses
//! are integers here, because a newer driver may have codes that an enumeration of today has not.

use cudarc::{
    driver::sys::{self as cuda, *},
    nvrtc::sys::{self as nvrtc, nvrtcProgram, nvrtcResult},
};
use libloading::Library;
use std::{
    env,
    ffi::{c_char, c_int, c_uchar, c_uint, c_ulonglong, c_ushort, c_void},
};

/// A status of the driver or of NVRTC as an integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
#[must_use]
pub(crate) struct Status(pub(crate) c_uint);

macro_rules! functions {
    ($(#[$meta:meta])* $table:ident: $sys:ident -> $result:ty { $(fn $name:ident($($arg:ident: $type:ty),*);)* }) => {
        $(#[$meta])*
        #[allow(non_snake_case, reason = "the names of the library")]
        pub(crate) struct $table { $($name: unsafe extern "C" fn($($type),*) -> Status,)* }

        $(const _: unsafe fn($($type),*) -> $result = $sys::$name;)*

        #[allow(non_snake_case, clippy::too_many_arguments, reason = "the functions of the library")]
        impl $table {
            /// # Safety
            /// The library with this file name is the driver: its functions of these names have these signatures.
            unsafe fn resolve(library: &Library) -> Result<Self, &'static str> {
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
                    // SAFETY: passed on to the caller.
                    unsafe { (self.$name)($($arg),*) }
                }
            )*
        }
    };
}

functions! {
    /// The driver API as of CUDA 12.0, as far as HIP needs it.
    DriverApi: cuda -> CUresult {
        fn cuInit(flags: c_uint);
        fn cuDeviceGet(device: *mut CUdevice, ordinal: c_int);
        fn cuDeviceGetCount(count: *mut c_int);
        fn cuDeviceGetName(name: *mut c_char, length: c_int, device: CUdevice);
        fn cuDeviceGetUuid_v2(uuid: *mut CUuuid, device: CUdevice);
        fn cuDeviceGetPCIBusId(text: *mut c_char, length: c_int, device: CUdevice);
        fn cuDeviceGetByPCIBusId(device: *mut CUdevice, text: *const c_char);
        fn cuDeviceTotalMem_v2(bytes: *mut usize, device: CUdevice);
        fn cuDeviceGetAttribute(value: *mut c_int, attribute: CUdevice_attribute, device: CUdevice);
        fn cuDeviceGetP2PAttribute(
            value: *mut c_int, attribute: CUdevice_P2PAttribute, device: CUdevice, peer: CUdevice
        );
        fn cuDeviceCanAccessPeer(can: *mut c_int, device: CUdevice, peer: CUdevice);
        fn cuDevicePrimaryCtxRetain(context: *mut CUcontext, device: CUdevice);
        fn cuDevicePrimaryCtxRelease_v2(device: CUdevice);
        fn cuDevicePrimaryCtxReset_v2(device: CUdevice);
        fn cuDevicePrimaryCtxSetFlags_v2(device: CUdevice, flags: c_uint);
        fn cuDevicePrimaryCtxGetState(device: CUdevice, flags: *mut c_uint, active: *mut c_int);
        fn cuCtxPushCurrent_v2(context: CUcontext);
        fn cuCtxPopCurrent_v2(context: *mut CUcontext);
        fn cuCtxSetCurrent(context: CUcontext);
        fn cuCtxSynchronize();
        fn cuCtxGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int);
        fn cuCtxGetLimit(value: *mut usize, limit: CUlimit);
        fn cuCtxEnablePeerAccess(peer: CUcontext, flags: c_uint);
        fn cuCtxDisablePeerAccess(peer: CUcontext);
        fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
        fn cuMemAlloc_v2(address: *mut CUdeviceptr, bytes: usize);
        fn cuMemAllocPitch_v2(
            address: *mut CUdeviceptr, pitch: *mut usize, width: usize, height: usize, element: c_uint
        );
        fn cuMemFree_v2(address: CUdeviceptr);
        fn cuMemAllocManaged(address: *mut CUdeviceptr, bytes: usize, flags: c_uint);
        fn cuMemRangeGetAttribute(
            value: *mut c_void, bytes: usize, attribute: CUmem_range_attribute, address: CUdeviceptr, count: usize
        );
        fn cuMemAdvise(address: CUdeviceptr, bytes: usize, advice: CUmem_advise, device: CUdevice);
        fn cuMemPrefetchAsync(address: CUdeviceptr, bytes: usize, device: CUdevice, stream: CUstream);
        fn cuMemHostAlloc(host: *mut *mut c_void, bytes: usize, flags: c_uint);
        fn cuMemFreeHost(host: *mut c_void);
        fn cuMemHostGetDevicePointer_v2(address: *mut CUdeviceptr, host: *mut c_void, flags: c_uint);
        fn cuMemHostRegister_v2(host: *mut c_void, bytes: usize, flags: c_uint);
        fn cuMemHostUnregister(host: *mut c_void);
        fn cuMemGetAddressRange_v2(base: *mut CUdeviceptr, bytes: *mut usize, address: CUdeviceptr);
        fn cuPointerGetAttribute(value: *mut c_void, attribute: CUpointer_attribute, address: CUdeviceptr);
        fn cuIpcGetMemHandle(handle: *mut CUipcMemHandle, address: CUdeviceptr);
        fn cuIpcOpenMemHandle_v2(address: *mut CUdeviceptr, handle: CUipcMemHandle, flags: c_uint);
        fn cuIpcCloseMemHandle(address: CUdeviceptr);
        fn cuIpcGetEventHandle(handle: *mut CUipcEventHandle, event: CUevent);
        fn cuIpcOpenEventHandle(event: *mut CUevent, handle: CUipcEventHandle);
        fn cuMemcpy(to: CUdeviceptr, from: CUdeviceptr, bytes: usize);
        fn cuMemcpyAsync(to: CUdeviceptr, from: CUdeviceptr, bytes: usize, stream: CUstream);
        fn cuMemcpyPeer(
            to: CUdeviceptr, to_context: CUcontext, from: CUdeviceptr, from_context: CUcontext, bytes: usize
        );
        fn cuMemcpyPeerAsync(
            to: CUdeviceptr, to_context: CUcontext, from: CUdeviceptr, from_context: CUcontext,
            bytes: usize, stream: CUstream
        );
        fn cuMemcpy2DUnaligned_v2(copy: *const CUDA_MEMCPY2D);
        fn cuMemcpy2DAsync_v2(copy: *const CUDA_MEMCPY2D, stream: CUstream);
        fn cuMemcpy3D_v2(copy: *const CUDA_MEMCPY3D);
        fn cuMemcpy3DAsync_v2(copy: *const CUDA_MEMCPY3D, stream: CUstream);
        fn cuMemsetD8_v2(address: CUdeviceptr, value: c_uchar, count: usize);
        fn cuMemsetD16_v2(address: CUdeviceptr, value: c_ushort, count: usize);
        fn cuMemsetD32_v2(address: CUdeviceptr, value: c_uint, count: usize);
        fn cuMemsetD8Async(address: CUdeviceptr, value: c_uchar, count: usize, stream: CUstream);
        fn cuMemsetD16Async(address: CUdeviceptr, value: c_ushort, count: usize, stream: CUstream);
        fn cuMemsetD32Async(address: CUdeviceptr, value: c_uint, count: usize, stream: CUstream);
        fn cuMemsetD2D8_v2(address: CUdeviceptr, pitch: usize, value: c_uchar, width: usize, height: usize);
        fn cuMemsetD2D8Async(
            address: CUdeviceptr, pitch: usize, value: c_uchar, width: usize, height: usize, stream: CUstream
        );
        fn cuStreamCreateWithPriority(stream: *mut CUstream, flags: c_uint, priority: c_int);
        fn cuStreamDestroy_v2(stream: CUstream);
        fn cuStreamQuery(stream: CUstream);
        fn cuStreamSynchronize(stream: CUstream);
        fn cuStreamWaitEvent(stream: CUstream, event: CUevent, flags: c_uint);
        fn cuStreamGetFlags(stream: CUstream, flags: *mut c_uint);
        fn cuStreamGetPriority(stream: CUstream, priority: *mut c_int);
        fn cuStreamAddCallback(
            stream: CUstream, callback: CUstreamCallback, data: *mut c_void, flags: c_uint
        );
        fn cuLaunchHostFunc(stream: CUstream, function: CUhostFn, data: *mut c_void);
        fn cuStreamWaitValue32_v2(stream: CUstream, address: CUdeviceptr, value: u32, flags: c_uint);
        fn cuStreamWaitValue64_v2(stream: CUstream, address: CUdeviceptr, value: u64, flags: c_uint);
        fn cuStreamWriteValue32_v2(stream: CUstream, address: CUdeviceptr, value: u32, flags: c_uint);
        fn cuStreamWriteValue64_v2(stream: CUstream, address: CUdeviceptr, value: u64, flags: c_uint);
        fn cuStreamBeginCapture_v2(stream: CUstream, mode: CUstreamCaptureMode);
        fn cuStreamEndCapture(stream: CUstream, graph: *mut CUgraph);
        fn cuThreadExchangeStreamCaptureMode(mode: *mut CUstreamCaptureMode);
        fn cuStreamIsCapturing(stream: CUstream, status: *mut CUstreamCaptureStatus);
        fn cuStreamGetCaptureInfo_v2(
            stream: CUstream, status: *mut CUstreamCaptureStatus, id: *mut cuuint64_t, graph: *mut CUgraph,
            nodes: *mut *const CUgraphNode, count: *mut usize
        );
        fn cuGraphInstantiateWithFlags(executable: *mut CUgraphExec, graph: CUgraph, flags: c_ulonglong);
        fn cuGraphGetNodes(graph: CUgraph, nodes: *mut CUgraphNode, count: *mut usize);
        fn cuGraphExecKernelNodeSetParams_v2(
            executable: CUgraphExec, node: CUgraphNode, parameters: *const CUDA_KERNEL_NODE_PARAMS
        );
        fn cuGraphLaunch(executable: CUgraphExec, stream: CUstream);
        fn cuGraphExecDestroy(executable: CUgraphExec);
        fn cuGraphDestroy(graph: CUgraph);
        fn cuEventCreate(event: *mut CUevent, flags: c_uint);
        fn cuEventDestroy_v2(event: CUevent);
        fn cuEventRecord(event: CUevent, stream: CUstream);
        fn cuEventQuery(event: CUevent);
        fn cuEventSynchronize(event: CUevent);
        fn cuEventElapsedTime(milliseconds: *mut f32, start: CUevent, end: CUevent);
        fn cuModuleLoadData(module: *mut CUmodule, image: *const c_void);
        fn cuModuleUnload(module: CUmodule);
        fn cuModuleGetFunction(function: *mut CUfunction, module: CUmodule, name: *const c_char);
        fn cuModuleGetGlobal_v2(
            address: *mut CUdeviceptr, bytes: *mut usize, module: CUmodule, name: *const c_char
        );
        fn cuFuncGetAttribute(value: *mut c_int, attribute: CUfunction_attribute, function: CUfunction);
        fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
            blocks: *mut c_int, function: CUfunction, threads: c_int, shared: usize
        );
        fn cuOccupancyMaxPotentialBlockSize(
            grid: *mut c_int, threads: *mut c_int, function: CUfunction, shared_of: CUoccupancyB2DSize,
            shared: usize, limit: c_int
        );
        fn cuLaunchKernel(
            function: CUfunction, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint,
            block_y: c_uint, block_z: c_uint, shared: c_uint, stream: CUstream,
            arguments: *mut *mut c_void, extra: *mut *mut c_void
        );
    }
}

functions! {
    /// NVRTC, as far as hipRTC needs it.
    NvrtcApi: nvrtc -> nvrtcResult {
        fn nvrtcCreateProgram(
            program: *mut nvrtcProgram, source: *const c_char, name: *const c_char, headers: c_int,
            texts: *const *const c_char, names: *const *const c_char
        );
        fn nvrtcDestroyProgram(program: *mut nvrtcProgram);
        fn nvrtcAddNameExpression(program: nvrtcProgram, expression: *const c_char);
        fn nvrtcCompileProgram(program: nvrtcProgram, count: c_int, options: *const *const c_char);
        fn nvrtcGetLoweredName(
            program: nvrtcProgram, expression: *const c_char, lowered: *mut *const c_char
        );
        fn nvrtcGetProgramLogSize(program: nvrtcProgram, bytes: *mut usize);
        fn nvrtcGetProgramLog(program: nvrtcProgram, log: *mut c_char);
        fn nvrtcGetCUBINSize(program: nvrtcProgram, bytes: *mut usize);
        fn nvrtcGetCUBIN(program: nvrtcProgram, cubin: *mut c_char);
    }
}

impl DriverApi {
    /// Loads the driver, or says why that cannot be.
    pub(crate) fn load() -> Result<Self, String> {
        // SAFETY: a library of this name is the CUDA driver.
        load(&["libcuda.so.1".to_owned()], |library| unsafe { Self::resolve(library) })
    }
}

impl NvrtcApi {
    /// Loads NVRTC, from the library path or from where toolkits put it, or says why that cannot be. `GPUMEM_NVRTC` names the only
    /// one that is wanted.
    pub(crate) fn load() -> Result<Self, String> {
        if let Ok(name) = env::var("GPUMEM_NVRTC") {
            // SAFETY: a library of this name is NVRTC.
            return load(&[name], |library| unsafe { Self::resolve(library) });
        }
        let mut names: Vec<String> =
            ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"].map(str::to_owned).into();
        let homes = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(|name| env::var(name).ok());
        names.extend(homes.chain(["/usr/local/cuda".to_owned()]).map(|home| home + "/lib64/libnvrtc.so"));
        // SAFETY: a library of such a name is NVRTC.
        load(&names, |library| unsafe { Self::resolve(library) })
    }
}

fn load<T>(names: &[String], resolve: impl Fn(&Library) -> Result<T, &'static str>) -> Result<T, String> {
    let mut reasons = Vec::new();
    for name in names {
        // SAFETY: loading runs the library's initialisers; those of NVIDIA's libraries have no preconditions.
        match unsafe { Library::new(name) } {
            Err(error) => reasons.push(format!("{name} is not found ({error})")),
            Ok(library) => {
                let found = resolve(&library);
                // Its functions stay callable, and a driver that has started threads cannot be unloaded.
                std::mem::forget(library);
                match found {
                    Ok(api) => return Ok(api),
                    Err(symbol) => reasons.push(format!("{name} has no {symbol}")),
                }
            }
        }
    }
    Err(reasons.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_load_is_reported() {
        let names = ["libno-such-library.so".to_owned(), "libc.so.6".to_owned()];
        // SAFETY: the C library has no function of such a name, so none is called.
        let reason = load(&names, |library| unsafe { NvrtcApi::resolve(library) }).err().unwrap_or_default();
        assert!(reason.contains("libno-such-library.so is not found"), "{reason}");
        assert!(reason.contains("libc.so.6 has no nvrtcCreateProgram"), "{reason}");
    }
}
