//! `cargo xtask ci`: the checks of the continuous integration, the same everywhere.

mod bindings;
mod book;
mod checks;
mod features;
mod hunters;
mod package;
mod python;
mod tools;

use crate::{counts::Counts, performance, readme, shell::Finished, workspace::Workspace};
use anyhow::Result;
use clap::{Args, ValueEnum};
use comfy_table::{Table, presets::ASCII_MARKDOWN};
use std::time::Instant;

/// What keeps a test from opening a page in a browser, for half a minute. `cargo xtask test-all-backends` runs it; neither
/// features nor sanitizers change what the browser sees.
const NO_BROWSER: (&str, &str) = ("GPUMEM_BROWSER", "off");

/// Options of `cargo xtask ci`.
#[derive(Args)]
pub(crate) struct Options {
    /// Which checks to run; all if none is named
    steps: Vec<Step>,
    /// All but these
    #[arg(long, value_delimiter = ',', value_name = "STEPS", conflicts_with = "steps")]
    except: Vec<Step>,
    /// Fail where a check is skipped because a tool is missing
    #[arg(long)]
    no_skip: bool,
}

/// One check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Step {
    /// Formatting
    Fmt,
    /// Clippy without warnings, for several sets of features
    Clippy,
    /// Every set of features builds; with the host, what depends on the set is tested
    Features,
    /// The documentation of the API, without warnings
    Docs,
    /// Licences, advisories, sources of dependencies (cargo-deny)
    Deny,
    /// Every crate that is published can be packaged, and builds from its package
    Package,
    /// The Python extension builds and passes its tests (maturin, pytest)
    Python,
    /// The READMEs are what the crate documentation says
    Readme,
    /// The declarations of HIP, HSA and NCCL are what their headers give (libclang)
    Bindings,
    /// The oldest Rust that is supported builds what is published
    Msrv,
    /// Links and pages of the book (and mdBook, where it is installed)
    Book,
    /// The interleavings of the bookkeeping (loom)
    Loom,
    /// Invalid memory accesses of the host backend (AddressSanitizer)
    Asan,
    /// Undefined behaviour, by interpretation (Miri)
    Miri,
}

/// How a check ended.
enum Outcome {
    Passed,
    Failed(String),
    Skipped(String),
}

impl Outcome {
    /// Passed if the command succeeded, else failed with these words.
    fn of(done: &Finished, what: &str) -> Self {
        if done.success { Outcome::Passed } else { Outcome::Failed(format!("{what}: {}", done.status)) }
    }

    fn is_passed(&self) -> bool {
        matches!(self, Outcome::Passed)
    }
}

impl Step {
    fn run(self, workspace: &Workspace) -> Result<Outcome> {
        match self {
            Step::Fmt => checks::fmt(workspace),
            Step::Clippy => checks::clippy(workspace),
            Step::Features => features::run(workspace),
            Step::Docs => checks::docs(workspace),
            Step::Deny => checks::deny(workspace),
            Step::Package => package::run(workspace),
            Step::Python => python::run(workspace),
            Step::Readme => readmes(workspace),
            Step::Bindings => bindings::run(workspace),
            Step::Msrv => checks::msrv(workspace),
            Step::Book => book::run(workspace),
            Step::Loom => hunters::loom(workspace),
            Step::Asan => hunters::asan(workspace),
            Step::Miri => hunters::miri(workspace),
        }
    }
}

pub(crate) fn run(options: &Options) -> Result<bool> {
    let workspace = Workspace::load()?;
    let steps: Vec<_> = match options.steps.as_slice() {
        [] => Step::value_variants().iter().copied().filter(|step| !options.except.contains(step)).collect(),
        steps => steps.to_vec(),
    };
    let mut counts = Counts::default();
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN).set_header(["check", "result", "seconds", "reason"]);
    for step in steps {
        let name = step.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
        println!("\n==> {name}");
        let start = Instant::now();
        // A check that cannot be carried out has failed; the others still run.
        let outcome = step.run(&workspace).unwrap_or_else(|error| Outcome::Failed(format!("{error:#}")));
        let (word, reason) = match outcome {
            Outcome::Passed => ("passed", String::new()),
            Outcome::Skipped(reason) if options.no_skip => ("FAILED", format!("skipped: {reason}")),
            Outcome::Skipped(reason) => ("skipped", reason),
            Outcome::Failed(reason) => ("FAILED", reason),
        };
        match word {
            "passed" => counts.passed += 1,
            "skipped" => counts.skipped += 1,
            _ => counts.failed += 1,
        }
        table.add_row([name, word.to_owned(), format!("{:.1}", start.elapsed().as_secs_f64()), reason]);
    }
    println!("\n{table}\n\nci: {counts}");
    Ok(counts.failed == 0)
}

fn readmes(workspace: &Workspace) -> Result<Outcome> {
    if workspace.package("gpumem").is_none() {
        return Ok(Outcome::Skipped("there is no package gpumem yet".to_owned()));
    }
    let stale = readme::write(workspace.root(), true)?;
    if !stale.is_empty() {
        return Ok(Outcome::Failed(format!(
            "not up to date: {} (run `cargo xtask readme`)",
            stale.join(", ")
        )));
    }
    if performance::write(workspace.root(), true)? {
        let reason =
            "the tables of docs/src/performance.md are not its reports: run `cargo xtask performance`";
        return Ok(Outcome::Failed(reason.to_owned()));
    }
    Ok(Outcome::Passed)
}
