//! Copies between any two places: runs, planes and volumes, host, device and peer.

use crate::{NAME, device::CudaDevice, error::Status, registry, stream::CudaStream};
use cudarc::driver::sys::{
    CUDA_MEMCPY2D, CUDA_MEMCPY3D, CUDA_MEMCPY3D_PEER, CUcontext, CUmemorytype,
    CUmemorytype_enum::{
        CU_MEMORYTYPE_DEVICE as DEVICE, CU_MEMORYTYPE_HOST as HOST, CU_MEMORYTYPE_UNIFIED as UNIFIED,
    },
};
use gpumem_core::{CopyRegion, Error, ErrorKind, Result, Space, Stream};
use gpumem_layout::driver_calls::{Call, DriverCalls};
use std::{
    ffi::c_void,
    ptr::{null_mut, with_exposed_provenance, with_exposed_provenance_mut},
};

/// # Safety
/// As for [`Stream::copy`](gpumem_core::Stream::copy).
pub(crate) unsafe fn copy(stream: &CudaStream, region: &CopyRegion) -> Result<()> {
    if region.rows == 1 && region.slices == 1 {
        // SAFETY: passed on to the caller.
        return unsafe { copy_run(stream, region) };
    }
    let device = &stream.owner.device;
    let plan = DriverCalls::new(region, device.inner().limits.max_pitch).ok_or_else(|| {
        let why = "the region has more bytes than can be addressed";
        Error::new(NAME, "copy", ErrorKind::InvalidArgument { why })
    })?;
    let route = Route::new(device, region);
    let operation = route.operation(&plan.call);
    let current = stream.owner.enter(operation, "stream")?;
    let bases = [region.source.address, region.destination.address];
    if plan.is_one_call() {
        // SAFETY: both sides are valid for the region, says the caller.
        let status = unsafe { route.enqueue(stream, &plan.call, bases) };
        return device.check(status, operation);
    }
    for (index, step) in plan.steps().enumerate() {
        let at = [bases[0].wrapping_add(step[0]), bases[1].wrapping_add(step[1])];
        // SAFETY: both sides are valid for the region, says the caller, and the plan stays within it.
        let status = unsafe { route.enqueue(stream, &plan.call, at) };
        if !status.is_success() {
            let error = device.failure(status, operation);
            drop(current);
            // The calls before this one still run, and nothing may be in use after an error.
            if index > 0 {
                stream.synchronize()?;
            }
            return Err(error);
        }
    }
    Ok(())
}

/// One run, as most copies are: without a plan.
///
/// # Safety
/// As for [`copy`], for a region of one row.
unsafe fn copy_run(stream: &CudaStream, region: &CopyRegion) -> Result<()> {
    let route = Route::new(&stream.owner.device, region);
    let operation = route.operation(&Call::Run { bytes: region.bytes });
    let at = [region.source.address, region.destination.address];
    // SAFETY: both sides are valid for the region, says the caller.
    stream.call(operation, || unsafe { route.run(stream, region.bytes, at) })
}

/// The link between the two sides.
#[derive(Clone, Copy)]
enum Route {
    /// Host memory to the stream's device.
    Upload,
    /// The stream's device to host memory.
    Download,
    /// Within the stream's device.
    Within,
    /// Between the contexts of two devices: the source's and the destination's.
    Peer([CUcontext; 2]),
    /// Anything else, by the kinds of memory of the source and the destination.
    Other([CUmemorytype; 2]),
}

impl Route {
    #[inline]
    fn new(device: &CudaDevice, region: &CopyRegion) -> Self {
        let own = device.ordinal();
        match (region.source.space, region.destination.space) {
            (Space::Host, Space::Device(to)) if to == own => Self::Upload,
            (Space::Device(from), Space::Host) if from == own => Self::Download,
            (Space::Device(from), Space::Device(to)) if from == own && to == own => Self::Within,
            _ => Self::elsewhere(device, region),
        }
    }

    /// The route where memory is not the host's and the stream's device's.
    #[inline(never)]
    fn elsewhere(device: &CudaDevice, region: &CopyRegion) -> Self {
        let own = device.ordinal();
        let context =
            |ordinal| if ordinal == own { Some(device.context()) } else { registry::context_of(ordinal) };
        let kind = |space| match space {
            Space::Host => HOST,
            Space::Device(ordinal) if ordinal == own => DEVICE,
            // The driver finds the context by the address.
            Space::Device(_) => UNIFIED,
        };
        let other = Self::Other([kind(region.source.space), kind(region.destination.space)]);
        match (region.source.space, region.destination.space) {
            (Space::Device(from), Space::Device(to)) if from != to => match (context(from), context(to)) {
                (Some(from), Some(to)) => Self::Peer([from, to]),
                _ => other,
            },
            _ => other,
        }
    }

