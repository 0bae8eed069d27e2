//! `cargo xtask bench`: the program of `tests/bench`, built in release.

use crate::{shell::Shell, workspace::Workspace};
use anyhow::{Context, Result};
use clap::Args;
use std::path::{Path, PathBuf};

/// Options of `cargo xtask bench`.
#[derive(Args)]
pub(crate) struct Options {
    /// Only benches whose name contains this
    filter: Option<String>,
    /// Write the numbers there as JSON
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Build the benches that need an NVIDIA GPU too
    #[arg(long)]
    cuda: bool,
    /// Build the benches that need ROCm too
    #[arg(long)]
    roc: bool,
    /// Few short rounds: shows that the benches run, not how fast anything is
    #[arg(long)]
    quick: bool,
}

pub(crate) fn run(options: &Options) -> Result<bool> {
    let workspace = Workspace::load()?;
    let report = options.report.as_deref().map(absolute).transpose()?;
    let features: Vec<_> =
        [("cuda", options.cuda), ("roc", options.roc)].into_iter().filter(|(_, on)| *on).collect();
    let mut arguments = vec!["run", "--quiet", "--release", "--package", "gpumem-bench"];
    for (name, _) in &features {
        arguments.extend(["--features", name]);
    }
    arguments.push("--");
    if let Some(report) = &report {
        arguments.extend(["--report", report]);
    }
    if options.quick {
        arguments.push("--quick");
    }
    arguments.extend(options.filter.as_deref());
    Ok(Shell::new(workspace.root()).run("cargo", &arguments)?.success)
}

/// The command runs in the workspace's root, and the user may be elsewhere.
fn absolute(path: &Path) -> Result<String> {
    let path = std::path::absolute(path)?;
    Ok(path.to_str().context("the path of the report is not UTF-8")?.to_owned())
}
