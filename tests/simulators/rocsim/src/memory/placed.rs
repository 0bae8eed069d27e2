//! Memory under addresses that AMD's thunk chooses, as the kernel driver's interface has it: the thunk reserves them,
//! and maps for the host what the host may see.

use super::{
    MEMORY, count_allocated, count_freed,
    mapping::memory_file,
    object::{Backing, Kind, Object},
    take_vram,
};
use crate::{
    abi::{MemFlags, PAGE, Status, round_up},
    config::{Config, trace},
    memory::give_vram,
    stats::stats,
};
use std::{
    fs::File,
    os::fd::{AsRawFd, OwnedFd, RawFd},
};

/// Which memory is placed at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placed {
    /// The host's memory, for all nodes to be granted.
    Host,
    /// Device memory of the node.
    Device,
    /// Pages of doorbells and registers, which count for nothing.
    Registers,
}

/// Allocates memory of a node under an address.
pub(crate) fn allocate_at(node: u32, address: u64, bytes: u64, placed: Placed) -> Result<(), Status> {
    let bytes = round_up(bytes).filter(|bytes| *bytes != 0).ok_or(Status::INVALID_PARAMETER)?;
    let (node, kind) = match placed {
        Placed::Host => (0, Kind::Allocated),
        Placed::Registers => (0, Kind::Internal),
        Placed::Device => (node, Kind::Allocated),
    };
    if placed == Placed::Device && !take_vram(node, bytes) {
        stats().vram_exhausted.add(1);
        trace!("node {node}: {bytes} bytes do not fit");
        return Err(Status::NO_MEMORY);
    }
    let made = memory_file(bytes, node).and_then(|file| Backing::of_file(file, bytes as usize));
    let inserted = made.map_err(|_| Status::NO_MEMORY).and_then(|backing| {
        let object = Object { address, ..Object::new(kind, node, bytes, MemFlags::default(), backing) };
        insert(object)
    });
    match inserted {
        Ok(()) if kind == Kind::Allocated => count_allocated(node, bytes),
        Err(_) if placed == Placed::Device => give_vram(node, bytes),
        _ => {}
    }
    trace!("node {node}: {bytes} bytes at {address:#x}: {inserted:?}");
    inserted
}

/// Registers the program's own memory at `host` under another address.
pub(crate) fn register_at(address: u64, host: u64, bytes: u64) -> Result<(), Status> {
    if bytes == 0 || host.checked_add(bytes).and_then(round_up).is_none() {
        return Err(Status::INVALID_PARAMETER);
    }
    let object = Object::registered(host, bytes, MemFlags::default(), Some(Backing::nothing()));
    insert(Object { address: address & !(PAGE - 1), ..object })?;
    trace!("register {host:#x}, {bytes} bytes, for GPUs {address:#x}");
    stats().registrations.add(1);
    stats().registered_live_bytes.add(bytes);
    Ok(())
}

/// Makes the memory in a file usable under an address: another process may have it too.
pub(crate) fn import_at(address: u64, file: OwnedFd) -> Result<(), Status> {
    let file = File::from(file);
    let (bytes, node) = file_facts(file.as_raw_fd()).ok_or(Status::INVALID_HANDLE)?;
    let backing = Backing::of_file(file, bytes as usize).map_err(|_| Status::NO_MEMORY)?;
    let object = Object { address, ..Object::new(Kind::Shared, node, bytes, MemFlags::default(), backing) };
    trace!("import {bytes} bytes of node {node} at {address:#x}");
    insert(object)
}

fn insert(object: Object) -> Result<(), Status> {
    let mut memory = MEMORY.write();
    if object.address == 0 || !object.address.is_multiple_of(PAGE) || memory.table.overlaps(&object) {
        return Err(Status::INVALID_PARAMETER);
    }
    memory.table.insert(object);
    Ok(())
}

/// Gives back what begins at an address.
pub(crate) fn release_at(address: u64) -> Result<(), Status> {
    let object = MEMORY.write().table.remove_at(address).ok_or(Status::INVALID_HANDLE)?;
    trace!("release {address:#x}, {} bytes", object.bytes);
    match object.kind {
        Kind::Allocated => count_freed(object.node, object.bytes),
        Kind::Registered { bytes, .. } => {
            stats().deregistrations.add(1);
            stats().registered_live_bytes.subtract(bytes);
        }
        Kind::Scratch | Kind::Shared | Kind::Internal => {}
    }
    Ok(())
}

/// Lets these GPUs reach what begins at an address, besides those that do already.
pub(crate) fn grant(address: u64, nodes: &[u32]) -> Result<(), Status> {
    let mut memory = MEMORY.write();
    let object = memory.table.get_mut(address).ok_or(Status::INVALID_HANDLE)?;
    let known: Vec<u32> = nodes.iter().copied().filter(|node| !object.mapped.contains(node)).collect();
    object.mapped.extend(known);
    Ok(())
}

/// Takes what begins at an address from these GPUs.
pub(crate) fn revoke(address: u64, nodes: &[u32]) -> Result<(), Status> {
    let mut memory = MEMORY.write();
    let object = memory.table.get_mut(address).ok_or(Status::INVALID_HANDLE)?;
    object.mapped.retain(|node| !nodes.contains(node));
    Ok(())
}

/// Gives back memory of others that begins at an address, unless a GPU reaches it.
pub(crate) fn release_unused(address: u64) -> Result<(), Status> {
    let used = MEMORY.read().table.get(address).is_some_and(|object| !object.mapped.is_empty());
    if used { Ok(()) } else { release_at(address) }
}

/// Calls a function with the file that holds the bytes at an address, and where they are in it.
pub(crate) fn with_file<R>(address: u64, call: impl FnOnce(RawFd, u64) -> R) -> Option<R> {
    let memory = MEMORY.read();
    let object = memory.table.at(address)?;
    let file = object.backing.as_ref()?.file()?;
    Some(call(file.as_raw_fd(), address - object.address))
}

/// A descriptor by which another process reaches what begins at an address.
pub(crate) fn export_at(address: u64) -> Result<OwnedFd, Status> {
    let memory = MEMORY.read();
    let object = memory.table.get(address).ok_or(Status::INVALID_HANDLE)?;
    let file = object.backing.as_ref().and_then(|backing| backing.file()).ok_or(Status::INVALID_PARAMETER)?;
    file.try_clone().map(OwnedFd::from).map_err(|_| Status::OUT_OF_RESOURCES)
}

/// Bytes of device memory that are not allocated.
pub(crate) fn available(node: u32) -> u64 {
    let used = super::VRAM.lock().get(node as usize).copied().unwrap_or_default();
    Config::get().vram_bytes.saturating_sub(used)
}

/// Length and node of the memory in a file, if it is one of the simulator's.
pub(crate) fn file_facts(file: RawFd) -> Option<(u64, u32)> {
    let name = std::fs::read_link(format!("/proc/self/fd/{file}")).ok()?;
    let name = name.to_str()?.strip_prefix("/memfd:rocsim-node-")?;
    let node = name.split(' ').next()?.parse().ok()?;
    // SAFETY: all-zero bytes are a value of the structure.
    let mut status: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: writes one structure that is ours.
    let found = unsafe { libc::fstat(file, &mut status) } == 0;
    let bytes = u64::try_from(status.st_size).ok()?.checked_sub(PAGE)?;
    found.then_some((bytes, node))
}
