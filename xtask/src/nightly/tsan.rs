//! Runs ThreadSanitizer over tests in which several threads of the library use the same memory.

use crate::{
    sanitizers::{TARGET, no_sanitizer},
    shell::Shell,
    steps::Outcome,
    workspace::Workspace,
};
use anyhow::Result;

/// The watched tests: a package and the arguments that choose tests. The double of the integration tests simulates a
/// driver that stages everything and copies late; on the host the tests turn staging on.
const RUNS: &[(&str, &[&str])] = &[
    ("gpumem-memory", &["--lib"]),
    ("gpumem-runtime", &["--lib", "--test", "pool", "--test", "pool_model", "--test", "deferred"]),
    ("gpumem-host", &["--test", "streams", "--test", "adversary"]),
    (
        "gpumem-integration",
        &[
            "--test",
            "pipeline",
            "--test",
            "threads",
            "--test",
            "single_block",
            "--test",
            "late_copies",
            "--test",
            "stress",
        ],
    ),
    ("gpumem-integration", &["--test", "soundness", "--test", "lost_device", "--test", "mem_forget"]),
    ("gpumem-integration", &["--test", "files", "--test", "loads", "--test", "reads"]),
    ("gpumem-integration", &["--test", "chunks", "--test", "spilling"]),
];

pub(super) fn run(workspace: &Workspace) -> Result<Outcome> {
    if let Some(reason) = no_sanitizer(workspace) {
        return Ok(Outcome::Skipped(reason));
    }
    let suppressions = format!("suppressions={}", workspace.root().join("xtask/tsan.txt").display());
    let shell = Shell::new(workspace.root())
        .env("RUSTFLAGS", "-Zsanitizer=thread")
        .env("TSAN_OPTIONS", suppressions)
        // Tests panic on purpose, and have little time for it: a backtrace takes seconds here.
        .env("RUST_BACKTRACE", "0")
        .env("CARGO_TARGET_DIR", workspace.target("tsan"));
    // The standard library is built with it as well: else its locks are not seen.
    let cargo = ["+nightly", "test", "-Zbuild-std", "--target", TARGET];
    let mut failed = Vec::new();
    for (package, targets) in RUNS {
        let arguments = [&cargo[..], &["--package", package], *targets].concat();
        let done = shell.run("cargo", &arguments)?;
        if !done.success {
            failed.push(format!("{package} {}: {}", targets.join(" "), done.status));
        }
    }
    Ok(if failed.is_empty() { Outcome::Passed } else { Outcome::Failed(failed.join(", ")) })
}
