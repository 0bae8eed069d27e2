//! Which device is meant.
//!
//! The rules are functions of the candidates ([`Candidate`]) and of the user's wish, so that they can be tested without
//! a driver; [`AnyBackend`](crate::AnyBackend) applies them to the enabled backends and to the environment.

use gpumem_core::{DeviceInfo, DeviceSelector, Error, ErrorKind, LoadError, LoadFailure, Result};
use std::{env, ffi::OsStr};

/// The environment variable that names the default device: `GPUMEM_DEVICE`.
///
/// It holds a [`DeviceSelector`], for example `host`, `cuda:1` or `cuda:0000:3b:00.0`. Set but empty it names nothing,
/// which is an error as any other mistake in it.
pub const ENV_DEVICE: &str = "GPUMEM_DEVICE";

/// The backends that there are, enabled or not. Each is a feature.
const BACKENDS: [&str; 3] = ["cuda", "roc", "host"];

/// A backend to choose from. Lists of candidates have the preferred one first.
#[derive(Debug)]
pub(crate) struct Candidate<D> {
    pub(crate) name: &'static str,
    pub(crate) probe: fn() -> Result<(), LoadError>,
    pub(crate) devices: fn() -> Result<Vec<DeviceInfo>>,
    pub(crate) open: fn(&DeviceSelector) -> Result<D>,
}

/// The backends that could not be used, and why.
type Unavailable = Vec<(&'static str, Error)>;

pub(crate) fn wish() -> Result<Option<DeviceSelector>> {
    env::var_os(ENV_DEVICE).map(|value| parse(&value)).transpose()
}

fn parse(value: &OsStr) -> Result<DeviceSelector> {
    let selector = match value.to_str() {
        Some(text) => text.parse(),
        None => {
            let text = value.to_string_lossy().into_owned();
            Err(Error::new("", "open", ErrorKind::InvalidSelector { text, why: "it is not UTF-8" }))
        }
    };
    selector.map_err(wished)
}

/// Says of an error that the environment variable named the device.
fn wished(error: Error) -> Error {
    error.with_hint("the environment variable GPUMEM_DEVICE names this device")
}

pub(crate) fn names<D>(candidates: &[Candidate<D>]) -> Vec<&'static str> {
    candidates.iter().map(|candidate| candidate.name).collect()
}

fn find<'a, D>(candidates: &'a [Candidate<D>], selector: &DeviceSelector) -> Result<&'a Candidate<D>> {
    candidates.iter().find(|candidate| candidate.name == selector.backend).ok_or_else(|| {
        let (wanted, enabled) = (selector.backend.clone(), names(candidates).join(", "));
        match BACKENDS.iter().find(|name| **name == wanted) {
            Some(name) => Error::new("", "open", ErrorKind::BackendNotEnabled { wanted, enabled })
                .with_hint(format!("enable the feature `{name}` of gpumem")),
            None => Error::new("", "open", ErrorKind::UnknownBackend { wanted, known: BACKENDS.join(", ") }),
        }
    })
}

pub(crate) fn open<D>(candidates: &[Candidate<D>], selector: &DeviceSelector) -> Result<D> {
    (find(candidates, selector)?.open)(selector)
}

pub(crate) fn devices<D>(candidates: &[Candidate<D>]) -> (Vec<DeviceInfo>, Unavailable) {
    let (mut listed, mut unavailable) = (Vec::new(), Vec::new());
    for candidate in candidates {
        match (candidate.devices)() {
            Ok(devices) => listed.extend(devices),
            Err(error) => unavailable.push((candidate.name, error)),
        }
    }
    (listed, unavailable)
}

pub(crate) fn probe<D>(candidates: &[Candidate<D>]) -> Result<(), LoadError> {
    let mut failures = Vec::new();
    for candidate in candidates {
        match (candidate.probe)() {
            Ok(()) => return Ok(()),
            Err(failure) => failures.push((candidate.name, failure)),
        }
    }
    match <[_; 1]>::try_from(failures) {
        // One enabled backend: its own words, as without a choice.
        Ok([(_, failure)]) => Err(failure),
        Err(failures) => Err(none_of(&failures)),
    }
}

/// Joins the errors of several backends.
fn none_of(reasons: &[(&'static str, impl std::fmt::Display)]) -> LoadError {
    let message: Vec<_> = reasons.iter().map(|(name, reason)| format!("{name}: {reason}")).collect();
    LoadError {
        library: "every enabled backend",
        tried: reasons.iter().map(|(name, _)| (*name).to_owned()).collect(),
        failure: LoadFailure::Refused { message: message.join("; ") },
    }
}

fn first<D>(candidates: &[Candidate<D>]) -> Result<&Candidate<D>> {
    // The list is never empty: a build without a backend does not compile.
    candidates.first().ok_or_else(|| {
        Error::new("", "open", ErrorKind::Unsupported { what: "choosing a device without a backend" })
    })
}

pub(crate) fn default_selector<D>(
    candidates: &[Candidate<D>],
    wish: Option<DeviceSelector>,
) -> Result<DeviceSelector> {
    if let Some(selector) = wish {
        find(candidates, &selector).map_err(wished)?;
        return Ok(selector);
    }
    let candidate = first(candidates)?;
    (candidate.probe)().map_err(|failure| advise(Error::new(candidate.name, "open", failure), candidates))?;
    Ok(DeviceSelector::ordinal(candidate.name, 0))
}

pub(crate) fn open_default<D>(candidates: &[Candidate<D>], wish: Option<DeviceSelector>) -> Result<D> {
    if wish.is_some() {
        return open_wish(candidates, &default_selector(candidates, wish)?);
    }
    let candidate = first(candidates)?;
    (candidate.open)(&DeviceSelector::ordinal(candidate.name, 0)).map_err(|error| advise(error, candidates))
}

fn open_wish<D>(candidates: &[Candidate<D>], selector: &DeviceSelector) -> Result<D> {
    open(candidates, selector).map_err(wished)
}

/// Says of an error of the default device how to get another one.
fn advise<D>(error: Error, candidates: &[Candidate<D>]) -> Error {
    match advice(&names(candidates)) {
        Some(advice) => error.with_hint(advice),
        None => error,
    }
}

/// The hint for when the default device, of the first of these backends, cannot be opened.
fn advice(names: &[&str]) -> Option<&'static str> {
    match names {
        [_, others @ ..] if others.contains(&"host") => Some(
            "this is the default device; for another one set GPUMEM_DEVICE=host or call `Device::open_first_available`",
        ),
        [_, _, ..] => Some(
            "this is the default device; for another one set GPUMEM_DEVICE or call `Device::open_first_available`",
        ),
        ["host"] => None,
        _ => Some("this program has no other backend; the feature `host` of gpumem adds the processor"),
    }
}

pub(crate) fn open_first_available<D>(
    candidates: &[Candidate<D>],
    wish: Option<DeviceSelector>,
) -> Result<(D, Unavailable)> {
    if wish.is_some() {
        let selector = default_selector(candidates, wish)?;
        return Ok((open_wish(candidates, &selector)?, Vec::new()));
    }
    let mut passed_over = Vec::new();
    for candidate in candidates {
        match (candidate.open)(&DeviceSelector::ordinal(candidate.name, 0)) {
            Ok(device) => return Ok((device, passed_over)),
            Err(error) => {
                gpumem_core::tell!(info: backend = candidate.name, %error, "skipped in the search for a device");
                passed_over.push((candidate.name, error));
            }
        }
    }
    Err(Error::new("", "open_first_available", none_of(&passed_over)))
}

#[cfg(test)]
mod tests;
