//! Requests on the device files (`ioctl`).

use super::{device, drm, errno, events, memory, queues};
use crate::{
    abi::{
        KFD_IOCTL_TYPE, KFD_VERSION, KfdGetClockCounters, KfdGetProcessAperturesNew, KfdGetTileConfig,
        KfdGetVersion, KfdProcessDeviceApertures, KfdSetXnackMode, kfd_request as number,
    },
    config::{Config, trace},
    engine, exports,
    topology::{LDS_APERTURE, SCRATCH_APERTURE},
};
use std::{
    ffi::{c_int, c_ulong, c_void},
    os::fd::RawFd,
};

/// The letter of requests on render nodes.
const DRM_TYPE: u8 = b'd';

/// The addresses that the thunk may give to memory of GPUs.
const GPU_ADDRESSES: (u64, u64) = (0x100_0000, 0x7fff_ffff_ffff);

/// Carries out a request. `None` if it is not one for the simulator; else an error number if it fails.
///
/// # Safety
/// `argument` leads to what the request needs, which only its caller uses meanwhile.
pub unsafe fn request(file: RawFd, request: c_ulong, argument: *mut c_void) -> Option<Result<(), c_int>> {
    let (kind, number) = ((request >> 8) as u8, request as u8);
    if !matches!(kind, KFD_IOCTL_TYPE | DRM_TYPE) {
        return None;
    }
    let node = device::node_of(file)?;
    if exports::is_forked() {
        return Some(Err(libc::EBADF));
    }
    if argument.is_null() {
        return Some(Err(libc::EFAULT));
    }
    // SAFETY: the caller's promise.
    Some(unsafe {
        match (kind, node) {
            (KFD_IOCTL_TYPE, 0) => driver(number, argument),
            (DRM_TYPE, 1..) => drm::request(number, argument),
            _ => Err(libc::ENOTTY),
        }
    })
}

/// The structure that a request takes.
///
/// # Safety
/// `argument` leads to one that only this request uses.
pub(super) unsafe fn structure<'a, T>(argument: *mut c_void) -> &'a mut T {
    // SAFETY: the caller's promise; callers allocate the structure as such, so that it is aligned.
    unsafe { &mut *argument.cast::<T>() }
}

/// A list that a request names by its address and length.
///
/// # Safety
/// `start` is 0 or leads to that many values that only this request uses.
pub(super) unsafe fn list<'a, T>(start: u64, count: u32) -> Result<&'a mut [T], c_int> {
    if count == 0 {
        return Ok(&mut []);
    }
    if start == 0 {
        return Err(libc::EFAULT);
    }
    // SAFETY: the caller's promise; not null.
    Ok(unsafe { std::slice::from_raw_parts_mut(start as *mut T, count as usize) })
}

/// The node of a GPU's number, which are the same here.
pub(super) fn gpu(gpu_id: u32) -> Result<u32, c_int> {
    if Config::get().is_gpu(gpu_id) { Ok(gpu_id) } else { Err(libc::EINVAL) }
}

