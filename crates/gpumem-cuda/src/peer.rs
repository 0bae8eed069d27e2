//! Reaching the memory of another device.

use crate::{NAME, device::CudaDevice, error::Status};
use gpumem_core::{Error, ErrorKind, Result};

pub(crate) fn can_access(device: &CudaDevice, peer: &CudaDevice) -> Result<bool> {
    const OPERATION: &str = "cuDeviceCanAccessPeer";
    device.check_alive(OPERATION)?;
    // The driver says no here; a device reaches its own memory all the same.
    if device.ordinal() == peer.ordinal() {
        return Ok(true);
    }
    let mut can = 0;
    // SAFETY: a place for an integer; both devices are open.
    let status =
        unsafe { device.api().cuDeviceCanAccessPeer(&mut can, device.inner().handle, peer.inner().handle) };
    device.check(status, OPERATION)?;
    Ok(can != 0)
}

pub(crate) fn set_access(device: &CudaDevice, peer: &CudaDevice, enabled: bool) -> Result<()> {
    let operation = if enabled { "cuCtxEnablePeerAccess" } else { "cuCtxDisablePeerAccess" };
    let _current = device.enter(operation)?;
    peer.check_alive(operation)?;
    if device.is(peer) {
        return Ok(());
    }
    if enabled && !can_access(device, peer)? {
        let what = "access between these two devices";
        return Err(Error::new(NAME, operation, ErrorKind::Unsupported { what }));
    }
    let api = device.api();
    // SAFETY: both contexts are alive, and ours is current.
    let status = unsafe {
        if enabled {
            api.cuCtxEnablePeerAccess(peer.context(), 0)
        } else {
            api.cuCtxDisablePeerAccess(peer.context())
        }
    };
    match status {
        Status::PEER_ACCESS_ALREADY_ENABLED | Status::PEER_ACCESS_NOT_ENABLED => {}
        status => device.check(status, operation)?,
    }
    Ok(())
}
