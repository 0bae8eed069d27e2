//! `cargo xtask bindings`: the declarations of HIP, of the HSA runtime and of NCCL, made from their headers and checked in.
//!
//! The headers of ROCm are those of Debian 12 (`libamdhip64-dev`, `libhsa-runtime-dev`), the oldest that the backend
//! supports: every later version has their declarations. The crates handle differences of later versions by hand.
//! NCCL's headers are the newest: functions have only been added, and each is looked up by itself. RCCL's header, if
//! installed, must agree with the bindings from NCCL's.

mod generate;
mod headers;
mod place;
mod rccl;

use crate::workspace::Workspace;
use anyhow::{Context, Result};
use clap::Args;
use headers::HEADERS;

/// Options of `cargo xtask bindings`.
#[derive(Args)]
pub(crate) struct Options {
    /// Write nothing; fail if a file differs from the output for the headers
    #[arg(long)]
    check: bool,
}

/// The outcome of making or comparing the declarations.
#[derive(Default)]
pub(crate) struct Report {
    /// The files that differ from the output for the headers.
    pub(crate) stale: Vec<String>,
    /// Where RCCL's header and the declarations disagree.
    pub(crate) disagreements: Vec<String>,
    /// The bindings that could not be compared, and why.
    pub(crate) skipped: Vec<String>,
}

pub(crate) fn run(options: &Options) -> Result<bool> {
    let workspace = Workspace::load()?;
    let report = write(&workspace, options.check)?;
    for reason in &report.skipped {
        println!("skipped: {reason}");
    }
    for path in &report.stale {
        println!("{} {path}", if options.check { "not up to date:" } else { "written:" });
    }
    for line in &report.disagreements {
        println!("RCCL's header: {line}");
    }
    // A request for new bindings must not seem to succeed without any.
    let unsaid = if options.check { report.stale.is_empty() } else { report.skipped.is_empty() };
    Ok(unsaid && report.disagreements.is_empty())
}

/// Writes the files that differ from the output for the headers, or only lists them.
pub(crate) fn write(workspace: &Workspace, check: bool) -> Result<Report> {
    let mut report = Report::default();
    if let Some(reason) = no_parser() {
        report.skipped.push(reason);
        return Ok(report);
    }
    for headers in HEADERS {
        if let Some(reason) = headers.missing() {
            report.skipped.push(reason);
            continue;
        }
        let text = generate::generate(workspace.root(), headers)?;
        let path = workspace.root().join(headers.output);
        if std::fs::read_to_string(&path).is_ok_and(|found| found == text) {
            continue;
        }
        if !check {
            std::fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))?;
        }
        report.stale.push(headers.output.to_owned());
    }
    match rccl::disagreements(workspace)? {
        Ok(found) => report.disagreements = found,
        Err(reason) => report.skipped.push(reason),
    }
    Ok(report)
}

/// Why no header can be read, if none can: libclang may be there without the headers of the compiler itself.
fn no_parser() -> Option<String> {
    if let Err(reason) = clang_sys::load() {
        return Some(format!("libclang is not installed ({reason})"));
    }
    let read = bindgen::builder().header_contents("own.h", "#include <stddef.h>\n").generate();
    let reason = read.err()?.to_string();
    Some(format!(
        "the compiler's own headers, by which libclang reads others, are not installed ({})",
        reason.trim()
    ))
}
