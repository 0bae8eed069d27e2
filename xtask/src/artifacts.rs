//! The artifacts that cargo reports.

use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use cargo_metadata::{Artifact, Message};
use std::{
    io::BufReader,
    process::{Command, Stdio},
};

/// Runs `cargo` with the arguments of a build, and returns all artifacts, new or fresh. Shows the compiler's messages.
///
/// # Errors
/// It does not build; `what` names it.
pub(crate) fn build(workspace: &Workspace, arguments: &[&str], what: &str) -> Result<Vec<Artifact>> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(workspace.root()).args(arguments);
    command.args(["--message-format", "json-render-diagnostics"]);
    let mut child = command.stdout(Stdio::piped()).spawn().context("cargo cannot be started")?;
    let messages = child.stdout.take().context("cargo has no output")?;
    let mut artifacts = Vec::new();
    for message in Message::parse_stream(BufReader::new(messages)) {
        if let Message::CompilerArtifact(artifact) = message.context("what cargo says")? {
            artifacts.push(artifact);
        }
    }
    if !child.wait()?.success() {
        bail!("{what} do not build");
    }
    Ok(artifacts)
}
