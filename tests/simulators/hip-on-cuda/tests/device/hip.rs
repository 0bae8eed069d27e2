//! The library under test, loaded as a backend does, with helpers of the tests.
#![allow(non_snake_case)] // HIP's own names.

use hip_on_cuda::types::*;
use std::{
    env,
    ffi::{CString, c_char, c_int, c_uchar, c_uint, c_ulonglong, c_ushort, c_void},
    ops::Deref,
    path::PathBuf,
    ptr,
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
};

pub(crate) const OK: hipError_t = hipError_t::SUCCESS;
pub(crate) const TO_DEVICE: hipMemcpyKind = 1;
pub(crate) const TO_HOST: hipMemcpyKind = 2;
pub(crate) const ON_DEVICE: hipMemcpyKind = 3;
pub(crate) const DEFAULT: hipMemcpyKind = 4;

/// Fails with the call's text if it does not succeed.
macro_rules! ok {
    ($call:expr) => {
        assert_eq!($call, $crate::hip::OK, "{}", stringify!($call))
    };
}
pub(crate) use ok;

/// Loads functions into a structure of safe methods; their signatures are those that are compared with AMD's headers.
///
/// The methods are as unsafe as C. They are private to the tests, which take care of their arguments.
macro_rules! api {
    ($($function:ident($($argument:ident: $type:ty),* $(,)?) -> $result:ty;)*) => {
        /// HIP and hipRTC.
        #[derive(Debug, Clone, Copy)]
        pub(crate) struct Hip { $($function: unsafe extern "C" fn($($type),*) -> $result,)* }

        $(const _: unsafe extern "C" fn($($type),*) -> $result = hip_on_cuda::$function;)*

        impl Hip {
            fn resolve(library: &libloading::Library) -> Self {
                // SAFETY: the types are those of AMD's headers.
                unsafe { Self { $($function: *library.get(stringify!($function).as_bytes()).unwrap(),)* } }
            }

            $(
                #[allow(clippy::too_many_arguments)]
                pub(crate) fn $function(&self, $($argument: $type),*) -> $result {
                    // SAFETY: the tests pass arguments as AMD's headers demand.
                    unsafe { (self.$function)($($argument),*) }
                }
            )*
        }
    };
}

