//! Checks that sets of features of the facade build, and that a build without a backend says what is missing.

use super::Outcome;
use crate::{
    shell::{Finished, Shell},
    tools,
    workspace::Workspace,
};
use anyhow::Result;
use cargo_metadata::Package;

/// The check of a set of features.
#[derive(Clone, Copy)]
enum Check {
    Builds,
    /// It does not build, and names the features that are missing.
    Refused,
    /// The tests that end otherwise with other sets, in seconds.
    Chooses,
    /// All tests, and with them the conformance suite on whatever was chosen.
    Works,
}

/// The sets, but for those of one backend, which `clippy` builds, and that of the host, which the tests of the workspace have
/// (`cargo xtask test-all-backends`). Where tests run, the default feature is among them: they run on any machine.
const SETS: [(&str, Check); 7] = [
    ("", Check::Refused),
    ("cuda,roc", Check::Builds),
    ("roc,collectives", Check::Builds),
    ("host,cuda,roc", Check::Builds),
    ("host,cuda", Check::Chooses),
    ("host,roc", Check::Chooses),
    ("host,cuda,roc,collectives,npz,cudarc", Check::Works),
];

/// The beginning of the error of a build without a backend.
const MISSING: &str = "gpumem is built without a backend: enable at least one of the features";

/// The tests of [`Check::Chooses`].
const CHOICE: [&str; 4] = ["choice", "host", "smoke", "single_backend_is_zst"];

pub(super) fn run(workspace: &Workspace) -> Result<Outcome> {
    if let Some(reason) = tools::missing_package(workspace, &["gpumem"]) {
        return Ok(Outcome::Skipped(reason));
    }
    let shell = Shell::new(workspace.root());
    for (set, check) in SETS {
        let done = match check {
            Check::Builds | Check::Refused => {
                let alone = ["check", "--package", "gpumem", "--no-default-features", "--features", set];
                shell.run("cargo", &alone)?
            }
            Check::Chooses => test(workspace, set, &CHOICE)?,
            Check::Works => {
                test(workspace, set, &workspace.package("gpumem").map(all_tests).unwrap_or_default())?
            }
        };
        if let Check::Refused = check {
            if done.success || !done.output.contains(MISSING) {
                return Ok(Outcome::Failed("a build without a backend is not refused by name".to_owned()));
            }
        } else if !done.success {
            return Ok(Outcome::of(&done, set));
        }
    }
    Ok(Outcome::Passed)
}

/// Runs these tests. All members are named, so that their dependencies have the features with which the tests of the workspace were
/// built: of one package alone cargo would compile them again.
fn test(workspace: &Workspace, set: &str, tests: &[&str]) -> Result<Finished> {
    let features: Vec<_> = set.split(',').map(|feature| format!("gpumem/{feature}")).collect();
    let features = features.join(",");
    let mut arguments = vec!["test", "--features", &features];
    arguments.extend(workspace.all_members());
    arguments.extend(tests.iter().flat_map(|test| ["--test", test]));
    Shell::new(workspace.root()).run("cargo", &arguments)
}

/// The tests that are built with all features.
fn all_tests(package: &Package) -> Vec<&str> {
    package.targets.iter().filter(|target| target.is_test()).map(|target| target.name.as_str()).collect()
}
