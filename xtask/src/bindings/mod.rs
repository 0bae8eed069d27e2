//! `cargo xtask bindings`: the declarations of HIP and of the HSA runtime, made from their headers and checked in.
//!
//! The headers are those of Debian 12 (`libamdhip64-dev`, `libhsa-runtime-dev`), the oldest that the backend serves:
//! what they declare is in every later version. Where a later one differs stands in the crates, by hand.

mod generate;
mod headers;

use crate::workspace::Workspace;
use anyhow::{Context, Result};
use clap::Args;
use headers::{HEADERS, Headers};

/// Options of `cargo xtask bindings`.
#[derive(Args)]
pub(crate) struct Options {
    /// Write nothing; fail if a file is not what the headers give
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(options: &Options) -> Result<bool> {
    let workspace = Workspace::load()?;
    if let Some(reason) = missing() {
        println!("skipped: {reason}");
        // Who asks for new bindings must not believe that there are some.
        return Ok(options.check);
    }
    let stale = write(&workspace, options.check)?;
    for path in &stale {
        println!("{} {path}", if options.check { "not up to date:" } else { "written:" });
    }
    Ok(!options.check || stale.is_empty())
}

/// Why bindings cannot be made on this machine.
pub(crate) fn missing() -> Option<String> {
    if let Err(reason) = clang_sys::load() {
        return Some(format!("libclang is not installed ({reason})"));
    }
    HEADERS.iter().find_map(Headers::missing)
}

/// Writes the files that are not what the headers give, or only tells which they are.
pub(crate) fn write(workspace: &Workspace, check: bool) -> Result<Vec<String>> {
    let mut stale = Vec::new();
    for headers in HEADERS {
        let text = generate::generate(workspace.root(), headers)?;
        let path = workspace.root().join(headers.output);
        if std::fs::read_to_string(&path).is_ok_and(|found| found == text) {
            continue;
        }
        if !check {
            std::fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))?;
        }
        stale.push(headers.output.to_owned());
    }
    Ok(stale)
}
