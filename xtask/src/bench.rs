//! `cargo xtask bench`: the program of `tests/bench`, built in release.

use crate::{shell::Shell, workspace::Workspace};
use anyhow::{Context, Result};
use clap::Args;
use std::path::{Path, PathBuf};

/// Options of `cargo xtask bench`.
#[derive(Args)]
pub(crate) struct Options {
    /// Only benches whose name contains one of these
    filters: Vec<String>,
    /// Write the numbers there as JSON
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// The device to measure (host, cuda:0, roc:0, ...)
    #[arg(long, value_name = "NAME", default_value = "host")]
    device: String,
    /// The same as `--device cuda:0`
    #[arg(long, conflicts_with_all = ["device", "roc"])]
    cuda: bool,
    /// The same as `--device roc:0`
    #[arg(long, conflicts_with = "device")]
    roc: bool,
    /// Few short rounds: shows that the benches run, not how fast anything is
    #[arg(long)]
    quick: bool,
    /// Further options of the program, after `--`: `-- --help` lists them
    #[arg(last = true)]
    further: Vec<String>,
}

pub(crate) fn run(options: &Options) -> Result<bool> {
    let workspace = Workspace::load()?;
    let report = options.report.as_deref().map(absolute).transpose()?;
    let device = match (options.cuda, options.roc) {
        (true, _) => "cuda:0",
        (_, true) => "roc:0",
        _ => &options.device,
    };
    let mut arguments = vec!["run", "--quiet", "--release", "--package", "gpumem-bench"];
    // The feature by which a backend other than the host is built in has its name.
    if let Some(feature) = device.split(':').next().filter(|backend| *backend != "host") {
        arguments.extend(["--features", feature]);
    }
    arguments.extend(["--", "--device", device]);
    if let Some(report) = &report {
        arguments.extend(["--report", report]);
    }
    if options.quick {
        arguments.push("--quick");
    }
    arguments.extend(options.filters.iter().chain(&options.further).map(String::as_str));
    Ok(Shell::new(workspace.root()).run("cargo", &arguments)?.success)
}

/// The command runs in the workspace's root, and the user may be elsewhere.
fn absolute(path: &Path) -> Result<String> {
    let path = std::path::absolute(path)?;
    Ok(path.to_str().context("the path of the report is not UTF-8")?.to_owned())
}