    fn operation(self, call: &Call) -> &'static str {
        match (self, call) {
            (Self::Peer(_), Call::Run { .. }) => "cuMemcpyPeerAsync",
            (Self::Peer(_), _) => "cuMemcpy3DPeerAsync",
            (Self::Upload, Call::Run { .. }) => "cuMemcpyHtoDAsync",
            (Self::Download, Call::Run { .. }) => "cuMemcpyDtoHAsync",
            (Self::Within, Call::Run { .. }) => "cuMemcpyDtoDAsync",
            (Self::Other(_), Call::Run { .. }) => "cuMemcpyAsync",
            (_, Call::Plane { .. }) => "cuMemcpy2DAsync",
            (_, Call::Volume { .. }) => "cuMemcpy3DAsync",
        }
    }

    /// The kinds of memory of source and destination.
    fn kinds(self) -> [CUmemorytype; 2] {
        match self {
            Self::Upload => [HOST, DEVICE],
            Self::Download => [DEVICE, HOST],
            Self::Within | Self::Peer(_) => [DEVICE, DEVICE],
            Self::Other(kinds) => kinds,
        }
    }

    /// Enqueues the copy of one run.
    ///
    /// # Safety
    /// As for [`enqueue`](Self::enqueue).
    #[inline]
    unsafe fn run(self, stream: &CudaStream, bytes: usize, [from, to]: [u64; 2]) -> Status {
        let (api, raw) = (stream.owner.device.api(), stream.raw);
        // SAFETY: passed on to the caller.
        unsafe {
            match self {
                Self::Upload => {
                    api.cuMemcpyHtoDAsync_v2(to, with_exposed_provenance(from as usize), bytes, raw)
                }
                Self::Download => {
                    api.cuMemcpyDtoHAsync_v2(with_exposed_provenance_mut(to as usize), from, bytes, raw)
                }
                Self::Within => api.cuMemcpyDtoDAsync_v2(to, from, bytes, raw),
                Self::Other(_) => api.cuMemcpyAsync(to, from, bytes, raw),
                Self::Peer([source, destination]) => {
                    api.cuMemcpyPeerAsync(to, destination, from, source, bytes, raw)
                }
            }
        }
    }

    /// Enqueues one call. The stream's context is current.
    ///
    /// # Safety
    /// The bytes that the call reaches from `at` (source, destination) are valid until it is done.
    unsafe fn enqueue(self, stream: &CudaStream, call: &Call, at: [u64; 2]) -> Status {
        let (api, raw) = (stream.owner.device.api(), stream.raw);
        // SAFETY: passed on to the caller; the descriptions are complete and are read before the call returns.
        unsafe {
            match (self, *call) {
                (_, Call::Run { bytes }) => self.run(stream, bytes, at),
                (Self::Peer(contexts), Call::Plane { bytes, rows, pitch }) => {
                    let height = [rows, rows];
                    api.cuMemcpy3DPeerAsync(&peer(contexts, at, [bytes, rows, 1], pitch, height), raw)
                }
                (Self::Peer(contexts), Call::Volume { bytes, rows, planes, pitch, height }) => {
                    api.cuMemcpy3DPeerAsync(&peer(contexts, at, [bytes, rows, planes], pitch, height), raw)
                }
                (_, Call::Plane { bytes, rows, pitch }) => {
                    api.cuMemcpy2DAsync_v2(&plane(self.kinds(), at, [bytes, rows], pitch), raw)
                }
                (_, Call::Volume { bytes, rows, planes, pitch, height }) => {
                    let copy = volume(self.kinds(), at, [bytes, rows, planes], pitch, height);
                    api.cuMemcpy3DAsync_v2(&copy, raw)
                }
            }
        }
    }
}

/// An address for the field of host memory. The driver reads only the field that the kind names.
fn host(address: u64) -> *mut c_void {
    with_exposed_provenance_mut(address as usize)
}

fn plane(
    kinds: [CUmemorytype; 2],
    at: [u64; 2],
    [bytes, rows]: [usize; 2],
    pitch: [usize; 2],
) -> CUDA_MEMCPY2D {
    CUDA_MEMCPY2D {
        srcXInBytes: 0,
        srcY: 0,
        srcMemoryType: kinds[0],
        srcHost: host(at[0]),
        srcDevice: at[0],
        srcArray: null_mut(),
        srcPitch: pitch[0],
        dstXInBytes: 0,
        dstY: 0,
        dstMemoryType: kinds[1],
        dstHost: host(at[1]),
        dstDevice: at[1],
        dstArray: null_mut(),
        dstPitch: pitch[1],
        WidthInBytes: bytes,
        Height: rows,
    }
}

/// A description of three dimensions. The two of the driver share most of their fields.
macro_rules! describe {
    ($description:ident, $at:ident, $size:ident, $pitch:ident, $height:ident, { $($field:ident: $value:expr),* }) => {
        $description {
            srcXInBytes: 0,
            srcY: 0,
            srcZ: 0,
            srcLOD: 0,
            srcDevice: $at[0],
            srcArray: null_mut(),
            srcPitch: $pitch[0],
            srcHeight: $height[0],
            dstXInBytes: 0,
            dstY: 0,
            dstZ: 0,
            dstLOD: 0,
            dstDevice: $at[1],
            dstArray: null_mut(),
            dstPitch: $pitch[1],
            dstHeight: $height[1],
            WidthInBytes: $size[0],
            Height: $size[1],
            Depth: $size[2],
            $($field: $value,)*
        }
    };
}

fn volume(
    kinds: [CUmemorytype; 2],
    at: [u64; 2],
    size: [usize; 3],
    pitch: [usize; 2],
    height: [usize; 2],
) -> CUDA_MEMCPY3D {
    describe!(CUDA_MEMCPY3D, at, size, pitch, height, {
        srcMemoryType: kinds[0],
        srcHost: host(at[0]),
        reserved0: null_mut(),
        dstMemoryType: kinds[1],
        dstHost: host(at[1]),
        reserved1: null_mut()
    })
}

fn peer(
    contexts: [CUcontext; 2],
    at: [u64; 2],
    size: [usize; 3],
    pitch: [usize; 2],
    height: [usize; 2],
) -> CUDA_MEMCPY3D_PEER {
    describe!(CUDA_MEMCPY3D_PEER, at, size, pitch, height, {
        srcMemoryType: DEVICE,
        srcHost: null_mut(),
        srcContext: contexts[0],
        dstMemoryType: DEVICE,
        dstHost: null_mut(),
        dstContext: contexts[1]
    })
}
