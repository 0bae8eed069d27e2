//! Memory that several processes share.

use crate::{
    NAME,
    buffer::{Found, RocBuffer},
    device::RocDevice,
    error::Status,
    provenance::Provenance,
};
use gpumem_core::{Error, ErrorKind, IpcMemory, MemoryKind, Result};
use gpumem_hip_sys::hipIpcMemHandle_t;
use std::{
    ffi::c_char,
    ptr::{null_mut, with_exposed_provenance_mut},
};

/// # Safety
/// As for [`Backend::export_memory`](gpumem_core::Backend::export_memory).
pub(crate) unsafe fn export(device: &RocDevice, address: u64, bytes: usize) -> Result<IpcMemory> {
    const OPERATION: &str = "hipIpcGetMemHandle";
    let _current = device.enter(OPERATION)?;
    let (base, length) = range(device, address)?;
    let offset = address.wrapping_sub(base);
    if bytes == 0 || offset.checked_add(bytes as u64).is_none_or(|end| end > length as u64) {
        let why = "the range is empty or reaches outside its allocation";
        return Err(Error::new(NAME, OPERATION, ErrorKind::InvalidArgument { why }));
    }
    let mut handle = hipIpcMemHandle_t { reserved: [0; 64] };
    let base = with_exposed_provenance_mut(base as usize);
    // SAFETY: a place for a handle; the address is that of an allocation, says the caller.
    let status = unsafe { device.hip().hipIpcGetMemHandle(&mut handle, base) };
    device.check(status, OPERATION)?;
    Ok(IpcMemory::new(handle.reserved.map(|byte| byte as u8), offset, bytes as u64))
}

/// # Safety
/// As for [`Backend::open_memory`](gpumem_core::Backend::open_memory).
pub(crate) unsafe fn open(device: &RocDevice, memory: &IpcMemory) -> Result<RocBuffer> {
    const OPERATION: &str = "hipIpcOpenMemHandle";
    let _current = device.enter(OPERATION)?;
    let handle = hipIpcMemHandle_t { reserved: memory.handle().map(|byte| byte as c_char) };
    let mut base = null_mut();
    let flags = device.inner().driver.version.ipc_lazy_peer_access();
    // SAFETY: a place for an address; the handle is a value of 64 bytes that HIP checks.
    let status = unsafe { device.hip().hipIpcOpenMemHandle(&mut base, handle, flags) };
    match Status::from(status) {
        Status::INVALID_CONTEXT | Status::INVALID_DEVICE_POINTER | Status::INVALID_VALUE => {
            device.forget_last_error();
            let why = "the memory was exported by this process, or its process has ended";
            return Err(Error::new(NAME, OPERATION, ErrorKind::InvalidArgument { why }));
        }
        status => device.check(status, OPERATION)?,
    }
    let base = base.expose_provenance() as u64;
    let found = Found {
        address: base.wrapping_add(memory.offset()),
        host: None,
        bytes: memory.len(),
        kind: MemoryKind::Device,
        origin: Provenance::Imported(base),
    };
    Ok(RocBuffer::take(device, found))
}

/// Beginning and length of the allocation that an address lies in. The device is current.
pub(crate) fn range(device: &RocDevice, address: u64) -> Result<(u64, usize)> {
    const OPERATION: &str = "hipMemGetAddressRange";
    let (mut base, mut bytes) = (null_mut(), 0);
    let address = with_exposed_provenance_mut(address as usize);
    // SAFETY: places for an address and a size; HIP looks the address up without reading from it.
    match Status::from(unsafe { device.hip().hipMemGetAddressRange(&mut base, &mut bytes, address) }) {
        Status::NOT_FOUND | Status::INVALID_VALUE | Status::INVALID_DEVICE_POINTER => {
            device.forget_last_error();
            let why = "the address lies in no allocation of the device";
            Err(Error::new(NAME, OPERATION, ErrorKind::InvalidArgument { why }))
        }
        status => device.check(status, OPERATION).map(|()| (base.expose_provenance() as u64, bytes)),
    }
}
