//! Managed memory: moving it, and hints about it.

use crate::{NAME, device::RocDevice, stream::RocStream};
use gpumem_core::{Advice, Error, ErrorKind, Location, Result};
use gpumem_hip_sys::hipMemoryAdvise as Hint;
use std::{
    ffi::{c_int, c_void},
    ptr::with_exposed_provenance,
};

/// HIP's number for the host's memory (`hipCpuDeviceId`).
const HOST: c_int = -1;

/// # Safety
/// As for [`Backend::prefetch`](gpumem_core::Backend::prefetch).
pub(crate) unsafe fn prefetch(stream: &RocStream, address: u64, bytes: usize, to: Location) -> Result<()> {
    const OPERATION: &str = "hipMemPrefetchAsync";
    let device = &stream.owner.device;
    needs_concurrent_access(device, OPERATION)?;
    let place = place(device, to);
    let _turn = stream.owner.device.enqueue_lock().shared();
    let _current = stream.owner.enter(OPERATION, "stream")?;
    let address = with_exposed_provenance::<c_void>(address as usize);
    // SAFETY: the range lies in one live managed buffer, as the caller promises.
    let status = unsafe { device.hip().hipMemPrefetchAsync(address, bytes, place, stream.raw) };
    device.check(status, OPERATION)
}

/// # Safety
/// As for [`Backend::advise`](gpumem_core::Backend::advise).
pub(crate) unsafe fn advise(device: &RocDevice, address: u64, bytes: usize, advice: Advice) -> Result<()> {
    const OPERATION: &str = "hipMemAdvise";
    let (hint, location) = match advice {
        Advice::ReadMostly(true) => (Hint::hipMemAdviseSetReadMostly, Location::Device),
        Advice::ReadMostly(false) => (Hint::hipMemAdviseUnsetReadMostly, Location::Device),
        Advice::PreferredLocation(Some(to)) => (Hint::hipMemAdviseSetPreferredLocation, to),
        Advice::PreferredLocation(None) => (Hint::hipMemAdviseUnsetPreferredLocation, Location::Device),
        Advice::AccessedBy(by, true) => (Hint::hipMemAdviseSetAccessedBy, by),
        Advice::AccessedBy(by, false) => (Hint::hipMemAdviseUnsetAccessedBy, by),
    };
    needs_concurrent_access(device, OPERATION)?;
    let _current = device.enter(OPERATION)?;
    let address = with_exposed_provenance::<c_void>(address as usize);
    // SAFETY: the range lies in one live managed buffer, as the caller promises.
    let status = unsafe { device.hip().hipMemAdvise(address, bytes, hint, place(device, location)) };
    device.check(status, OPERATION)
}

fn place(device: &RocDevice, location: Location) -> c_int {
    match location {
        Location::Host => HOST,
        Location::Device => device.handle(),
    }
}

/// Without concurrent access managed memory stays on the host, and there is nothing to be said about it.
fn needs_concurrent_access(device: &RocDevice, operation: &'static str) -> Result<()> {
    if device.inner().capabilities.concurrent_managed_access {
        return Ok(());
    }
    let what = "hints about managed memory";
    Err(Error::new(NAME, operation, ErrorKind::Unsupported { what }))
}
