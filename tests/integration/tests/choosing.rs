//! Choosing a device, with and without drivers: typed errors list the attempts, and there is no silent fallback.
#![cfg(feature = "host")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use gpumem::{AnyBackend, Device, ErrorKind};
use std::process::Command;

const CHILD: &str = "GPUMEM_TEST_SUBPROCESS";

/// Returns the output of `Device::open_default` and `Device::open_first_available` in a child process with that
/// `GPUMEM_DEVICE`; `None` in the child.
fn told_by_a_child(test: &str, device: Option<&str>) -> Option<(String, String)> {
    if std::env::var_os(CHILD).is_some() {
        let told = |result: gpumem::Result<Device>| match result {
            Ok(device) => device.name(),
            Err(error) => format!("error {error}"),
        };
        println!("default={}\nbest={}", told(Device::open_default()), told(Device::open_first_available()));
        return None;
    }
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", test, "--nocapture"]).env(CHILD, "1").env_remove("GPUMEM_DEVICE");
    device.map(|device| child.env("GPUMEM_DEVICE", device));
    let output = child.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    let after = |key: &str| {
        let line = said.lines().find_map(|line| line.split_once(key)).unwrap_or_else(|| panic!("{said}"));
        line.1.to_owned()
    };
    Some((after("default="), after("best=")))
}

/// Whether the backend's driver is missing here. Says so where it is not.
fn is_missing(backend: &str) -> bool {
    let missing = AnyBackend::unavailable().iter().any(|(name, _)| *name == backend);
    if !missing {
        println!("{backend} is not missing: this machine has it, or the feature is off");
    }
    missing
}

#[test]
fn a_missing_driver_is_an_error_that_lists_what_was_tried() {
    for backend in ["cuda", "roc"].into_iter().filter(|backend| is_missing(backend)) {
        let error = Device::open(&format!("{backend}:0")).unwrap_err();
        let ErrorKind::Load(load) = error.kind() else { panic!("{error}") };
        assert!(!load.tried.is_empty(), "{error}");
        let text = error.to_string();
        assert!(load.tried.iter().all(|name| text.contains(name)) && text.contains(backend), "{text}");
    }
}

#[test]
fn unknown_device_names_are_errors() {
    for name in ["nope", "nope:0", "vulkan:1"] {
        let error = Device::open(name).unwrap_err();
        let wanted_name = name.split(':').next().unwrap();
        let is_right = matches!(error.kind(), ErrorKind::UnknownBackend { wanted, known }
            if wanted == wanted_name && known.contains("host"));
        assert!(is_right, "{name}: {error}");
    }
    for name in ["", ":0", "host:", "host:x", "host:-1", "cuda:1:2", "cuda:uuid-12"] {
        let error = Device::open(name).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::InvalidSelector { .. }), "{name}: {error}");
    }
    let error = Device::open("host:999").unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::NoSuchDevice { .. }), "{error}");
    #[cfg(not(feature = "cuda"))]
    {
        let error = Device::open("cuda:0").unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::BackendNotEnabled { .. }), "{error}");
    }
}

#[test]
fn the_default_is_the_first_enabled_backend_and_never_another() {
    let test = "the_default_is_the_first_enabled_backend_and_never_another";
    let Some((default, best)) = told_by_a_child(test, None) else { return };
    let first = AnyBackend::enabled()[0];
    if first == "host" {
        assert_eq!((&*default, &*best), ("host:0", "host:0"));
    } else if is_missing(first) {
        assert!(default.starts_with("error") && default.contains("GPUMEM_DEVICE=host"), "{default}");
        // This one was asked for a device that exists.
        let others = AnyBackend::enabled().into_iter().find(|name| !is_missing(name)).unwrap();
        assert_eq!(best, format!("{others}:0"));
    } else {
        assert_eq!(default, format!("{first}:0"));
    }
}

#[test]
fn the_environment_names_the_device() {
    let test = "the_environment_names_the_device";
    let Some(told) = told_by_a_child(test, Some("host")) else { return };
    assert_eq!(told, ("host:0".to_owned(), "host:0".to_owned()));
}

#[test]
fn an_unavailable_device_is_an_error_everywhere() {
    let test = "an_unavailable_device_is_an_error_everywhere";
    for wish in ["cuda:0", "cuda:999", "nope", "", "host:999"] {
        let Some((default, best)) = told_by_a_child(test, Some(wish)) else { return };
        if wish == "cuda:0" && AnyBackend::enabled().contains(&"cuda") && !is_missing("cuda") {
            continue;
        }
        assert!(default.starts_with("error") && best.starts_with("error"), "{wish:?}: {default}, {best}");
        let is_named = default.contains("GPUMEM_DEVICE") && best.contains("GPUMEM_DEVICE");
        assert!(is_named, "{wish:?}: {default}, {best}");
    }
}
