//! Tests the differences between ROCm 5, 6 and 7, against libraries that have the binary interface of each.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod mock;

use gpumem_sys::{
    Environment, Loaded, MissingSymbol, Places, Refusal,
    hip::{
        Failure, HipLibrary, Hiprtc, MemoryType, Pointer, Version, architecture, hipError_t, load,
        load_hiprtc, pointer,
    },
};
use std::{
    path::{Path, PathBuf},
    sync::OnceLock,
};

/// The libraries of every version, each in a separate folder.
const LIBRARIES: &[(&str, &str, &str)] = &[
    // A version that has the compiler in HIP's library only.
    ("5", "hip", "libamdhip64.so.5"),
    ("6", "hip", "libamdhip64.so.6"),
    ("6", "hiprtc", "libhiprtc.so.6"),
    ("7", "hip", "libamdhip64.so.7"),
    ("7", "hiprtc", "libhiprtc.so.7"),
];

/// The folder with a folder for each version.
fn libraries() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        for (version, part, name) in LIBRARIES {
            let values = [("rocm", *version), ("part", *part)];
            mock::build("rocm", &values, &format!("rocm/{version}"), name, None);
        }
        Path::new(env!("CARGO_TARGET_TMPDIR")).join("rocm")
    })
}

fn places(version: &str) -> Places {
    let folder = libraries().join(version).into_os_string();
    Places::new(&Environment { library_path: Some(folder), ..Environment::default() })
}

fn library(version: &str) -> (Loaded<HipLibrary>, Version) {
    let hip = load(&places(version)).unwrap();
    assert!(hip.name.ends_with(format!("libamdhip64.so.{version}")), "{}", hip.name.display());
    let number = Version::of(&hip.functions).unwrap();
    (hip, number)
}

#[test]
fn each_version_is_found_under_its_own_name() {
    for (version, text) in [("5", "5.2.21153"), ("6", "6.4.43484"), ("7", "7.2.53211")] {
        let (hip, number) = library(version);
        assert_eq!(number.to_string(), text);
        // SAFETY: the mock's function has no preconditions.
        assert_eq!(unsafe { hip.functions.hipInit(0) }, Ok(hipError_t::hipSuccess));
        // SAFETY: as above.
        assert_eq!(unsafe { hip.functions.hipInit(1) }, Ok(hipError_t::hipErrorInvalidValue));
    }
}

#[test]
fn one_missing_function_fails_its_own_call_only() {
    let (hip, _) = library("6");
    // SAFETY: the function is missing, so none is called.
    let missing = unsafe { hip.functions.hipDeviceReset() };
    assert_eq!(missing, Err(MissingSymbol("hipDeviceReset")));
    assert_eq!(missing.unwrap_err().to_string(), "hipDeviceReset is missing in the library");
    let lacks: Vec<_> = hip.functions.hip.missing().collect();
    assert!(lacks.contains(&"hipMalloc") && !lacks.contains(&"hipInit"), "{lacks:?}");
}

#[test]
fn properties_are_read_in_the_layout_of_the_version() {
    for (version, expected) in
        [("5", "gfx906:sramecc-:xnack-"), ("6", "gfx942:sramecc+:xnack-"), ("7", "gfx942:sramecc+:xnack-")]
    {
        let (hip, _) = library(version);
        assert_eq!(architecture(&hip.functions, 0).as_deref(), Ok(expected));
        let refused = architecture(&hip.functions, 1);
        assert_eq!(refused, Err(Failure::Status(hipError_t::hipErrorInvalidDevice)));
    }
}

#[test]
fn an_address_is_described_alike_in_every_version() {
    for version in ["5", "6", "7"] {
        let (hip, number) = library(version);
        let at = |address| pointer(&hip.functions, number, address).unwrap();
        for (address, kind) in [(1, MemoryType::Host), (2, MemoryType::Device), (3, MemoryType::Managed)] {
            let expected =
                Pointer { kind, device: 7, device_address: address + 0x1000, host_address: address };
            assert_eq!(at(address), Some(expected), "ROCm {version}");
        }
        assert_eq!(at(0x4000), None, "ROCm {version}");
    }
}

#[test]
fn the_compiler_is_looked_for_in_its_own_library_first() {
    let minor = |compiler: &Hiprtc| {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: places for two numbers.
        assert_eq!(unsafe { compiler.hiprtcVersion(&mut major, &mut minor) }.map(|status| status.0), Ok(0));
        minor
    };
    for (version, name, own) in
        [("5", "libamdhip64.so.5", 0), ("6", "libhiprtc.so.6", 1), ("7", "libhiprtc.so.7", 1)]
    {
        let (hip, number) = library(version);
        let compiler = load_hiprtc(&places(version), &hip, number).unwrap();
        assert!(compiler.name.ends_with(name), "{}", compiler.name.display());
        assert_eq!(minor(&compiler.functions), own);
    }
}

#[test]
fn without_a_compiler_the_error_lists_every_attempt() {
    let (hip, number) = library("7");
    let empty = Places::new(&Environment { library_path: Some("/nowhere".into()), ..Environment::default() });
    let error = match load_hiprtc(&empty, &hip, number) {
        Err(error) => error,
        // A machine with ROCm's own compiler, which the system's loader has found.
        Ok(found) => return assert_eq!(found.name.parent(), Some(Path::new(""))),
    };
    let tried: Vec<_> = error.attempts.iter().map(|attempt| attempt.name.display().to_string()).collect();
    assert_eq!(tried[..2], ["/nowhere/libhiprtc.so.7", "/nowhere/libhiprtc.so"]);
    let last = error.attempts.last().unwrap();
    assert_eq!(last.name, hip.name);
    assert_eq!(last.refusal, Refusal::Other("hiprtcCompileProgram".to_owned()));
}
