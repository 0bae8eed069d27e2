//! Whether a tool is there.

use crate::{shell::Shell, workspace::Workspace};

/// Returns `None` if `cargo <arguments>` succeeds, otherwise the reason to skip the steps that need it.
pub(super) fn missing(workspace: &Workspace, what: &str, arguments: &[&str]) -> Option<String> {
    match Shell::new(workspace.root()).quiet("cargo", arguments) {
        Ok(done) if done.success => None,
        _ => Some(format!("{what} is not installed")),
    }
}

/// The reason to skip the steps that need these packages.
pub(super) fn missing_package(workspace: &Workspace, names: &[&str]) -> Option<String> {
    let absent = names.iter().find(|name| workspace.package(name).is_none())?;
    Some(format!("there is no package {absent} yet"))
}
