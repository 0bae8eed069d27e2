//! The origin of memory, and how it is freed.

use crate::{
    error::Status,
    hsa_runtime::{HsaStatus, Runtime},
    probe,
};
use gpumem_sys::hip::Hip;
use gpumem_sys::{
    MissingSymbol,
    hsa::{Hsa, hsa_status_t},
};
use std::{ffi::c_void, ptr::with_exposed_provenance_mut};

/// The origin of memory, which decides how it is freed. The address is the one that was returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Provenance {
    /// `hipMalloc`, `hipExtMallocWithFlags`, `hipMallocManaged`.
    Device(u64),
    /// `hipHostMalloc`.
    PageLocked(usize),
    /// `hipHostRegister`.
    Registered(usize),
    /// `hipIpcOpenMemHandle`.
    Imported(u64),
    /// `hsa_amd_memory_pool_allocate`.
    Pool(u64),
    /// `hsa_amd_memory_lock`, `hsa_amd_memory_lock_to_pool`.
    Locked(usize),
    /// Another library's.
    Foreign,
}

/// Gives memory back. The device that it was allocated for is current.
///
/// # Safety
/// The memory is ours, and nothing uses it any more.
pub(crate) unsafe fn give_back(hip: &Hip, origin: Provenance) -> Status {
    let device = |address: u64| with_exposed_provenance_mut::<c_void>(address as usize);
    // SAFETY: passed on to the caller; each address is the one that the matching function gave out.
    unsafe {
        match origin {
            Provenance::Device(address) => hip.hipFree(device(address)).into(),
            Provenance::PageLocked(host) => hip.hipHostFree(with_exposed_provenance_mut(host)).into(),
            Provenance::Registered(host) => hip.hipHostUnregister(with_exposed_provenance_mut(host)).into(),
            Provenance::Imported(address) => hip.hipIpcCloseMemHandle(device(address)).into(),
            Provenance::Pool(address) => free(device(address)),
            Provenance::Locked(host) => unlock(with_exposed_provenance_mut(host)),
            Provenance::Foreign => Status::SUCCESS,
        }
    }
}

/// Gives memory of a pool back, in HIP's words.
///
/// # Safety
/// The memory is of a pool, and nothing uses it any more.
pub(crate) unsafe fn free(address: *mut c_void) -> Status {
    // SAFETY: passed on to the caller.
    told("hsa_amd_memory_pool_free", |hsa| unsafe { hsa.hsa_amd_memory_pool_free(address) })
}

/// Unlocks memory of the caller, in HIP's words.
///
/// # Safety
/// The memory was locked, and no device uses it any more.
pub(crate) unsafe fn unlock(host: *mut c_void) -> Status {
    // SAFETY: passed on to the caller.
    told("hsa_amd_memory_unlock", |hsa| unsafe { hsa.hsa_amd_memory_unlock(host) })
}

fn told(operation: &'static str, call: impl FnOnce(&Hsa) -> Result<hsa_status_t, MissingSymbol>) -> Status {
    let Ok(Runtime { hsa }) = probe::hsa(operation) else { return Status::MISSING };
    match HsaStatus::from(call(hsa)) {
        HsaStatus::SUCCESS => Status::SUCCESS,
        HsaStatus::Missing(_) => Status::MISSING,
        HsaStatus::INVALID_ALLOCATION => Status::INVALID_VALUE,
        HsaStatus::Code(_) => Status::RUNTIME_MEMORY,
    }
}
