//! Memory that several processes use.

use super::{
    MEMORY, file_facts,
    object::{Backing, Kind, Object},
};
use crate::{
    abi::{MemFlags, SharedMemoryHandle, Status},
    config::Config,
};
use std::{
    fs::File,
    os::fd::{AsRawFd, OwnedFd},
};

/// Tells our handles from other words.
const MAGIC: u32 = 0x726f_6373;

/// A handle under which another process finds the memory, for as long as this process has it.
pub(crate) fn export(address: u64) -> Result<SharedMemoryHandle, Status> {
    let memory = MEMORY.read();
    let object = memory.table.at(address).ok_or(Status::INVALID_PARAMETER)?;
    let file = object.backing.as_ref().and_then(|backing| backing.file()).ok_or(Status::INVALID_PARAMETER)?;
    let (low, high) = (object.bytes as u32, (object.bytes >> 32) as u32);
    Ok([MAGIC, std::process::id(), file.as_raw_fd() as u32, low, high, object.node, 0, 0])
}

/// As [`export`], for the kernel driver's handles of four words and memory that begins at the address.
pub(crate) fn export_short(address: u64) -> Result<[u32; 4], Status> {
    let memory = MEMORY.read();
    let object = memory.table.get(address).ok_or(Status::INVALID_HANDLE)?;
    let file = object.backing.as_ref().and_then(|backing| backing.file()).ok_or(Status::INVALID_PARAMETER)?;
    Ok([MAGIC, std::process::id(), file.as_raw_fd() as u32, object.node])
}

/// The memory of a handle of four words, and its node.
pub(crate) fn open_short(handle: [u32; 4]) -> Result<(OwnedFd, u32), Status> {
    let [magic, process, descriptor, node] = handle;
    if magic != MAGIC {
        return Err(Status::INVALID_HANDLE);
    }
    let path = format!("/proc/{process}/fd/{descriptor}");
    let file = File::options().read(true).write(true).open(path).map_err(|_| Status::INVALID_HANDLE)?;
    match file_facts(file.as_raw_fd()) {
        Some((_, found)) if found == node => Ok((file.into(), node)),
        _ => Err(Status::INVALID_HANDLE),
    }
}

/// Makes the memory of a handle usable in this process; returns its address and length.
pub(crate) fn import(handle: &SharedMemoryHandle, nodes: &[u32]) -> Result<(u64, u64), Status> {
    let [magic, process, descriptor, low, high, node, ..] = *handle;
    if magic != MAGIC {
        return Err(Status::INVALID_HANDLE);
    }
    let bytes = u64::from(low) | u64::from(high) << 32;
    let path = format!("/proc/{process}/fd/{descriptor}");
    let file = File::options().read(true).write(true).open(path).map_err(|_| Status::INVALID_HANDLE)?;
    if file_facts(file.as_raw_fd()) != Some((bytes, node)) {
        return Err(Status::INVALID_HANDLE);
    }
    let host_visible = node == 0 || Config::get().large_bar;
    let backing = Backing::in_file(file, bytes as usize, host_visible).map_err(|_| Status::NO_MEMORY)?;
    let mut object = Object::new(Kind::Shared, node, bytes, MemFlags::default(), backing);
    object.mapped.extend_from_slice(nodes);
    let address = object.address;
    MEMORY.write().table.insert(object);
    Ok((address, bytes))
}
