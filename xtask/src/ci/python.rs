//! Builds the Python extension as a wheel with maturin, installs it into a new environment, and tests it against NumPy.

use super::Outcome;
use crate::{shell::Shell, workspace::Workspace};
use anyhow::{Context, Result, bail};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// The oldest Python that the extension supports, with the tool that makes environments.
const PROBE: &str = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))";

/// The extension, installed in an environment of its own.
pub(crate) struct Installed {
    /// The environment.
    place: PathBuf,
    crate_root: PathBuf,
    target: PathBuf,
}

impl Installed {
    /// A program of the environment.
    pub(crate) fn tool(&self, name: &str) -> String {
        self.place.join("bin").join(name).to_string_lossy().into_owned()
    }

    /// Commands in the folder of the extension.
    pub(crate) fn shell(&self) -> Shell<'_> {
        Shell::new(&self.crate_root)
            .env("VIRTUAL_ENV", &self.place)
            .env("CARGO_TARGET_DIR", &self.target)
            // The device of the tests with other libraries: there is no GPU here.
            .env("GPUMEM_TEST_DEVICE", "host")
    }

    /// `pip install` of these packages.
    pub(crate) fn pip(&self, arguments: &[&str]) -> Result<bool> {
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        Ok(self.shell().quiet(&self.tool("python"), &[&pip[..], arguments].concat())?.success)
    }
}

/// Builds the wheel and installs it, or says why not.
pub(crate) fn install(workspace: &Workspace) -> Result<std::result::Result<Installed, Outcome>> {
    let shell = Shell::new(workspace.root());
    let skipped = |why: &str| Ok(Err(Outcome::Skipped(why.to_owned())));
    if !shell.quiet("python3", &["-c", PROBE]).is_ok_and(|done| done.success) {
        return skipped("there is no Python 3.10 or later with venv");
    }
    let installed = Installed {
        place: workspace.target("python"),
        crate_root: workspace.root().join("crates/gpumem-python"),
        target: workspace.target("python-build"),
    };
    let environment = installed.place.to_str().context("the target directory is not UTF-8")?;
    let made = shell.quiet("python3", &["-m", "venv", environment])?;
    if !made.success || !installed.pip(&["maturin>=1.7,<2", "numpy>=2.1", "pytest"])? {
        return skipped("maturin, numpy and pytest are not there and cannot be installed");
    }
    // The wheel of an earlier version would stay beside the new one.
    let wheels = workspace.target("python-wheels");
    if wheels.exists() {
        fs::remove_dir_all(&wheels)?;
    }
    let folder = wheels.to_str().context("the target directory is not UTF-8")?;
    let maturin = installed.tool("maturin");
    let built = installed.shell().run(&maturin, &["build", "--quiet", "--locked", "--out", folder])?;
    if !built.success {
        return Ok(Err(Outcome::of(&built, "maturin build")));
    }
    let wheel = only_wheel(&wheels)?;
    let wheel = wheel.to_str().context("the target directory is not UTF-8")?;
    if !installed.pip(&["--no-deps", "--force-reinstall", wheel])? {
        return Ok(Err(Outcome::Failed("pip install of the wheel".to_owned())));
    }
    Ok(Ok(installed))
}

pub(super) fn run(workspace: &Workspace) -> Result<Outcome> {
    let installed = match install(workspace)? {
        Ok(installed) => installed,
        Err(outcome) => return Ok(outcome),
    };
    // The library to exchange arrays with: its tests are skipped if it cannot be installed. PyTorch's build without
    // CUDA is on no registry that pip uses by default.
    if !installed.pip(&["jax"])? {
        println!("no JAX: its tests are skipped");
    }
    let (shell, python) = (installed.shell(), installed.tool("python"));
    let pytest = ["-m", "pytest", "-q", "-rfEs"];
    let tested = shell.run(&python, &[&pytest[..], &["tests"]].concat())?;
    if !tested.success {
        return Ok(Outcome::of(&tested, "pytest"));
    }
    // Once more what needs an AMD GPU, on the simulated one. Built as for the tests of the workspace: with other features cargo compiles
    // everything again.
    let simulator = [&["build", "--quiet", "--bin", "rocsim"], workspace.all_members().as_slice()].concat();
    let built = Shell::new(workspace.root()).run("cargo", &simulator)?;
    if !built.success {
        return Ok(Outcome::of(&built, "cargo build --bin rocsim"));
    }
    let launcher = workspace.target("debug").join("rocsim");
    let launcher = launcher.to_str().context("the target directory is not UTF-8")?;
    let on_amd = [&[&*python][..], &pytest, &["tests/test_amd.py"]].concat();
    Ok(Outcome::of(&shell.run(launcher, &on_amd)?, "pytest on a simulated AMD GPU"))
}

/// The wheel in a folder: one, for every Python from the oldest on.
fn only_wheel(folder: &Path) -> Result<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        found.push(entry?.path());
    }
    let is_for_all = |path: &&PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.contains("-abi3-") && name.ends_with(".whl")
    };
    match found.as_slice() {
        [one] if is_for_all(&one) => Ok(one.clone()),
        _ => bail!("maturin has built {found:?} and not one wheel for every Python"),
    }
}
