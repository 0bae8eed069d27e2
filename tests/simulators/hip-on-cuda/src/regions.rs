//! Copies and fills with pitches: HIP's structures as CUDA's.
//!
//! CUDA is told that every address is one of the unified address space. HIP looks at the addresses too, and not at the
//! kind of copy, which may be inexact.

use crate::{
    error::Outcome,
    types::{
        HIP_MEMCPY3D, HIP_MEMCPY3D6, hip_Memcpy2D, hipDeviceptr_t, hipError_t, hipMemcpy3DParms,
        hipMemcpyKind, hipMemoryType, hipPitchedPtr,
    },
    version::Version,
};
use cudarc::driver::sys::{
    CUDA_MEMCPY2D, CUDA_MEMCPY3D, CUdeviceptr, CUmemorytype_enum::CU_MEMORYTYPE_UNIFIED as UNIFIED,
};
use std::{
    ffi::c_void,
    ptr::{null, null_mut},
};

/// Where a kind of memory is, by the numbers of a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Unregistered,
    Host,
    Device,
    Managed,
    Unified,
    Array,
}

impl Place {
    /// The number that a version of ROCm has for it. ROCm 5.2 says "host" of managed memory.
    pub(crate) fn number(self, version: Version) -> hipMemoryType {
        let before = version == Version::V5;
        match self {
            Self::Unregistered => 0,
            Self::Host => u32::from(!before),
            Self::Device => 1 + u32::from(!before),
            Self::Managed => {
                if before {
                    0
                } else {
                    3
                }
            }
            Self::Array => {
                if before {
                    2
                } else {
                    10
                }
            }
            Self::Unified => {
                if before {
                    3
                } else {
                    11
                }
            }
        }
    }

    fn of(number: hipMemoryType, version: Version) -> Outcome<Self> {
        [Self::Host, Self::Device, Self::Managed, Self::Array, Self::Unified]
            .into_iter()
            .find(|place| place.number(version) == number)
            .ok_or(hipError_t::INVALID_VALUE)
    }
}

/// The kind of a copy must be one of HIP's. Which it is does not matter.
pub(crate) fn check_kind(kind: hipMemcpyKind, version: Version) -> Outcome {
    const DEVICE_TO_DEVICE_BY_DMA: hipMemcpyKind = 1024;
    match kind {
        0..=4 => Ok(()),
        DEVICE_TO_DEVICE_BY_DMA if version >= Version::V6 => Ok(()),
        _ => Err(hipError_t::INVALID_MEMCPY_DIRECTION),
    }
}

/// One side of a copy.
#[derive(Debug, Clone, Copy)]
struct Side {
    address: u64,
    x: usize,
    y: usize,
    z: usize,
    pitch: usize,
    height: usize,
}

impl Side {
    /// The address that a structure names for a kind of memory, of the two that it has.
    fn address(
        kind: hipMemoryType,
        host: *const c_void,
        device: hipDeviceptr_t,
        version: Version,
    ) -> Outcome<u64> {
        let address = match Place::of(kind, version)? {
            Place::Host | Place::Unregistered => host,
            Place::Device | Place::Managed | Place::Unified => device.cast_const(),
            Place::Array => return Err(hipError_t::NOT_SUPPORTED),
        };
        if address.is_null() {
            Err(hipError_t::INVALID_VALUE)
        } else {
            Ok(address.expose_provenance() as u64)
        }
    }

    fn of_pitched(pointer: &hipPitchedPtr, array: *const c_void, [x, y, z]: [usize; 3]) -> Outcome<Self> {
        if !array.is_null() {
            return Err(hipError_t::NOT_SUPPORTED);
        }
        let address = pointer.ptr.expose_provenance() as u64;
        if address == 0 {
            return Err(hipError_t::INVALID_VALUE);
        }
        Ok(Self { address, x, y, z, pitch: pointer.pitch, height: pointer.ysize })
    }
}

/// The size of a copy: bytes of a row, rows, planes.
type Extent = [usize; 3];

