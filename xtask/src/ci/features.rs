//! Checks that sets of features of the facade build. That a build without a backend says what is missing is a test (`downstream`).

use super::Outcome;
use crate::{shell::Shell, tools, workspace::Workspace};
use anyhow::Result;

/// The check of a set of features.
#[derive(Clone, Copy)]
enum Check {
    Builds,
    /// The tests that end otherwise with other sets, in seconds.
    Chooses,
    /// The examples of the documentation that are named.
    Documents,
    /// All tests: the examples, and the conformance suite on whatever was chosen.
    Works,
}

/// The arguments of the sets, but for those of one backend, which `clippy` builds. Tests run where the host is, so that they do on any machine. Those of the first set are among
/// the tests of the workspace (`cargo xtask test-all-backends`).
const SETS: [(&[&str], Check); 8] = [
    (&[], Check::Chooses),
    (&["--no-default-features", "--features", "cuda,roc"], Check::Builds),
    (&["--features", "cuda"], Check::Chooses),
    (&["--features", "roc"], Check::Chooses),
    (&["--features", "cuda,roc"], Check::Builds),
    (&["--no-default-features", "--features", "roc,collectives"], Check::Builds),
    (&["--features", "collectives", "--", "collectives"], Check::Documents),
    (&["--all-features"], Check::Works),
];

/// The tests of [`Check::Chooses`].
const CHOICE: [&str; 4] = ["choice", "host", "smoke", "single_backend_is_zst"];

impl Check {
    /// The command of cargo. Testing builds as well.
    fn command(self) -> Vec<&'static str> {
        match self {
            Check::Builds => vec!["check"],
            Check::Documents => vec!["test", "--doc"],
            Check::Chooses => {
                ["test", "--lib"].into_iter().chain(CHOICE.iter().flat_map(|test| ["--test", test])).collect()
            }
            Check::Works => vec!["test", "--lib", "--tests"],
        }
    }
}

pub(super) fn run(workspace: &Workspace) -> Result<Outcome> {
    if let Some(reason) = tools::missing_package(workspace, &["gpumem"]) {
        return Ok(Outcome::Skipped(reason));
    }
    let shell = Shell::new(workspace.root());
    for (set, check) in SETS {
        let command = check.command();
        let done = shell.run("cargo", &[command.as_slice(), &["--package", "gpumem"], set].concat())?;
        if !done.success {
            let what = format!("cargo {} {}", command[0], set.join(" "));
            return Ok(Outcome::of(&done, &what));
        }
    }
    Ok(Outcome::Passed)
}
