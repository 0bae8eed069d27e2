//! Capturing a stream into a graph, as far as a library must know about it: calls that cannot be captured are refused.

use super::exports;
use crate::{
    state::{not_null, on_device, put},
    types::{
        hipError_t, hipGraph_t, hipGraphExec_t, hipGraphNode_t, hipKernelNodeParams, hipStream_t,
        hipStreamCaptureMode, hipStreamCaptureStatus,
    },
};
use cudarc::driver::sys::{
    CUDA_KERNEL_NODE_PARAMS, CUstreamCaptureMode_enum as Mode, CUstreamCaptureStatus_enum as Status,
};
use std::{
    ffi::{c_char, c_ulonglong},
    ptr::null_mut,
};

/// # Safety
/// As for [`hipGraphInstantiate`].
unsafe fn instantiate(executable: *mut hipGraphExec_t, graph: hipGraph_t) -> hipError_t {
    on_device(|cuda| {
        not_null(executable)?;
        let mut found = null_mut();
        // SAFETY: a place for a handle; the caller's graph.
        unsafe { cuda.api.cuGraphInstantiateWithFlags(&mut found, graph, 0) }.hip()?;
        // SAFETY: the caller's promise.
        unsafe { put(executable, found) }
    })
}

/// The mode of that number.
fn capture_mode(mode: hipStreamCaptureMode) -> Result<Mode, hipError_t> {
    match mode {
        0 => Ok(Mode::CU_STREAM_CAPTURE_MODE_GLOBAL),
        1 => Ok(Mode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
        2 => Ok(Mode::CU_STREAM_CAPTURE_MODE_RELAXED),
        _ => Err(hipError_t::INVALID_VALUE),
    }
}

exports! {
    fn hipStreamBeginCapture(stream: hipStream_t, mode: hipStreamCaptureMode) -> hipError_t {
        on_device(|cuda| {
            let mode = capture_mode(mode)?;
            // SAFETY: the caller's stream.
            unsafe { cuda.api.cuStreamBeginCapture_v2(stream, mode) }.hip()
        })
    }

    fn hipThreadExchangeStreamCaptureMode(mode: *mut hipStreamCaptureMode) -> hipError_t {
        on_device(|cuda| {
            not_null(mode)?;
            // SAFETY: the caller's mode.
            let mut exchanged = capture_mode(unsafe { mode.read() })?;
            // SAFETY: a place for a mode; the driver knows no other than cudarc.
            unsafe { cuda.api.cuThreadExchangeStreamCaptureMode(&mut exchanged) }.hip()?;
            // SAFETY: the caller's promise.
            unsafe { put(mode, exchanged as hipStreamCaptureMode) }
        })
    }

    fn hipStreamEndCapture(stream: hipStream_t, graph: *mut hipGraph_t) -> hipError_t {
        on_device(|cuda| {
            not_null(graph)?;
            // SAFETY: the caller's stream, and room for a handle.
            unsafe { cuda.api.cuStreamEndCapture(stream, graph) }.hip()
        })
    }

    fn hipStreamIsCapturing(stream: hipStream_t, status: *mut hipStreamCaptureStatus) -> hipError_t {
        on_device(|cuda| {
            not_null(status)?;
            let mut found = Status::CU_STREAM_CAPTURE_STATUS_NONE;
            // SAFETY: the caller's stream; the driver knows no other status than cudarc.
            unsafe { cuda.api.cuStreamIsCapturing(stream, &mut found) }.hip()?;
            // SAFETY: the caller's promise.
            unsafe { put(status, found as hipStreamCaptureStatus) }
        })
    }

    /// The places after the status may be null.
    fn hipStreamGetCaptureInfo_v2(
        stream: hipStream_t,
        status: *mut hipStreamCaptureStatus,
        id: *mut c_ulonglong,
        graph: *mut hipGraph_t,
        nodes: *mut *const hipGraphNode_t,
        count: *mut usize,
    ) -> hipError_t {
        on_device(|cuda| {
            not_null(status)?;
            let mut found = Status::CU_STREAM_CAPTURE_STATUS_NONE;
            // SAFETY: the caller's stream and places; the driver knows no other status than cudarc.
            unsafe { cuda.api.cuStreamGetCaptureInfo_v2(stream, &mut found, id.cast(), graph, nodes, count) }.hip()?;
            // SAFETY: the caller's promise.
            unsafe { put(status, found as hipStreamCaptureStatus) }
        })
    }

    /// Arguments as `kernelParams`, not as `extra`.
    fn hipGraphExecKernelNodeSetParams(
        executable: hipGraphExec_t,
        node: hipGraphNode_t,
        parameters: *const hipKernelNodeParams,
    ) -> hipError_t {
        on_device(|cuda| {
            // SAFETY: the caller's structure, if it is one.
            let given = unsafe { parameters.as_ref() }.ok_or(hipError_t::INVALID_VALUE)?;
            if !given.extra.is_null() {
                return Err(hipError_t::NOT_SUPPORTED);
            }
            let parameters = CUDA_KERNEL_NODE_PARAMS {
                func: given.func.cast(),
                gridDimX: given.gridDim.x,
                gridDimY: given.gridDim.y,
                gridDimZ: given.gridDim.z,
                blockDimX: given.blockDim.x,
                blockDimY: given.blockDim.y,
                blockDimZ: given.blockDim.z,
                sharedMemBytes: given.sharedMemBytes,
                kernelParams: given.kernelParams,
                extra: null_mut(),
                kern: null_mut(),
                ctx: null_mut(),
            };
            // SAFETY: the caller's graph, node and arguments.
            unsafe { cuda.api.cuGraphExecKernelNodeSetParams_v2(executable, node, &parameters) }.hip()
        })
    }

    /// With no room for nodes, their number.
    fn hipGraphGetNodes(graph: hipGraph_t, nodes: *mut hipGraphNode_t, count: *mut usize) -> hipError_t {
        on_device(|cuda| {
            not_null(count)?;
            // SAFETY: the caller's graph, and room for as many handles as it says.
            unsafe { cuda.api.cuGraphGetNodes(graph, nodes, count) }.hip()
        })
    }

    /// The log stays as it is.
    fn hipGraphInstantiate(
        executable: *mut hipGraphExec_t,
        graph: hipGraph_t,
        _failed: *mut hipGraphNode_t,
        _log: *mut c_char,
        _bytes: usize,
    ) -> hipError_t {
        // SAFETY: the caller's promise.
        unsafe { instantiate(executable, graph) }
    }

    /// Without flags.
    fn hipGraphInstantiateWithFlags(
        executable: *mut hipGraphExec_t,
        graph: hipGraph_t,
        flags: c_ulonglong,
    ) -> hipError_t {
        if flags != 0 {
            return crate::state::call(|| Err(hipError_t::NOT_SUPPORTED));
        }
        // SAFETY: the caller's promise.
        unsafe { instantiate(executable, graph) }
    }

    fn hipGraphLaunch(executable: hipGraphExec_t, stream: hipStream_t) -> hipError_t {
        // SAFETY: the caller's graph and stream.
        on_device(|cuda| unsafe { cuda.api.cuGraphLaunch(executable, stream) }.hip())
    }

    fn hipGraphExecDestroy(executable: hipGraphExec_t) -> hipError_t {
        // SAFETY: the caller's graph, which is not used again.
        on_device(|cuda| unsafe { cuda.api.cuGraphExecDestroy(executable) }.hip())
    }

    fn hipGraphDestroy(graph: hipGraph_t) -> hipError_t {
        // SAFETY: the caller's graph, which is not used again.
        on_device(|cuda| unsafe { cuda.api.cuGraphDestroy(graph) }.hip())
    }
}