/// Nothing to do, or the structure for CUDA.
pub(crate) type Volume = Option<CUDA_MEMCPY3D>;

fn volume(from: Outcome<Side>, to: Outcome<Side>, [bytes, rows, planes]: Extent) -> Outcome<Volume> {
    if bytes == 0 || rows == 0 || planes == 0 {
        return Ok(None);
    }
    let (from, to) = (from?, to?);
    for side in [&from, &to] {
        let reaches = side.x.checked_add(bytes).is_some_and(|end| end <= side.pitch);
        if !reaches {
            return Err(hipError_t::INVALID_PITCH_VALUE);
        }
    }
    Ok(Some(CUDA_MEMCPY3D {
        srcXInBytes: from.x,
        srcY: from.y,
        srcZ: from.z,
        srcLOD: 0,
        srcMemoryType: UNIFIED,
        srcHost: null(),
        srcDevice: from.address,
        srcArray: null_mut(),
        reserved0: null_mut(),
        srcPitch: from.pitch,
        srcHeight: from.height,
        dstXInBytes: to.x,
        dstY: to.y,
        dstZ: to.z,
        dstLOD: 0,
        dstMemoryType: UNIFIED,
        dstHost: null_mut(),
        dstDevice: to.address,
        dstArray: null_mut(),
        reserved1: null_mut(),
        dstPitch: to.pitch,
        dstHeight: to.height,
        WidthInBytes: bytes,
        Height: rows,
        Depth: planes,
    }))
}

/// `hipMemcpy3D` and its asynchronous form.
pub(crate) fn runtime_volume(copy: &hipMemcpy3DParms, version: Version) -> Outcome<Volume> {
    check_kind(copy.kind, version)?;
    let position = |position: &crate::types::hipPos| [position.x, position.y, position.z];
    volume(
        Side::of_pitched(&copy.srcPtr, copy.srcArray, position(&copy.srcPos)),
        Side::of_pitched(&copy.dstPtr, copy.dstArray, position(&copy.dstPos)),
        [copy.extent.width, copy.extent.height, copy.extent.depth],
    )
}

/// `hipDrvMemcpy3D` with the structure of a version of ROCm; `$size` is its integer.
macro_rules! driver_volume {
    ($name:ident, $copy:ty) => {
        fn $name(copy: &$copy, version: Version) -> Outcome<Volume> {
            let address = Side::address(copy.srcMemoryType, copy.srcHost, copy.srcDevice, version);
            let from = address.map(|address| Side {
                address,
                x: copy.srcXInBytes as usize,
                y: copy.srcY as usize,
                z: copy.srcZ as usize,
                pitch: copy.srcPitch as usize,
                height: copy.srcHeight as usize,
            });
            let address = Side::address(copy.dstMemoryType, copy.dstHost, copy.dstDevice, version);
            let to = address.map(|address| Side {
                address,
                x: copy.dstXInBytes as usize,
                y: copy.dstY as usize,
                z: copy.dstZ as usize,
                pitch: copy.dstPitch as usize,
                height: copy.dstHeight as usize,
            });
            volume(from, to, [copy.WidthInBytes as usize, copy.Height as usize, copy.Depth as usize])
        }
    };
}
driver_volume!(driver_volume_5, HIP_MEMCPY3D);
driver_volume!(driver_volume_6, HIP_MEMCPY3D6);

/// `hipDrvMemcpy3D` and its asynchronous form, whose structure has other integers since ROCm 6.
///
/// # Safety
/// `copy` is null or leads to the structure of this version.
pub(crate) unsafe fn driver_volume(copy: *const HIP_MEMCPY3D, version: Version) -> Outcome<Volume> {
    if copy.is_null() {
        return Err(hipError_t::INVALID_VALUE);
    }
    if version == Version::V5 {
        // SAFETY: the caller's promise; not null.
        driver_volume_5(unsafe { &*copy }, version)
    } else {
        // SAFETY: the caller's promise; not null.
        driver_volume_6(unsafe { &*copy.cast::<HIP_MEMCPY3D6>() }, version)
    }
}

