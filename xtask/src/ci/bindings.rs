//! Checks that the declarations of HIP, HSA and NCCL match their headers.

use super::Outcome;
use crate::{bindings, workspace::Workspace};
use anyhow::Result;

pub(super) fn run(workspace: &Workspace) -> Result<Outcome> {
    let report = bindings::write(workspace, true)?;
    let mut wrong = report.disagreements;
    if !report.stale.is_empty() {
        wrong.push(format!("not up to date: {} (run `cargo xtask bindings`)", report.stale.join(", ")));
    }
    Ok(if !wrong.is_empty() {
        Outcome::Failed(wrong.join("; "))
    } else if report.skipped.is_empty() {
        Outcome::Passed
    } else {
        Outcome::Skipped(report.skipped.join("; "))
    })
}
