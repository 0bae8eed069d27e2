use super::*;
use crate::types::{hipExtent, hipPos};
use std::{mem::zeroed, ptr::without_provenance_mut as at};

fn pitched(address: usize, pitch: usize, rows: usize) -> hipPitchedPtr {
    hipPitchedPtr { ptr: at(address), pitch, xsize: pitch, ysize: rows }
}

fn parameters() -> hipMemcpy3DParms {
    hipMemcpy3DParms {
        srcArray: null_mut(),
        srcPos: hipPos { x: 8, y: 2, z: 1 },
        srcPtr: pitched(0x1000, 128, 16),
        dstArray: null_mut(),
        dstPos: hipPos { x: 4, y: 1, z: 3 },
        dstPtr: pitched(0x9000, 96, 12),
        extent: hipExtent { width: 40, height: 6, depth: 5 },
        kind: 4,
    }
}

/// Source and destination (x, y, z, address, pitch, height) and the extent.
fn fields(copy: &CUDA_MEMCPY3D) -> [[usize; 6]; 2] {
    assert!(copy.srcMemoryType == UNIFIED && copy.dstMemoryType == UNIFIED);
    assert!(copy.srcArray.is_null() && copy.dstArray.is_null());
    [
        [copy.srcXInBytes, copy.srcY, copy.srcZ, copy.srcDevice as usize, copy.srcPitch, copy.srcHeight],
        [copy.dstXInBytes, copy.dstY, copy.dstZ, copy.dstDevice as usize, copy.dstPitch, copy.dstHeight],
    ]
}

const EXPECTED: [[usize; 6]; 2] = [[8, 2, 1, 0x1000, 128, 16], [4, 1, 3, 0x9000, 96, 12]];

#[test]
fn a_box_keeps_its_places_and_pitches() {
    let copy = runtime_volume(&parameters(), Version::V5).unwrap().unwrap();
    assert_eq!(fields(&copy), EXPECTED);
    assert_eq!((copy.WidthInBytes, copy.Height, copy.Depth), (40, 6, 5));
}

#[test]
fn both_structures_of_the_driver_interface_are_read() {
    // SAFETY: numbers and pointers, for all of which zero is a value.
    let (mut old, mut new): (HIP_MEMCPY3D, HIP_MEMCPY3D6) = unsafe { (zeroed(), zeroed()) };
    macro_rules! fill {
        ($copy:ident, $host:expr, $device:expr) => {
            ($copy.srcXInBytes, $copy.srcY, $copy.srcZ) = (8, 2, 1);
            ($copy.srcMemoryType, $copy.srcHost) = ($host, at(0x1000));
            ($copy.srcPitch, $copy.srcHeight) = (128, 16);
            ($copy.dstXInBytes, $copy.dstY, $copy.dstZ) = (4, 1, 3);
            ($copy.dstMemoryType, $copy.dstDevice) = ($device, at(0x9000));
            ($copy.dstPitch, $copy.dstHeight) = (96, 12);
            ($copy.WidthInBytes, $copy.Height, $copy.Depth) = (40, 6, 5);
        };
    }
    fill!(old, 0, 1);
    fill!(new, 1, 2);
    // SAFETY: each is the structure of its version.
    let copies =
        unsafe { [driver_volume(&old, Version::V5), driver_volume((&raw const new).cast(), Version::V7)] };
    for copy in copies {
        assert_eq!(fields(&copy.unwrap().unwrap()), EXPECTED);
    }
    // The same numbers mean other kinds of memory in another version: the host's address is null then.
    assert_eq!(
        driver_volume_5(&HIP_MEMCPY3D { srcMemoryType: 1, ..old }, Version::V5).err(),
        Some(hipError_t::INVALID_VALUE)
    );
    assert_eq!(
        driver_volume_5(&HIP_MEMCPY3D { srcMemoryType: 2, ..old }, Version::V5).err(),
        Some(hipError_t::NOT_SUPPORTED)
    );
    assert_eq!(
        driver_volume_6(&HIP_MEMCPY3D6 { srcMemoryType: 10, ..new }, Version::V6).err(),
        Some(hipError_t::NOT_SUPPORTED)
    );
    assert_eq!(
        driver_volume_6(&HIP_MEMCPY3D6 { srcMemoryType: 7, ..new }, Version::V6).err(),
        Some(hipError_t::INVALID_VALUE)
    );
}

