//! Devices.

use super::exports;
use crate::{
    attributes::{Source, source},
    error::Outcome,
    properties::{self, Reader},
    state::{self, call, cuda, not_null, on_device, put},
    types::{
        hipDevice_t, hipDeviceAttribute_t, hipDeviceP2PAttr, hipDeviceProp_t, hipDeviceProp6_t, hipError_t,
        hipLimit_t, hipUUID,
    },
    version::Version,
};
use cudarc::driver::sys::{
    CUdevice_P2PAttribute, CUdevice_attribute_enum as Attribute, CUlimit_enum as Limit,
};
use std::ffi::{c_char, c_int, c_uint};

/// Copies text with its final zero, or as much of it as fits.
///
/// # Safety
/// `target` is null or leads to room for `room` characters.
unsafe fn put_text(target: *mut c_char, room: c_int, text: &[u8]) -> Outcome {
    not_null(target)?;
    let room = usize::try_from(room).map_err(|_| hipError_t::INVALID_VALUE)?;
    let length = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
    if room <= length {
        return Err(hipError_t::INVALID_VALUE);
    }
    for (at, byte) in text[..length].iter().chain(&[0]).enumerate() {
        // SAFETY: the text and its zero fit, which was just checked.
        unsafe { target.add(at).write(*byte as c_char) };
    }
    Ok(())
}

/// Flags of `hipSetDeviceFlags` that CUDA's contexts have too: how waits spend their time.
const SCHEDULE: c_uint = 7;
/// Host memory can be mapped, which is always so.
const MAP_HOST: c_uint = 8;

