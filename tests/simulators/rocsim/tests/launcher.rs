//! The launcher puts the simulator on the library path and leaves everything else as it is.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::{path::Path, process::Command};

fn launcher() -> Command {
    Command::new(env!("CARGO_BIN_EXE_rocsim"))
}

#[test]
fn a_command_finds_the_simulator_first() {
    let printed = launcher().arg("--library-path").output().unwrap();
    let directory = String::from_utf8(printed.stdout).unwrap().trim_end().to_owned();
    assert!(Path::new(&directory).join("libhsakmt.so.1").exists(), "{directory}");

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
    for arguments in
        [&[][..], &["/nowhere/at/all"], &["--rocm", "/nowhere"], &["--rocm", "/nowhere", "/bin/true"]]
    {
        let output = launcher().args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(String::from_utf8(output.stderr).unwrap().starts_with("rocsim: "));
    }
}
