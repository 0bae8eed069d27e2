//! Checks that no top-level modules of a crate are in a dependency cycle, and that no crate is too large.

mod cycles;
mod references;

use super::Outcome;
use crate::workspace::Workspace;
use anyhow::{Context, Result};
use references::References;
use std::{collections::BTreeMap, path::Path};

/// The part of the lines of all crates that one may have, in percent.
const LARGEST: f64 = 25.0;

pub(super) fn run(workspace: &Workspace) -> Result<Outcome> {
    let folder = workspace.root().join("crates");
    let sizes = sizes(&folder)?;
    let mut troubles = size_troubles(&sizes);
    for name in sizes.keys() {
        let sources = folder.join(name).join("src");
        troubles.extend(cycle_troubles(name, &references::read(&sources)?));
    }
    println!("{}", table(&sizes));
    for trouble in &troubles {
        println!("{trouble}");
    }
    Ok(match troubles.len() {
        0 => Outcome::Passed,
        count => Outcome::Failed(format!("{count} findings, listed above")),
    })
}

/// Lists the cycles of a crate, each with the lines that make it.
fn cycle_troubles(name: &str, references: &References) -> Vec<String> {
    let mut troubles = Vec::new();
    for cycle in cycles::find(references) {
        troubles.push(format!("{name}: a cycle of {}", cycle.join(", ")));
        for ((from, to), places) in references {
            if cycle.contains(from) && cycle.contains(to) {
                let places: Vec<_> = places.iter().map(String::as_str).collect();
                troubles.push(format!("  {from} names {to}: {}", places.join(", ")));
            }
        }
    }
    troubles
}

/// Lists the crates that are too large.
fn size_troubles(sizes: &BTreeMap<String, usize>) -> Vec<String> {
    let total: usize = sizes.values().sum();
    let parts = sizes.iter().map(|(name, lines)| (name, percent(*lines, total)));
    let large = parts.filter(|(_, part)| *part > LARGEST);
    large.map(|(name, part)| format!("{name}: {part:.1} % of the lines of all crates")).collect()
}

fn percent(part: usize, of: usize) -> f64 {
    part as f64 * 100.0 / of.max(1) as f64
}

fn table(sizes: &BTreeMap<String, usize>) -> String {
    let total: usize = sizes.values().sum();
    let row = |(name, lines): (&String, &usize)| {
        format!("{name:<18} {lines:>6} lines {:>5.1} %", percent(*lines, total))
    };
    sizes.iter().map(row).collect::<Vec<_>>().join("\n")
}

/// Lines of the sources of each crate, without declarations that are generated from C.
fn sizes(folder: &Path) -> Result<BTreeMap<String, usize>> {
    let mut sizes = BTreeMap::new();
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        sizes.insert(entry.file_name().to_string_lossy().into_owned(), lines(&entry.path().join("src"))?);
    }
    Ok(sizes)
}

fn lines(folder: &Path) -> Result<usize> {
    let mut sum = 0;
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            sum += lines(&path)?;
        } else if path.extension().is_some_and(|ending| ending == "rs") && !is_generated(&path) {
            sum += std::fs::read_to_string(&path)?.lines().count();
        }
    }
    Ok(sum)
}

fn is_generated(file: &Path) -> bool {
    file.ends_with("src/bindings.rs")
}

#[cfg(test)]
mod tests;
