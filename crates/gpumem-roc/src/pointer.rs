//! HIP's information about an address.

use crate::device::RocDevice;
use gpumem_core::Result;

pub use gpumem_sys::hip::{MemoryType, Pointer};

/// Returns the allocation that an address lies in, or `None` for memory that HIP does not know.
pub(crate) fn find(device: &RocDevice, address: u64) -> Result<Option<Pointer>> {
    const OPERATION: &str = "hipPointerGetAttributes";
    let _current = device.enter(OPERATION)?;
    let found = gpumem_sys::hip::pointer(device.hip(), device.inner().driver.version, address);
    // ROCm 5 calls ordinary memory an error.
    device.forget_last_error();
    found.map_err(|failure| device.failure(failure.into(), OPERATION))
}
