//! What ends a capture, by the documentation of the driver. On a GPU this shows whether the double is right.

use crate::{
    beside,
    capture::{Kind, TheirStream, carefully},
    cases, turn,
};
use cudarc::driver::sys::{self, CUresult::*, CUstreamCaptureMode_enum::*, *};
use gpumem_cuda::Cuda;
use std::{
    ptr::{null_mut, without_provenance_mut},
    sync::Arc,
};

/// Which captures mind a call that knows nothing of them, and what the driver says then.
#[derive(Clone, Copy)]
enum Minded {
    Never,
    /// "Potentially unsafe": those of mode global on all threads, those of mode thread-local on their own.
    Unsafe,
    /// Those of blocking streams.
    Blocking(CUresult),
    /// All of its context.
    Always(CUresult),
}

use Minded::{Always, Blocking, Never, Unsafe};

const CALLS: &[(&str, Minded)] = &[
    ("cuMemGetInfo", Never),
    ("cuStreamCreate", Never),
    ("cuEventCreate", Never),
    ("cuMemsetD8Async", Never),
    ("cuMemsetD8Async, captured", Never),
    ("cuEventRecord", Never),
    ("cuMemAlloc", Unsafe),
    ("cuMemFree", Unsafe),
    ("cuMemHostAlloc", Unsafe),
    ("cuStreamQuery", Unsafe),
    ("cuStreamSynchronize", Unsafe),
    ("cuEventQuery", Unsafe),
    ("cuEventSynchronize", Unsafe),
    ("cuMemsetD8", Blocking(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT)),
    ("cuMemsetD8Async, legacy", Blocking(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT)),
    ("cuStreamQuery, captured", Always(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)),
    ("cuStreamSynchronize, captured", Always(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)),
    ("cuStreamWaitEvent, captured", Always(CUDA_ERROR_STREAM_CAPTURE_ISOLATION)),
    ("cuEventQuery, captured", Always(CUDA_ERROR_CAPTURED_EVENT)),
    ("cuEventSynchronize, captured", Always(CUDA_ERROR_CAPTURED_EVENT)),
    ("cuCtxSynchronize", Always(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)),
];

/// Objects of the other library's.
struct Objects {
    stream: Arc<TheirStream>,
    event: CUevent,
    address: CUdeviceptr,
}

impl Objects {
    fn new() -> Self {
        let (stream, mut event, mut address) = (TheirStream::new(false), null_mut(), 0);
        // SAFETY: places for a handle and an address; a context is current.
        carefully(|| unsafe {
            sys::cuEventCreate(&mut event, 0).result().unwrap();
            sys::cuMemAlloc_v2(&mut address, 64).result().unwrap();
        });
        Self { stream, event, address }
    }

    fn call(&self, name: &str, captured: CUstream) -> CUresult {
        const LEGACY: CUstream = without_provenance_mut(1);
        let (stream, event, address) = (self.stream.0, self.event, self.address);
        // SAFETY: all handles are alive, and the memory has 64 bytes; places for what is returned. What is made here is leaked, and
        // the memory is not used after it is freed.
        unsafe {
            match name {
                "cuMemGetInfo" => sys::cuMemGetInfo_v2(&mut 0, &mut 0),
                "cuStreamCreate" => sys::cuStreamCreateWithPriority(&mut null_mut(), 1, 0),
                "cuEventCreate" => sys::cuEventCreate(&mut null_mut(), 0),
                "cuMemsetD8Async" => sys::cuMemsetD8Async(address, 1, 64, stream),
                "cuMemsetD8Async, captured" => sys::cuMemsetD8Async(address, 1, 64, captured),
                "cuMemsetD8Async, legacy" => sys::cuMemsetD8Async(address, 1, 64, LEGACY),
                "cuEventRecord" => sys::cuEventRecord(event, stream),
                "cuMemAlloc" => sys::cuMemAlloc_v2(&mut 0, 64),
                "cuMemFree" => sys::cuMemFree_v2(address),
                "cuMemHostAlloc" => sys::cuMemHostAlloc(&mut null_mut(), 64, 0),
                "cuMemsetD8" => sys::cuMemsetD8_v2(address, 1, 64),
                "cuStreamQuery" => sys::cuStreamQuery(stream),
                "cuStreamQuery, captured" => sys::cuStreamQuery(captured),
                "cuStreamSynchronize" => sys::cuStreamSynchronize(stream),
                "cuStreamSynchronize, captured" => sys::cuStreamSynchronize(captured),
                "cuStreamWaitEvent, captured" => {
                    sys::cuEventRecord(event, stream).result().unwrap();
                    sys::cuStreamWaitEvent(captured, event, 0)
                }
                "cuEventQuery" => sys::cuEventQuery(event),
                "cuEventSynchronize" => sys::cuEventSynchronize(event),
                "cuEventQuery, captured" => {
                    sys::cuEventRecord(event, captured).result().unwrap();
                    sys::cuEventQuery(event)
                }
                "cuEventSynchronize, captured" => {
                    sys::cuEventRecord(event, captured).result().unwrap();
                    sys::cuEventSynchronize(event)
                }
                "cuCtxSynchronize" => sys::cuCtxSynchronize(),
                _ => panic!("{name}"),
            }
        }
    }
}

/// Calls a function beside a capture, in the context of the device. Returns its status, and whether the capture is still alive.
fn beside_capture(name: &str, kind: Kind, is_elsewhere: bool, is_careful: bool) -> (CUresult, bool) {
    let (objects, mut status) = (Objects::new(), CUDA_SUCCESS);
    let is_alive = beside(kind, is_elsewhere, |captured| {
        let call = || status = objects.call(name, captured.0);
        if is_careful {
            carefully(call);
        } else {
            gpumem_runtime::Device::<Cuda>::open("cuda:0").unwrap().with_current(call);
        }
    });
    (status, is_alive)
}

#[test]
fn a_capture_ends_as_the_driver_says() {
    let Some(_turn) = turn() else { return };
    for (name, minded) in CALLS {
        for (mode, is_blocking, is_elsewhere) in cases() {
            for is_careful in [false, true] {
                let kind = Kind { mode, is_blocking };
                let is_minded = match mode {
                    CU_STREAM_CAPTURE_MODE_GLOBAL => true,
                    CU_STREAM_CAPTURE_MODE_THREAD_LOCAL => !is_elsewhere,
                    CU_STREAM_CAPTURE_MODE_RELAXED => false,
                };
                let expected = match *minded {
                    Unsafe if is_minded && !is_careful => CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                    Blocking(status) if is_blocking => status,
                    Always(status) => status,
                    Never | Unsafe | Blocking(_) => CUDA_SUCCESS,
                };
                assert_eq!(
                    beside_capture(name, kind, is_elsewhere, is_careful),
                    (expected, expected == CUDA_SUCCESS),
                    "{name}: {kind:?}, elsewhere {is_elsewhere}, relaxed {is_careful}"
                );
            }
        }
    }
}
