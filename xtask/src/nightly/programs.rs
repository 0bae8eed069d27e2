//! Random programs over the public API, from a grammar, under AddressSanitizer and the adversarial schedule.

use crate::{
    sanitizers::{TARGET, address_sanitizer, no_sanitizer},
    steps::Outcome,
    workspace::Workspace,
};
use anyhow::Result;

const PACKAGE: &str = "gpumem-integration";
const TEST: &str = "programs";
/// Processes, one after the other, and the operations of each. A process keeps some 19 MiB for each 700 operations, in part
/// because the programs' own memory resources have no `trim`.
const PROCESSES: u64 = 20;
const OPERATIONS: &str = "50000";

pub(super) fn run(workspace: &Workspace) -> Result<Outcome> {
    if let Some(reason) = no_sanitizer(workspace) {
        return Ok(Outcome::Skipped(reason));
    }
    let arguments = ["+nightly", "test", "--target", TARGET, "--package", PACKAGE, "--test", TEST];
    for process in 0..PROCESSES {
        let seed = (1 + process * 1000).to_string();
        let shell =
            address_sanitizer(workspace).env("GPUMEM_OPERATIONS", OPERATIONS).env("GPUMEM_SEED", &seed);
        let outcome =
            Outcome::of(&shell.run("cargo", &arguments)?, &format!("random programs from seed {seed}"));
        if !outcome.is_passed() {
            return Ok(outcome);
        }
    }
    Ok(Outcome::Passed)
}
