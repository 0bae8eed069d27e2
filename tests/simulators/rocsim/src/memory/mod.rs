//! The memory management of the simulated GPUs: which bytes exist, and which GPU may use them.
//!
//! Device memory that the host cannot see has two mappings: addresses that fault for the host, which the program gets,
//! and an alias that only the engines use.

mod access;
mod mapping;
mod object;
mod placed;
mod share;
mod svm;
mod table;

pub(crate) use access::{Cause, Fault, Span, span};
pub(crate) use mapping::memory_file;
pub(crate) use placed::{
    Placed, allocate_at, available, export_at, file_facts, grant, import_at, register_at, release_at,
    release_unused, revoke, with_file,
};
pub(crate) use share::{export, export_short, import, open_short};

use crate::{
    abi::{MemFlags, PointerInfo, Status, SvmAttribute, pointer, round_up},
    config::{Config, trace},
    stats::stats,
};
use object::{Backing, Kind, Object};
use parking_lot::{Mutex, RwLock};
use std::sync::LazyLock;
use svm::SvmRanges;
use table::Table;

#[derive(Debug, Default)]
struct Memory {
    table: Table,
    svm: SvmRanges,
}

static MEMORY: LazyLock<RwLock<Memory>> = LazyLock::new(RwLock::default);

/// Bytes in use of each GPU, by node.
static VRAM: Mutex<[u64; 17]> = Mutex::new([0; 17]);

fn take_vram(node: u32, bytes: u64) -> bool {
    let mut used = VRAM.lock();
    let Some(used) = used.get_mut(node as usize) else { return false };
    match used.checked_add(bytes) {
        Some(sum) if sum <= Config::get().vram_bytes => *used = sum,
        _ => return false,
    }
    true
}

fn give_vram(node: u32, bytes: u64) {
    if let Some(used) = VRAM.lock().get_mut(node as usize) {
        *used = used.saturating_sub(bytes);
    }
}

/// Counts an allocation of a node.
fn count_allocated(node: u32, bytes: u64) {
    if node == 0 {
        stats().host_allocations.add(1);
        stats().host_live_bytes.add(bytes);
    } else {
        stats().vram_allocations.add(1);
        let live = stats().vram_live_bytes.add(bytes);
        stats().vram_peak_bytes.raise_to(live);
    }
}

/// Counts a release of a node's memory, which is available again.
fn count_freed(node: u32, bytes: u64) {
    if node == 0 {
        stats().host_frees.add(1);
        stats().host_live_bytes.subtract(bytes);
    } else {
        give_vram(node, bytes);
        stats().vram_frees.add(1);
        stats().vram_live_bytes.subtract(bytes);
    }
}

/// Allocates memory on a node and says under which address.
pub(crate) fn allocate(node: u32, bytes: u64, flags: MemFlags) -> Result<u64, Status> {
    let config = Config::get();
    let bytes = round_up(bytes).filter(|bytes| *bytes != 0).ok_or(Status::INVALID_PARAMETER)?;
    if flags.has(MemFlags::FIXED_ADDRESS) {
        return Err(Status::NOT_SUPPORTED);
    }
    let out_of_memory = |_| Status::NO_MEMORY;
    let object = if flags.has(MemFlags::SCRATCH) {
        Object::new(Kind::Scratch, node, bytes, flags, Backing::address_only(bytes).map_err(out_of_memory)?)
    } else if config.is_gpu(node) {
        if !take_vram(node, bytes) {
            stats().vram_exhausted.add(1);
            trace!("node {node}: {bytes} bytes do not fit");
            return Err(Status::NO_MEMORY);
        }
        let backing = Backing::new_file(bytes, node, config.large_bar).map_err(|_| {
            give_vram(node, bytes);
            Status::NO_MEMORY
        })?;
        count_allocated(node, bytes);
        Object::new(Kind::Allocated, node, bytes, flags, backing)
    } else if node == 0 {
        let backing = if flags.has(MemFlags::NON_PAGED) {
            Backing::new_file(bytes, 0, true)
        } else {
            Backing::anonymous(bytes, flags.has(MemFlags::EXECUTE_ACCESS))
        };
        let object = Object::new(Kind::Allocated, 0, bytes, flags, backing.map_err(out_of_memory)?);
        count_allocated(0, bytes);
        object
    } else {
        return Err(Status::INVALID_NODE_UNIT);
    };
    let address = object.address;
    trace!("node {node}: {bytes} bytes (flags {:#x}) at {address:#x}", flags.0);
    MEMORY.write().table.insert(object);
    Ok(address)
}

/// Memory that every GPU and the host can reach, never freed: mailboxes and registers.
pub(crate) fn allocate_internal(bytes: u64) -> Result<u64, Status> {
    let backing = Backing::anonymous(bytes, false).map_err(|_| Status::NO_MEMORY)?;
    let object = Object::new(Kind::Internal, 0, bytes, MemFlags::default(), backing);
    let address = object.address;
    MEMORY.write().table.insert(object);
    Ok(address)
}

/// Gives memory back that was allocated at that address.
pub(crate) fn free(address: u64) -> Status {
    let Some(object) = MEMORY.write().table.remove_allocated(address) else {
        trace!("free of {address:#x}, which is not allocated");
        return Status::ERROR;
    };
    trace!("free {address:#x}, {} bytes", object.bytes);
    if object.kind == Kind::Allocated {
        count_freed(object.node, object.bytes);
    }
    Status::SUCCESS
}

