//! Choosing a device: by name, by default, by `GPUMEM_DEVICE`.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use gpumem::{AnyBackend, Backend, DeviceSelector, Error, ErrorKind};
use gpumem_core::DriverDevice;
use std::process::Command;

/// Set in the child processes, which run the same test again with another environment.
const CHILD: &str = "GPUMEM_TEST_SUBPROCESS";

/// Returns what a child process with this `GPUMEM_DEVICE` prints about its default device; `None` in the child.
fn told_by_a_child(test: &str, device: Option<&str>) -> Option<String> {
    if std::env::var_os(CHILD).is_some() {
        tell();
        return None;
    }
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", test, "--nocapture"]).env(CHILD, "1").env_remove("GPUMEM_DEVICE");
    if let Some(device) = device {
        child.env("GPUMEM_DEVICE", device);
    }
    let output = child.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    Some(String::from_utf8(output.stdout).unwrap())
}

fn tell() {
    match AnyBackend::default_selector() {
        Ok(selector) => println!("selected {selector}"),
        Err(error) => println!("failed {error}"),
    }
    match AnyBackend::open_default() {
        Ok(device) => println!("opened {}:{}", device.backend(), device.info().ordinal),
        Err(error) => println!("not opened {error}"),
    }
    match AnyBackend::open_first_available() {
        Ok((device, passed_over)) => println!("best {} after {}", device.backend(), passed_over.len()),
        Err(error) => println!("no best {error}"),
    }
}

#[test]
fn the_enabled_backends_come_in_the_documented_order() {
    let expected: Vec<_> =
        [("cuda", cfg!(feature = "cuda")), ("roc", cfg!(feature = "roc")), ("host", cfg!(feature = "host"))]
            .into_iter()
            .filter_map(|(name, enabled)| enabled.then_some(name))
            .collect();
    assert_eq!(AnyBackend::enabled(), expected);
}

#[test]
fn the_error_for_a_disabled_backend_lists_the_enabled_ones() {
    let error = AnyBackend::open(&DeviceSelector::ordinal("vulkan", 0)).unwrap_err();
    let kind = ErrorKind::UnknownBackend { wanted: "vulkan".into(), known: "cuda, roc, host".into() };
    assert_eq!(error, Error::new("", "open", kind));
}

#[test]
fn every_enabled_backend_is_listed_or_said_to_be_unavailable() {
    let unavailable = AnyBackend::unavailable();
    let listed = AnyBackend::devices().unwrap();
    assert!(unavailable.iter().all(|(name, _)| AnyBackend::enabled().contains(name)));
    assert!(listed.iter().all(|info| unavailable.iter().all(|(name, _)| *name != info.backend)));
    for (name, error) in &unavailable {
        assert_eq!(error.backend(), *name);
        let opened = AnyBackend::open(&DeviceSelector::ordinal(name, 0)).unwrap_err();
        assert_eq!(opened.kind(), error.kind());
    }
}

#[test]
fn without_a_variable_the_first_enabled_backend_is_used() {
    let test = "without_a_variable_the_first_enabled_backend_is_used";
    let Some(said) = told_by_a_child(test, None) else { return };
    let first = AnyBackend::enabled()[0];
    let usable = AnyBackend::open(&DeviceSelector::ordinal(first, 0)).is_ok();
    if usable {
        assert!(said.contains(&format!("selected {first}:0\n")), "{said}");
        assert!(said.contains(&format!("opened {first}:0\n")), "{said}");
        assert!(said.contains(&format!("best {first} after 0\n")), "{said}");
    } else {
        assert!(said.contains("this is the default device") || first == "host", "{said}");
        assert!(said.contains(&format!(" on {first}: ")), "{said}");
        if cfg!(feature = "host") && first != "host" {
            assert!(said.contains("GPUMEM_DEVICE=host"), "{said}");
        }
    }
}

#[test]
fn an_invalid_or_unavailable_device_fails_everywhere() {
    for (wish, reason) in [
        ("", "the name of a backend is missing"),
        ("cuda:one", "the part after the colon must be a position"),
        ("vulkan", "there is no backend \"vulkan\""),
    ] {
        let test = "an_invalid_or_unavailable_device_fails_everywhere";
        let Some(said) = told_by_a_child(test, Some(wish)) else { return };
        assert_eq!(said.matches(reason).count(), 3, "{said}");
        assert_eq!(said.matches("variable GPUMEM_DEVICE names").count(), 3, "{said}");
    }
}

#[cfg(feature = "host")]
#[test]
fn the_host_can_be_chosen_with_any_features() {
    let test = "the_host_can_be_chosen_with_any_features";
    let Some(said) = told_by_a_child(test, Some("host")) else { return };
    for line in ["selected host:0\n", "opened host:0\n", "best host after 0\n"] {
        assert!(said.contains(line), "{said}");
    }
}

#[cfg(feature = "roc")]
#[test]
fn rocm_that_cannot_be_used_is_a_load_error_with_what_was_tried() {
    use gpumem::roc::Roc;
    let Err(reason) = Roc::probe() else { return };
    assert!(!reason.tried.is_empty(), "{reason}");
    let error = AnyBackend::open(&DeviceSelector::ordinal("roc", 0)).unwrap_err();
    if Roc::devices().is_ok_and(|devices| devices.is_empty()) {
        // ROCm is there and has no GPU.
        assert!(matches!(error.kind(), ErrorKind::NoSuchDevice { found: 0, .. }), "{error}");
        return;
    }
    assert_eq!(error, Error::new("roc", "open", reason.clone()));
    assert!(
        AnyBackend::unavailable()
            .iter()
            .any(|(name, error)| { *name == "roc" && error.kind() == &ErrorKind::Load(reason.clone()) })
    );
    let test = "rocm_that_cannot_be_used_is_a_load_error_with_what_was_tried";
    let Some(said) = told_by_a_child(test, Some("roc")) else { return };
    assert_eq!(said.matches("variable GPUMEM_DEVICE names").count(), 2, "{said}");
}
