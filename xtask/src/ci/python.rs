//! The Python extension: built by maturin in an environment of its own, and held against NumPy.

use super::Outcome;
use crate::{shell::Shell, workspace::Workspace};
use anyhow::{Context, Result};

/// The oldest Python that the extension serves, with what makes environments.
const PROBE: &str = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))";

pub(super) fn run(workspace: &Workspace) -> Result<Outcome> {
    let shell = Shell::new(workspace.root());
    if !shell.quiet("python3", &["-c", PROBE]).is_ok_and(|done| done.success) {
        return Ok(Outcome::Skipped("there is no Python 3.10 or later with venv".to_owned()));
    }
    let place = workspace.target("python");
    let tool = |name: &str| place.join("bin").join(name).to_string_lossy().into_owned();
    let environment = place.to_str().context("the target directory is not UTF-8")?;
    let made = shell.quiet("python3", &["-m", "venv", environment])?;
    let pip = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "maturin>=1.7,<2",
        "numpy>=2.1",
        "pytest",
    ];
    if !made.success || !shell.quiet(&tool("python"), &pip)?.success {
        return Ok(Outcome::Skipped(
            "maturin, numpy and pytest are not there and cannot be installed".to_owned(),
        ));
    }
    // The library beside which arrays are exchanged: its tests are skipped where it cannot be had. PyTorch's build without
    // CUDA is on no registry that pip asks by itself.
    let peer = shell
        .quiet(&tool("python"), &["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "jax"])?;
    if !peer.success {
        println!("no JAX: its tests are skipped");
    }
    let crate_root = workspace.root().join("crates/gpumem-python");
    let shell = Shell::new(&crate_root)
        .env("VIRTUAL_ENV", environment)
        .env("CARGO_TARGET_DIR", workspace.target("python-build"))
        // What the tests with other libraries run on: there is no GPU here.
        .env("GPUMEM_TEST_DEVICE", "host");
    let built = shell.run(&tool("maturin"), &["develop", "--quiet"])?;
    if !built.success {
        return Ok(Outcome::of(&built, "maturin develop"));
    }
    Ok(Outcome::of(&shell.run(&tool("python"), &["-m", "pytest", "-q", "-rs", "tests"])?, "pytest"))
}
