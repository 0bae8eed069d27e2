//! HIP's information about a device.

use crate::{NAME, error::Status, probe::Driver};
use gpumem_core::{Capabilities, DeviceInfo, PciAddress, c_text, process::page_size};
use gpumem_sys::hip::{Hip, HipLibrary, hipDeviceAttribute_t as Attribute, hipUUID};
use std::{
    alloc::{Layout, alloc_zeroed},
    ffi::{c_char, c_int, c_void},
    ptr::null_mut,
    sync::OnceLock,
};

/// The value of an attribute. Attributes have the same numbers in all versions, the structure of properties has not.
pub(crate) fn attribute(hip: &Hip, device: c_int, attribute: Attribute) -> Result<i32, Status> {
    let mut value = 0;
    // SAFETY: a place for a number.
    Status::from(unsafe { hip.hipDeviceGetAttribute(&mut value, attribute, device) }).ok()?;
    Ok(value)
}

pub(crate) fn count(hip: &Hip) -> Result<usize, Status> {
    let mut count = 0;
    // SAFETY: a place for a number.
    match Status::from(unsafe { hip.hipGetDeviceCount(&mut count) }) {
        Status::NO_DEVICE => Ok(0),
        status => status.ok().map(|()| usize::try_from(count).unwrap_or(0)),
    }
}

/// HIP's number for the device at that position.
pub(crate) fn handle(ordinal: usize) -> Result<c_int, Status> {
    c_int::try_from(ordinal).map_err(|_| Status::INVALID_VALUE)
}

/// Describes the device at that position.
pub(crate) fn describe(hip: &HipLibrary, ordinal: usize) -> Result<DeviceInfo, Status> {
    let device = handle(ordinal)?;
    let read = |which| attribute(hip, device, which);
    let mut name = [0 as c_char; 256];
    // SAFETY: the buffer has the length that is named.
    Status::from(unsafe { hip.hipDeviceGetName(name.as_mut_ptr(), name.len() as c_int, device) }).ok()?;
    let mut uuid = hipUUID::default();
    // SAFETY: a place for a UUID.
    let has_uuid = Status::from(unsafe { hip.hipDeviceGetUuid(&mut uuid, device) }).is_success();
    let uuid = uuid.bytes.map(|byte| byte as u8);
    let mut total_memory = 0;
    // SAFETY: a place for a size.
    Status::from(unsafe { hip.hipDeviceTotalMem(&mut total_memory, device) }).ok()?;
    Ok(DeviceInfo {
        backend: NAME,
        ordinal,
        name: c_text::read(&name),
        // Older GPUs have none, and HIP then writes zeros.
        uuid: (has_uuid && uuid != [0; 16]).then_some(uuid),
        pci: Some(PciAddress {
            domain: read(Attribute::hipDeviceAttributePciDomainID).unwrap_or(0) as u32,
            bus: read(Attribute::hipDeviceAttributePciBusId)? as u8,
            device: read(Attribute::hipDeviceAttributePciDeviceId)? as u8,
            function: 0,
        }),
        total_memory,
        architecture: base(&gpumem_sys::hip::architecture(hip, device)?).to_owned(),
    })
}

/// The architecture without its features: `gfx90a` of `gfx90a:sramecc+:xnack-`.
pub(crate) fn base(isa: &str) -> &str {
    isa.split(':').next().unwrap_or(isa)
}

/// What the backend needs to know beyond [`Capabilities`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Largest pitch of a two- or three-dimensional copy or fill in bytes.
    pub(crate) max_pitch: usize,
}

