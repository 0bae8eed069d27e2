//! Copies between any two places: runs, planes and volumes, host, device and peer.

use crate::{NAME, device::RocDevice, error::Status, stream::RocStream};
use gpumem_core::{CopyRegion, Error, ErrorKind, Result, Space, Stream};
use gpumem_layout::driver_calls::{Call, DriverCalls};
use gpumem_sys::hip::{hipExtent, hipMemcpy3DParms, hipMemcpyKind, hipPitchedPtr, hipPos};
use std::{
    ffi::{c_int, c_void},
    ptr::{null_mut, with_exposed_provenance_mut},
};

/// # Safety
/// As for [`Stream::copy`](gpumem_core::Stream::copy).
pub(crate) unsafe fn copy(stream: &RocStream, region: &CopyRegion) -> Result<()> {
    let device = &stream.owner.device;
    let route = Route::new(device, region);
    // A pitch of 0 is never exceeded by a plane, so that everything becomes runs.
    let max_pitch = if route.copies_runs_only() { 0 } else { device.inner().limits.max_pitch };
    let plan = DriverCalls::new(region, max_pitch).ok_or_else(|| {
        let why = "the region has more bytes than can be addressed";
        Error::new(NAME, "copy", ErrorKind::InvalidArgument { why })
    })?;
    let operation = route.operation(&plan.call);
    let turn = stream.owner.device.enqueue_lock().shared();
    let current = stream.owner.enter(operation, "stream")?;
    let bases = [region.source.address, region.destination.address];
    for (index, step) in plan.steps().enumerate() {
        let at = [bases[0].wrapping_add(step[0]), bases[1].wrapping_add(step[1])];
        // SAFETY: both sides are valid for the region, says the caller, and the plan stays within it.
        let status = unsafe { route.enqueue(stream, &plan.call, at) };
        if !status.is_success() {
            let error = device.failure(status, operation);
            // The turn too: the wait below takes one, which a thread that frees memory may hold up.
            drop((current, turn));
            // The calls before this one still run, and nothing may be in use after an error.
            if index > 0 {
                stream.synchronize()?;
            }
            return Err(error);
        }
    }
    Ok(())
}

/// The link between the two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route {
    /// The copies that HIP can do by one kind of call.
    Direct(hipMemcpyKind),
    /// Between two devices: the source's and the destination's. HIP goes through the host where it has to, which it
    /// does for runs only.
    Peer([c_int; 2]),
}

impl Route {
    fn new(device: &RocDevice, region: &CopyRegion) -> Self {
        let own = device.ordinal();
        match (region.source.space, region.destination.space) {
            (Space::Host, Space::Device(to)) if to == own => {
                Self::Direct(hipMemcpyKind::hipMemcpyHostToDevice)
            }
            (Space::Device(from), Space::Host) if from == own => {
                Self::Direct(hipMemcpyKind::hipMemcpyDeviceToHost)
            }
            (Space::Device(from), Space::Device(to)) if from == own && to == own => {
                Self::Direct(hipMemcpyKind::hipMemcpyDeviceToDevice)
            }
            (Space::Device(from), Space::Device(to)) if from != to => {
                let other = if from == own { to } else { from };
                let reached = (from == own || to == own) && device.reaches(other);
                match (c_int::try_from(from), c_int::try_from(to)) {
                    (Ok(from), Ok(to)) if !reached => Self::Peer([from, to]),
                    // HIP finds the devices by the addresses.
                    _ => Self::Direct(hipMemcpyKind::hipMemcpyDefault),
                }
            }
            _ => Self::Direct(hipMemcpyKind::hipMemcpyDefault),
        }
    }

    fn copies_runs_only(self) -> bool {
        matches!(self, Self::Peer(_))
    }

    fn operation(self, call: &Call) -> &'static str {
        match (self, call) {
            (Self::Peer(_), _) => "hipMemcpyPeerAsync",
            (_, Call::Run { .. }) => "hipMemcpyAsync",
            (_, Call::Plane { .. }) => "hipMemcpy2DAsync",
            (_, Call::Volume { .. }) => "hipMemcpy3DAsync",
        }
    }

    /// Enqueues one call. The stream's device is current.
    ///
    /// # Safety
    /// The bytes that the call reaches from `at` (source, destination) are valid until it is done.
    unsafe fn enqueue(self, stream: &RocStream, call: &Call, at: [u64; 2]) -> Status {
        let (hip, raw) = (stream.owner.device.hip(), stream.raw);
        let [from, to] = at.map(|address| with_exposed_provenance_mut::<c_void>(address as usize));
        // SAFETY: passed on to the caller; the descriptions are complete and are read before the call returns.
        let answer = unsafe {
            match (self, *call) {
                (Self::Direct(kind), Call::Run { bytes }) => hip.hipMemcpyAsync(to, from, bytes, kind, raw),
                (Self::Direct(kind), Call::Plane { bytes, rows, pitch }) => {
                    hip.hipMemcpy2DAsync(to, pitch[1], from, pitch[0], bytes, rows, kind, raw)
                }
                (Self::Direct(kind), Call::Volume { bytes, rows, planes, pitch, height }) => {
                    let copy = volume(kind, [from, to], [bytes, rows, planes], pitch, height);
                    hip.hipMemcpy3DAsync(&copy, raw)
                }
                (Self::Peer([source, destination]), Call::Run { bytes }) => {
                    hip.hipMemcpyPeerAsync(to, destination, from, source, bytes, raw)
                }
                // Never planned: see `copies_runs_only`.
                (Self::Peer(_), _) => return Status::NOT_SUPPORTED,
            }
        };
        answer.into()
    }
}

fn volume(
    kind: hipMemcpyKind,
    [from, to]: [*mut c_void; 2],
    [bytes, rows, planes]: [usize; 3],
    pitch: [usize; 2],
    height: [usize; 2],
) -> hipMemcpy3DParms {
    let side =
        |ptr, side: usize| hipPitchedPtr { ptr, pitch: pitch[side], xsize: bytes, ysize: height[side] };
    let origin = hipPos { x: 0, y: 0, z: 0 };
    hipMemcpy3DParms {
        srcArray: null_mut(),
        srcPos: origin,
        srcPtr: side(from, 0),
        dstArray: null_mut(),
        dstPos: origin,
        dstPtr: side(to, 1),
        extent: hipExtent { width: bytes, height: rows, depth: planes },
        kind,
    }
}
