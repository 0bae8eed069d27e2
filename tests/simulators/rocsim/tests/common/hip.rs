//! The part of HIP that the proof programs use.
#![allow(non_snake_case)] // HIP's own names.

use super::{api, ok};
use std::{
    ffi::{CString, c_char, c_void},
    ptr,
};

pub(crate) const TO_DEVICE: u32 = 1;
pub(crate) const TO_HOST: u32 = 2;
pub(crate) const ON_DEVICE: u32 = 3;
pub(crate) const DEFAULT: u32 = 4;

pub(crate) const OUT_OF_MEMORY: u32 = 2;
pub(crate) const NOT_FOUND: u32 = 500;
pub(crate) const NOT_REGISTERED: u32 = 713;

pub(crate) type Stream = *mut c_void;
pub(crate) type Event = *mut c_void;
pub(crate) type Function = *mut c_void;

/// `hipPitchedPtr`.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct PitchedPtr {
    pub(crate) base: *mut u8,
    pub(crate) pitch: usize,
    pub(crate) x: usize,
    pub(crate) y: usize,
}

/// `hipMemcpy3DParms`.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Copy3D {
    pub(crate) from_array: *mut c_void,
    pub(crate) from_position: [usize; 3],
    pub(crate) from: PitchedPtr,
    pub(crate) to_array: *mut c_void,
    pub(crate) to_position: [usize; 3],
    pub(crate) to: PitchedPtr,
    pub(crate) extent: [usize; 3],
    pub(crate) kind: u32,
}

api! {
    /// Functions of HIP and hipRTC.
    HipApi = "libamdhip64.so.5" {
        hipInit(flags: u32) -> u32;
        hipGetDeviceCount(count: *mut i32) -> u32;
        hipSetDevice(device: i32) -> u32;
        hipGetLastError() -> u32;
        hipDeviceSynchronize() -> u32;
        hipDeviceGetName(name: *mut c_char, length: i32, device: i32) -> u32;
        hipDeviceCanAccessPeer(can: *mut i32, device: i32, peer: i32) -> u32;
        hipDeviceEnablePeerAccess(peer: i32, flags: u32) -> u32;
        hipMemGetInfo(free: *mut usize, total: *mut usize) -> u32;
        hipMalloc(address: *mut *mut u8, bytes: usize) -> u32;
        hipFree(address: *mut u8) -> u32;
        hipMallocPitch(address: *mut *mut u8, pitch: *mut usize, width: usize, height: usize) -> u32;
        hipMallocManaged(address: *mut *mut u8, bytes: usize, flags: u32) -> u32;
        hipMemPrefetchAsync(address: *const u8, bytes: usize, device: i32, stream: Stream) -> u32;
        hipHostMalloc(address: *mut *mut u8, bytes: usize, flags: u32) -> u32;
        hipHostFree(address: *mut u8) -> u32;
        hipHostRegister(address: *mut u8, bytes: usize, flags: u32) -> u32;
        hipHostUnregister(address: *mut u8) -> u32;
        hipHostGetDevicePointer(device: *mut *mut u8, host: *mut u8, flags: u32) -> u32;
        hipMemcpy(to: *mut u8, from: *const u8, bytes: usize, kind: u32) -> u32;
        hipMemcpyAsync(to: *mut u8, from: *const u8, bytes: usize, kind: u32, stream: Stream) -> u32;
        hipMemcpyPeer(to: *mut u8, to_device: i32, from: *const u8, from_device: i32, bytes: usize) -> u32;
        hipMemcpy2DAsync(to: *mut u8, to_pitch: usize, from: *const u8, from_pitch: usize, width: usize,
            height: usize, kind: u32, stream: Stream) -> u32;
        hipMemcpy3DAsync(copy: *const Copy3D, stream: Stream) -> u32;
        hipMemsetAsync(address: *mut u8, value: i32, bytes: usize, stream: Stream) -> u32;
        hipMemsetD8Async(address: *mut u8, value: u8, count: usize, stream: Stream) -> u32;
        hipMemsetD16Async(address: *mut u8, value: u16, count: usize, stream: Stream) -> u32;
        hipMemsetD32Async(address: *mut u8, value: i32, count: usize, stream: Stream) -> u32;
        hipMemset2DAsync(address: *mut u8, pitch: usize, value: i32, width: usize, height: usize,
            stream: Stream) -> u32;
        hipStreamCreateWithFlags(stream: *mut Stream, flags: u32) -> u32;
        hipStreamDestroy(stream: Stream) -> u32;
        hipStreamSynchronize(stream: Stream) -> u32;
        hipStreamQuery(stream: Stream) -> u32;
        hipStreamWaitEvent(stream: Stream, event: Event, flags: u32) -> u32;
        hipStreamAddCallback(stream: Stream, callback: unsafe extern "C" fn(Stream, u32, *mut c_void),
            data: *mut c_void, flags: u32) -> u32;
        hipStreamWriteValue32(stream: Stream, address: *mut u8, value: u32, flags: u32) -> u32;
        hipStreamWaitValue32(stream: Stream, address: *mut u8, value: u32, flags: u32, mask: u32) -> u32;
        hipEventCreateWithFlags(event: *mut Event, flags: u32) -> u32;
        hipEventDestroy(event: Event) -> u32;
        hipEventRecord(event: Event, stream: Stream) -> u32;
        hipEventSynchronize(event: Event) -> u32;
        hipEventElapsedTime(milliseconds: *mut f32, start: Event, stop: Event) -> u32;
        hipModuleLoadData(module: *mut *mut c_void, image: *const u8) -> u32;
        hipModuleUnload(module: *mut c_void) -> u32;
        hipModuleGetFunction(function: *mut Function, module: *mut c_void, name: *const c_char) -> u32;
        hipModuleLaunchKernel(function: Function, gx: u32, gy: u32, gz: u32, bx: u32, by: u32, bz: u32,
            shared: u32, stream: Stream, arguments: *mut *mut c_void, extra: *mut *mut c_void) -> u32;
        hiprtcCreateProgram(program: *mut *mut c_void, source: *const c_char, name: *const c_char, count: i32,
            headers: *const *const c_char, includes: *const *const c_char) -> u32;
        hiprtcCompileProgram(program: *mut c_void, count: i32, options: *const *const c_char) -> u32;
        hiprtcGetCodeSize(program: *mut c_void, bytes: *mut usize) -> u32;
        hiprtcGetCode(program: *mut c_void, code: *mut u8) -> u32;
        hiprtcDestroyProgram(program: *mut *mut c_void) -> u32;
    }
}

