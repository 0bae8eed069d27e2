//! Memory that several processes share.

use crate::{
    NAME,
    buffer::{Found, Provenance, RocBuffer},
    device::RocDevice,
    error::Status,
};
use gpumem_core::{Error, ErrorKind, MemoryKind, Result};
use gpumem_hip_sys::hipIpcMemHandle_t;
use std::{
    ffi::c_char,
    ptr::{null_mut, with_exposed_provenance_mut},
};

/// A part of an allocation of device memory, for another process on this machine.
///
/// It says nothing about when the memory is written: the processes agree on that themselves. The exporting process
/// must keep the allocation alive for as long as another one has it open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct IpcMemory {
    handle: [u8; 64],
    offset: u64,
    bytes: u64,
}

impl IpcMemory {
    /// Length of [`to_bytes`](Self::to_bytes).
    pub const ENCODED_LEN: usize = 80;

    /// Bytes that are shared.
    pub fn len(&self) -> usize {
        usize::try_from(self.bytes).unwrap_or(usize::MAX)
    }

    /// Whether nothing is shared. Always `false` for what [`RocExt::export_memory`](crate::RocExt::export_memory)
    /// has made.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Bytes from the beginning of the allocation to the shared part.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The driver's handle of the whole allocation, for use with other libraries.
    pub fn handle(&self) -> &[u8; 64] {
        &self.handle
    }

    /// The same as bytes, to be sent to the other process: the handle, the offset and the length (little-endian).
    pub fn to_bytes(&self) -> [u8; Self::ENCODED_LEN] {
        let mut bytes = [0; Self::ENCODED_LEN];
        bytes[..64].copy_from_slice(&self.handle);
        bytes[64..72].copy_from_slice(&self.offset.to_le_bytes());
        bytes[72..].copy_from_slice(&self.bytes.to_le_bytes());
        bytes
    }

    /// Reads what [`to_bytes`](Self::to_bytes) has written.
    pub fn from_bytes(bytes: &[u8; Self::ENCODED_LEN]) -> Self {
        let mut memory = Self { handle: [0; 64], offset: 0, bytes: 0 };
        let mut word = [0; 8];
        memory.handle.copy_from_slice(&bytes[..64]);
        word.copy_from_slice(&bytes[64..72]);
        memory.offset = u64::from_le_bytes(word);
        word.copy_from_slice(&bytes[72..]);
        memory.bytes = u64::from_le_bytes(word);
        memory
    }
}

/// # Safety
/// As for [`RocExt::export_memory`](crate::RocExt::export_memory).
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
    Ok(IpcMemory { handle: handle.reserved.map(|byte| byte as u8), offset, bytes: bytes as u64 })
}

/// # Safety
/// As for [`RocExt::open_memory`](crate::RocExt::open_memory).
pub(crate) unsafe fn open(device: &RocDevice, memory: &IpcMemory) -> Result<RocBuffer> {
    const OPERATION: &str = "hipIpcOpenMemHandle";
    let _current = device.enter(OPERATION)?;
    let handle = hipIpcMemHandle_t { reserved: memory.handle.map(|byte| byte as c_char) };
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
        address: base.wrapping_add(memory.offset),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_arrives() {
        let mut handle = [0; 64];
        handle.iter_mut().zip(1..).for_each(|(byte, value)| *byte = value);
        let memory = IpcMemory { handle, offset: 0x0102_0304_0506, bytes: 77 };
        let sent = memory.to_bytes();
        assert_eq!(IpcMemory::from_bytes(&sent), memory);
        assert_eq!((&sent[..64], sent[64], sent[72]), (&handle[..], 6, 77));
        assert_eq!((memory.len(), memory.is_empty(), memory.offset()), (77, false, 0x0102_0304_0506));
    }
}
