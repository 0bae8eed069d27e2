//! Opening a device without naming a backend: the rules of [`select`] for the enabled backends and the environment.

use super::{AnyBackend, AnyDevice, CANDIDATES};
use crate::select;
use gpumem_core::{DeviceSelector, Error, Result};

impl AnyBackend {
    /// Names of the enabled backends, the preferred one first: `cuda`, `roc`, `host`.
    pub fn enabled() -> Vec<&'static str> {
        select::names(CANDIDATES)
    }

    /// The enabled backends whose devices cannot be listed, and why: mostly a driver that is not installed.
    pub fn unavailable() -> Vec<(&'static str, Error)> {
        select::devices(CANDIDATES).1
    }

    /// The device to use where the program does not name one: what `GPUMEM_DEVICE` says if it is set, else the first
    /// device of the first *enabled* backend in the order `cuda`, `roc`, `host`.
    ///
    /// Enabled, and not available: which device a program runs on must not depend on whether a driver could be
    /// loaded. For the other wish there is [`open_first_available`](Self::open_first_available).
    ///
    /// # Errors
    /// * [`ErrorKind::InvalidSelector`](crate::ErrorKind::InvalidSelector) if `GPUMEM_DEVICE` does not name a device, and
    ///   [`ErrorKind::BackendNotEnabled`](crate::ErrorKind::BackendNotEnabled) or
    ///   [`ErrorKind::UnknownBackend`](crate::ErrorKind::UnknownBackend) if it names another backend.
    /// * [`ErrorKind::Load`](crate::ErrorKind::Load) if the first enabled backend has no driver. The message says what was tried and how to
    ///   choose another device.
    pub fn default_selector() -> Result<DeviceSelector> {
        select::default_selector(CANDIDATES, select::wish()?)
    }

    /// Opens the device that [`default_selector`](Self::default_selector) names.
    ///
    /// # Errors
    /// As for `default_selector`, and [`ErrorKind::NoSuchDevice`](crate::ErrorKind::NoSuchDevice) if the driver has no such device.
    pub fn open_default() -> Result<AnyDevice> {
        select::open_default(CANDIDATES, select::wish()?)
    }

    /// Opens the first device of the first backend that can be used, in the order `cuda`, `roc`, `host`. Says which
    /// backends were passed over and why, in the result and through `tracing`.
    ///
    /// `GPUMEM_DEVICE` rules here too: if it is set, that device is opened, or the call fails.
    ///
    /// # Errors
    /// * [`ErrorKind::InvalidSelector`](crate::ErrorKind::InvalidSelector) and
    ///   [`ErrorKind::BackendNotEnabled`](crate::ErrorKind::BackendNotEnabled) as for
    ///   [`default_selector`](Self::default_selector).
    /// * What stands in the way of the device that `GPUMEM_DEVICE` names.
    /// * [`ErrorKind::Load`](crate::ErrorKind::Load) if no enabled backend can be used, with the reason of each.
    pub fn open_first_available() -> Result<(AnyDevice, Vec<(&'static str, Error)>)> {
        select::open_first_available(CANDIDATES, select::wish()?)
    }
}
