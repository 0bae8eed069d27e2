//! Opening and listing devices. Each is one, however often it is opened.

use super::{Device, DeviceShared};
use gpumem_core::{Backend, DeviceInfo, DeviceSelector, DriverDevice as _, Result, process::PerProcess};
use parking_lot::Mutex;
use std::{
    any::{Any, TypeId},
    collections::HashMap,
    sync::{Arc, Weak},
};

type Key = (TypeId, &'static str, usize);
type Entry = Box<dyn OpenDevice>;
type Devices = Mutex<HashMap<Key, Entry>>;

/// A device of whichever backend, as long as it is open.
trait OpenDevice: Any + Send + Sync {
    fn is_open(&self) -> bool;
}

impl<B: Backend> OpenDevice for Weak<DeviceShared<B>> {
    fn is_open(&self) -> bool {
        self.strong_count() > 0
    }
}

/// The devices of each process: a forked child opens its own.
static DEVICES: PerProcess<Devices> = PerProcess::new(Mutex::default);

/// The device for `raw`: the one that is open already, or a new one.
pub(super) fn device<B: Backend>(raw: B::Device) -> Device<B> {
    let info = raw.info();
    let key = (TypeId::of::<B>(), info.backend, info.ordinal);
    let known = open(&DEVICES.get().lock(), &key);
    if let Some(device) = known {
        return device;
    }
    // Without the lock: a subscriber of `tracing` may hear of it, and open another device.
    let device = Device::new(raw);
    let first = {
        let mut devices = DEVICES.get().lock();
        let first = open(&devices, &key);
        if first.is_none() {
            devices.insert(key, Box::new(Arc::downgrade(device.inner())));
        }
        first
    };
    // Of two threads that open it at once, the later one drops what it has made, without the lock.
    first.unwrap_or_else(|| {
        device.begin_recording();
        device
    })
}

fn open<B: Backend>(devices: &HashMap<Key, Entry>, key: &Key) -> Option<Device<B>> {
    let device: &dyn Any = &**devices.get(key)?;
    device.downcast_ref::<Weak<DeviceShared<B>>>()?.upgrade().map(Device::of_inner)
}

/// Whether the driver's device is open by another type of backend too, whose arrays know nothing of this one's reset.
pub(super) fn is_open_by_another_type<B: Backend>(info: &DeviceInfo) -> bool {
    let is_another = |(id, backend, ordinal): &Key| {
        *id != TypeId::of::<B>() && *backend == info.backend && *ordinal == info.ordinal
    };
    DEVICES.get().lock().iter().any(|(key, device)| is_another(key) && device.is_open())
}

impl<B: Backend> Device<B> {
    /// Opens a device by name: `cuda:1`, `roc:0`, `host`, a PCI address or a UUID after the colon
    /// (see [`DeviceSelector`]). Opening it again gives the same device.
    /// ```
    /// # type Device = gpumem_runtime::Device<gpumem_host::Host>;
    /// let device = Device::open("host")?; // or "cuda:1", "roc:0", "cuda:uuid-.."
    /// assert_eq!(device.name(), "host:0");
    /// assert!(Device::open("host:7").is_err());
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`InvalidSelector`](gpumem_core::ErrorKind::InvalidSelector) if the name is malformed,
    /// [`UnknownBackend`](gpumem_core::ErrorKind::UnknownBackend) or
    /// [`BackendNotEnabled`](gpumem_core::ErrorKind::BackendNotEnabled) if this program has no such backend,
    /// [`Load`](gpumem_core::ErrorKind::Load) if its driver is missing, and
    /// [`NoSuchDevice`](gpumem_core::ErrorKind::NoSuchDevice) if the driver has no such device. Nothing falls back to
    /// another device.
    pub fn open(name: &str) -> Result<Self> {
        Self::select(name.parse::<DeviceSelector>()?)
    }

    /// Opens a device by a selector, or one that [`list`](Self::list) has found.
    ///
    /// ```
    /// # type Device = gpumem_runtime::Device<gpumem_host::Host>;
    /// for info in Device::list()? {
    ///     println!("{info}");
    ///     let device = Device::select(&info)?;
    ///     assert_eq!(device.info(), &info);
    /// }
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn select(selector: impl Into<DeviceSelector>) -> Result<Self> {
        Ok(Self::from_raw(B::open(&selector.into())?))
    }

    /// Opens the device of a program that names none. Over all enabled backends: the device in `GPUMEM_DEVICE`, or else
    /// the first device of the first enabled backend in the order cuda, roc, host. It never falls back to another one.
    /// ```
    /// # type Device = gpumem_runtime::Device<gpumem_host::Host>;
    /// let device = Device::open_default()?;
    /// println!("{}", device.info());
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`open`](Self::open), with a list of the attempts.
    #[allow(clippy::should_implement_trait)] // opening a device can fail
    pub fn open_default() -> Result<Self> {
        Ok(Self::from_raw(B::open_default()?))
    }

    /// Opens the first device that works, in the order cuda, roc, host. This is for programs that run anywhere.
    /// Devices that were skipped are logged through `tracing`. `GPUMEM_DEVICE` overrides it.
    ///
    /// # Errors
    /// Returns [`Load`](gpumem_core::ErrorKind::Load) if no backend has a device that opens. With `GPUMEM_DEVICE`
    /// set, as [`open`](Self::open).
    pub fn open_first_available() -> Result<Self> {
        Ok(Self::from_raw(B::open_first_available()?))
    }

    /// Lists the devices that can be opened, of all enabled backends that have a driver here.
    /// ```
    /// # type Device = gpumem_runtime::Device<gpumem_host::Host>;
    /// for info in Device::list()? {
    ///     println!("{info}");
    /// }
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`Load`](gpumem_core::ErrorKind::Load) or [`Driver`](gpumem_core::ErrorKind::Driver) if a driver is
    /// there and fails.
    pub fn list() -> Result<Vec<DeviceInfo>> {
        B::devices()
    }
}
