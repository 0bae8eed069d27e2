//! Managed memory: clearing it, moving it, and hints about it.

use crate::{NAME, device::CudaDevice, stream::CudaStream};
use cudarc::driver::sys::{CUdevice, CUmem_advise_enum as Hint};
use gpumem_core::{Advice, Error, ErrorKind, Location, Result, Stream, StreamOptions};

/// The driver's number for the host's memory.
const HOST: CUdevice = -1;

/// Clears fresh managed memory on the device, without waiting for anything else that runs there.
pub(crate) fn zero(device: &CudaDevice, address: u64, bytes: usize) -> Result<()> {
    const OPERATION: &str = "cuMemsetD8Async";
    let stream = CudaStream::create(device, &StreamOptions::default())?;
    {
        let _current = device.enter(OPERATION)?;
        // SAFETY: the memory is ours alone and `bytes` long.
        let status = unsafe { device.api().cuMemsetD8Async(address, 0, bytes, stream.raw) };
        device.check(status, OPERATION)?;
    }
    stream.synchronize()
}

/// # Safety
/// As for [`Backend::prefetch`](gpumem_core::Backend::prefetch).
pub(crate) unsafe fn prefetch(stream: &CudaStream, address: u64, bytes: usize, to: Location) -> Result<()> {
    const OPERATION: &str = "cuMemPrefetchAsync";
    let device = &stream.owner.device;
    needs_concurrent_access(device, OPERATION)?;
    let place = place(device, to);
    let _current = stream.owner.enter(OPERATION, "stream")?;
    // SAFETY: the range lies in one live managed buffer, as the caller promises.
    let status = unsafe { device.api().cuMemPrefetchAsync(address, bytes, place, stream.raw) };
    device.check(status, OPERATION)
}

/// # Safety
/// As for [`Backend::advise`](gpumem_core::Backend::advise).
pub(crate) unsafe fn advise(device: &CudaDevice, address: u64, bytes: usize, advice: Advice) -> Result<()> {
    const OPERATION: &str = "cuMemAdvise";
    let (hint, location) = match advice {
        Advice::ReadMostly(true) => (Hint::CU_MEM_ADVISE_SET_READ_MOSTLY, Location::Device),
        Advice::ReadMostly(false) => (Hint::CU_MEM_ADVISE_UNSET_READ_MOSTLY, Location::Device),
        Advice::PreferredLocation(Some(to)) => (Hint::CU_MEM_ADVISE_SET_PREFERRED_LOCATION, to),
        Advice::PreferredLocation(None) => (Hint::CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, Location::Device),
        Advice::AccessedBy(by, true) => (Hint::CU_MEM_ADVISE_SET_ACCESSED_BY, by),
        Advice::AccessedBy(by, false) => (Hint::CU_MEM_ADVISE_UNSET_ACCESSED_BY, by),
    };
    needs_concurrent_access(device, OPERATION)?;
    let _current = device.enter(OPERATION)?;
    // SAFETY: the range lies in one live managed buffer, as the caller promises.
    let status = unsafe { device.api().cuMemAdvise(address, bytes, hint, place(device, location)) };
    device.check(status, OPERATION)
}

fn place(device: &CudaDevice, location: Location) -> CUdevice {
    match location {
        Location::Host => HOST,
        Location::Device => device.inner().handle,
    }
}

/// Without concurrent access the driver moves all managed memory by itself and takes no hints.
fn needs_concurrent_access(device: &CudaDevice, operation: &'static str) -> Result<()> {
    if device.inner().capabilities.concurrent_managed_access {
        return Ok(());
    }
    let what = "hints about managed memory";
    Err(Error::new(NAME, operation, ErrorKind::Unsupported { what }))
}
