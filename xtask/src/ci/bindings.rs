//! The declarations of HIP and HSA are what their headers give.

use super::Outcome;
use crate::{bindings, workspace::Workspace};
use anyhow::Result;

pub(super) fn run(workspace: &Workspace) -> Result<Outcome> {
    if let Some(reason) = bindings::missing() {
        return Ok(Outcome::Skipped(reason));
    }
    let stale = bindings::write(workspace, true)?;
    Ok(if stale.is_empty() {
        Outcome::Passed
    } else {
        Outcome::Failed(format!("not up to date: {} (run `cargo xtask bindings`)", stale.join(", ")))
    })
}