api! {
    hipInit(flags: c_uint) -> hipError_t;
    hipRuntimeGetVersion(version: *mut c_int) -> hipError_t;
    hipGetDeviceCount(count: *mut c_int) -> hipError_t;
    hipSetDevice(device: c_int) -> hipError_t;
    hipGetDevice(device: *mut c_int) -> hipError_t;
    hipGetLastError() -> hipError_t;
    hipGetErrorName(status: hipError_t) -> *const c_char;
    hipDeviceSynchronize() -> hipError_t;
    hipDeviceGetName(name: *mut c_char, length: c_int, device: hipDevice_t) -> hipError_t;
    hipDeviceGetUuid(uuid: *mut hipUUID, device: hipDevice_t) -> hipError_t;
    hipDeviceGetPCIBusId(text: *mut c_char, length: c_int, device: c_int) -> hipError_t;
    hipDeviceGetByPCIBusId(device: *mut c_int, text: *const c_char) -> hipError_t;
    hipDeviceTotalMem(bytes: *mut usize, device: hipDevice_t) -> hipError_t;
    hipDeviceGetAttribute(value: *mut c_int, attribute: hipDeviceAttribute_t, device: c_int) -> hipError_t;
    hipGetDeviceProperties(properties: *mut hipDeviceProp_t, device: c_int) -> hipError_t;
    hipDeviceGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int) -> hipError_t;
    hipDeviceCanAccessPeer(can: *mut c_int, device: c_int, peer: c_int) -> hipError_t;
    hipDeviceEnablePeerAccess(peer: c_int, flags: c_uint) -> hipError_t;
    hipDeviceDisablePeerAccess(peer: c_int) -> hipError_t;
    hipMemGetInfo(free: *mut usize, total: *mut usize) -> hipError_t;
    hipMemGetAddressRange(base: *mut hipDeviceptr_t, bytes: *mut usize, address: hipDeviceptr_t) -> hipError_t;
    hipPointerGetAttributes(attributes: *mut hipPointerAttribute_t, address: *const c_void) -> hipError_t;
    hipMalloc(address: *mut *mut c_void, bytes: usize) -> hipError_t;
    hipMallocPitch(address: *mut *mut c_void, pitch: *mut usize, width: usize, rows: usize) -> hipError_t;
    hipFree(address: *mut c_void) -> hipError_t;
    hipMallocManaged(address: *mut *mut c_void, bytes: usize, flags: c_uint) -> hipError_t;
    hipMemPrefetchAsync(address: *const c_void, bytes: usize, device: c_int, stream: hipStream_t) -> hipError_t;
    hipMemAdvise(address: *const c_void, bytes: usize, advice: hipMemoryAdvise, device: c_int) -> hipError_t;
    hipHostMalloc(address: *mut *mut c_void, bytes: usize, flags: c_uint) -> hipError_t;
    hipHostFree(address: *mut c_void) -> hipError_t;
    hipHostRegister(host: *mut c_void, bytes: usize, flags: c_uint) -> hipError_t;
    hipHostUnregister(host: *mut c_void) -> hipError_t;
    hipHostGetDevicePointer(device: *mut *mut c_void, host: *mut c_void, flags: c_uint) -> hipError_t;
    hipHostGetFlags(flags: *mut c_uint, host: *mut c_void) -> hipError_t;
    hipMemcpy(to: *mut c_void, from: *const c_void, bytes: usize, kind: hipMemcpyKind) -> hipError_t;
    hipMemcpyAsync(to: *mut c_void, from: *const c_void, bytes: usize, kind: hipMemcpyKind,
        stream: hipStream_t) -> hipError_t;
    hipMemcpyPeer(to: *mut c_void, to_device: c_int, from: *const c_void, from_device: c_int,
        bytes: usize) -> hipError_t;
    hipMemcpyPeerAsync(to: *mut c_void, to_device: c_int, from: *const c_void, from_device: c_int,
        bytes: usize, stream: hipStream_t) -> hipError_t;
    hipMemcpy2D(to: *mut c_void, to_pitch: usize, from: *const c_void, from_pitch: usize, width: usize,
        rows: usize, kind: hipMemcpyKind) -> hipError_t;
    hipMemcpy2DAsync(to: *mut c_void, to_pitch: usize, from: *const c_void, from_pitch: usize, width: usize,
        rows: usize, kind: hipMemcpyKind, stream: hipStream_t) -> hipError_t;
    hipMemcpy3DAsync(copy: *const hipMemcpy3DParms, stream: hipStream_t) -> hipError_t;
    hipDrvMemcpy3DAsync(copy: *const HIP_MEMCPY3D, stream: hipStream_t) -> hipError_t;
    hipMemset(address: *mut c_void, value: c_int, bytes: usize) -> hipError_t;
    hipMemsetAsync(address: *mut c_void, value: c_int, bytes: usize, stream: hipStream_t) -> hipError_t;
    hipMemsetD8Async(address: hipDeviceptr_t, value: c_uchar, count: usize, stream: hipStream_t) -> hipError_t;
    hipMemsetD16Async(address: hipDeviceptr_t, value: c_ushort, count: usize, stream: hipStream_t) -> hipError_t;
    hipMemsetD32Async(address: hipDeviceptr_t, value: c_int, count: usize, stream: hipStream_t) -> hipError_t;
    hipMemset2DAsync(address: *mut c_void, pitch: usize, value: c_int, width: usize, height: usize,
        stream: hipStream_t) -> hipError_t;
    hipMemset3DAsync(pointer: hipPitchedPtr, value: c_int, extent: hipExtent, stream: hipStream_t) -> hipError_t;
    hipStreamCreateWithFlags(stream: *mut hipStream_t, flags: c_uint) -> hipError_t;
    hipStreamCreateWithPriority(stream: *mut hipStream_t, flags: c_uint, priority: c_int) -> hipError_t;
    hipStreamGetFlags(stream: hipStream_t, flags: *mut c_uint) -> hipError_t;
    hipStreamGetPriority(stream: hipStream_t, priority: *mut c_int) -> hipError_t;
    hipStreamDestroy(stream: hipStream_t) -> hipError_t;
    hipStreamQuery(stream: hipStream_t) -> hipError_t;
    hipStreamSynchronize(stream: hipStream_t) -> hipError_t;
    hipStreamWaitEvent(stream: hipStream_t, event: hipEvent_t, flags: c_uint) -> hipError_t;
    hipStreamAddCallback(stream: hipStream_t, callback: hipStreamCallback_t, data: *mut c_void,
        flags: c_uint) -> hipError_t;
    hipStreamWaitValue32(stream: hipStream_t, address: *mut c_void, wanted: u32, flags: c_uint,
        mask: u32) -> hipError_t;
    hipStreamWriteValue32(stream: hipStream_t, address: *mut c_void, written: u32, flags: c_uint) -> hipError_t;
    hipStreamBeginCapture(stream: hipStream_t, mode: hipStreamCaptureMode) -> hipError_t;
    hipStreamEndCapture(stream: hipStream_t, graph: *mut hipGraph_t) -> hipError_t;
    hipStreamIsCapturing(stream: hipStream_t, status: *mut hipStreamCaptureStatus) -> hipError_t;
    hipStreamGetCaptureInfo_v2(stream: hipStream_t, status: *mut hipStreamCaptureStatus, id: *mut c_ulonglong,
        graph: *mut hipGraph_t, nodes: *mut *const hipGraphNode_t, count: *mut usize) -> hipError_t;
    hipGraphExecKernelNodeSetParams(executable: hipGraphExec_t, node: hipGraphNode_t,
        parameters: *const hipKernelNodeParams) -> hipError_t;
    hipGraphInstantiate(executable: *mut hipGraphExec_t, graph: hipGraph_t, failed: *mut hipGraphNode_t,
        log: *mut c_char, bytes: usize) -> hipError_t;
    hipGraphLaunch(executable: hipGraphExec_t, stream: hipStream_t) -> hipError_t;
    hipGraphExecDestroy(executable: hipGraphExec_t) -> hipError_t;
    hipGraphDestroy(graph: hipGraph_t) -> hipError_t;
    hipEventCreateWithFlags(event: *mut hipEvent_t, flags: c_uint) -> hipError_t;
    hipEventRecord(event: hipEvent_t, stream: hipStream_t) -> hipError_t;
    hipEventDestroy(event: hipEvent_t) -> hipError_t;
    hipEventSynchronize(event: hipEvent_t) -> hipError_t;
    hipEventQuery(event: hipEvent_t) -> hipError_t;
    hipEventElapsedTime(milliseconds: *mut f32, start: hipEvent_t, stop: hipEvent_t) -> hipError_t;
    hipIpcGetMemHandle(handle: *mut hipIpcMemHandle_t, address: *mut c_void) -> hipError_t;
    hipIpcOpenMemHandle(address: *mut *mut c_void, handle: hipIpcMemHandle_t, flags: c_uint) -> hipError_t;
    hipIpcCloseMemHandle(address: *mut c_void) -> hipError_t;
    hipModuleLoadData(module: *mut hipModule_t, image: *const c_void) -> hipError_t;
    hipModuleUnload(module: hipModule_t) -> hipError_t;
    hipModuleGetFunction(function: *mut hipFunction_t, module: hipModule_t, name: *const c_char) -> hipError_t;
    hipModuleGetGlobal(address: *mut hipDeviceptr_t, bytes: *mut usize, module: hipModule_t,
        name: *const c_char) -> hipError_t;
    hipModuleLaunchKernel(function: hipFunction_t, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint,
        block_x: c_uint, block_y: c_uint, block_z: c_uint, shared: c_uint, stream: hipStream_t,
        parameters: *mut *mut c_void, extra: *mut *mut c_void) -> hipError_t;
    hipFuncGetAttribute(value: *mut c_int, attribute: hipFunction_attribute, function: hipFunction_t) -> hipError_t;
    hiprtcVersion(major: *mut c_int, minor: *mut c_int) -> hiprtcResult;
    hiprtcCreateProgram(made: *mut hiprtcProgram, source: *const c_char, name: *const c_char, count: c_int,
        headers: *mut *const c_char, names: *mut *const c_char) -> hiprtcResult;
    hiprtcDestroyProgram(made: *mut hiprtcProgram) -> hiprtcResult;
    hiprtcAddNameExpression(made: hiprtcProgram, expression: *const c_char) -> hiprtcResult;
    hiprtcCompileProgram(made: hiprtcProgram, count: c_int, options: *mut *const c_char) -> hiprtcResult;
    hiprtcGetLoweredName(made: hiprtcProgram, expression: *const c_char, name: *mut *const c_char) -> hiprtcResult;
    hiprtcGetProgramLogSize(made: hiprtcProgram, bytes: *mut usize) -> hiprtcResult;
    hiprtcGetProgramLog(made: hiprtcProgram, log: *mut c_char) -> hiprtcResult;
    hiprtcGetCodeSize(made: hiprtcProgram, bytes: *mut usize) -> hiprtcResult;
    hiprtcGetCode(made: hiprtcProgram, code: *mut c_char) -> hiprtcResult;
}

