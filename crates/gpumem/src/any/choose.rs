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

    /// Returns the device to use where the program does not name one: the device in `GPUMEM_DEVICE` if it is set, else
    /// the first device of the first *enabled* backend in the order `cuda`, `roc`, `host`.
    ///
    /// An enabled backend counts also without a driver: the choice must not depend on whether a driver could be loaded.
    /// To skip backends that cannot be used, call [`open_first_available`](Self::open_first_available).
    ///
    /// # Errors
    /// * [`ErrorKind::InvalidSelector`](crate::ErrorKind::InvalidSelector) if `GPUMEM_DEVICE` does not name a device, and
    ///   [`ErrorKind::BackendNotEnabled`](crate::ErrorKind::BackendNotEnabled) or
    ///   [`ErrorKind::UnknownBackend`](crate::ErrorKind::UnknownBackend) if it names another backend.
    /// * [`ErrorKind::Load`](crate::ErrorKind::Load) if the first enabled backend has no driver. The message lists what
    ///   was tried and says how to choose another device.
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

    /// Opens the first device of the first backend that can be used, in the order `cuda`, `roc`, `host`. Reports the
    /// skipped backends and the reasons, in the result and through `tracing`.
    ///
    /// If `GPUMEM_DEVICE` is set, the call opens that device or fails.
    ///
    /// # Errors
    /// * [`ErrorKind::InvalidSelector`](crate::ErrorKind::InvalidSelector) and
    ///   [`ErrorKind::BackendNotEnabled`](crate::ErrorKind::BackendNotEnabled) as for
    ///   [`default_selector`](Self::default_selector).
    /// * The error of opening the device that `GPUMEM_DEVICE` names.
    /// * [`ErrorKind::Load`](crate::ErrorKind::Load) if no enabled backend can be used, with the reason of each.
    pub fn open_first_available() -> Result<(AnyDevice, Vec<(&'static str, Error)>)> {
        select::open_first_available(CANDIDATES, select::wish()?)
    }
}
