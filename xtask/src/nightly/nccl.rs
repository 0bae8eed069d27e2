//! NVIDIA's collectives in the oldest version that serves, one between and the newest one, from PyPI: the tests of the real
//! library, without a GPU.

use crate::{shell::Shell, steps::Outcome, workspace::Workspace};
use anyhow::Result;
use std::fs;

/// Packages of PyPI, about 400 MB each when unpacked. All have the library at the same place.
const PACKAGES: [&str; 3] =
    ["nvidia-nccl-cu12==2.18.3", "nvidia-nccl-cu12==2.27.7", "nvidia-nccl-cu13==2.32.3"];
const LIBRARY: &str = "nvidia/nccl/lib/libnccl.so.2";

/// The packages and the tests of the library.
const TESTS: [&str; 8] =
    ["--package", "gpumem-sys", "--package", "nccl-double", "--test", "nccl_real", "--test", "real"];

pub(super) fn run(workspace: &Workspace) -> Result<Outcome> {
    let (mut failed, mut missing) = (Vec::new(), Vec::new());
    let folder = workspace.target("nccl");
    let shell = Shell::new(workspace.root());
    for package in PACKAGES {
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        let target = folder.to_string_lossy();
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--target"];
        let fetched = shell.run("python3", &[&pip[..], &[&*target, package]].concat());
        let library = folder.join(LIBRARY);
        if !fetched.is_ok_and(|done| done.success) || !library.is_file() {
            missing.push(package);
            continue;
        }
        let tests = Shell::new(workspace.root()).env("GPUMEM_NCCL", library);
        if !tests.run("cargo", &[&["test"][..], &TESTS].concat())?.success {
            failed.push(package);
        }
    }
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    Ok(match (failed.as_slice(), missing.as_slice()) {
        ([], []) => Outcome::Passed,
        ([], missing) => Outcome::Skipped(format!("cannot be had: {}", missing.join(", "))),
        (failed, _) => Outcome::Failed(failed.join(", ")),
    })
}
