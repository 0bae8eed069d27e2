//! Another library, which captures a stream of its own.

use cudarc::driver::sys::{self, CUstream, CUstreamCaptureMode_enum::*, CUstreamCaptureStatus_enum::*};
use gpumem_core::{Backend, DeviceSelector, RawStream};
use gpumem_cuda::{Cuda, CudaDevice, CudaExt};
use gpumem_runtime::Device;
use std::{ptr::null_mut, sync::Arc};

pub(crate) const MODES: [sys::CUstreamCaptureMode; 3] =
    [CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_RELAXED];

/// How a stream is captured, and which.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind {
    pub(crate) mode: sys::CUstreamCaptureMode,
    pub(crate) is_blocking: bool,
}

pub(crate) fn device() -> CudaDevice {
    Cuda::open(&DeviceSelector::ordinal("cuda", 0)).unwrap()
}

/// Calls the driver as a library that knows of captures: in the context of the device, and in the relaxed mode.
pub(crate) fn carefully<R>(call: impl FnOnce() -> R) -> R {
    let mut mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    let mut exchange = || {
        // SAFETY: a place for a mode.
        unsafe { sys::cuThreadExchangeStreamCaptureMode(&mut mode) }.result().unwrap();
    };
    Device::<Cuda>::from_raw(device()).with_current(|| {
        exchange();
        let result = call();
        exchange();
        result
    })
}

/// A stream of the other library's.
pub(crate) struct TheirStream(pub(crate) CUstream);

// SAFETY: a name that the driver takes from any thread.
unsafe impl Send for TheirStream {}
// SAFETY: as above.
unsafe impl Sync for TheirStream {}

impl TheirStream {
    pub(crate) fn new(is_blocking: bool) -> Arc<Self> {
        let mut stream = null_mut();
        // SAFETY: a place for a handle; a context is current.
        carefully(|| unsafe {
            sys::cuStreamCreateWithPriority(&mut stream, u32::from(!is_blocking), 0).result().unwrap();
        });
        Arc::new(Self(stream))
    }

    pub(crate) fn raw(&self) -> RawStream {
        RawStream(self.0.expose_provenance() as u64)
    }
}

impl Drop for TheirStream {
    fn drop(&mut self) {
        // SAFETY: the stream is this value's, and is not used any more.
        let _ = carefully(|| unsafe { sys::cuStreamDestroy_v2(self.0) });
    }
}

/// A capture under way.
pub(crate) struct Capture(pub(crate) Arc<TheirStream>);

impl Capture {
    pub(crate) fn begin(kind: Kind) -> Self {
        let stream = TheirStream::new(kind.is_blocking);
        // SAFETY: the context and the stream are alive.
        unsafe {
            sys::cuCtxSetCurrent(Cuda::context(&device())).result().unwrap();
            sys::cuStreamBeginCapture_v2(stream.0, kind.mode).result().unwrap();
        }
        Self(stream)
    }

    /// Ends the capture. Returns whether it has been left alone.
    pub(crate) fn end(self) -> bool {
        let (mut graph, mut status) = (null_mut(), CU_STREAM_CAPTURE_STATUS_NONE);
        // SAFETY: the stream is alive; places for a handle and for a status.
        let ended = unsafe {
            sys::cuStreamIsCapturing(self.0.0, &mut status).result().unwrap();
            sys::cuStreamEndCapture(self.0.0, &mut graph)
        };
        let is_alive = status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
        assert_eq!([ended.result().is_ok(), !graph.is_null()], [is_alive; 2], "{ended:?}");
        // SAFETY: the graph is this function's; no context is left current.
        unsafe {
            if is_alive {
                sys::cuGraphDestroy(graph).result().unwrap();
            }
            sys::cuCtxSetCurrent(null_mut()).result().unwrap();
        }
        is_alive
    }
}