/// Names another library than the one that was built with the tests.
pub(crate) const UNDER_TEST: &str = "HIP_UNDER_TEST";

/// Says that the driver is a double, which has no kernels and shares no memory.
pub(crate) const DOUBLE: &str = "HIP_ON_CUDA_TEST_DOUBLE";

/// Whether a test has nothing to run, because the driver is a double.
pub(crate) fn is_beyond_the_double() -> bool {
    let double = env::var_os(DOUBLE).is_some();
    if double {
        println!("skipped: the double of the driver has no such thing");
    }
    double
}

/// Whether AMD's library is tested, and not ours.
pub(crate) fn is_amds() -> bool {
    env::var_os(UNDER_TEST).is_some()
}

/// The library that lies beside the test program.
fn built() -> PathBuf {
    env::current_exe().unwrap().with_file_name("libhip_on_cuda.so")
}

/// The library with a device, for one test at a time: some want all of its memory.
#[derive(Debug)]
pub(crate) struct Started {
    hip: Hip,
    _alone: MutexGuard<'static, ()>,
}

impl Deref for Started {
    type Target = Hip;

    fn deref(&self) -> &Hip {
        &self.hip
    }
}

impl Hip {
    /// The library with a device, or `None` and the reason on the standard output. `HIP_ON_CUDA_REQUIRE=1` makes a
    /// missing device a failure.
    pub(crate) fn start() -> Option<Started> {
        static ALONE: Mutex<()> = Mutex::new(());
        static HIP: OnceLock<Option<Hip>> = OnceLock::new();
        let hip = HIP.get_or_init(|| {
            let path = env::var_os(UNDER_TEST).map_or_else(built, PathBuf::from);
            // SAFETY: initialisers of HIP's libraries have no preconditions.
            let library = unsafe { libloading::Library::new(&path) };
            let library = library.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let hip = Self::resolve(Box::leak(Box::new(library)));
            let status = hip.hipInit(0);
            let required = is_amds() || env::var_os("HIP_ON_CUDA_REQUIRE").is_some();
            assert!(status == OK || !required, "hipInit: {status:?}");
            (status == OK).then_some(hip)
        });
        if hip.is_none() {
            println!("skipped: there is no NVIDIA driver, or no device");
        }
        // A failed test does not disturb the next one.
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        hip.map(|hip| Started { hip, _alone: alone })
    }

