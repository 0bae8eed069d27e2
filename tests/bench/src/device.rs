//! The device that is measured.

use anyhow::{Result, bail};
use gpumem::Device;
use std::sync::OnceLock;

static NAME: OnceLock<String> = OnceLock::new();

/// Says which device the benches run on, once and before the first. Without it they run on the host.
///
/// # Errors
/// A device that cannot be opened, or a second choice.
pub fn use_device(name: &str) -> Result<()> {
    Device::open(name)?;
    if NAME.set(name.to_owned()).is_err() {
        bail!("the device is chosen already");
    }
    Ok(())
}

/// The device that is measured, opened.
///
/// # Errors
/// Of opening it.
pub fn device() -> Result<Device> {
    Ok(Device::open(name())?)
}

/// The name of that device.
pub(crate) fn name() -> &'static str {
    NAME.get().map_or("host", String::as_str)
}
