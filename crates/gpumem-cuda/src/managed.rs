//! Managed memory: clearing it, where it can be, and whether hints about it are taken.

use crate::{NAME, device::CudaDevice, stream::CudaStream};
use cudarc::driver::sys::CUdevice;
use gpumem_core::{Error, ErrorKind, Location, Result, Stream, StreamOptions};

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

pub(crate) fn place(device: &CudaDevice, location: Location) -> CUdevice {
    match location {
        Location::Host => HOST,
        Location::Device => device.inner().handle,
    }
}

/// Without concurrent access the driver moves all managed memory by itself and takes no hints.
pub(crate) fn needs_concurrent_access(device: &CudaDevice, operation: &'static str) -> Result<()> {
    if device.inner().capabilities.concurrent_managed_access {
        return Ok(());
    }
    let what = "hints about managed memory";
    Err(Error::new(NAME, operation, ErrorKind::Unsupported { what }))
}
