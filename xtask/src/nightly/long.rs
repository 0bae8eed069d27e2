//! Tests that take their rounds, seeds or pairs from the environment, and those that are ignored because they take minutes.

use crate::{shell::Shell, steps::Outcome, workspace::Workspace};
use anyhow::Result;

/// One run: environment variables, a package, one of its tests, and the arguments of the test.
struct Run {
    variables: &'static [(&'static str, &'static str)],
    package: &'static str,
    test: &'static str,
    arguments: &'static [&'static str],
}

const RUNS: &[Run] = &[
    Run { variables: &[], package: "gpumem-integration", test: "stress", arguments: &["--ignored"] },
    Run {
        variables: &[("GPUMEM_SEEDS", "1000")],
        package: "gpumem-integration",
        test: "poison",
        arguments: &["programs_with_failures"],
    },
    Run {
        variables: &[("GPUMEM_SEEDS", "40"), ("GPUMEM_CONFORMANCE_PAIRS", "10000")],
        package: "gpumem-conformance",
        test: "suite",
        arguments: &["adversary::"],
    },
    Run {
        variables: &[("GPUMEM_CONFORMANCE_PAIRS", "100000")],
        package: "gpumem-host",
        test: "conformance",
        arguments: &["03_copy::random_pairs"],
    },
    Run { variables: &[("GPUMEM_LIVES", "100000")], package: "gpumem-layout", test: "arena", arguments: &[] },
    Run {
        variables: &[("GPUMEM_KERNELS", "10000")],
        package: "gpumem-macros",
        test: "random",
        arguments: &[],
    },
    Run { variables: &[], package: "gpumem-macros", test: "compilers", arguments: &["--ignored"] },
    Run {
        variables: &[("GPUMEM_SEQUENCES", "10000")],
        package: "gpumem-collectives",
        test: "random",
        arguments: &[],
    },
    Run {
        variables: &[("GPUMEM_TABLES", "20000")],
        package: "gpumem-collectives",
        test: "operations",
        arguments: &["random_calls"],
    },
    Run {
        variables: &[("GPUMEM_SEQUENCES", "10000")],
        package: "nccl-double",
        test: "random",
        arguments: &[],
    },
    // Skipped by the test itself where AMD's libraries are missing.
    Run {
        variables: &[("GPUMEM_ROUNDS", "100")],
        package: "gpumem-roc",
        test: "device",
        arguments: &["comes_back_late"],
    },
    Run {
        variables: &[("GPUMEM_ROUNDS", "4000")],
        package: "gpumem-roc",
        test: "device",
        arguments: &["waits_are_true"],
    },
];

pub(super) fn run(workspace: &Workspace) -> Result<Outcome> {
    let mut failed = Vec::new();
    for Run { variables, package, test, arguments } in RUNS {
        let shell = variables
            .iter()
            .fold(Shell::new(workspace.root()), |shell, (name, value)| shell.env(name, *value));
        let command = [&["test", "--package", package, "--test", test, "--"], *arguments].concat();
        let done = shell.run("cargo", &command)?;
        if !done.success {
            failed.push(format!("{package} {test} {}: {}", arguments.join(" "), done.status));
        }
    }
    Ok(if failed.is_empty() { Outcome::Passed } else { Outcome::Failed(failed.join(", ")) })
}
