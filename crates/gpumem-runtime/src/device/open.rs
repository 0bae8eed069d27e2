//! Opening and listing devices.

use crate::Device;
use gpumem_core::{Backend, DeviceInfo, DeviceSelector, Result};

impl<B: Backend> Device<B> {
    /// Opens a device by name: `cuda:1`, `roc:0`, `host`, a PCI address or a UUID after the colon
    /// (see [`DeviceSelector`]). Opening it again gives the same device.
    ///
    /// # Examples
    /// ```
    /// # use gpumem_host::Host;
    /// # type Device = gpumem_runtime::Device<Host>;
    /// # fn main() -> gpumem_core::Result<()> {
    /// let device = Device::open("host")?; // or "cuda:1", "roc:0", "cuda:uuid-.."
    /// assert_eq!(device.name(), "host:0");
    /// assert!(Device::open("host:7").is_err());
    /// # Ok(())
    /// # }
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
    ///
    /// # Examples
    /// ```
    /// # use gpumem_host::Host;
    /// # type Device = gpumem_runtime::Device<Host>;
    /// # fn main() -> gpumem_core::Result<()> {
    /// let device = Device::open_default()?;
    /// println!("{}", device.info());
    /// # Ok(())
    /// # }
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
    /// # Examples
    /// ```
    /// # use gpumem_host::Host;
    /// # type Device = gpumem_runtime::Device<Host>;
    /// # fn main() -> gpumem_core::Result<()> {
    /// let device = Device::open_first_available()?;
    /// assert!(!device.name().is_empty());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns [`Load`](gpumem_core::ErrorKind::Load) if no backend has a device that opens. With `GPUMEM_DEVICE`
    /// set, as [`open`](Self::open).
    pub fn open_first_available() -> Result<Self> {
        Ok(Self::from_raw(B::open_first_available()?))
    }

    /// Lists the devices that can be opened, of all enabled backends that have a driver here.
    ///
    /// # Examples
    /// ```
    /// # use gpumem_host::Host;
    /// # type Device = gpumem_runtime::Device<Host>;
    /// # fn main() -> gpumem_core::Result<()> {
    /// for info in Device::list()? {
    ///     println!("{info}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns [`Load`](gpumem_core::ErrorKind::Load) or [`Driver`](gpumem_core::ErrorKind::Driver) if a driver is
    /// there and fails.
    pub fn list() -> Result<Vec<DeviceInfo>> {
        B::devices()
    }
}
