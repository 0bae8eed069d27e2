//! Reaching the memory of another device.

use crate::{NAME, device::RocDevice, error::Status};
use gpumem_core::{Error, ErrorKind, Result};

pub(crate) fn can_access(device: &RocDevice, peer: &RocDevice) -> Result<bool> {
    const OPERATION: &str = "hipDeviceCanAccessPeer";
    device.check_alive(OPERATION)?;
    // HIP says no here; a device reaches its own memory all the same.
    if device.ordinal() == peer.ordinal() {
        return Ok(true);
    }
    let mut can = 0;
    // SAFETY: a place for a number; both devices are open.
    let status = unsafe { device.hip().hipDeviceCanAccessPeer(&mut can, device.handle(), peer.handle()) };
    device.check(status, OPERATION)?;
    Ok(can != 0)
}

pub(crate) fn set_access(device: &RocDevice, peer: &RocDevice, enabled: bool) -> Result<()> {
    let operation = if enabled { "hipDeviceEnablePeerAccess" } else { "hipDeviceDisablePeerAccess" };
    let _current = device.enter(operation)?;
    peer.check_alive(operation)?;
    if device.ordinal() == peer.ordinal() {
        return Ok(());
    }
    if enabled && !can_access(device, peer)? {
        let what = "access between these two devices";
        return Err(Error::new(NAME, operation, ErrorKind::Unsupported { what }));
    }
    let hip = device.hip();
    // SAFETY: our device is current.
    let answer = unsafe {
        if enabled {
            hip.hipDeviceEnablePeerAccess(peer.handle(), 0)
        } else {
            hip.hipDeviceDisablePeerAccess(peer.handle())
        }
    };
    match Status::from(answer) {
        Status::PEER_ACCESS_ALREADY_ENABLED | Status::PEER_ACCESS_NOT_ENABLED => device.forget_last_error(),
        status => device.check(status, operation)?,
    }
    device.set_peer(peer.ordinal(), enabled);
    Ok(())
}