/// # Safety
/// `argument` leads to the structure of that request.
unsafe fn driver(request: u8, argument: *mut c_void) -> Result<(), c_int> {
    // SAFETY: the caller's promise, for each of the structures below.
    unsafe {
        match request {
            number::GET_VERSION => {
                let (major_version, minor_version) = KFD_VERSION;
                *structure::<KfdGetVersion>(argument) = KfdGetVersion { major_version, minor_version };
                Ok(())
            }
            number::GET_PROCESS_APERTURES_NEW => apertures(structure(argument)),
            number::GET_CLOCK_COUNTERS => {
                let counters = structure::<KfdGetClockCounters>(argument);
                let now = engine::clock();
                (counters.gpu_clock_counter, counters.cpu_clock_counter) = (now, now);
                (counters.system_clock_counter, counters.system_clock_freq) = (now, 1_000_000_000);
                Ok(())
            }
            number::GET_TILE_CONFIG => {
                let config = structure::<KfdGetTileConfig>(argument);
                (config.num_tile_configs, config.num_macro_tile_configs) = (0, 0);
                (config.gb_addr_config, config.num_banks, config.num_ranks) = (0x2a11_4042, 16, 0);
                Ok(())
            }
            number::SET_XNACK_MODE => {
                // Page faults of GPUs cannot be retried here; a negative number asks.
                let mode = structure::<KfdSetXnackMode>(argument);
                if mode.xnack_enabled > 0 {
                    return Err(libc::EPERM);
                }
                mode.xnack_enabled = 0;
                Ok(())
            }
            number::ACQUIRE_VM
            | number::SET_MEMORY_POLICY
            | number::SET_SCRATCH_BACKING_VA
            | number::SET_TRAP_HANDLER
            | number::SET_CU_MASK
            | number::RUNTIME_ENABLE => Ok(()),
            number::ALLOC_MEMORY_OF_GPU => memory::allocate(structure(argument)),
            number::FREE_MEMORY_OF_GPU => memory::free(structure(argument)),
            number::MAP_MEMORY_TO_GPU => memory::map(structure(argument)),
            number::UNMAP_MEMORY_FROM_GPU => memory::unmap(structure(argument)),
            number::AVAILABLE_MEMORY => memory::available(structure(argument)),
            number::SVM => memory::attributes(argument),
            number::EXPORT_DMABUF => memory::export(structure(argument)),
            number::GET_DMABUF_INFO => memory::info(structure(argument)),
            number::IMPORT_DMABUF => memory::import(structure(argument)),
            number::IPC_EXPORT_HANDLE => memory::export_handle(structure(argument)),
            number::IPC_IMPORT_HANDLE => memory::import_handle(structure(argument)),
            number::CREATE_EVENT => events::create(structure(argument)),
            number::DESTROY_EVENT => events::destroy(structure(argument)),
            number::SET_EVENT => events::set(structure(argument), true),
            number::RESET_EVENT => events::set(structure(argument), false),
            number::WAIT_EVENTS => events::wait(structure(argument)),
            number::CREATE_QUEUE => queues::create(structure(argument)),
            number::UPDATE_QUEUE => queues::update(structure(argument)),
            number::DESTROY_QUEUE => queues::destroy(structure(argument)),
            _ => {
                trace!("request {request:#04x} of the kernel driver is not known");
                Err(libc::ENOTTY)
            }
        }
    }
}

/// # Safety
/// The list in the arguments has room for as many entries as they say.
unsafe fn apertures(arguments: &mut KfdGetProcessAperturesNew) -> Result<(), c_int> {
    let gpus = Config::get().gpus;
    let asked = arguments.num_of_nodes;
    if asked == 0 || arguments.kfd_process_device_apertures_ptr == 0 {
        arguments.num_of_nodes = gpus;
        return Ok(());
    }
    // SAFETY: the caller's promise.
    let entries: &mut [KfdProcessDeviceApertures] =
        unsafe { list(arguments.kfd_process_device_apertures_ptr, asked.min(gpus))? };
    let end = |base: u64| base + 0xffff_ffff;
    for (entry, gpu_id) in entries.iter_mut().zip(1..) {
        *entry = KfdProcessDeviceApertures {
            lds_base: LDS_APERTURE,
            lds_limit: end(LDS_APERTURE),
            scratch_base: SCRATCH_APERTURE,
            scratch_limit: end(SCRATCH_APERTURE),
            gpuvm_base: GPU_ADDRESSES.0,
            gpuvm_limit: GPU_ADDRESSES.1,
            gpu_id,
            pad: 0,
        };
    }
    arguments.num_of_nodes = asked.min(gpus);
    Ok(())
}

/// The result of a function of the simulator, as the driver says it.
pub(super) fn status(result: Result<(), crate::abi::Status>) -> Result<(), c_int> {
    result.map_err(errno)
}
