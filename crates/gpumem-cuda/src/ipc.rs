//! Memory that several processes share.

use crate::{
    NAME,
    buffer::{CudaBuffer, Provenance},
    device::CudaDevice,
    error::Status,
};
use cudarc::driver::sys::{CUipcMem_flags_enum as Flags, CUipcMemHandle};
use gpumem_core::{Error, ErrorKind, IpcMemory, Result};
use std::ffi::c_char;

/// # Safety
/// As for [`Backend::export_memory`](gpumem_core::Backend::export_memory).
pub(crate) unsafe fn export(device: &CudaDevice, address: u64, bytes: usize) -> Result<IpcMemory> {
    const OPERATION: &str = "cuIpcGetMemHandle";
    let _current = device.enter(OPERATION)?;
    let (base, length) = range(device, address)?;
    let offset = address.wrapping_sub(base);
    if bytes == 0 || offset.checked_add(bytes as u64).is_none_or(|end| end > length as u64) {
        let why = "the range is empty or reaches outside its allocation";
        return Err(Error::new(NAME, OPERATION, ErrorKind::InvalidArgument { why }));
    }
    let mut handle = CUipcMemHandle { reserved: [0; 64] };
    // SAFETY: a place for a handle; the address is that of an allocation, says the caller.
    let status = unsafe { device.api().cuIpcGetMemHandle(&mut handle, base) };
    device.check(status, OPERATION)?;
    Ok(IpcMemory::new(handle.reserved.map(|byte| byte as u8), offset, bytes as u64))
}

/// # Safety
/// As for [`Backend::open_memory`](gpumem_core::Backend::open_memory).
pub(crate) unsafe fn open(device: &CudaDevice, memory: &IpcMemory) -> Result<CudaBuffer> {
    const OPERATION: &str = "cuIpcOpenMemHandle";
    let _current = device.enter(OPERATION)?;
    let handle = CUipcMemHandle { reserved: memory.handle().map(|byte| byte as c_char) };
    let mut base = 0;
    let flags = Flags::CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS as u32;
    // SAFETY: a place for an address; the handle is a value of 64 bytes that the driver checks.
    let status = unsafe { device.api().cuIpcOpenMemHandle_v2(&mut base, handle, flags) };
    if status == Status::INVALID_CONTEXT {
        let why = "the memory was exported by this process, or its process has ended";
        return Err(Error::new(NAME, OPERATION, ErrorKind::InvalidArgument { why }));
    }
    device.check(status, OPERATION)?;
    let address = base.wrapping_add(memory.offset());
    Ok(CudaBuffer::elsewhere(device, address, memory.len(), Provenance::Imported(base)))
}

/// Beginning and length of the allocation that an address lies in. The context is current.
pub(crate) fn range(device: &CudaDevice, address: u64) -> Result<(u64, usize)> {
    const OPERATION: &str = "cuMemGetAddressRange";
    let (mut base, mut bytes) = (0, 0);
    // SAFETY: places for an address and a size; the driver looks the address up without reading from it.
    match unsafe { device.api().cuMemGetAddressRange_v2(&mut base, &mut bytes, address) } {
        Status::NOT_FOUND | Status::INVALID_VALUE => {
            let why = "the address lies in no allocation of the device";
            Err(Error::new(NAME, OPERATION, ErrorKind::InvalidArgument { why }))
        }
        status => device.check(status, OPERATION).map(|()| (base, bytes)),
    }
}
