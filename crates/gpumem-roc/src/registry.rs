//! The devices that are open. Opening one again gives the same one.

use crate::{
    NAME,
    context::Current,
    device::{Parts, RocDevice},
    error::Status,
    graph_choice, hiprtc, info,
    probe::{self, Driver},
};
use gpumem_core::{CollectiveLibrary, DeviceInfo, DeviceSelector, Result};
use parking_lot::Mutex;
use std::collections::BTreeMap;

/// Devices by ordinal. They stay until the process ends, as HIP's own do.
static OPEN: Mutex<BTreeMap<usize, RocDevice>> = Mutex::new(BTreeMap::new());

/// The devices, without using any.
pub(crate) fn devices(operation: &'static str) -> Result<Vec<DeviceInfo>> {
    let Some(driver) = probe::driver_if_any(operation)? else { return Ok(Vec::new()) };
    let failed = |status: Status| status.error(operation);
    let count = info::count(&driver.hip).map_err(failed)?;
    (0..count).map(|ordinal| info::describe(&driver.hip, ordinal).map_err(failed)).collect()
}

pub(crate) fn open(selector: &DeviceSelector) -> Result<RocDevice> {
    const OPERATION: &str = "open";
    if selector.backend != NAME {
        selector.choose(NAME, &[])?;
    }
    let devices = devices(OPERATION)?;
    let ordinal = selector.choose(NAME, &devices)?;
    let driver: &'static Driver = probe::driver(OPERATION)?;
    let graphs = graph_choice::choose(driver)?;
    let known = OPEN.lock().get(&ordinal).cloned();
    if let Some(device) = known {
        return Ok(device);
    }
    // Without the lock: a subscriber may hear of a failure.
    let failed = |status: Status| status.error(OPERATION);
    let info = devices.into_iter().nth(ordinal).ok_or_else(|| failed(Status::NO_DEVICE))?;
    let handle = info::handle(ordinal).map_err(failed)?;
    let isa = gpumem_sys::hip::architecture(&driver.hip, handle).map_err(|failure| failed(failure.into()))?;
    let _current = Current::enter(&driver.hip, handle).map_err(failed)?;
    let (mut capabilities, limits) = info::capabilities(driver, handle).map_err(failed)?;
    capabilities.strided_copy = hiprtc::serves(&isa);
    capabilities.collective_library = Some(CollectiveLibrary::Rccl);
    let device = RocDevice::new(Parts { driver, handle, info, isa, capabilities, limits, graphs });
    // Of two threads that open it at once, the first one's is kept.
    let first = OPEN.lock().entry(ordinal).or_insert(device).clone();
    Ok(first)
}
