//! Copies.

use super::exports;
use crate::{
    driver::Status,
    error::Outcome,
    regions::{self, Plane, Volume},
    state::{Cuda, not_null, on_device},
    types::{
        HIP_MEMCPY3D, hip_Memcpy2D, hipDeviceptr_t, hipError_t, hipMemcpy3DParms, hipMemcpyKind, hipStream_t,
    },
    version::Version,
};
use std::ffi::{c_int, c_void};

/// Whether a call comes back before the copy is done.
#[derive(Clone, Copy)]
enum When {
    Now,
    On(hipStream_t),
}

/// A run of bytes. CUDA finds out the kind of each address; the driver stages pageable memory.
///
/// # Safety
/// As for [`hipMemcpy`].
unsafe fn run(to: *mut c_void, from: *const c_void, bytes: usize, when: When) -> hipError_t {
    on_device(|cuda| {
        if bytes == 0 {
            return Ok(());
        }
        not_null(to)?;
        not_null(from)?;
        let (to, from) = (to.expose_provenance() as u64, from.expose_provenance() as u64);
        // SAFETY: the caller's memory and stream.
        unsafe {
            match when {
                When::Now => landed(cuda, cuda.api.cuMemcpy(to, from, bytes)),
                When::On(stream) => cuda.api.cuMemcpyAsync(to, from, bytes, stream),
            }
        }
        .hip()
    })
}

/// CUDA's blocking copies from pageable memory return when the memory has been read, HIP's when the bytes have arrived:
/// work on a stream that does not wait for the default one must find them.
fn landed(cuda: &Cuda, status: Status) -> Status {
    match status {
        // SAFETY: the default stream of the current context always exists.
        Status(0) => unsafe { cuda.api.cuStreamSynchronize(std::ptr::null_mut()) },
        status => status,
    }
}

/// # Safety
/// As for [`hipMemcpyPeer`].
unsafe fn peer(
    (to, to_device): (*mut c_void, c_int),
    (from, from_device): (*const c_void, c_int),
    bytes: usize,
    when: When,
) -> hipError_t {
    on_device(|cuda| {
        let (to_context, from_context) = (cuda.context(to_device)?, cuda.context(from_device)?);
        if bytes == 0 {
            return Ok(());
        }
        not_null(to)?;
        not_null(from)?;
        let (to, from) = (to.expose_provenance() as u64, from.expose_provenance() as u64);
        // SAFETY: the caller's memory and stream; both contexts are alive.
        unsafe {
            match when {
                When::Now => landed(cuda, cuda.api.cuMemcpyPeer(to, to_context, from, from_context, bytes)),
                When::On(stream) => {
                    cuda.api.cuMemcpyPeerAsync(to, to_context, from, from_context, bytes, stream)
                }
            }
        }
        .hip()
    })
}

/// # Safety
/// The structure describes memory of the caller's, as for [`hipMemcpy2D`].
unsafe fn plane(cuda: &Cuda, plane: Plane, when: When) -> Outcome {
    let Some(plane) = plane else { return Ok(()) };
    // SAFETY: passed on to the caller.
    unsafe {
        match when {
            // The one that takes every pitch.
            When::Now => landed(cuda, cuda.api.cuMemcpy2DUnaligned_v2(&plane)),
            When::On(stream) => cuda.api.cuMemcpy2DAsync_v2(&plane, stream),
        }
    }
    .hip()
}

/// # Safety
/// The structure describes memory of the caller's, as for [`hipMemcpy3D`].
unsafe fn volume(cuda: &Cuda, volume: Volume, when: When) -> Outcome {
    let Some(volume) = volume else { return Ok(()) };
    // SAFETY: passed on to the caller.
    unsafe {
        match when {
            When::Now => landed(cuda, cuda.api.cuMemcpy3D_v2(&volume)),
            When::On(stream) => cuda.api.cuMemcpy3DAsync_v2(&volume, stream),
        }
    }
    .hip()
}

/// # Safety
/// As for [`hipMemcpy3D`].
unsafe fn parameters(copy: *const hipMemcpy3DParms, when: When) -> hipError_t {
    on_device(|cuda| {
        not_null(copy)?;
        // SAFETY: the caller's structure, which is not null, describes valid memory.
        unsafe { volume(cuda, regions::runtime_volume(&*copy, Version::current())?, when) }
    })
}