impl HipApi {
    pub(crate) fn start() -> Self {
        let hip = Self::load();
        ok!(hip.hipInit(0));
        ok!(hip.hipSetDevice(0));
        hip
    }

    pub(crate) fn device_count(&self) -> usize {
        let mut count = 0;
        ok!(self.hipGetDeviceCount(&mut count));
        count as usize
    }

    pub(crate) fn allocate(&self, bytes: usize) -> *mut u8 {
        let mut address = ptr::null_mut();
        ok!(self.hipMalloc(&mut address, bytes));
        address
    }

    /// Device memory with these contents.
    pub(crate) fn device(&self, contents: &[u8]) -> *mut u8 {
        let address = self.allocate(contents.len());
        ok!(self.hipMemcpy(address, contents.as_ptr(), contents.len(), TO_DEVICE));
        address
    }

    pub(crate) fn pinned(&self, contents: &[u8]) -> *mut u8 {
        let mut address = ptr::null_mut();
        ok!(self.hipHostMalloc(&mut address, contents.len(), 0));
        // SAFETY: the memory is new, that long, and visible to the host.
        unsafe { ptr::copy_nonoverlapping(contents.as_ptr(), address, contents.len()) };
        address
    }

    pub(crate) fn read(&self, from: *const u8, bytes: usize) -> Vec<u8> {
        let mut contents = vec![0; bytes];
        ok!(self.hipMemcpy(contents.as_mut_ptr(), from, bytes, TO_HOST));
        contents
    }

    pub(crate) fn stream(&self) -> Stream {
        const NON_BLOCKING: u32 = 1;
        let mut stream = ptr::null_mut();
        ok!(self.hipStreamCreateWithFlags(&mut stream, NON_BLOCKING));
        stream
    }

    pub(crate) fn event(&self) -> Event {
        let mut event = ptr::null_mut();
        ok!(self.hipEventCreateWithFlags(&mut event, 0));
        event
    }

    /// Compiles a program with AMD's compiler for a GPU of that name.
    pub(crate) fn compile(&self, source: &str, gfx: &str) -> Vec<u8> {
        let source = CString::new(source).unwrap();
        let option = CString::new(format!("--gpu-architecture={gfx}")).unwrap();
        let mut program = ptr::null_mut();
        let none = ptr::null();
        ok!(self.hiprtcCreateProgram(&mut program, source.as_ptr(), c"kernels.hip".as_ptr(), 0, none, none));
        ok!(self.hiprtcCompileProgram(program, 1, &option.as_ptr()));
        let mut bytes = 0;
        ok!(self.hiprtcGetCodeSize(program, &mut bytes));
        let mut code = vec![0; bytes];
        ok!(self.hiprtcGetCode(program, code.as_mut_ptr()));
        ok!(self.hiprtcDestroyProgram(&mut program));
        code
    }

    pub(crate) fn module(&self, code: &[u8]) -> *mut c_void {
        let mut module = ptr::null_mut();
        ok!(self.hipModuleLoadData(&mut module, code.as_ptr()));
        module
    }

    pub(crate) fn function(&self, module: *mut c_void, name: &str) -> Function {
        let name = CString::new(name).unwrap();
        let mut function = ptr::null_mut();
        ok!(self.hipModuleGetFunction(&mut function, module, name.as_ptr()));
        function
    }
}
