//! Every crate that is to be published can be packaged.

use super::Outcome;
use crate::{shell::Shell, workspace::Workspace};
use anyhow::Result;

/// All in one command: since 1.90 cargo builds each package against the others of the same command, so that crates
/// that are not on the registry yet can depend on each other.
pub(super) fn run(workspace: &Workspace) -> Result<Outcome> {
    let published: Vec<_> =
        workspace.packages().filter(|package| package.publish.as_deref() != Some(&[])).collect();
    // What `cargo publish` would refuse, and `cargo package` only warns about.
    for package in &published {
        let lacks = [
            ("a description", package.description.is_none()),
            ("a licence", package.license.is_none()),
            ("a repository", package.repository.is_none()),
        ];
        if let Some((what, _)) = lacks.iter().find(|(_, missing)| *missing) {
            return Ok(Outcome::Failed(format!("{} has no {}", package.name, what.trim_start_matches("a "))));
        }
    }
    let mut arguments = vec!["package", "--allow-dirty"];
    for package in &published {
        arguments.extend(["--package", package.name.as_str()]);
    }
    Ok(Outcome::of(&Shell::new(workspace.root()).run("cargo", &arguments)?, "cargo package"))
}
