//! Memory: allocating, registering, mapping, sharing.
#![allow(clippy::missing_safety_doc)] // The contract of each function is the one in `hsakmt.h`.

use super::{export, list, put, status, topology::gpu_list};
use crate::{
    abi::{MemFlags, PointerInfo, SharedMemoryHandle, Status, SvmAttribute},
    config::Config,
    memory,
};
use std::ffi::c_void;

export! {
    "hsaKmtAllocMemory" => unsafe fn alloc_memory(
        node: u32,
        bytes: u64,
        flags: MemFlags,
        address: *mut *mut c_void,
    ) -> Status {
        status(|| {
            let found = memory::allocate(node, bytes, flags)?;
            // SAFETY: the pointer is the caller's.
            unsafe { put(address, found as *mut c_void)? };
            Ok(Status::SUCCESS)
        })
    }

    "hsaKmtFreeMemory" => unsafe fn free_memory(address: *mut c_void, _bytes: u64) -> Status {
        status(|| Ok(memory::free(address as u64)))
    }

    "hsaKmtRegisterMemory" => unsafe fn register_memory(address: *mut c_void, bytes: u64) -> Status {
        status(|| Ok(memory::register(address as u64, bytes, MemFlags::default())))
    }

    "hsaKmtRegisterMemoryToNodes" => unsafe fn register_memory_to_nodes(
        address: *mut c_void,
        bytes: u64,
        _count: u64,
        _nodes: *const u32,
    ) -> Status {
        status(|| Ok(memory::register(address as u64, bytes, MemFlags::default())))
    }

    "hsaKmtRegisterMemoryWithFlags" => unsafe fn register_memory_with_flags(
        address: *mut c_void,
        bytes: u64,
        flags: MemFlags,
    ) -> Status {
        status(|| Ok(memory::register(address as u64, bytes, flags)))
    }

    "hsaKmtDeregisterMemory" => unsafe fn deregister_memory(address: *mut c_void) -> Status {
        status(|| Ok(memory::deregister(address as u64)))
    }

    "hsaKmtMapMemoryToGPU" => unsafe fn map_memory_to_gpu(
        address: *mut c_void,
        bytes: u64,
        alternate: *mut u64,
    ) -> Status {
        status(|| {
            let nodes: Vec<u32> = Config::get().gpu_nodes().collect();
            let found = memory::map(address as u64, bytes, &nodes)?;
            if !alternate.is_null() {
                // SAFETY: the pointer is the caller's.
                unsafe { put(alternate, found)? };
            }
            Ok(Status::SUCCESS)
        })
    }

    "hsaKmtMapMemoryToGPUNodes" => unsafe fn map_memory_to_gpu_nodes(
        address: *mut c_void,
        bytes: u64,
        alternate: *mut u64,
        _flags: u32,
        count: u64,
        nodes: *const u32,
    ) -> Status {
        status(|| {
            // SAFETY: the list is the caller's.
            let nodes = unsafe { gpu_list(nodes, count)? };
            let found = memory::map(address as u64, bytes, nodes)?;
            if !alternate.is_null() {
                // SAFETY: the pointer is the caller's.
                unsafe { put(alternate, found)? };
            }
            Ok(Status::SUCCESS)
        })
    }

    "hsaKmtUnmapMemoryToGPU" => unsafe fn unmap_memory_to_gpu(address: *mut c_void) -> Status {
        status(|| Ok(memory::unmap(address as u64)))
    }

    "hsaKmtQueryPointerInfo" => unsafe fn query_pointer_info(
        address: *const c_void,
        info: *mut PointerInfo,
    ) -> Status {
        status(|| {
            let found = memory::info(address as u64);
            // SAFETY: the pointer is the caller's.
            unsafe { put(info, found.unwrap_or(PointerInfo::UNKNOWN))? };
            Ok(if found.is_some() { Status::SUCCESS } else { Status::ERROR })
        })
    }

    "hsaKmtSetMemoryUserData" => unsafe fn set_memory_user_data(
        address: *const c_void,
        user_data: *mut c_void,
    ) -> Status {
        status(|| Ok(memory::set_user_data(address as u64, user_data as usize)))
    }

    "hsaKmtShareMemory" => unsafe fn share_memory(
        address: *mut c_void,
        _bytes: u64,
        handle: *mut SharedMemoryHandle,
    ) -> Status {
        status(|| {
            // SAFETY: the pointer is the caller's.
            unsafe { put(handle, memory::export(address as u64)?)? };
            Ok(Status::SUCCESS)
        })
    }

    "hsaKmtRegisterSharedHandle" => unsafe fn register_shared_handle(
        handle: *const SharedMemoryHandle,
        address: *mut *mut c_void,
        bytes: *mut u64,
    ) -> Status {
        // SAFETY: as the other function; an empty list of nodes needs no pointer.
        unsafe { register_shared_handle_to_nodes(handle, address, bytes, 0, std::ptr::null()) }
    }

    "hsaKmtRegisterSharedHandleToNodes" => unsafe fn register_shared_handle_to_nodes(
        handle: *const SharedMemoryHandle,
        address: *mut *mut c_void,
        bytes: *mut u64,
        count: u64,
        nodes: *const u32,
    ) -> Status {
        status(|| {
            if handle.is_null() {
                return Err(Status::INVALID_PARAMETER);
            }
            // SAFETY: the list is the caller's.
            let nodes = unsafe { gpu_list(nodes, count)? };
            // SAFETY: the caller passes a handle, which need not be aligned.
            let (found, length) = memory::import(&unsafe { handle.read_unaligned() }, nodes)?;
            // SAFETY: the pointers are the caller's.
            unsafe {
                put(address, found as *mut c_void)?;
                put(bytes, length)?;
            }
            Ok(Status::SUCCESS)
        })
    }

    "hsaKmtSVMSetAttr" => unsafe fn svm_set_attr(
        start: *mut c_void,
        bytes: u64,
        count: u32,
        attributes: *mut SvmAttribute,
    ) -> Status {
        status(|| {
            // SAFETY: the list is the caller's.
            let attributes = unsafe { list(attributes, u64::from(count))? };
            Ok(memory::set_svm_attributes(start as u64, bytes, attributes))
        })
    }

    "hsaKmtSVMGetAttr" => unsafe fn svm_get_attr(
        start: *mut c_void,
        bytes: u64,
        count: u32,
        attributes: *mut SvmAttribute,
    ) -> Status {
        status(|| {
            // SAFETY: the list is the caller's.
            let mut answers = unsafe { list(attributes, u64::from(count))? }.to_vec();
            let outcome = memory::svm_attributes(start as u64, bytes, &mut answers);
            for (index, answer) in answers.into_iter().enumerate() {
                // SAFETY: as above, and the list is there to be written to.
                unsafe { put(attributes.wrapping_add(index), answer)? };
            }
            Ok(outcome)
        })
    }

    "hsaKmtSetMemoryPolicy" => unsafe fn set_memory_policy(
        _node: u32,
        _default: u32,
        _alternate: u32,
        _address: *mut c_void,
        _bytes: u64,
    ) -> Status {
        status(|| Ok(Status::SUCCESS))
    }
}
