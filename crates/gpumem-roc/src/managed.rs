//! Managed memory: where it can be, and whether hints about it are taken.

use crate::{NAME, device::RocDevice};
use gpumem_core::{Error, ErrorKind, Location, Result};
use std::ffi::c_int;

/// HIP's number for the host's memory (`hipCpuDeviceId`).
const HOST: c_int = -1;

pub(crate) fn place(device: &RocDevice, location: Location) -> c_int {
    match location {
        Location::Host => HOST,
        Location::Device => device.handle(),
    }
}

/// Without concurrent access managed memory stays on the host, and there is nothing to be said about it.
pub(crate) fn needs_concurrent_access(device: &RocDevice, operation: &'static str) -> Result<()> {
    if device.inner().capabilities.concurrent_managed_access {
        return Ok(());
    }
    let what = "hints about managed memory";
    Err(Error::new(NAME, operation, ErrorKind::Unsupported { what }))
}