    pub(crate) fn attribute(&self, attribute: hipDeviceAttribute_t) -> c_int {
        let mut value = -1;
        ok!(self.hipDeviceGetAttribute(&mut value, attribute, 0));
        value
    }

    pub(crate) fn device_count(&self) -> c_int {
        let mut count = 0;
        ok!(self.hipGetDeviceCount(&mut count));
        count
    }

    pub(crate) fn allocate(&self, bytes: usize) -> *mut u8 {
        let mut address = ptr::null_mut();
        ok!(self.hipMalloc(&mut address, bytes));
        address.cast()
    }

    /// Device memory with these contents.
    pub(crate) fn device(&self, contents: &[u8]) -> *mut u8 {
        let address = self.allocate(contents.len());
        ok!(self.hipMemcpy(address.cast(), contents.as_ptr().cast(), contents.len(), TO_DEVICE));
        address
    }

    pub(crate) fn read(&self, from: *const u8, bytes: usize) -> Vec<u8> {
        let mut contents = vec![0u8; bytes];
        ok!(self.hipMemcpy(contents.as_mut_ptr().cast(), from.cast(), bytes, TO_HOST));
        contents
    }

    pub(crate) fn free(&self, address: *mut u8) {
        ok!(self.hipFree(address.cast()));
    }

