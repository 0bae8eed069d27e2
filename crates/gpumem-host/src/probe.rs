//! Finds the devices: always the host, which needs no driver.

use crate::{NAME, options};
use gpumem_core::{DeviceInfo, Result};

/// The devices that the environment sets.
pub(crate) fn devices() -> Result<Vec<DeviceInfo>> {
    let memory = options::HostOptions::from_environment()?.memory;
    Ok((0..options::device_count()?).map(|ordinal| info(ordinal, memory)).collect())
}

/// Returns what is known about a device.
pub(crate) fn info(ordinal: usize, memory: usize) -> DeviceInfo {
    DeviceInfo {
        backend: NAME,
        ordinal,
        name: match ordinal {
            0 => format!("host CPU ({})", std::env::consts::ARCH),
            _ => format!("host CPU {ordinal} ({})", std::env::consts::ARCH),
        },
        uuid: None,
        pci: None,
        total_memory: memory,
        architecture: std::env::consts::ARCH.to_owned(),
    }
}
