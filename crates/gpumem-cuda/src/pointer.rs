//! The driver's information about an address.

use crate::{device::CudaDevice, error::Status};
use cudarc::driver::sys::CUpointer_attribute_enum as Attribute;
use gpumem_core::{AddressRange, Result};

/// Returns the device whose memory the address lies in, and the end of the allocation. One call asks for all
/// attributes, which takes as long as one attribute.
pub(crate) fn residence(device: &CudaDevice, address: u64) -> Result<Option<AddressRange>> {
    const OPERATION: &str = "cuPointerGetAttributes";
    device.check_alive(OPERATION)?;
    let (mut kind, mut ordinal, mut start, mut bytes, mut whole) = (0u32, -1i32, 0u64, 0usize, 0u32);
    let mut attributes = [
        Attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
        Attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
        Attribute::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
        Attribute::CU_POINTER_ATTRIBUTE_RANGE_SIZE,
        Attribute::CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
    ];
    let mut places = [
        (&raw mut kind).cast(),
        (&raw mut ordinal).cast(),
        (&raw mut start).cast(),
        (&raw mut bytes).cast(),
        (&raw mut whole).cast(),
    ];
    let count = attributes.len() as u32;
    let (attributes, places) = (attributes.as_mut_ptr(), places.as_mut_ptr());
    let look = || {
        // SAFETY: as many attributes as places, each of the attribute's type; the driver looks the address up without
        // reading from it.
        unsafe { device.api().cuPointerGetAttributes(count, attributes, places, address) }
    };
    // Addresses mean the same in every context, so that whichever is current may be asked. A refusal counts in ours.
    let mut status = look();
    if !status.is_success() {
        let _current = device.enter(OPERATION)?;
        status = look();
    }
    if status == Status::INVALID_VALUE {
        return Ok(None);
    }
    device.check(status, OPERATION)?;
    // Memory that the driver does not know is of no type.
    let Some(ordinal) = usize::try_from(ordinal).ok().filter(|_| kind != 0) else { return Ok(None) };
    // Of memory that is mapped piece by piece the range is the addresses that were reserved, with or without memory.
    // Only memory that was allocated as a whole can be shared with other processes by the older IPC functions.
    let known = if whole == 0 { 0 } else { start.saturating_add(bytes as u64) };
    Ok(Some(AddressRange { ordinal, end: known.max(address.saturating_add(1)) }))
}
