//! Memory: allocating, granting, attributes, sharing by descriptors.

use super::{
    device, errno,
    request::{gpu, list, status, structure},
};
use crate::{
    abi::{
        KFD_SVM_GET_ATTR, KfdAllocMemoryOfGpu, KfdAvailableMemory, KfdExportDmabuf, KfdFreeMemoryOfGpu,
        KfdGetDmabufInfo, KfdImportDmabuf, KfdIpcExportHandle, KfdIpcImportHandle, KfdMapMemoryToGpu, KfdSvm,
        Status, SvmAttribute, kfd_memory, round_up,
    },
    config::Config,
    memory::{self, Placed},
};
use std::{
    ffi::{c_int, c_void},
    os::fd::{AsRawFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd},
    sync::atomic::{AtomicU64, Ordering},
};

/// Where memory lies that has no address yet: beyond what any GPU can name.
static WITHOUT_ADDRESS: AtomicU64 = AtomicU64::new(1 << 56);

/// The address that was asked for, or one that no GPU can use.
fn place(address: u64, bytes: u64) -> Result<u64, c_int> {
    if address == 0 { place_without_address(bytes) } else { Ok(address) }
}

/// Room for memory that no GPU reaches.
pub(super) fn place_without_address(bytes: u64) -> Result<u64, c_int> {
    let bytes = round_up(bytes).ok_or(libc::EINVAL)?;
    Ok(WITHOUT_ADDRESS.fetch_add(bytes, Ordering::Relaxed))
}

/// A block is known by its first address.
pub(super) fn allocate(arguments: &mut KfdAllocMemoryOfGpu) -> Result<(), c_int> {
    let node = gpu(arguments.gpu_id)?;
    let has = |flag: u32| arguments.flags & flag != 0;
    let address = place(arguments.va_addr, arguments.size)?;
    let made = if has(kfd_memory::USERPTR) {
        memory::register_at(address, arguments.mmap_offset, arguments.size)
    } else {
        let placed = if has(kfd_memory::VRAM) {
            Placed::Device
        } else if has(kfd_memory::DOORBELL | kfd_memory::MMIO_REMAP) {
            Placed::Registers
        } else {
            Placed::Host
        };
        memory::allocate_at(node, address, arguments.size, placed)
    };
    status(made)?;
    arguments.handle = address;
    if !has(kfd_memory::USERPTR) {
        arguments.mmap_offset = device::memory_offset(address);
    }
    Ok(())
}

pub(super) fn free(arguments: &KfdFreeMemoryOfGpu) -> Result<(), c_int> {
    status(memory::release_at(arguments.handle))
}

/// # Safety
/// The list of GPUs in the arguments is as long as they say.
unsafe fn nodes(arguments: &KfdMapMemoryToGpu) -> Result<Vec<u32>, c_int> {
    // SAFETY: the caller's promise.
    let ids: &mut [u32] = unsafe { list(arguments.device_ids_array_ptr, arguments.n_devices)? };
    ids.iter().map(|id| gpu(*id)).collect()
}

/// # Safety
/// As [`nodes`].
pub(super) unsafe fn map(arguments: &mut KfdMapMemoryToGpu) -> Result<(), c_int> {
    // SAFETY: the caller's promise.
    status(memory::grant(arguments.handle, &unsafe { nodes(arguments)? }))?;
    arguments.n_success = arguments.n_devices;
    Ok(())
}

/// # Safety
/// As [`nodes`].
pub(super) unsafe fn unmap(arguments: &mut KfdMapMemoryToGpu) -> Result<(), c_int> {
    // SAFETY: the caller's promise.
    status(memory::revoke(arguments.handle, &unsafe { nodes(arguments)? }))?;
    arguments.n_success = arguments.n_devices;
    Ok(())
}

pub(super) fn available(arguments: &mut KfdAvailableMemory) -> Result<(), c_int> {
    arguments.available = memory::available(gpu(arguments.gpu_id)?);
    Ok(())
}

/// Sets attributes of the program's own memory, or answers questions about them.
///
/// # Safety
/// `argument` leads to the fixed part, which as many attributes follow as it says.
pub(super) unsafe fn attributes(argument: *mut c_void) -> Result<(), c_int> {
    // SAFETY: the caller's promise.
    let KfdSvm { start_addr, size, op, nattr } = *unsafe { structure::<KfdSvm>(argument) };
    let first = argument.wrapping_byte_add(size_of::<KfdSvm>());
    // SAFETY: the caller's promise.
    let attributes: &mut [SvmAttribute] = unsafe { list(first as u64, nattr)? };
    let outcome = if op == KFD_SVM_GET_ATTR {
        memory::svm_attributes(start_addr, size, attributes)
    } else {
        memory::set_svm_attributes(start_addr, size, attributes)
    };
    if outcome == Status::SUCCESS { Ok(()) } else { Err(errno(outcome)) }
}

pub(super) fn export(arguments: &mut KfdExportDmabuf) -> Result<(), c_int> {
    let file = memory::export_at(arguments.handle).map_err(errno)?;
    arguments.dmabuf_fd = file.into_raw_fd() as u32;
    Ok(())
}

pub(super) fn info(arguments: &mut KfdGetDmabufInfo) -> Result<(), c_int> {
    let (bytes, node) = memory::file_facts(arguments.dmabuf_fd as RawFd).ok_or(libc::EINVAL)?;
    arguments.size = bytes;
    // The host's memory belongs to the first GPU, as in the driver.
    arguments.gpu_id = node.max(1);
    arguments.flags = if node == 0 { kfd_memory::GTT } else { kfd_memory::VRAM };
    arguments.metadata_size = 0;
    Ok(())
}

pub(super) fn import(arguments: &mut KfdImportDmabuf) -> Result<(), c_int> {
    gpu(arguments.gpu_id)?;
    let (bytes, _) = memory::file_facts(arguments.dmabuf_fd as RawFd).ok_or(libc::EINVAL)?;
    let address = place(arguments.va_addr, bytes)?;
    status(memory::import_at(address, duplicate(arguments.dmabuf_fd as RawFd)?))?;
    arguments.handle = address;
    Ok(())
}

pub(super) fn export_handle(arguments: &mut KfdIpcExportHandle) -> Result<(), c_int> {
    arguments.share_handle = memory::export_short(arguments.handle).map_err(errno)?;
    Ok(())
}

pub(super) fn import_handle(arguments: &mut KfdIpcImportHandle) -> Result<(), c_int> {
    let (file, node) = memory::open_short(arguments.share_handle).map_err(errno)?;
    let (bytes, _) = memory::file_facts(file.as_raw_fd()).ok_or(libc::EINVAL)?;
    let address = place(arguments.va_addr, bytes)?;
    status(memory::import_at(address, file))?;
    (arguments.handle, arguments.gpu_id, arguments.flags) = (address, node.max(1), 0);
    // There is an offset always: where it is 0, the thunk of ROCm 6.4 does not set the node that the memory belongs to.
    let is_visible = node == 0 || Config::get().large_bar;
    arguments.mmap_offset =
        if is_visible { device::memory_offset(address) } else { device::unseen_offset(address) };
    Ok(())
}

/// A descriptor of our own for the same file.
pub(super) fn duplicate(file: RawFd) -> Result<OwnedFd, c_int> {
    if file < 0 {
        return Err(libc::EBADF);
    }
    // SAFETY: the caller of the request keeps its descriptor open during the call.
    unsafe { BorrowedFd::borrow_raw(file) }.try_clone_to_owned().map_err(|_| libc::EBADF)
}
