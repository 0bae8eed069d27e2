//! Finds undefined behaviour by interpretation: the tests that Miri runs for every change, and those that take too long
//! for that.

use crate::{shell::Shell, steps::Outcome, tools, workspace::Workspace};
use anyhow::Result;
use std::time::Instant;

/// One run: a package, its targets, and the arguments of the test program.
pub(crate) struct Run {
    package: &'static str,
    targets: &'static [&'static str],
    arguments: &'static [&'static str],
    /// Further options of Miri.
    flags: &'static str,
}

/// Threads of a closed device may end after the last test, and some tests forget handles on purpose.
const MAY_LEAK: &str = "-Zmiri-ignore-leaks";
/// The queues of crossbeam, which rayon uses, break the rules of stacked borrows. Threads of its pool outlive the tests.
const ON_RAYON: &str = "-Zmiri-tree-borrows -Zmiri-ignore-leaks";

const fn all(package: &'static str, targets: &'static [&'static str]) -> Run {
    Run { package, targets, arguments: &[], flags: "" }
}

impl Run {
    const fn may_leak(self) -> Self {
        Self { flags: MAY_LEAK, ..self }
    }

    const fn on_rayon(self) -> Self {
        Self { flags: ON_RAYON, ..self }
    }

    const fn arguments(self, arguments: &'static [&'static str]) -> Self {
        Self { arguments, ..self }
    }
}

/// Runs for every change. Miri cannot run tests that call a driver, nor those of `gpumem-sys` that look through the system's
/// folders. `gpumem-layout` has no unsafe code, so there is nothing to find in it.
pub(crate) const GATE: &[Run] = &[
    all("gpumem-core", &["--lib"]),
    all("gpumem-sys", &["--lib"]).arguments(&["nccl::"]),
    all("gpumem-memory", &["--lib"]),
    all("gpumem-runtime", &["--test", "pointers"]),
    all("gpumem-kernel", &["--lib"]).on_rayon(),
];

/// Runs for the night, which take minutes.
pub(crate) const NIGHTLY: &[Run] = &[
    all("gpumem-host", &["--lib"]),
    all("gpumem-runtime", &["--lib"]),
    all("gpumem-integration", &["--test", "soundness"]).may_leak().arguments(&["--include-ignored"]),
    all("gpumem-macros", &["--test", "phases"])
        .on_rayon()
        .arguments(&["values_of_all_types_are_kept", "groups_break_and_continue_as_a_whole"]),
];

pub(crate) fn run(workspace: &Workspace, runs: &[Run]) -> Result<Outcome> {
    if let Some(reason) = tools::missing(workspace, "Miri (nightly)", &["+nightly", "miri", "--version"]) {
        return Ok(Outcome::Skipped(reason));
    }
    let mut failed = Vec::new();
    for Run { package, targets, arguments, flags } in runs {
        let start = Instant::now();
        let shell = Shell::new(workspace.root())
            .env("CARGO_TARGET_DIR", workspace.target("miri"))
            // The packages that the runs share are built once, with the features that all of the workspace asks for, and not
            // anew for each run with its own. A nightly that does not know it builds more often.
            .env("CARGO_UNSTABLE_FEATURE_UNIFICATION", "true")
            .env("CARGO_RESOLVER_FEATURE_UNIFICATION", "workspace")
            // Commands of the host backend carry addresses, as a driver's do; without this every one is warned about.
            .env("MIRIFLAGS", format!("-Zmiri-permissive-provenance {flags}"));
        let command =
            [&["+nightly", "miri", "test", "--package", package], *targets, &["--"], *arguments].concat();
        let done = shell.run("cargo", &command)?;
        println!("miri: {package} {}: {:.0} s", targets.join(" "), start.elapsed().as_secs_f64());
        if !done.success {
            failed.push(format!("{package} {}: {}", targets.join(" "), done.status));
        }
    }
    Ok(if failed.is_empty() { Outcome::Passed } else { Outcome::Failed(failed.join(", ")) })
}