/// Nothing to do, or the structure for CUDA.
pub(crate) type Plane = Option<CUDA_MEMCPY2D>;

fn plane(from: Outcome<Side>, to: Outcome<Side>, [bytes, rows]: [usize; 2]) -> Outcome<Plane> {
    let volume = volume(from, to, [bytes, rows, 1])?;
    Ok(volume.map(|volume| CUDA_MEMCPY2D {
        srcXInBytes: volume.srcXInBytes,
        srcY: volume.srcY,
        srcMemoryType: UNIFIED,
        srcHost: null(),
        srcDevice: volume.srcDevice,
        srcArray: null_mut(),
        srcPitch: volume.srcPitch,
        dstXInBytes: volume.dstXInBytes,
        dstY: volume.dstY,
        dstMemoryType: UNIFIED,
        dstHost: null_mut(),
        dstDevice: volume.dstDevice,
        dstArray: null_mut(),
        dstPitch: volume.dstPitch,
        WidthInBytes: bytes,
        Height: rows,
    }))
}

/// `hipMemcpy2D` and its asynchronous form: addresses with their pitches, then bytes and rows.
pub(crate) fn runtime_plane(
    (to, to_pitch): (*mut c_void, usize),
    (from, from_pitch): (*const c_void, usize),
    extent: [usize; 2],
) -> Outcome<Plane> {
    let side = |pointer: *mut c_void, pitch| {
        let pointer = hipPitchedPtr { ptr: pointer, pitch, xsize: 0, ysize: 0 };
        Side::of_pitched(&pointer, null(), [0; 3])
    };
    plane(side(from.cast_mut(), from_pitch), side(to, to_pitch), extent)
}

/// `hipMemcpyParam2D` and its asynchronous form.
///
/// # Safety
/// `copy` is null or leads to a structure.
pub(crate) unsafe fn driver_plane(copy: *const hip_Memcpy2D, version: Version) -> Outcome<Plane> {
    if copy.is_null() {
        return Err(hipError_t::INVALID_VALUE);
    }
    // SAFETY: the caller's promise; not null.
    let copy = unsafe { &*copy };
    let address = Side::address(copy.srcMemoryType, copy.srcHost, copy.srcDevice, version);
    let from = address.map(|address| Side {
        address,
        x: copy.srcXInBytes,
        y: copy.srcY,
        z: 0,
        pitch: copy.srcPitch,
        height: 0,
    });
    let address = Side::address(copy.dstMemoryType, copy.dstHost, copy.dstDevice, version);
    let to = address.map(|address| Side {
        address,
        x: copy.dstXInBytes,
        y: copy.dstY,
        z: 0,
        pitch: copy.dstPitch,
        height: 0,
    });
    plane(from, to, [copy.WidthInBytes, copy.Height])
}

/// Two-dimensional fills of `hipMemset3D`: address, rows. Planes that follow each other without a gap are one.
pub(crate) fn fills(
    pointer: &hipPitchedPtr,
    [bytes, rows, planes]: Extent,
) -> Outcome<Vec<(CUdeviceptr, usize)>> {
    if bytes == 0 || rows == 0 || planes == 0 {
        return Ok(Vec::new());
    }
    if pointer.ptr.is_null() || rows > pointer.ysize {
        return Err(hipError_t::INVALID_VALUE);
    }
    if bytes > pointer.pitch {
        return Err(hipError_t::INVALID_PITCH_VALUE);
    }
    let base = pointer.ptr.expose_provenance() as u64;
    let distance = pointer.pitch.checked_mul(pointer.ysize).ok_or(hipError_t::INVALID_VALUE)?;
    if rows == pointer.ysize {
        let rows = rows.checked_mul(planes).ok_or(hipError_t::INVALID_VALUE)?;
        return Ok(vec![(base, rows)]);
    }
    Ok((0..planes).map(|plane| (base.wrapping_add((plane * distance) as u64), rows)).collect())
}

#[cfg(test)]
mod tests;