exports! {
    fn hipInit(flags: c_uint) -> hipError_t {
        call(|| {
            if flags != 0 {
                return Err(hipError_t::INVALID_VALUE);
            }
            cuda().map(drop)
        })
    }

    /// The version of HIP that is played, not of the driver.
    fn hipDriverGetVersion(version: *mut c_int) -> hipError_t {
        // SAFETY: the caller's promise.
        call(|| unsafe { put(version, Version::current().number()) })
    }

    /// The version of HIP that is played.
    fn hipRuntimeGetVersion(version: *mut c_int) -> hipError_t {
        // SAFETY: the caller's promise.
        call(|| unsafe { put(version, Version::current().number()) })
    }

    /// Without a driver there is no device, which has a separate error.
    fn hipGetDeviceCount(count: *mut c_int) -> hipError_t {
        call(|| {
            let cuda = cuda();
            // SAFETY: the caller's promise.
            unsafe { put(count, cuda.map_or(0, |cuda| cuda.count()))? };
            cuda.map(drop)
        })
    }

    fn hipSetDevice(device: c_int) -> hipError_t {
        call(|| {
            let cuda = cuda()?;
            cuda.handle(device)?;
            cuda.set_current(device)?;
            state::set_device(device);
            Ok(())
        })
    }

    fn hipGetDevice(device: *mut c_int) -> hipError_t {
        call(|| {
            cuda()?;
            // SAFETY: the caller's promise.
            unsafe { put(device, state::device()) }
        })
    }

    fn hipDeviceGet(device: *mut hipDevice_t, ordinal: c_int) -> hipError_t {
        call(|| {
            cuda()?.handle(ordinal)?;
            // SAFETY: the caller's promise.
            unsafe { put(device, ordinal) }
        })
    }

    fn hipDeviceGetName(name: *mut c_char, length: c_int, device: hipDevice_t) -> hipError_t {
        call(|| {
            let text = Reader::new(cuda()?, device)?.name()?;
            // SAFETY: the caller's promise.
            unsafe { put_text(name, length, &text) }
        })
    }

    fn hipDeviceGetUuid(uuid: *mut hipUUID, device: hipDevice_t) -> hipError_t {
        call(|| {
            let value = Reader::new(cuda()?, device)?.uuid()?;
            // SAFETY: the caller's promise.
            unsafe { put(uuid, value) }
        })
    }

    fn hipDeviceComputeCapability(major: *mut c_int, minor: *mut c_int, device: hipDevice_t) -> hipError_t {
        call(|| {
            let reader = Reader::new(cuda()?, device)?;
            // SAFETY: the caller's promise.
            unsafe {
                put(major, reader.number(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?)?;
                put(minor, reader.number(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?)
            }
        })
    }

    fn hipDeviceGetPCIBusId(text: *mut c_char, length: c_int, device: c_int) -> hipError_t {
        call(|| {
            let cuda = cuda()?;
            let mut found = [0u8; 32];
            let handle = cuda.handle(device)?;
            // SAFETY: the buffer has the length that is named.
            unsafe { cuda.api.cuDeviceGetPCIBusId(found.as_mut_ptr().cast(), 32, handle) }.hip()?;
            // SAFETY: the caller's promise.
            unsafe { put_text(text, length, &found) }
        })
    }

    fn hipDeviceGetByPCIBusId(device: *mut c_int, text: *const c_char) -> hipError_t {
        call(|| {
            not_null(text)?;
            let cuda = cuda()?;
            let mut handle = 0;
            // SAFETY: the caller's text ends with a zero; a place for a handle.
            let found = unsafe { cuda.api.cuDeviceGetByPCIBusId(&mut handle, text) }.hip();
            // HIP calls a device that is not there an invalid value.
            let ordinal = found.and_then(|()| cuda.ordinal(handle)).map_err(|_| hipError_t::INVALID_VALUE)?;
            // SAFETY: the caller's promise.
            unsafe { put(device, ordinal) }
        })
    }

    fn hipDeviceTotalMem(bytes: *mut usize, device: hipDevice_t) -> hipError_t {
        call(|| {
            let total = Reader::new(cuda()?, device)?.total_memory()?;
            // SAFETY: the caller's promise.
            unsafe { put(bytes, total) }
        })
    }

    /// By a table, see [`attributes`](crate::attributes). An attribute that is not in it is an invalid value.
    fn hipDeviceGetAttribute(value: *mut c_int, attribute: hipDeviceAttribute_t, device: c_int) -> hipError_t {
        call(|| {
            not_null(value)?;
            let reader = Reader::new(cuda()?, device)?;
            let found = match source(attribute).ok_or(hipError_t::INVALID_VALUE)? {
                Source::Driver(attribute) => reader.number(attribute)?,
                Source::Constant(value) => value,
            };
            // SAFETY: the caller's promise.
            unsafe { put(value, found) }
        })
    }

    /// The structure of ROCm 5, whatever version is simulated: since ROCm 6, the old name still means that.
    fn hipGetDeviceProperties(properties: *mut hipDeviceProp_t, device: c_int) -> hipError_t {
        // SAFETY: the caller's promise.
        call(|| unsafe { put(properties, properties::old(&Reader::new(cuda()?, device)?)?) })
    }

    /// Since ROCm 6.
    fn hipGetDevicePropertiesR0000(properties: *mut hipDeviceProp_t, device: c_int) -> hipError_t {
        // SAFETY: the caller's promise.
        call(|| unsafe { put(properties, properties::old(&Reader::new(cuda()?, device)?)?) })
    }

    /// Since ROCm 6.
    fn hipGetDevicePropertiesR0600(properties: *mut hipDeviceProp6_t, device: c_int) -> hipError_t {
        // SAFETY: the caller's promise.
        call(|| unsafe { put(properties, properties::new(&Reader::new(cuda()?, device)?)?) })
    }

    fn hipDeviceGetP2PAttribute(
        value: *mut c_int,
        attribute: hipDeviceP2PAttr,
        device: c_int,
        peer: c_int,
    ) -> hipError_t {
        use CUdevice_P2PAttribute as P2P;
        call(|| {
            not_null(value)?;
            let cuda = cuda()?;
            let (from, to) = (cuda.handle(device)?, cuda.handle(peer)?);
            if device == peer {
                return Err(hipError_t::INVALID_DEVICE);
            }
            let attribute = match attribute {
                0 => P2P::CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK,
                1 => P2P::CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED,
                2 => P2P::CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED,
                3 => P2P::CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED,
                _ => return Err(hipError_t::INVALID_VALUE),
            };
            // SAFETY: the caller has room for a number.
            unsafe { cuda.api.cuDeviceGetP2PAttribute(value, attribute, from, to) }.hip()
        })
    }

    fn hipDeviceSynchronize() -> hipError_t {
        // SAFETY: a context is current.
        on_device(|cuda| unsafe { cuda.api.cuCtxSynchronize() }.hip())
    }

    fn hipDeviceReset() -> hipError_t {
        // SAFETY: the caller uses nothing of the device any more.
        call(|| unsafe { cuda()?.reset(state::device()) })
    }

    /// CUDA's numbers, which go further than AMD's.
    fn hipDeviceGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int) -> hipError_t {
        // SAFETY: the caller has room for two numbers or passes null, which both take.
        on_device(|cuda| unsafe { cuda.api.cuCtxGetStreamPriorityRange(least, greatest) }.hip())
    }

    fn hipDeviceGetLimit(value: *mut usize, limit: hipLimit_t) -> hipError_t {
        on_device(|cuda| {
            not_null(value)?;
            let limit = match limit {
                1 => Limit::CU_LIMIT_PRINTF_FIFO_SIZE,
                2 => Limit::CU_LIMIT_MALLOC_HEAP_SIZE,
                _ => return Err(hipError_t::UNSUPPORTED_LIMIT),
            };
            // SAFETY: room for a size; a context is current.
            unsafe { cuda.api.cuCtxGetLimit(value, limit) }.hip()
        })
    }

    fn hipSetDeviceFlags(flags: c_uint) -> hipError_t {
        call(|| {
            let schedule = flags & SCHEDULE;
            if flags & !(SCHEDULE | MAP_HOST) != 0 || !matches!(schedule, 0 | 1 | 2 | 4) {
                return Err(hipError_t::INVALID_VALUE);
            }
            let cuda = cuda()?;
            let handle = cuda.handle(state::device())?;
            // SAFETY: no pointer is involved.
            unsafe { cuda.api.cuDevicePrimaryCtxSetFlags_v2(handle, schedule) }.hip()
        })
    }

    fn hipGetDeviceFlags(flags: *mut c_uint) -> hipError_t {
        call(|| {
            let cuda = cuda()?;
            let (handle, mut found, mut active) = (cuda.handle(state::device())?, 0, 0);
            // SAFETY: two places for numbers.
            unsafe { cuda.api.cuDevicePrimaryCtxGetState(handle, &mut found, &mut active) }.hip()?;
            // SAFETY: the caller's promise.
            unsafe { put(flags, found & SCHEDULE) }
        })
    }
}