/// Registers the program's own memory.
pub(crate) fn register(address: u64, bytes: u64, flags: MemFlags) -> Status {
    if bytes == 0 || address.checked_add(bytes).and_then(round_up).is_none() {
        return Status::INVALID_PARAMETER;
    }
    let mut memory = MEMORY.write();
    if memory.table.at(address).is_some_and(|object| object.backing.is_some()) {
        // Memory of the GPUs: nothing is left to be done.
        return Status::SUCCESS;
    }
    if let Some(object) = memory.table.registration(address, bytes) {
        object.registrations += 1;
        return Status::SUCCESS;
    }
    let backing = if Config::get().register_in_place {
        None
    } else {
        let page_offset = address & (crate::abi::PAGE - 1);
        match Backing::address_only((page_offset + bytes).next_multiple_of(crate::abi::PAGE)) {
            Ok(backing) => Some(backing),
            Err(_) => return Status::NO_MEMORY,
        }
    };
    let object = Object::registered(address, bytes, flags, backing);
    trace!("register {address:#x}, {bytes} bytes, for GPUs {:#x}", object.gpu_address());
    memory.table.insert(object);
    stats().registrations.add(1);
    stats().registered_live_bytes.add(bytes);
    Status::SUCCESS
}

/// Undoes [`register`] and [`import`].
pub(crate) fn deregister(address: u64) -> Status {
    let mut memory = MEMORY.write();
    match memory.table.meant_mut(address, 0) {
        None => return Status::MEMORY_NOT_REGISTERED,
        Some(object) if object.registrations > 1 => {
            object.registrations -= 1;
            return Status::SUCCESS;
        }
        Some(_) => {}
    }
    let Some(object) = memory.table.remove_registered(address) else {
        // Memory of the GPUs, for which registering did nothing.
        return Status::SUCCESS;
    };
    drop(memory);
    trace!("deregister {address:#x}");
    if let Kind::Registered { bytes, .. } = object.kind {
        stats().deregistrations.add(1);
        stats().registered_live_bytes.subtract(bytes);
    }
    Status::SUCCESS
}

/// Lets the GPUs reach memory, and says under which address.
///
/// Memory of the driver is afterwards mapped for exactly these GPUs. Registrations of the same range share its memory,
/// so that GPUs are only added.
pub(crate) fn map(address: u64, bytes: u64, nodes: &[u32]) -> Result<u64, Status> {
    let mut memory = MEMORY.write();
    let object = memory.table.meant_mut(address, bytes).ok_or(Status::INVALID_PARAMETER)?;
    if matches!(object.kind, Kind::Registered { .. }) {
        object.mappings += 1;
    } else {
        object.mapped.clear();
    }
    for node in nodes {
        if !object.mapped.contains(node) {
            object.mapped.push(*node);
        }
    }
    Ok(object.gpu_address())
}

/// Takes memory from the GPUs.
pub(crate) fn unmap(address: u64) -> Status {
    let mut memory = MEMORY.write();
    let Some(object) = memory.table.meant_mut(address, 0) else { return Status::ERROR };
    object.mappings = object.mappings.saturating_sub(1);
    if object.mappings == 0 {
        object.mapped.clear();
    }
    Status::SUCCESS
}

/// Returns what is known about an address of the host or of a GPU.
pub(crate) fn info(address: u64) -> Option<PointerInfo> {
    let memory = MEMORY.read();
    let object = memory.table.meant(address, 0)?;
    let mut info = PointerInfo {
        node: object.node,
        mem_flags: object.flags,
        gpu_address: object.gpu_address(),
        cpu_address: object.address as *const _,
        size_in_bytes: object.bytes,
        n_mapped_nodes: object.mapped.len() as u32,
        mapped_nodes: object.mapped.as_ptr(),
        user_data: object.user_data as *mut _,
        ..PointerInfo::UNKNOWN
    };
    match object.kind {
        Kind::Allocated => info.kind = pointer::ALLOCATED,
        Kind::Shared => info.kind = pointer::REGISTERED_SHARED,
        Kind::Registered { address, bytes } => {
            info.kind = pointer::REGISTERED_USER;
            info.cpu_address = address as *const _;
            info.size_in_bytes = bytes;
            // The driver makes registered memory an object of the first GPU.
            info.node = 1;
        }
        Kind::Scratch | Kind::Internal => return None,
    }
    Some(info)
}

/// Attaches a value to the memory at an address.
pub(crate) fn set_user_data(address: u64, user_data: usize) -> Status {
    match MEMORY.write().table.meant_mut(address, 0) {
        Some(object) => object.user_data = user_data,
        None => return Status::ERROR,
    }
    Status::SUCCESS
}

/// Sets attributes of the program's own memory.
pub(crate) fn set_svm_attributes(start: u64, bytes: u64, attributes: &[SvmAttribute]) -> Status {
    if !Config::get().svm {
        return Status::NOT_SUPPORTED;
    }
    trace!("SVM attributes {attributes:?} of {start:#x}, {bytes} bytes");
    match MEMORY.write().svm.set(start, bytes, attributes) {
        Ok(()) => {
            stats().svm_ranges_set.add(1);
            Status::SUCCESS
        }
        Err(()) => Status::INVALID_PARAMETER,
    }
}

/// Answers questions about attributes of the program's own memory.
pub(crate) fn svm_attributes(start: u64, bytes: u64, attributes: &mut [SvmAttribute]) -> Status {
    if !Config::get().svm {
        return Status::NOT_SUPPORTED;
    }
    match MEMORY.read().svm.get(start, bytes, attributes) {
        Ok(()) => Status::SUCCESS,
        Err(()) => Status::INVALID_PARAMETER,
    }
}