/// Returns what the device can do. The device is current.
pub(crate) fn capabilities(driver: &Driver, device: c_int) -> Result<(Capabilities, Limits), Status> {
    let hip = &driver.hip;
    let read = |which| attribute(hip, device, which);
    let number = |which| read(which).map(|value| u32::try_from(value).unwrap_or(0));
    let size = |which| read(which).map(|value| usize::try_from(value).unwrap_or(0));
    // An attribute that an older version does not know is absent there.
    let flag = |which| read(which).is_ok_and(|value| value != 0);
    let (mut least, mut greatest) = (0, 0);
    // SAFETY: two places for numbers.
    Status::from(unsafe { hip.hipDeviceGetStreamPriorityRange(&mut least, &mut greatest) }).ok()?;

    let mut capabilities = Capabilities::minimal();
    capabilities.mapped = flag(Attribute::hipDeviceAttributeCanMapHostMemory);
    // The flag is passed on, and ROCm has no pool of such memory.
    capabilities.write_combined = false;
    // It is of the kind that caches may hold until a copy, so kernels leave it to HIP, whose own copies of rows are kernels.
    capabilities.pinned_by_kernels = false;
    // HIP frees on another thread.
    capabilities.frees_late = true;
    capabilities.managed = flag(Attribute::hipDeviceAttributeManagedMemory);
    capabilities.concurrent_managed_access = flag(Attribute::hipDeviceAttributeConcurrentManagedAccess);
    capabilities.register = can_register(driver);
    capabilities.stream_priorities = [least, greatest];
    capabilities.wave_size = number(Attribute::hipDeviceAttributeWarpSize)?;
    capabilities.compute_units = number(Attribute::hipDeviceAttributeMultiprocessorCount)?;
    capabilities.max_group_size = number(Attribute::hipDeviceAttributeMaxThreadsPerBlock)?;
    capabilities.max_group_dims = [
        number(Attribute::hipDeviceAttributeMaxBlockDimX)?,
        number(Attribute::hipDeviceAttributeMaxBlockDimY)?,
        number(Attribute::hipDeviceAttributeMaxBlockDimZ)?,
    ];
    capabilities.max_grid_dims = [
        number(Attribute::hipDeviceAttributeMaxGridDimX)?,
        number(Attribute::hipDeviceAttributeMaxGridDimY)?,
        number(Attribute::hipDeviceAttributeMaxGridDimZ)?,
    ];
    capabilities.shared_memory = size(Attribute::hipDeviceAttributeMaxSharedMemoryPerBlock)?;
    capabilities.constant_memory = size(Attribute::hipDeviceAttributeTotalConstantMemory)?;
    // The alignment of ROCm's pools, whose allocations are whole pages or aligned parts of one.
    capabilities.allocation_alignment = 256;
    let limits = Limits { max_pitch: size(Attribute::hipDeviceAttributeMaxPitch)? };
    Ok((capabilities, limits))
}

/// Whether memory can be page-locked *and unlocked*.
///
/// `hipHostUnregister` of ROCm 5 ends the process where host and device have the same address for the memory, so one
/// page is page-locked there to see. It stays so where unlocking it would be the end.
fn can_register(driver: &Driver) -> bool {
    static CAN: OnceLock<bool> = OnceLock::new();
    if driver.version.major() > 5 {
        return true;
    }
    *CAN.get_or_init(|| {
        let hip = &driver.hip;
        let bytes = page_size();
        let Ok(layout) = Layout::from_size_align(bytes, bytes) else { return false };
        // SAFETY: the layout has a size. The page is never freed: it may stay page-locked.
        let page = unsafe { alloc_zeroed(layout) }.cast::<c_void>();
        if page.is_null() {
            return false;
        }
        let mut address = null_mut();
        // SAFETY: the page is ours for ever; a place for an address.
        let registered = unsafe {
            Status::from(hip.hipHostRegister(page, bytes, 0)).is_success()
                && Status::from(hip.hipHostGetDevicePointer(&mut address, page, 0)).is_success()
        };
        // SAFETY: the page is page-locked, and unlocking it does not end the process.
        registered && address != page && Status::from(unsafe { hip.hipHostUnregister(page) }).is_success()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_architecture_is_reported_without_its_features() {
        assert_eq!(base("gfx90a:sramecc+:xnack-"), "gfx90a");
        assert_eq!(base("gfx1030"), "gfx1030");
    }
}
