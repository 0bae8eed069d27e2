//! `cargo xtask archive`: tests, examples and benches for a machine without cargo and without this source tree.

mod build;
mod manifest;
mod runner;

use crate::{test_all::BACKENDS, workspace::Workspace};
use anyhow::{Context, Result, bail};
use clap::Args;
use manifest::Manifest;
use std::{fs, path::Path, path::PathBuf};

pub(crate) use runner::{Options as RunOptions, run as run_archived};

/// Options of `cargo xtask archive`.
#[derive(Args)]
pub(crate) struct Options {
    /// Folder to fill; made if absent. Files of an earlier archive are replaced
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Backends to pack; the host is always one of them
    #[arg(long, value_delimiter = ',', value_name = "BACKEND", default_values_t = ["cuda".to_owned(), "roc".to_owned()])]
    features: Vec<String>,
}

/// The one thing to call there. The rest of the logic is that of `test-all-backends`, in the packed program.
const SCRIPT: &str = r#"#!/usr/bin/env bash
# Runs the tests and the examples that are packed here, and sums up. See `./run --help`.
set -eu
here="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)"
exec "$here/bin/xtask" run-archived "$here" "$@"
"#;

pub(crate) fn run(options: &Options) -> Result<bool> {
    if let Some(name) = options.features.iter().find(|name| !BACKENDS.contains(&name.as_str())) {
        bail!("there is no backend {name:?}; there are {}", BACKENDS.join(", "));
    }
    let features: Vec<_> = options.features.iter().filter(|name| *name != "host").cloned().collect();
    let workspace = Workspace::load()?;
    let out = std::path::absolute(&options.out)?;
    let programs = build::programs(&workspace, &features)?;
    clear(&out)?;
    fs::create_dir_all(out.join("bin"))?;
    let mut manifest = Manifest::default();
    let mut bytes = 0;
    for (program, built) in programs {
        let file = out.join(program.file());
        bytes += fs::copy(&built, &file).with_context(|| format!("{} cannot be copied", built.display()))?;
        manifest.programs.push(program);
    }
    // The default picture of the photo example, to compare with its sheet.
    let sample = workspace.root().join("crates/gpumem/examples/data/china.jpg");
    bytes += fs::copy(&sample, out.join("china.jpg")).context("the sample photo")?;
    manifest.write(&out)?;
    write_script(&out.join("run"))?;
    println!(
        "{}: {} programs, {:.1} MiB; there: ./run --help",
        out.display(),
        manifest.programs.len(),
        bytes as f64 / f64::from(1 << 20)
    );
    Ok(true)
}

/// Removes an earlier archive, and no other files.
fn clear(out: &Path) -> Result<()> {
    if !out.exists() || fs::read_dir(out)?.next().is_none() {
        return Ok(());
    }
    if Manifest::read(out).is_err() {
        bail!("{} is neither empty nor an earlier pack", out.display());
    }
    fs::remove_dir_all(out).with_context(|| format!("{} cannot be emptied", out.display()))
}

fn write_script(path: &Path) -> Result<()> {
    fs::write(path, SCRIPT)?;
    #[cfg(unix)]
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_other_things_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        clear(folder.path()).unwrap();
        fs::write(folder.path().join("thesis.tex"), "years of work").unwrap();
        assert!(clear(folder.path()).is_err());
        assert!(folder.path().join("thesis.tex").exists());
    }

    #[test]
    fn an_earlier_archive_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        Manifest::default().write(folder.path()).unwrap();
        clear(folder.path()).unwrap();
        assert!(!folder.path().exists());
    }
}
