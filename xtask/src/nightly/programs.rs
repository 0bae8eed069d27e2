//! Random programs over the public API, from a grammar, under AddressSanitizer and the adversarial schedule.

use crate::{
    hunters::{TARGET, address_sanitizer, no_sanitizer},
    steps::Outcome,
    workspace::Workspace,
};
use anyhow::Result;

/// The test target, and the variable that says how many operations its programs come to.
const PACKAGE: &str = "gpumem-integration";
const TEST: &str = "programs";
const OPERATIONS: (&str, &str) = ("GPUMEM_OPERATIONS", "1000000");

pub(super) fn run(workspace: &Workspace) -> Result<Outcome> {
    if !workspace.has_test(PACKAGE, TEST) {
        return Ok(Outcome::Skipped(format!("{PACKAGE} has no test `{TEST}` yet")));
    }
    if let Some(reason) = no_sanitizer(workspace) {
        return Ok(Outcome::Skipped(reason));
    }
    let arguments = ["+nightly", "test", "--target", TARGET, "--package", PACKAGE, "--test", TEST];
    let done = address_sanitizer(workspace).env(OPERATIONS.0, OPERATIONS.1).run("cargo", &arguments)?;
    Ok(Outcome::of(&done, "random programs"))
}