exports! {
    fn hipMemcpy(to: *mut c_void, from: *const c_void, bytes: usize, kind: hipMemcpyKind) -> hipError_t {
        // SAFETY: the caller's promise.
        checked(kind, || unsafe { run(to, from, bytes, When::Now) })
    }

    fn hipMemcpyAsync(
        to: *mut c_void,
        from: *const c_void,
        bytes: usize,
        kind: hipMemcpyKind,
        stream: hipStream_t,
    ) -> hipError_t {
        // SAFETY: the caller's promise.
        checked(kind, || unsafe { run(to, from, bytes, When::On(stream)) })
    }

    /// On the stream, and waits for it.
    fn hipMemcpyWithStream(
        to: *mut c_void,
        from: *const c_void,
        bytes: usize,
        kind: hipMemcpyKind,
        stream: hipStream_t,
    ) -> hipError_t {
        // SAFETY: the caller's promise.
        let status = checked(kind, || unsafe { run(to, from, bytes, When::On(stream)) });
        if status != hipError_t::SUCCESS {
            return status;
        }
        // SAFETY: the caller's stream.
        on_device(|cuda| unsafe { cuda.api.cuStreamSynchronize(stream) }.hip())
    }

    fn hipMemcpyHtoD(to: hipDeviceptr_t, from: *mut c_void, bytes: usize) -> hipError_t {
        // SAFETY: the caller's promise.
        unsafe { run(to, from, bytes, When::Now) }
    }

    fn hipMemcpyDtoH(to: *mut c_void, from: hipDeviceptr_t, bytes: usize) -> hipError_t {
        // SAFETY: the caller's promise.
        unsafe { run(to, from, bytes, When::Now) }
    }

    fn hipMemcpyDtoD(to: hipDeviceptr_t, from: hipDeviceptr_t, bytes: usize) -> hipError_t {
        // SAFETY: the caller's promise.
        unsafe { run(to, from, bytes, When::Now) }
    }

    fn hipMemcpyHtoDAsync(
        to: hipDeviceptr_t,
        from: *mut c_void,
        bytes: usize,
        stream: hipStream_t,
    ) -> hipError_t {
        // SAFETY: the caller's promise.
        unsafe { run(to, from, bytes, When::On(stream)) }
    }

    fn hipMemcpyDtoHAsync(
        to: *mut c_void,
        from: hipDeviceptr_t,
        bytes: usize,
        stream: hipStream_t,
    ) -> hipError_t {
        // SAFETY: the caller's promise.
        unsafe { run(to, from, bytes, When::On(stream)) }
    }

    fn hipMemcpyDtoDAsync(
        to: hipDeviceptr_t,
        from: hipDeviceptr_t,
        bytes: usize,
        stream: hipStream_t,
    ) -> hipError_t {
        // SAFETY: the caller's promise.
        unsafe { run(to, from, bytes, When::On(stream)) }
    }

    fn hipMemcpyPeer(
        to: *mut c_void,
        to_device: c_int,
        from: *const c_void,
        from_device: c_int,
        bytes: usize,
    ) -> hipError_t {
        // SAFETY: the caller's promise.
        unsafe { peer((to, to_device), (from, from_device), bytes, When::Now) }
    }

    fn hipMemcpyPeerAsync(
        to: *mut c_void,
        to_device: c_int,
        from: *const c_void,
        from_device: c_int,
        bytes: usize,
        stream: hipStream_t,
    ) -> hipError_t {
        // SAFETY: the caller's promise.
        unsafe { peer((to, to_device), (from, from_device), bytes, When::On(stream)) }
    }

    fn hipMemcpy2D(
        to: *mut c_void,
        to_pitch: usize,
        from: *const c_void,
        from_pitch: usize,
        width: usize,
        rows: usize,
        kind: hipMemcpyKind,
    ) -> hipError_t {
        checked(kind, || on_device(|cuda| {
            let region = regions::runtime_plane((to, to_pitch), (from, from_pitch), [width, rows])?;
            // SAFETY: the caller's promise.
            unsafe { plane(cuda, region, When::Now) }
        }))
    }

    fn hipMemcpy2DAsync(
        to: *mut c_void,
        to_pitch: usize,
        from: *const c_void,
        from_pitch: usize,
        width: usize,
        rows: usize,
        kind: hipMemcpyKind,
        stream: hipStream_t,
    ) -> hipError_t {
        checked(kind, || on_device(|cuda| {
            let region = regions::runtime_plane((to, to_pitch), (from, from_pitch), [width, rows])?;
            // SAFETY: the caller's promise.
            unsafe { plane(cuda, region, When::On(stream)) }
        }))
    }

    /// Arrays are not supported.
    fn hipMemcpyParam2D(copy: *const hip_Memcpy2D) -> hipError_t {
        // SAFETY: the caller's structure describes valid memory.
        on_device(|cuda| unsafe {
            plane(cuda, regions::driver_plane(copy, Version::current())?, When::Now)
        })
    }

    /// Arrays are not supported.
    fn hipMemcpyParam2DAsync(copy: *const hip_Memcpy2D, stream: hipStream_t) -> hipError_t {
        // SAFETY: the caller's structure describes valid memory.
        on_device(|cuda| unsafe {
            plane(cuda, regions::driver_plane(copy, Version::current())?, When::On(stream))
        })
    }

    /// Arrays are not supported.
    fn hipMemcpy3D(copy: *const hipMemcpy3DParms) -> hipError_t {
        // SAFETY: the caller's promise.
        unsafe { parameters(copy, When::Now) }
    }

    /// Arrays are not supported.
    fn hipMemcpy3DAsync(copy: *const hipMemcpy3DParms, stream: hipStream_t) -> hipError_t {
        // SAFETY: the caller's promise.
        unsafe { parameters(copy, When::On(stream)) }
    }

    /// Since ROCm 6 the structure has sizes where it had integers of 32 bits; it is read as the version has it.
    fn hipDrvMemcpy3D(copy: *const HIP_MEMCPY3D) -> hipError_t {
        // SAFETY: the caller's structure describes valid memory.
        on_device(|cuda| unsafe {
            volume(cuda, regions::driver_volume(copy, Version::current())?, When::Now)
        })
    }

    /// As [`hipDrvMemcpy3D`].
    fn hipDrvMemcpy3DAsync(copy: *const HIP_MEMCPY3D, stream: hipStream_t) -> hipError_t {
        // SAFETY: the caller's structure describes valid memory.
        on_device(|cuda| unsafe {
            volume(cuda, regions::driver_volume(copy, Version::current())?, When::On(stream))
        })
    }
}

/// Copies if the kind is one of HIP's.
fn checked(kind: hipMemcpyKind, copy: impl FnOnce() -> hipError_t) -> hipError_t {
    match regions::check_kind(kind, Version::current()) {
        Ok(()) => copy(),
        Err(error) => crate::state::call(|| Err(error)),
    }
}
