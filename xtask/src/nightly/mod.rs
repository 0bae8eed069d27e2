//! `cargo xtask nightly`: tests that take too long for the continuous integration. Takes hours on any machine.

mod compile_time;
mod fuzz;
mod libraries;
mod long;
mod mutants;
mod nccl;
mod numba;
mod programs;
mod rocm;
mod tsan;

use crate::{
    ci::package,
    miri, sanitizers,
    steps::{self, Outcome},
    workspace::Workspace,
};
use anyhow::Result;
use clap::{Args, ValueEnum};

/// Preemptions in an execution of loom's models; three otherwise.
const PREEMPTIONS: &str = "5";

/// Options of `cargo xtask nightly`.
#[derive(Args)]
pub(crate) struct Options {
    /// Which steps to run; all if none is named
    steps: Vec<Step>,
    /// Fail where a step is skipped because a tool is missing
    #[arg(long)]
    no_skip: bool,
    /// Run nothing: print the names of the steps as JSON, for the hosted workflow
    #[arg(long)]
    list: bool,
}

/// One step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Step {
    /// The tests that take rounds, seeds or pairs, with many of them
    Long,
    /// The interleavings of the bookkeeping with two more preemptions (loom)
    Loom,
    /// Data races of transfers, pools and streams (ThreadSanitizer)
    Tsan,
    /// Undefined behaviour, in the tests that take Miri too long otherwise
    Miri,
    /// Invalid memory accesses in the packages that the continuous integration leaves to Miri (AddressSanitizer)
    Asan,
    /// Every crate that is published builds from its package
    Package,
    /// How long the compiler takes for a kernel
    CompileTime,
    /// Random programs over the public API under the adversarial schedule (AddressSanitizer)
    Programs,
    /// Every fuzz target for a minute (cargo-fuzz)
    Fuzz,
    /// A test fails for each change of the checks on which the promise rests (cargo-mutants)
    Mutants,
    /// The real NCCL in three versions, without a GPU
    Nccl,
    /// numba-cuda's own tests of the host's side, against the Python package
    Numba,
    /// The Python package below Numba, CuPy, cuda.core and RMM, without a GPU
    Libraries,
    /// Machine code on every version of ROCm that is there, for all simulated architectures
    Rocm,
}

impl Step {
    fn run(self, workspace: &Workspace) -> Result<Outcome> {
        match self {
            Step::Long => long::run(workspace),
            Step::Loom => sanitizers::loom(workspace, Some(PREEMPTIONS)),
            Step::Tsan => tsan::run(workspace),
            Step::Miri => miri::run(workspace, miri::NIGHTLY),
            Step::Asan => sanitizers::asan(workspace, sanitizers::ASAN_NIGHTLY),
            Step::Package => package::run(workspace, true),
            Step::CompileTime => compile_time::run(workspace),
            Step::Programs => programs::run(workspace),
            Step::Fuzz => fuzz::run(workspace),
            Step::Mutants => mutants::run(workspace),
            Step::Nccl => nccl::run(workspace),
            Step::Numba => numba::run(workspace),
            Step::Libraries => libraries::run(workspace),
            Step::Rocm => rocm::run(workspace),
        }
    }
}

pub(crate) fn run(options: &Options) -> Result<bool> {
    let steps = match options.steps.as_slice() {
        [] => Step::value_variants(),
        steps => steps,
    };
    if options.list {
        println!("{}", serde_json::to_string(&steps.iter().map(steps::name).collect::<Vec<_>>())?);
        return Ok(true);
    }
    let workspace = Workspace::load()?;
    steps::run("nightly", "step", steps, options.no_skip, |step| step.run(&workspace))
}
