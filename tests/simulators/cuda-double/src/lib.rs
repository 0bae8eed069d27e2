//! A double of the CUDA driver: two devices whose memory is the host's.
//!
//! It replaces `libcuda.so.1` for the device tests, so that the library of hip-on-cuda and the CUDA backend run on any
//! machine, including their calls of the driver. It is as strict as the real driver: calls need a current context,
//! addresses must lie in allocated memory, streams run on separate threads, and what a capture minds invalidates it. It has
//! no kernels and shares no memory with other processes.
#![cfg(target_os = "linux")]
#![allow(non_snake_case, clippy::missing_safety_doc)] // The driver's names, and the driver's contracts.
#![allow(clippy::unwrap_used)] // A double that cannot go on ends the test.

mod capture;
mod context;
mod copy;
mod graph;
mod memory;
mod module;
mod stream;

/// A status of the driver.
pub(crate) type Status = u32;

pub(crate) const SUCCESS: Status = 0;
pub(crate) const INVALID_VALUE: Status = 1;
pub(crate) const OUT_OF_MEMORY: Status = 2;
pub(crate) const INVALID_DEVICE: Status = 101;
pub(crate) const INVALID_CONTEXT: Status = 201;
pub(crate) const INVALID_HANDLE: Status = 400;
pub(crate) const NOT_READY: Status = 600;
pub(crate) const NOT_SUPPORTED: Status = 801;

/// The result of a function's body.
pub(crate) type Outcome = Result<(), Status>;

/// Defines functions of the driver. The attribute says what they are to captures that are under way: a
/// [`Rule`](capture::Rule). Those marked with `in` want a current context.
macro_rules! exports {
    ($(
        #[$rule:expr] $(in $context:ident)? fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block
    )*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($argument: $type),*) -> $crate::Status {
            let body = || -> $crate::Outcome {
                $(let $context = $crate::context::current()?;)?
                $crate::capture::admit({
                    use $crate::capture::Rule::*;
                    $rule
                })?;
                $body
            };
            body().err().unwrap_or($crate::SUCCESS)
        }
    )*};
}
pub(crate) use exports;

/// As [`exports`], with parameters that are checked against cudarc's bindings.
macro_rules! driver {
    ($(
        #[$rule:expr] $(in $context:ident)? fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block
    )*) => {
        $crate::exports! {$(#[$rule] $(in $context)? fn $name($($argument: $type),*) $body)*}

        $(const _: unsafe fn($($type),*) -> cudarc::driver::sys::CUresult = cudarc::driver::sys::$name;)*
    };
}
pub(crate) use driver;

/// Functions that the double has not. They take whatever they are given.
macro_rules! missing {
    ($(#[$rule:ident] $($name:ident)*;)*) => {$($(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name() -> Status {
            capture::admit(capture::Rule::$rule).err().unwrap_or(NOT_SUPPORTED)
        }
    )*)*};
}

missing! {
    #[Free]
    cuIpcGetMemHandle cuIpcGetEventHandle cuIpcOpenEventHandle
    cuModuleGetFunction cuModuleGetGlobal_v2 cuFuncGetAttribute cuFuncSetAttribute
    cuOccupancyMaxActiveBlocksPerMultiprocessor cuOccupancyMaxPotentialBlockSize cuLaunchKernel cuGetErrorName
    cuGetErrorString cuDeviceGetP2PAttribute cuMemRangeGetAttribute cuGraphGetNodes cuCtxGetLimit cuMemcpy3DPeerAsync
    cuStreamWaitValue64_v2 cuStreamWriteValue64_v2 cuStreamGetCaptureInfo_v2 cuGraphExecKernelNodeSetParams_v2;

    #[Unsafe]
    cuIpcOpenMemHandle_v2 cuIpcCloseMemHandle cuModuleLoadData;
}
