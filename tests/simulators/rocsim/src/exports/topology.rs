//! Opens the driver, and describes the machine.
#![allow(clippy::missing_safety_doc)] // The contract of each function is the one in `hsakmt.h`.

use super::{FORKED, OPEN, check_open, export, list, note_opened, put, status};
use crate::{
    abi::{
        CacheProperties, ClockCounters, GpuTileConfig, IoLinkProperties, MemoryProperties, NodeProperties,
        Status, SystemProperties, VersionInfo,
    },
    config::{Config, trace},
    engine, topology,
};
use std::{ffi::c_void, sync::atomic::Ordering};

/// Writes as many of the values as the caller has room for.
///
/// # Safety
/// `target` leads to room for `count` values.
unsafe fn put_list<T: Copy>(target: *mut T, count: u32, values: &[T]) -> Result<(), Status> {
    for (index, value) in values.iter().take(count as usize).enumerate() {
        // SAFETY: the caller's promise.
        unsafe { put(target.wrapping_add(index), *value)? };
    }
    Ok(())
}

export! {
    "hsaKmtOpenKFD" => unsafe fn open_kfd() -> Status {
        if FORKED.load(Ordering::Relaxed) {
            return Status::KERNEL_IO_CHANNEL_NOT_OPENED;
        }
        note_opened();
        let config = Config::get();
        trace!("opened: {} x {}", config.gpus, config.model.name);
        match OPEN.fetch_add(1, Ordering::AcqRel) {
            0 => Status::SUCCESS,
            _ => Status::KERNEL_ALREADY_OPENED,
        }
    }

    "hsaKmtCloseKFD" => unsafe fn close_kfd() -> Status {
        status(|| {
            OPEN.fetch_sub(1, Ordering::AcqRel);
            Ok(Status::SUCCESS)
        })
    }

    "hsaKmtGetVersion" => unsafe fn get_version(version: *mut VersionInfo) -> Status {
        status(|| {
            // SAFETY: the pointer is the caller's.
            unsafe { put(version, VersionInfo { kernel_interface_major: 1, kernel_interface_minor: 8 })? };
            Ok(Status::SUCCESS)
        })
    }

    "hsaKmtAcquireSystemProperties" => unsafe fn acquire_system_properties(
        properties: *mut SystemProperties,
    ) -> Status {
        status(|| {
            let num_nodes = 1 + Config::get().gpus;
            // SAFETY: the pointer is the caller's.
            unsafe {
                put(properties, SystemProperties { num_nodes, platform_oem: 0, platform_id: 0, platform_rev: 0 })?;
            }
            Ok(Status::SUCCESS)
        })
    }

    "hsaKmtReleaseSystemProperties" => unsafe fn release_system_properties() -> Status {
        status(|| Ok(Status::SUCCESS))
    }

    "hsaKmtGetNodeProperties" => unsafe fn get_node_properties(
        node: u32,
        properties: *mut NodeProperties,
    ) -> Status {
        status(|| {
            // SAFETY: the pointer is the caller's.
            unsafe { put(properties, topology::node(node).ok_or(Status::INVALID_NODE_UNIT)?)? };
            Ok(Status::SUCCESS)
        })
    }

    "hsaKmtGetNodeMemoryProperties" => unsafe fn get_node_memory_properties(
        node: u32,
        count: u32,
        properties: *mut MemoryProperties,
    ) -> Status {
        status(|| {
            topology::node(node).ok_or(Status::INVALID_NODE_UNIT)?;
            // SAFETY: the pointer and the count are the caller's.
            unsafe { put_list(properties, count, &topology::memory_banks(node))? };
            Ok(Status::SUCCESS)
        })
    }

    "hsaKmtGetNodeCacheProperties" => unsafe fn get_node_cache_properties(
        node: u32,
        _processor: u32,
        count: u32,
        properties: *mut CacheProperties,
    ) -> Status {
        status(|| {
            topology::node(node).ok_or(Status::INVALID_NODE_UNIT)?;
            // SAFETY: the pointer and the count are the caller's.
            unsafe { put_list(properties, count, &[topology::cache(node)])? };
            Ok(Status::SUCCESS)
        })
    }

    "hsaKmtGetNodeIoLinkProperties" => unsafe fn get_node_io_link_properties(
        node: u32,
        count: u32,
        properties: *mut IoLinkProperties,
    ) -> Status {
        status(|| {
            topology::node(node).ok_or(Status::INVALID_NODE_UNIT)?;
            // SAFETY: the pointer and the count are the caller's.
            unsafe { put_list(properties, count, &topology::links(node))? };
            Ok(Status::SUCCESS)
        })
    }

    "hsaKmtGetClockCounters" => unsafe fn get_clock_counters(_node: u32, counters: *mut ClockCounters) -> Status {
        status(|| {
            let now = engine::clock();
            let value = ClockCounters {
                gpu_clock_counter: now,
                cpu_clock_counter: now,
                system_clock_counter: now,
                system_clock_frequency_hz: 1_000_000_000,
            };
            // SAFETY: the pointer is the caller's.
            unsafe { put(counters, value)? };
            Ok(Status::SUCCESS)
        })
    }

    "hsaKmtGetTileConfig" => unsafe fn get_tile_config(_node: u32, config: *mut GpuTileConfig) -> Status {
        status(|| {
            if config.is_null() {
                return Err(Status::INVALID_PARAMETER);
            }
            // SAFETY: the caller passes an initialised structure, which need not be aligned.
            let mut value = unsafe { config.read_unaligned() };
            for index in 0..value.num_tile_configs as usize {
                // SAFETY: the tables have the lengths that the structure says.
                unsafe { put(value.tile_config.wrapping_add(index), 0)? };
            }
            for index in 0..value.num_macro_tile_configs as usize {
                // SAFETY: as above.
                unsafe { put(value.macro_tile_config.wrapping_add(index), 0)? };
            }
            value.gb_addr_config = 0x2a11_4042;
            value.num_banks = 16;
            value.num_ranks = 0;
            // SAFETY: the pointer is the caller's.
            unsafe { put(config, value)? };
            Ok(Status::SUCCESS)
        })
    }

    /// The debugger's interface is not there: the runtime then reports errors of queues through their signals.
    "hsaKmtRuntimeEnable" => unsafe fn runtime_enable(_debug: *mut c_void, _setup: bool) -> Status {
        Status::NOT_SUPPORTED
    }

    "hsaKmtRuntimeDisable" => unsafe fn runtime_disable() -> Status {
        status(|| Ok(Status::SUCCESS))
    }

    "hsaKmtSetTrapHandler" => unsafe fn set_trap_handler(
        _node: u32,
        _handler: *mut c_void,
        _handler_bytes: u64,
        _buffer: *mut c_void,
        _buffer_bytes: u64,
    ) -> Status {
        status(|| Ok(Status::SUCCESS))
    }

    "hsaKmtGetXNACKMode" => unsafe fn get_xnack_mode(enable: *mut i32) -> Status {
        status(|| {
            // SAFETY: the pointer is the caller's.
            unsafe { put(enable, 0)? };
            Ok(Status::SUCCESS)
        })
    }

    /// Page faults of GPUs cannot be retried here.
    "hsaKmtSetXNACKMode" => unsafe fn set_xnack_mode(enable: i32) -> Status {
        status(|| if enable == 0 { Ok(Status::SUCCESS) } else { Err(Status::NOT_SUPPORTED) })
    }
}

/// The nodes of GPUs in a caller's list.
///
/// # Safety
/// As [`list`].
pub(super) unsafe fn gpu_list<'a>(start: *const u32, count: u64) -> Result<&'a [u32], Status> {
    check_open()?;
    // SAFETY: the caller's promise.
    let nodes = unsafe { list(start, count)? };
    match nodes.iter().all(|node| Config::get().is_gpu(*node)) {
        true => Ok(nodes),
        false => Err(Status::INVALID_NODE_UNIT),
    }
}