#[test]
fn memory_types_have_the_numbers_of_the_version() {
    for (place, before, since) in [
        (Place::Host, 0, 1),
        (Place::Device, 1, 2),
        (Place::Managed, 0, 3),
        (Place::Array, 2, 10),
        (Place::Unified, 3, 11),
    ] {
        assert_eq!(place.number(Version::V5), before, "{place:?}");
        assert_eq!((place.number(Version::V6), place.number(Version::V7)), (since, since), "{place:?}");
    }
}

#[test]
fn empty_copies_succeed_without_checks() {
    for extent in [(0, 6, 5), (40, 0, 5), (40, 6, 0)] {
        let (width, height, depth) = extent;
        let copy = hipMemcpy3DParms {
            extent: hipExtent { width, height, depth },
            srcPtr: pitched(0, 0, 0),
            ..parameters()
        };
        assert!(runtime_volume(&copy, Version::V5).unwrap().is_none());
    }
    assert!(runtime_plane((null_mut(), 0), (null(), 0), [0, 3]).unwrap().is_none());
}

#[test]
fn rows_must_fit_their_pitch() {
    let row = |to: usize, from: usize| {
        runtime_plane((at(0x9000), to), (at(0x1000), from), [16, 2]).map(Option::unwrap)
    };
    let copy = row(32, 16).unwrap();
    assert_eq!((copy.srcDevice, copy.srcPitch, copy.dstDevice, copy.dstPitch), (0x1000, 16, 0x9000, 32));
    assert_eq!((copy.WidthInBytes, copy.Height), (16, 2));
    for (to, from) in [(8, 16), (16, 8)] {
        assert_eq!(row(to, from).err(), Some(hipError_t::INVALID_PITCH_VALUE));
    }
    let far = hipMemcpy3DParms { srcPos: hipPos { x: usize::MAX, y: 0, z: 0 }, ..parameters() };
    assert_eq!(runtime_volume(&far, Version::V5).err(), Some(hipError_t::INVALID_PITCH_VALUE));
}

#[test]
fn kinds_arrays_and_null_are_checked() {
    for kind in 0..=4 {
        assert_eq!(check_kind(kind, Version::V5), Ok(()));
    }
    assert_eq!(check_kind(5, Version::V5), Err(hipError_t::INVALID_MEMCPY_DIRECTION));
    assert_eq!(check_kind(1024, Version::V5), Err(hipError_t::INVALID_MEMCPY_DIRECTION));
    assert_eq!(check_kind(1024, Version::V6), Ok(()));
    let array = hipMemcpy3DParms { dstArray: at(8), ..parameters() };
    assert_eq!(runtime_volume(&array, Version::V5).err(), Some(hipError_t::NOT_SUPPORTED));
    let null = hipMemcpy3DParms { dstPtr: pitched(0, 96, 12), ..parameters() };
    assert_eq!(runtime_volume(&null, Version::V5).err(), Some(hipError_t::INVALID_VALUE));
}

#[test]
fn a_box_is_filled_plane_by_plane_unless_there_is_no_gap() {
    let pointer = pitched(0x1000, 64, 10);
    assert_eq!(fills(&pointer, [64, 10, 3]).unwrap(), [(0x1000, 30)]);
    assert_eq!(fills(&pointer, [5, 4, 2]).unwrap(), [(0x1000, 4), (0x1000 + 640, 4)]);
    assert_eq!(fills(&pointer, [0, 4, 2]).unwrap(), []);
    assert_eq!(fills(&pointer, [65, 4, 2]), Err(hipError_t::INVALID_PITCH_VALUE));
    assert_eq!(fills(&pointer, [64, 11, 2]), Err(hipError_t::INVALID_VALUE));
}
