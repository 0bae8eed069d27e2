//! `cargo xtask ci`: the checks of the continuous integration, the same everywhere.

mod api;
mod bindings;
mod book;
mod checks;
mod features;
mod floors;
mod list;
pub(crate) mod package;
pub(crate) mod python;
mod words;

use crate::{
    miri, performance, readme, sanitizers,
    steps::{self, Outcome},
    workspace::Workspace,
};
use anyhow::Result;
use clap::{Args, ValueEnum};

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
    /// Run nothing: print the names of the checks, a line each; as `json`, with what a machine needs for each
    #[arg(long, value_name = "FORM", num_args = 0..=1, require_equals = true, default_missing_value = "names")]
    list: Option<list::Form>,
    /// Of the checks, those that `.ci/run` runs beside the tests
    #[arg(long, conflicts_with_all = ["steps", "except"])]
    beside: bool,
}

/// One check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Step {
    /// Formatting
    Fmt,
    /// Clippy without warnings, for several sets of features
    Clippy,
    /// Every set of features builds; with the host, the tests that depend on the set pass
    Features,
    /// The documentation of the API, without warnings
    Docs,
    /// The public API of the published crates is the one in `xtask/api` (Rust 1.95)
    Api,
    /// Licences, advisories, sources of dependencies (cargo-deny)
    Deny,
    /// Every crate that is published can be packaged
    Package,
    /// The Python extension builds and passes its tests (maturin, pytest)
    Python,
    /// The READMEs match the crate documentation
    Readme,
    /// The declarations of HIP, HSA and NCCL match their headers (libclang)
    Bindings,
    /// The oldest supported Rust builds the published crates
    Msrv,
    /// Links and pages of the book (and mdBook, where it is installed)
    Book,
    /// No word that `xtask/words.txt` lists, and no two types of one name in a crate
    Words,
    /// No top-level modules of a crate in a dependency cycle, and no crate with more lines than `xtask/lines.txt` allows
    Floors,
    /// The fuzz targets compile
    Fuzz,
    /// The interleavings of the bookkeeping (loom)
    Loom,
    /// Invalid memory accesses of safe code that once was unsound (AddressSanitizer)
    Asan,
    /// Undefined behaviour, by interpretation (Miri)
    Miri,
}

impl Step {
    fn run(self, workspace: &Workspace) -> Result<Outcome> {
        match self {
            Step::Fmt => checks::fmt(workspace),
            Step::Clippy => checks::clippy(workspace),
            Step::Features => features::run(workspace),
            Step::Docs => checks::docs(workspace),
            Step::Api => api::run(workspace),
            Step::Deny => checks::deny(workspace),
            Step::Package => package::run(workspace, false),
            Step::Python => python::run(workspace),
            Step::Readme => readmes(workspace),
            Step::Bindings => bindings::run(workspace),
            Step::Msrv => checks::msrv(workspace),
            Step::Book => book::run(workspace),
            Step::Words => words::run(workspace),
            Step::Floors => floors::run(workspace),
            Step::Fuzz => checks::fuzz(workspace),
            Step::Loom => sanitizers::loom(workspace, None),
            Step::Asan => sanitizers::asan(workspace, &[]),
            Step::Miri => miri::run(workspace, miri::GATE),
        }
    }
}

pub(crate) fn run(options: &Options) -> Result<bool> {
    let steps: Vec<_> = match options.steps.as_slice() {
        [] if options.beside => list::BESIDE.to_vec(),
        [] => Step::value_variants().iter().copied().filter(|step| !options.except.contains(step)).collect(),
        steps => steps.to_vec(),
    };
    if let Some(form) = options.list {
        println!("{}", list::text(&steps, form)?);
        return Ok(true);
    }
    let workspace = Workspace::load()?;
    steps::run("ci", "check", &steps, options.no_skip, |step| step.run(&workspace))
}

fn readmes(workspace: &Workspace) -> Result<Outcome> {
    let stale = readme::write(workspace.root(), true)?;
    if !stale.is_empty() {
        return Ok(Outcome::Failed(format!(
            "not up to date: {} (run `cargo xtask readme`)",
            stale.join(", ")
        )));
    }
    if performance::write(workspace.root(), true)? {
        let why = "the tables of the page are not those of the reports: run `cargo xtask performance`";
        return Ok(Outcome::Failed(why.to_owned()));
    }
    Ok(Outcome::Passed)
}
