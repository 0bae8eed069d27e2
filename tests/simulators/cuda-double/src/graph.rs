//! Graphs: what was enqueued on streams while they were captured, in the order of the calls.

use crate::{
    INVALID_VALUE,
    capture::{self, Work},
    driver,
    stream::{Handles, STREAMS, push},
};
use cudarc::driver::sys::*;
use std::{ffi::c_ulonglong, ptr::null_mut, sync::Arc};

static GRAPHS: Handles<Vec<Arc<Work>>> = Handles::none();

driver! {
    #[Free]
    in _device fn cuStreamBeginCapture_v2(stream: CUstream, mode: CUstreamCaptureMode) {
        if capture::is_legacy(stream) {
            return Err(capture::UNSUPPORTED);
        }
        let found = STREAMS.get(stream)?;
        capture::begin(stream, found.device, found.is_blocking(), mode)
    }

    #[Free]
    in _device fn cuStreamEndCapture(stream: CUstream, graph: *mut CUgraph) {
        STREAMS.get(stream)?;
        let captured = capture::end(stream)?;
        let handle = captured.map(|work| GRAPHS.insert(Arc::new(work)));
        // SAFETY: the caller has room.
        unsafe { graph.write(handle.unwrap_or(null_mut())) };
        handle.map(drop).ok_or(capture::INVALIDATED)
    }

    #[Unsafe]
    in _device fn cuGraphInstantiateWithFlags(
        executable: *mut CUgraphExec,
        graph: CUgraph,
        flags: c_ulonglong,
    ) {
        if flags != 0 {
            return Err(INVALID_VALUE);
        }
        // SAFETY: the caller has room.
        unsafe { executable.write(GRAPHS.insert(GRAPHS.get(graph)?)) };
        Ok(())
    }

    #[On(stream)]
    in _device fn cuGraphLaunch(executable: CUgraphExec, stream: CUstream) {
        GRAPHS.get(executable)?.iter().try_for_each(|work| push(stream, Arc::clone(work)))
    }

    #[Unsafe]
    in _device fn cuGraphExecDestroy(executable: CUgraphExec) {
        GRAPHS.remove(executable).map(drop)
    }

    #[Unsafe]
    in _device fn cuGraphDestroy(graph: CUgraph) {
        GRAPHS.remove(graph).map(drop)
    }
}
