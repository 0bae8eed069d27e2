//! The driver's information about a device, without a context on it.

use crate::{NAME, api::DriverApi, error::Status};
use cudarc::driver::sys::{CUdevice, CUdevice_attribute_enum as Attribute, CUuuid};
use gpumem_core::{Capabilities, CollectiveLibrary, DeviceInfo, PciAddress, c_text};
use std::ffi::{c_char, c_int};

/// The value of an attribute.
pub(crate) fn attribute(api: &DriverApi, device: CUdevice, attribute: Attribute) -> Result<i32, Status> {
    let mut value = 0;
    // SAFETY: a place for an integer; the device is one that the driver has given out.
    unsafe { api.cuDeviceGetAttribute(&mut value, attribute, device) }.ok()?;
    Ok(value)
}

pub(crate) fn count(api: &DriverApi) -> Result<usize, Status> {
    let mut count = 0;
    // SAFETY: a place for an integer.
    match unsafe { api.cuDeviceGetCount(&mut count) } {
        Status::NO_DEVICE => Ok(0),
        status => status.ok().map(|()| usize::try_from(count).unwrap_or(0)),
    }
}

/// The driver's handle of the device at that position.
pub(crate) fn handle(api: &DriverApi, ordinal: usize) -> Result<CUdevice, Status> {
    let mut device = 0;
    let ordinal = c_int::try_from(ordinal).map_err(|_| Status::INVALID_VALUE)?;
    // SAFETY: a place for a handle.
    unsafe { api.cuDeviceGet(&mut device, ordinal) }.ok()?;
    Ok(device)
}

/// Describes the device at that position.
pub(crate) fn describe(api: &DriverApi, ordinal: usize) -> Result<DeviceInfo, Status> {
    let device = handle(api, ordinal)?;
    let read = |which| attribute(api, device, which);
    let mut name = [0 as c_char; 256];
    // SAFETY: the buffer has the length that is named.
    unsafe { api.cuDeviceGetName(name.as_mut_ptr(), name.len() as c_int, device) }.ok()?;
    let mut uuid = CUuuid { bytes: [0; 16] };
    // SAFETY: a place for a UUID.
    unsafe { api.cuDeviceGetUuid_v2(&mut uuid, device) }.ok()?;
    let mut total_memory = 0;
    // SAFETY: a place for a size.
    unsafe { api.cuDeviceTotalMem_v2(&mut total_memory, device) }.ok()?;
    let major = read(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
    let minor = read(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
    Ok(DeviceInfo {
        backend: NAME,
        ordinal,
        name: c_text::read(&name),
        uuid: Some(uuid.bytes.map(|byte| byte as u8)),
        pci: Some(PciAddress {
            domain: read(Attribute::CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID)? as u32,
            bus: read(Attribute::CU_DEVICE_ATTRIBUTE_PCI_BUS_ID)? as u8,
            device: read(Attribute::CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID)? as u8,
            function: 0,
        }),
        total_memory,
        architecture: format!("sm_{major}{minor}"),
    })
}

/// What the backend needs to know beyond [`Capabilities`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Largest pitch of a two- or three-dimensional copy or fill in bytes.
    pub(crate) max_pitch: usize,
    /// Whether registering memory as read-only is a flag that the driver takes.
    pub(crate) read_only_registration: bool,
}

/// Returns what the device can do. The priorities are those of the current context.
pub(crate) fn capabilities(api: &DriverApi, device: CUdevice) -> Result<(Capabilities, Limits), Status> {
    let read = |which| attribute(api, device, which);
    let number = |which| read(which).map(|value| u32::try_from(value).unwrap_or(0));
    let size = |which| read(which).map(|value| usize::try_from(value).unwrap_or(0));
    let flag = |which| read(which).map(|value| value != 0);
    let (mut least, mut greatest) = (0, 0);
    // SAFETY: two places for integers; a context is current.
    unsafe { api.cuCtxGetStreamPriorityRange(&mut least, &mut greatest) }.ok()?;

    let mapped = flag(Attribute::CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY)?;
    let mut capabilities = Capabilities::minimal();
    capabilities.mapped = mapped;
    capabilities.write_combined = mapped;
    capabilities.concurrent_managed_access = flag(Attribute::CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS)?;
    // Without it the host may touch no managed memory while any kernel runs, and its views of arrays do not end before launches
    // on other memory.
    capabilities.managed =
        capabilities.concurrent_managed_access && flag(Attribute::CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY)?;
    capabilities.register = flag(Attribute::CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED)?;
    capabilities.keeps_registered_pages = capabilities.register;
    capabilities.strided_copy = true;
    capabilities.collective_library = Some(CollectiveLibrary::Nccl);
    // Memory of cuMemHostAlloc has one address for the host and all devices, with or without flags ("Unified
    // Addressing").
    capabilities.pinned_by_kernels = mapped && flag(Attribute::CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING)?;
    capabilities.stream_priorities = [least, greatest];
    capabilities.wave_size = number(Attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE)?;
    capabilities.compute_units = number(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
    capabilities.max_group_size = number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?;
    capabilities.max_group_dims = [
        number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X)?,
        number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y)?,
        number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)?,
    ];
    capabilities.max_grid_dims = [
        number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X)?,
        number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y)?,
        number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)?,
    ];
    // The most that a kernel can have after opting in, which `launch` does by itself.
    capabilities.shared_memory = size(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?
        .max(size(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK)?);
    capabilities.constant_memory = size(Attribute::CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY)?;
    // Promised by the CUDA programming guide for every allocation of the driver.
    capabilities.allocation_alignment = 256;
    let limits = Limits {
        max_pitch: size(Attribute::CU_DEVICE_ATTRIBUTE_MAX_PITCH)?,
        read_only_registration: flag(Attribute::CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED)?,
    };
    Ok((capabilities, limits))
}
