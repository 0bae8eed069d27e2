//! Every set of features of the facade builds, and none at all says what is missing.

use super::{Outcome, tools};
use crate::{shell::Shell, workspace::Workspace};
use anyhow::Result;

/// The arguments of a set, and whether its tests run: it holds the host backend, so that they run on any machine, and
/// they do not run for the same set under another name, or for one with little more.
const SETS: [(&[&str], bool); 9] = [
    (&[], true),
    (&["--no-default-features", "--features", "host"], false),
    (&["--no-default-features", "--features", "cuda"], false),
    (&["--no-default-features", "--features", "roc"], false),
    (&["--no-default-features", "--features", "cuda,roc"], false),
    (&["--features", "cuda"], true),
    (&["--features", "roc"], true),
    (&["--features", "cuda,roc"], false),
    (&["--all-features"], true),
];

pub(super) fn run(workspace: &Workspace) -> Result<Outcome> {
    if let Some(reason) = tools::missing_package(workspace, &["gpumem"]) {
        return Ok(Outcome::Skipped(reason));
    }
    let shell = Shell::new(workspace.root()).env(super::NO_BROWSER.0, super::NO_BROWSER.1);
    for (set, tested) in SETS {
        let mut commands: Vec<&[&str]> = vec![&["check", "--package", "gpumem"]];
        if tested {
            commands.push(&["test", "--package", "gpumem", "--lib", "--tests"]);
        }
        for command in commands {
            let done = shell.run("cargo", &[command, set].concat())?;
            if !done.success {
                let what = format!("cargo {} {}", command[0], set.join(" "));
                return Ok(Outcome::of(&done, &what));
            }
        }
    }
    without_a_backend(&shell)
}

/// The error must be the facade's own, and must say that a backend is missing.
fn without_a_backend(shell: &Shell<'_>) -> Result<Outcome> {
    let done = shell.run("cargo", &["check", "--package", "gpumem", "--no-default-features"])?;
    Ok(if done.success {
        Outcome::Failed("it builds without a backend".to_owned())
    } else if done.output.contains("compile_error!") && done.output.contains("backend") {
        Outcome::Passed
    } else {
        Outcome::Failed("the build without a backend does not say what is missing".to_owned())
    })
}
