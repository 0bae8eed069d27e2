//! The list of the checks, which `.ci/run` and the hosted workflow read: neither has one of its own.

use super::{Step, api};
use crate::steps;
use anyhow::Result;
use clap::ValueEnum;
use serde::Serialize;

/// How the list is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Form {
    /// The names, a line each
    Names,
    /// The matrix of the hosted workflow
    Json,
}

/// A check and what a machine that has only Rust needs for it. The keys are those of the hosted workflow.
#[derive(Debug, Default, Serialize)]
struct Entry {
    step: String,
    /// Components of the stable toolchain.
    components: &'static str,
    /// A further toolchain.
    toolchain: &'static str,
    /// Its components.
    toolchain_components: &'static str,
    /// Programs that are installed as binaries.
    tools: &'static str,
    /// Packages of Debian and Ubuntu.
    apt: &'static str,
    /// Given where the workflow installs all that the check needs: a skip is a failure there.
    no_skip: &'static str,
}

/// The checks that `.ci/run` runs while the tests run, in this order: those that build in a directory of their own come first. The last
/// ones share the directory of the tests, which are built by then.
pub(super) const BESIDE: [Step; 10] = [
    Step::Asan,
    Step::Miri,
    Step::Loom,
    Step::Python,
    Step::Msrv,
    Step::Fuzz,
    Step::Api,
    Step::Clippy,
    Step::Features,
    Step::Docs,
];

impl Step {
    fn entry(self) -> Entry {
        let entry = Entry { step: steps::name(&self), no_skip: "--no-skip", ..Entry::default() };
        match self {
            Step::Fmt => Entry { components: "rustfmt", ..entry },
            Step::Clippy => Entry { components: "clippy", ..entry },
            Step::Deny => Entry { tools: "cargo-deny", ..entry },
            Step::Book => Entry { tools: "mdbook", ..entry },
            Step::Msrv => Entry { toolchain: env!("CARGO_PKG_RUST_VERSION"), ..entry },
            Step::Api => Entry { toolchain: api::RUST, ..entry },
            Step::Miri => Entry { toolchain: "nightly", toolchain_components: "miri rust-src", ..entry },
            Step::Asan => Entry { toolchain: "nightly", ..entry },
            // The headers are those of one version, which only Debian 12 packages.
            Step::Bindings => Entry { apt: "libclang-dev", no_skip: "", ..entry },
            _ => entry,
        }
    }
}

/// The list in that form.
pub(super) fn text(steps: &[Step], form: Form) -> Result<String> {
    let entries: Vec<_> = steps.iter().map(|step| step.entry()).collect();
    Ok(match form {
        Form::Names => entries.into_iter().map(|entry| entry.step).collect::<Vec<_>>().join("\n"),
        Form::Json => serde_json::to_string(&entries)?,
    })
}
