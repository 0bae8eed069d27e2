//! One device, however often it is opened.

use super::{Device, DeviceShared};
use gpumem_core::{Backend, DriverDevice, process::PerProcess};
use parking_lot::Mutex;
use std::{
    any::{Any, TypeId},
    collections::HashMap,
    sync::Weak,
};

type Key = (TypeId, &'static str, usize);
type Devices = Mutex<HashMap<Key, Box<dyn Any + Send + Sync>>>;

/// The devices of each process: a forked child opens its own.
static DEVICES: PerProcess<Devices> = PerProcess::new(Mutex::default);

/// The device for `raw`: the one that is open already, or a new one.
pub(super) fn device<B: Backend>(raw: B::Device) -> Device<B> {
    let info = raw.info();
    let key = (TypeId::of::<B>(), info.backend, info.ordinal);
    let mut devices = DEVICES.get().lock();
    let open = devices
        .get(&key)
        .and_then(|device| device.downcast_ref::<Weak<DeviceShared<B>>>())
        .and_then(Weak::upgrade);
    if let Some(inner) = open {
        return Device::of_inner(inner);
    }
    let device = Device::new(raw);
    devices.insert(key, Box::new(std::sync::Arc::downgrade(device.inner())));
    device
}
