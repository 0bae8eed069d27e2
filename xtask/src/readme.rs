//! `cargo xtask readme`: the READMEs are the documentation of the crate `gpumem`, so that they cannot differ.

use crate::{links, workspace::Workspace};
use anyhow::{Context, Result, anyhow};
use cargo_readme::ReadmeOptions;
use clap::Args;
use std::path::Path;

/// The frame around the documentation.
const TEMPLATE: &str = include_str!("../readme.tpl");

/// Options of `cargo xtask readme`.
#[derive(Args)]
pub(crate) struct Options {
    /// Write nothing; fail if a README would change
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(options: &Options) -> Result<bool> {
    let workspace = Workspace::load()?;
    if workspace.package("gpumem").is_none() {
        println!("there is no package gpumem yet");
        return Ok(true);
    }
    let stale = write(workspace.root(), options.check)?;
    for path in &stale {
        println!(
            "{path} {}",
            if options.check { "is not up to date: run `cargo xtask readme`" } else { "written" }
        );
    }
    Ok(stale.is_empty() || !options.check)
}

/// Writes the READMEs, or with `check` only compares. Gives the ones that were not up to date.
pub(crate) fn write(root: &Path, check: bool) -> Result<Vec<&'static str>> {
    let package = root.join("crates/gpumem");
    let source = std::fs::read(package.join("src/lib.rs")).context("crates/gpumem/src/lib.rs")?;
    let text = render(&package, &source)?;
    let mut stale = Vec::new();
    for name in ["README.md", "crates/gpumem/README.md"] {
        let path = root.join(name);
        if std::fs::read_to_string(&path).is_ok_and(|old| old == text) {
            continue;
        }
        stale.push(name);
        if !check {
            std::fs::write(&path, &text).with_context(|| name.to_owned())?;
        }
    }
    Ok(stale)
}

fn render(package: &Path, source: &[u8]) -> Result<String> {
    let options =
        ReadmeOptions { indent_headings: true, extract_from_comment: true, ..ReadmeOptions::default() };
    let mut source = source;
    let mut template = TEMPLATE.as_bytes();
    let text = cargo_readme::generate_readme(package, &mut source, Some(&mut template), options)
        .map_err(|why| anyhow!("the README cannot be made: {why}"))?;
    Ok(links::flatten(text.trim_end()) + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str =
        "[package]\nname = \"gpumem\"\nversion = \"1.2.3\"\nlicense = \"MIT OR Apache-2.0\"\n";
    const SOURCE: &str = r#"//! One [`DeviceArray`] for all, see [the book](https://example.org).
//!
//! # First
//! ```no_run
//! # fn hidden() {}
//! let a = 1; // # stays
//! ```
#![allow(unused)]
//! Last.
fn main() {}
"#;

    fn project() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let package = folder.path().join("crates/gpumem");
        std::fs::create_dir_all(package.join("src")).unwrap();
        std::fs::write(package.join("Cargo.toml"), MANIFEST).unwrap();
        std::fs::write(package.join("src/lib.rs"), SOURCE).unwrap();
        folder
    }

    #[test]
    fn the_documentation_becomes_markdown_that_anyone_renders() {
        let folder = project();
        let text = render(&folder.path().join("crates/gpumem"), SOURCE.as_bytes()).unwrap();
        for wanted in
            ["# gpumem\n", "One `DeviceArray` for all", "(https://example.org)", "## First", "```rust\nlet a"]
        {
            assert!(text.contains(wanted), "{wanted:?} is missing in\n{text}");
        }
        assert!(text.contains("// # stays") && text.contains("MIT OR Apache-2.0"), "{text}");
        assert!(!text.contains("hidden") && !text.contains("no_run") && !text.contains("{{"), "{text}");
    }

    #[test]
    fn a_check_writes_nothing_and_names_what_is_stale() {
        let folder = project();
        let root = folder.path();
        assert_eq!(write(root, true).unwrap().len(), 2);
        assert!(!root.join("README.md").exists());
        assert_eq!(write(root, false).unwrap().len(), 2);
        assert!(write(root, true).unwrap().is_empty());
        std::fs::write(root.join("README.md"), "edited by hand").unwrap();
        assert_eq!(write(root, true).unwrap(), ["README.md"]);
    }
}
