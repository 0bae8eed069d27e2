//! numba-cuda's own tests of arrays, memory, streams and events, against the Python package in the place of `numba.cuda`.

use crate::{ci::python, steps::Outcome, workspace::Workspace};
use anyhow::{Context, Result};
use std::fs;

/// The package of PyPI whose tests run. Of it nothing else is used.
const PACKAGE: &str = "numba-cuda==0.30.4";

pub(super) fn run(workspace: &Workspace) -> Result<Outcome> {
    let installed = match python::install(workspace)? {
        Ok(installed) => installed,
        Err(outcome) => return Ok(outcome),
    };
    let folder = workspace.target("numba");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let target = folder.to_str().context("the target directory is not UTF-8")?;
    if !installed.pip(&["--no-deps", "--target", target, PACKAGE])? {
        return Ok(Outcome::Skipped(format!("cannot be had: {PACKAGE}")));
    }
    // Some tests are about two devices.
    let shell = installed.shell().env("GPUMEM_HOST_DEVICES", "2");
    let done = shell.run(&installed.tool("python"), &["tests/numba/run.py", target])?;
    Ok(Outcome::of(&done, "numba-cuda's tests"))
}
