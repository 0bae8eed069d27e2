//! The Python tests of the libraries whose memory gpumem serves, as far as that needs no GPU.

use crate::{ci::python, steps::Outcome, workspace::Workspace};
use anyhow::Result;

/// What `pip` installs, together: each library and what it needs.
const PACKAGES: [&[&str]; 4] =
    [&["numba-cuda", "nvidia-cuda-runtime"], &["cuda-core[cu13]"], &["cupy-cuda13x"], &["rmm-cu13"]];

pub(super) fn run(workspace: &Workspace) -> Result<Outcome> {
    let installed = match python::install(workspace)? {
        Ok(installed) => installed,
        Err(outcome) => return Ok(outcome),
    };
    for packages in PACKAGES {
        if !installed.pip(packages)? {
            return Ok(Outcome::Skipped(format!("cannot be had: {}", packages.join(" "))));
        }
    }
    let pytest = ["-m", "pytest", "-q", "-rfEs", "tests/test_doors.py"];
    Ok(Outcome::of(&installed.shell().run(&installed.tool("python"), &pytest)?, "pytest"))
}
