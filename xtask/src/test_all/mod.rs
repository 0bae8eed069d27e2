//! `cargo xtask test-all-backends`: every test there is, on every backend that this machine has.
//!
//! Plain `cargo test` throughout, so that a machine with nothing but Rust runs the same command as everyone else.

mod backend;
mod machine;
mod report;

use crate::{
    libtest,
    shell::{Finished, Shell},
    summary::Summary,
    workspace::Workspace,
};
use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

pub(crate) use backend::{
    BACKENDS, Programs, build, device_tests, library_path, on_rocm, program, rows, start_on,
};
pub(crate) use machine::{Machine, SIMULATED, simulated};
pub(crate) use report::{BackendResult, Report};

/// The test target of a backend's crate that runs the conformance suite. It is not part of the workspace's tests.
pub(crate) const CONFORMANCE: &str = "conformance";

/// The test target of the ROCm backend's crate for what the suite cannot say.
pub(crate) const DEVICE: &str = "device";

/// How `--require` calls the runs of the ROCm backend on HIP on CUDA.
pub(crate) const HIP_ON_CUDA: &str = "hip-on-cuda";

/// Options of `cargo xtask test-all-backends`.
#[derive(Default, Args)]
pub(crate) struct Options {
    /// Fail unless these backends ran on a device; `hip-on-cuda` asks for the runs of `--hip-on-cuda`
    #[arg(long, value_delimiter = ',', value_name = "BACKEND")]
    require: Vec<String>,
    /// Write the results there as JSON
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Only tests whose name contains this
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// Run a backend's conformance suite on that device instead of its first (for example cuda:1)
    #[arg(long, value_name = "SELECTOR")]
    device: Vec<String>,
    /// Run the suite of the ROCm backend on an NVIDIA GPU too, once for each version of ROCm that HIP on CUDA plays
    #[arg(long)]
    hip_on_cuda: bool,
    /// Only a part of the tests
    #[arg(long, value_name = "PART")]
    only: Option<Part>,
}

/// A part of the tests, in the order in which they run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// Unit and integration tests of all members
    Code,
    /// The examples of the documentation
    Documentation,
    /// The conformance suite of the backends
    Conformance,
    /// The ROCm backend on the newer versions of ROCm that `cargo xtask rocm` has fetched
    NewerRocm,
}

impl Options {
    /// Names of backends that there are not are mistakes.
    pub(crate) fn check(&self) -> Result<()> {
        let backends = self.require.iter().filter(|name| *name != HIP_ON_CUDA);
        for name in backends.chain(&self.device) {
            let name = name.split(':').next().unwrap_or_default();
            if !BACKENDS.contains(&name) {
                bail!("there is no backend {name:?}; there are {}", BACKENDS.join(", "));
            }
        }
        Ok(())
    }

    pub(crate) fn requires(&self, backend: &str) -> bool {
        self.require.iter().any(|required| required == backend)
    }

    pub(crate) fn wants_hip_on_cuda(&self) -> bool {
        self.hip_on_cuda || self.requires(HIP_ON_CUDA)
    }

    pub(crate) fn has(&self, part: Part) -> bool {
        self.only.is_none_or(|only| only == part)
    }

    pub(crate) fn filter(&self) -> Option<&str> {
        self.filter.as_deref()
    }

    /// The device that was asked for instead of a backend's first.
    pub(crate) fn device_of(&self, backend: &str) -> Option<&str> {
        self.device.iter().map(String::as_str).find(|selector| selector.split(':').next() == Some(backend))
    }
}

pub(crate) fn run(options: &Options) -> Result<bool> {
    options.check()?;
    let workspace = Workspace::load()?;
    let mut report = Report { backends: Vec::new(), workspace: tests(&workspace, options)? };
    if options.has(Part::Conformance) || options.has(Part::NewerRocm) {
        report.backends = match &backend::programs(&workspace) {
            Ok(programs) => backend::run(&workspace, programs, options)?,
            Err(error) => vec![BackendResult::failed(BACKENDS[0], format!("{error:#}"))],
        };
    }
    conclude(&report, options)
}

/// Writes and prints the results. Whether nothing failed.
pub(crate) fn conclude(report: &Report, options: &Options) -> Result<bool> {
    if let Some(path) = &options.report {
        let text = serde_json::to_string_pretty(report)?;
        std::fs::write(path, text + "\n").with_context(|| format!("{} cannot be written", path.display()))?;
    }
    println!("\n{}\n", report.table());
    let total = report.total();
    println!("gpumem: {total}");
    Ok(total.failed == 0)
}

/// Judges test programs by their output and exit status.
pub(crate) fn judge_tests(done: &Finished) -> Summary {
    let mut counts = libtest::counts(&done.output);
    if !done.success && counts.failed == 0 {
        // A test program that does not build or that dies prints no result.
        counts.failed = 1;
    }
    counts
}

/// Unit, integration and documentation tests of all members, as far as they were asked for.
fn tests(workspace: &Workspace, options: &Options) -> Result<Summary> {
    let members = workspace.all_members();
    // Targets by name, because cargo knows no "all but this one".
    let targets = workspace.tests().into_iter().filter(|name| *name != CONFORMANCE);
    let mut code = vec!["test", "--no-fail-fast", "--lib", "--bins"];
    code.extend(&members);
    code.extend(targets.flat_map(|name| ["--test", name]));
    let mut documentation = vec!["test", "--no-fail-fast", "--doc"];
    documentation.extend(&members);
    if workspace.package("gpumem").is_some() {
        // Its pages about operations of several ranks.
        documentation.extend(["--features", "gpumem/collectives"]);
    }

    let mut sum = Summary::default();
    let parts = [(Part::Code, code), (Part::Documentation, documentation)];
    let parts = parts.into_iter().filter(|(part, _)| options.has(*part));
    let is_any = options.has(Part::Code) || options.has(Part::Documentation);
    for (_, mut arguments) in parts {
        if let Some(filter) = &options.filter {
            arguments.extend(["--", filter]);
        }
        let done = Shell::new(workspace.root()).run("cargo", &arguments)?;
        sum += judge_tests(&done);
    }
    if sum == Summary::default() && options.filter.is_none() && is_any {
        bail!("no test ran at all");
    }
    Ok(sum)
}

#[cfg(test)]
impl Options {
    pub(crate) fn report_to(&mut self, file: &std::path::Path) {
        self.report = Some(file.to_owned());
    }

    pub(crate) fn require_backend(&mut self, name: &str) {
        self.require.push(name.to_owned());
    }
}
