//! The public API of the published crates, as it is checked in: a change of it is seen in review.

use super::Outcome;
use crate::{shell::Shell, tools, workspace::Workspace};
use anyhow::{Context, Result};
use std::{fs, path::PathBuf};

/// One file a crate, an item a line.
const FOLDER: &str = "xtask/api";
/// The Rust whose rustdoc writes the lists. Another version may write another form, or name items of its standard library otherwise.
pub(super) const RUST: &str = "1.95";
/// Set to any value, the lists are written instead of compared.
const WRITE: &str = "GPUMEM_API";

pub(super) fn run(workspace: &Workspace) -> Result<Outcome> {
    let Some(toolchain) = toolchain(workspace)? else {
        return Ok(Outcome::Skipped(format!("Rust {RUST} is not installed, whose rustdoc writes the lists")));
    };
    let packages: Vec<_> = workspace.published().map(|package| package.name.as_str()).collect();
    let mut arguments: Vec<_> = toolchain.iter().map(String::as_str).collect();
    arguments.extend(["doc", "--quiet", "--no-deps", "--all-features"]);
    arguments.extend(packages.iter().flat_map(|package| ["--package", package]));
    let target = workspace.target("api");
    // rustdoc's JSON is for nightly only, whose form changes; that of a stable version stays.
    let done = Shell::new(workspace.root())
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTDOCFLAGS", "-Z unstable-options --output-format json --cap-lints allow")
        .env("CARGO_TARGET_DIR", &target)
        .run("cargo", &arguments)?;
    if !done.success {
        return Ok(Outcome::of(&done, "cargo doc"));
    }
    let mut stale = Vec::new();
    for package in packages {
        let items = list(target.join("doc").join(package.replace('-', "_")).with_extension("json"))
            .with_context(|| format!("the API of {package}"))?;
        let file = workspace.root().join(FOLDER).join(package).with_extension("txt");
        if std::env::var_os(WRITE).is_some() {
            fs::write(&file, items)?;
        } else if let Some(change) = change(&fs::read_to_string(&file).unwrap_or_default(), &items) {
            stale.push(format!("{package}: {change}"));
        }
    }
    if stale.is_empty() {
        return Ok(Outcome::Passed);
    }
    Ok(Outcome::Failed(format!(
        "the public API is not that of {FOLDER} (`{WRITE}=write cargo xtask ci api` writes it):\n{}",
        stale.join("\n")
    )))
}

/// What to call cargo with for that Rust: nothing, where it is the default.
fn toolchain(workspace: &Workspace) -> Result<Option<Option<String>>> {
    let default = Shell::new(workspace.root()).quiet("rustc", &["--version"])?.output;
    if default.starts_with(&format!("rustc {RUST}.")) {
        return Ok(Some(None));
    }
    let name = format!("+{RUST}");
    Ok(tools::missing(workspace, &name, &[&name, "--version"]).is_none().then_some(Some(name)))
}

/// The items that users see, without implementations that say nothing about a type of the crate: those for all types,
/// of auto traits, and derived ones.
fn list(json: PathBuf) -> Result<String> {
    let api = public_api::Builder::from_rustdoc_json(json)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build()?;
    Ok(api.to_string())
}

/// The first lines that only one of the two lists has, or `None` if there are none.
fn change(old: &str, new: &str) -> Option<String> {
    const SHOWN: usize = 10;
    let only = |sign: char, one: &str, other: &str| -> Vec<String> {
        let lines = one.lines().filter(|line| !other.lines().any(|other| other == *line));
        lines.map(|line| format!("{sign} {line}")).collect()
    };
    let mut lines = only('-', old, new);
    lines.extend(only('+', new, old));
    if lines.is_empty() {
        return None;
    }
    let more = lines.len().saturating_sub(SHOWN);
    lines.truncate(SHOWN);
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    Some(lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::change;

    #[test]
    fn what_is_added_or_gone_is_a_change() {
        assert_eq!(change("pub fn a()\npub fn b()\n", "pub fn a()\npub fn b()\n"), None);
        let found = change("pub fn a()\npub fn b()\n", "pub fn a()\npub fn b(u32)\n");
        assert_eq!(found.as_deref(), Some("- pub fn b()\n+ pub fn b(u32)"));
        assert!(change("", &"pub fn a()\n".repeat(12)).is_some_and(|found| found.ends_with("and 2 more")));
    }
}