    /// Page-locked memory with these contents.
    pub(crate) fn pinned(&self, contents: &[u8]) -> &'static mut [u8] {
        let mut address = ptr::null_mut();
        ok!(self.hipHostMalloc(&mut address, contents.len(), 0));
        // SAFETY: the memory is new, that long, cleared or not: it is written before it is borrowed.
        unsafe {
            ptr::copy_nonoverlapping(contents.as_ptr(), address.cast(), contents.len());
            std::slice::from_raw_parts_mut(address.cast(), contents.len())
        }
    }

    pub(crate) fn unpin(&self, memory: &'static mut [u8]) {
        ok!(self.hipHostFree(memory.as_mut_ptr().cast()));
    }

    pub(crate) fn stream(&self) -> hipStream_t {
        const NON_BLOCKING: c_uint = 1;
        let mut stream = ptr::null_mut();
        ok!(self.hipStreamCreateWithFlags(&mut stream, NON_BLOCKING));
        stream
    }

    pub(crate) fn event(&self, flags: c_uint) -> hipEvent_t {
        let mut event = ptr::null_mut();
        ok!(self.hipEventCreateWithFlags(&mut event, flags));
        event
    }

    /// The architecture that the device says it has.
    pub(crate) fn architecture(&self) -> String {
        // SAFETY: numbers, arrays of numbers and pointers, for all of which zero is a value.
        let mut properties: hipDeviceProp_t = unsafe { std::mem::zeroed() };
        ok!(self.hipGetDeviceProperties(&mut properties, 0));
        let name: Vec<u8> = properties.gcnArchName.into_iter().take_while(|byte| *byte != 0).collect();
        String::from_utf8(name).unwrap()
    }

    /// Compiles a program for the device, with the names of expressions: its code, and their names in it.
    pub(crate) fn compile(
        &self,
        source: &str,
        expressions: &[&str],
    ) -> Result<(Vec<u8>, Vec<CString>), String> {
        const DONE: hiprtcResult = hiprtcResult::SUCCESS;
        let c_string = |text: &str| CString::new(text).unwrap();
        let (source, architecture) =
            (c_string(source), format!("--gpu-architecture={}", self.architecture()));
        let options = [c_string(&architecture), c_string("-std=c++17")];
        let mut options = options.each_ref().map(|option| option.as_ptr());
        let (mut program, none) = (ptr::null_mut(), ptr::null_mut());
        let name = c"kernels.hip".as_ptr();
        assert_eq!(self.hiprtcCreateProgram(&mut program, source.as_ptr(), name, 0, none, none), DONE);
        for expression in expressions {
            assert_eq!(self.hiprtcAddNameExpression(program, c_string(expression).as_ptr()), DONE);
        }
        let outcome = self.hiprtcCompileProgram(program, 2, options.as_mut_ptr());
        let mut bytes = 0;
        assert_eq!(self.hiprtcGetProgramLogSize(program, &mut bytes), DONE);
        let mut log = vec![0u8; bytes + 1];
        assert_eq!(self.hiprtcGetProgramLog(program, log.as_mut_ptr().cast()), DONE);
        if outcome != DONE {
            assert_eq!(self.hiprtcDestroyProgram(&mut program), DONE);
            return Err(format!("{outcome:?} {}", String::from_utf8_lossy(&log)));
        }
        let lowered = expressions.iter().map(|expression| {
            let mut name = ptr::null();
            assert_eq!(self.hiprtcGetLoweredName(program, c_string(expression).as_ptr(), &mut name), DONE);
            // SAFETY: the name ends with a zero and lives as long as the program.
            unsafe { std::ffi::CStr::from_ptr(name) }.to_owned()
        });
        let lowered = lowered.collect();
        assert_eq!(self.hiprtcGetCodeSize(program, &mut bytes), DONE);
        let mut code = vec![0u8; bytes];
        assert_eq!(self.hiprtcGetCode(program, code.as_mut_ptr().cast()), DONE);
        assert_eq!(self.hiprtcDestroyProgram(&mut program), DONE);
        Ok((code, lowered))
    }
}

/// Bytes that differ from place to place and from seed to seed.
pub(crate) fn noise(bytes: usize, seed: u32) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2_654_435_761) | 1;
    (0..bytes)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            state as u8
        })
        .collect()
}
