//! The checks on which the promise rests, each changed or taken out in turn (cargo-mutants): a test has to fail. Changes that are
//! right are in `.cargo/mutants.toml`, each with the reason.

use crate::{shell::Shell, steps::Outcome, tools, workspace::Workspace};
use anyhow::Result;
use std::fs;

/// Seconds of the tests after which a change counts as one that they find: it hangs.
const SECONDS: &str = "--timeout=300";

/// Files with checks, and the tests that have to find each change of them.
struct Group {
    name: &'static str,
    files: &'static [&'static str],
    packages: &'static [&'static str],
    tests: &'static [&'static str],
    skipped: &'static [&'static str],
}

const GROUPS: &[Group] = &[
    Group {
        name: "gate",
        files: &["crates/gpumem-memory/src/track/gate.rs", "crates/gpumem-memory/src/track/access.rs"],
        packages: &[
            "gpumem-memory",
            "gpumem-runtime",
            "gpumem-integration",
            "gpumem-host",
            "gpumem-collectives",
        ],
        tests: &["imports", "soundness", "poison", "conformance", "operations"],
        skipped: &["mpi_failing"],
    },
    Group {
        name: "collectives",
        files: &[
            "crates/gpumem-collectives/src/span.rs",
            "crates/gpumem-collectives/src/call.rs",
            "crates/gpumem-collectives/src/fingerprint.rs",
            "crates/gpumem-collectives/src/fingerprint/disagreement.rs",
            "crates/gpumem-collectives/src/local/agree.rs",
            "crates/gpumem-collectives/src/local/part.rs",
        ],
        // What ranks tell each other as bytes is for engines: the double of NCCL has one.
        packages: &["gpumem-collectives", "nccl-double"],
        tests: &["misuse", "failures", "operations"],
        // They wait for deadlines where an operation is wrong.
        skipped: &["mpi_failing"],
    },
    Group {
        name: "macros",
        files: &[
            "crates/gpumem-macros/src/declaration.rs",
            "crates/gpumem-macros/src/names.rs",
            "crates/gpumem-macros/src/record.rs",
        ],
        packages: &["gpumem-macros", "gpumem-hints"],
        tests: &["accepted", "inside", "kernels", "own"],
        skipped: &[],
    },
    // What the expansions leave to the crate below: names, records, and the elements of a work-item's own.
    Group {
        name: "kernels",
        files: &[
            "crates/gpumem-kernel/src/codegen/print/name.rs",
            "crates/gpumem-kernel/src/codegen/record.rs",
            "crates/gpumem-kernel/src/identifier.rs",
            "crates/gpumem-kernel/src/simt/own.rs",
        ],
        packages: &["gpumem-kernel", "gpumem-macros", "gpumem-hints"],
        tests: &["accepted", "kernels", "own"],
        skipped: &[],
    },
];

pub(super) fn run(workspace: &Workspace) -> Result<Outcome> {
    if let Some(reason) = tools::missing(workspace, "cargo-mutants", &["mutants", "--version"]) {
        return Ok(Outcome::Skipped(reason));
    }
    let shell = Shell::new(workspace.root())
        // What the groups depend on is compiled once. MPI's tests would take most of the time.
        .env("CARGO_TARGET_DIR", workspace.target("mutants"))
        .env("GPUMEM_MPI", "");
    let mut failed = Vec::new();
    for group in GROUPS {
        let output = workspace.target("mutants-found").join(group.name);
        fs::create_dir_all(&output)?;
        let path = output.to_string_lossy();
        let done =
            shell.run("cargo", &group.arguments(&path).iter().map(String::as_str).collect::<Vec<_>>())?;
        let list = |name: &str| fs::read_to_string(output.join("mutants.out").join(name)).unwrap_or_default();
        let missed = list("missed.txt");
        failed.extend(missed.lines().map(str::to_owned));
        // A status that is no success may also stand for changes with which the tests hang.
        if !done.success && missed.is_empty() && list("timeout.txt").is_empty() {
            failed.push(format!("{}: {}", group.name, done.status));
        }
    }
    Ok(if failed.is_empty() { Outcome::Passed } else { Outcome::Failed(failed.join("\n")) })
}

impl Group {
    fn arguments(&self, output: &str) -> Vec<String> {
        let fixed = ["mutants", "--no-shuffle", "--cap-lints=true", SECONDS, "--output", output];
        let each = |option: &str, all: &[&str]| -> Vec<String> {
            all.iter().flat_map(|one| [option.to_owned(), (*one).to_owned()]).collect()
        };
        let mut all: Vec<String> = fixed.map(str::to_owned).to_vec();
        all.extend(each("--file", self.files));
        all.extend(each("--test-package", self.packages));
        all.extend(["--", "--lib"].map(str::to_owned));
        all.extend(each("--test", self.tests));
        all.push("--".to_owned());
        all.extend(each("--skip", self.skipped));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_files_and_the_tests_are_there() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for Group { files, packages, tests, .. } in GROUPS {
            files.iter().for_each(|file| assert!(root.join(file).is_file(), "{file}"));
            for test in *tests {
                let is_there = |package: &&str| {
                    let name = package.strip_prefix("gpumem-").unwrap_or(package);
                    [root.join("crates").join(package), root.join("tests").join(name)].iter().any(|folder| {
                        let folder = folder.join("tests");
                        folder.join(format!("{test}.rs")).is_file()
                            || folder.join(test).join("main.rs").is_file()
                    })
                };
                assert!(packages.iter().any(is_there), "{test}");
            }
        }
    }
}
