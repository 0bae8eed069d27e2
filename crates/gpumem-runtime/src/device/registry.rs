//! One device, however often it is opened.

use super::{Device, Inner};
use gpumem_core::{Backend, process::Origin};
use parking_lot::Mutex;
use std::{
    any::{Any, TypeId},
    collections::HashMap,
    ptr,
    sync::{
        Weak,
        atomic::{AtomicPtr, Ordering},
    },
};

type Key = (TypeId, &'static str, usize);
type Devices = Mutex<HashMap<Key, Box<dyn Any + Send + Sync>>>;

/// The devices of one process.
struct Registry {
    origin: Origin,
    devices: Devices,
}

/// A forked child gets a registry of its own: the parent's lock may be held for ever there.
fn registry() -> &'static Registry {
    static CURRENT: AtomicPtr<Registry> = AtomicPtr::new(ptr::null_mut());
    loop {
        let current = CURRENT.load(Ordering::Acquire);
        // SAFETY: the pointer is null or was leaked below, so it is valid for ever.
        if let Some(registry) = unsafe { current.as_ref() }
            && registry.origin == Origin::here()
        {
            return registry;
        }
        let fresh = Box::into_raw(Box::new(Registry { origin: Origin::here(), devices: Mutex::default() }));
        if CURRENT.compare_exchange(current, fresh, Ordering::AcqRel, Ordering::Acquire).is_err() {
            // SAFETY: nobody else has seen `fresh`.
            drop(unsafe { Box::from_raw(fresh) });
        }
    }
}

/// The device for `raw`: the one that is open already, or a new one.
pub(super) fn device<B: Backend>(raw: B::Device) -> Device<B> {
    let info = B::info(&raw);
    let key = (TypeId::of::<B>(), info.backend, info.ordinal);
    let mut devices = registry().devices.lock();
    let open =
        devices.get(&key).and_then(|device| device.downcast_ref::<Weak<Inner<B>>>()).and_then(Weak::upgrade);
    if let Some(inner) = open {
        return Device::of_inner(inner);
    }
    let device = Device::new(raw);
    devices.insert(key, Box::new(std::sync::Arc::downgrade(device.inner())));
    device
}
