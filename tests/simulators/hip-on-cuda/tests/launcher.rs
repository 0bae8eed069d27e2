//! The launcher puts the library under AMD's names on the library path and leaves everything else as it is.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)] // A test that cannot go on has failed.

use std::{path::Path, process::Command};

fn launcher() -> Command {
    Command::new(env!("CARGO_BIN_EXE_hip-on-cuda"))
}

#[test]
fn a_command_finds_the_library_under_every_name() {
    let printed = launcher().arg("--library-path").output().unwrap();
    let directory = String::from_utf8(printed.stdout).unwrap().trim_end().to_owned();
    for name in ["libamdhip64.so", "libamdhip64.so.5", "libamdhip64.so.7", "libhiprtc.so", "libhiprtc.so.6"] {
        // SAFETY: the library has no initialisers with preconditions.
        let library = unsafe { libloading::Library::new(Path::new(&directory).join(name)) }.unwrap();
        // SAFETY: the function is looked up and not called.
        assert!(unsafe { library.get::<unsafe extern "C" fn()>(b"hiprtcCreateProgram") }.is_ok(), "{name}");
    }
    let script = "echo \"$LD_LIBRARY_PATH\"; echo \"$1\"; exit 3";
    let output = launcher()
        .args(["sh", "-c", script, "sh", "an argument"])
        .env("LD_LIBRARY_PATH", "/somewhere")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{directory}:/somewhere\nan argument\n"));
}

#[test]
fn a_command_that_cannot_run_is_an_error() {
    for arguments in [&[][..], &["/nowhere/at/all"]] {
        let output = launcher().args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(String::from_utf8(output.stderr).unwrap().starts_with("hip-on-cuda: "));
    }
}
