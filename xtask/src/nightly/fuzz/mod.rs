//! Every fuzz target for a minute, from a small corpus: what breaks within it is found without waiting for a person.

mod seeds;

use crate::{shell::Shell, steps::Outcome, tools, workspace::Workspace};
use anyhow::Result;

/// Seconds a target runs.
const SECONDS: &str = "-max_total_time=60";

pub(super) fn run(workspace: &Workspace) -> Result<Outcome> {
    for (what, version) in
        [("nightly Rust", ["+nightly", "--version"]), ("cargo-fuzz", ["fuzz", "--version"])]
    {
        if let Some(reason) = tools::missing(workspace, what, &version) {
            return Ok(Outcome::Skipped(reason));
        }
    }
    let shell = Shell::new(workspace.root());
    let targets = shell.quiet("cargo", &["fuzz", "list"])?;
    if !targets.success {
        return Ok(Outcome::Failed("cargo fuzz list".to_owned()));
    }
    seeds::write(workspace.root())?;
    let mut failed = Vec::new();
    for target in targets.output.split_whitespace() {
        if !shell.run("cargo", &["+nightly", "fuzz", "run", target, "--", SECONDS])?.success {
            failed.push(target);
        }
    }
    Ok(if failed.is_empty() { Outcome::Passed } else { Outcome::Failed(failed.join(", ")) })
}
