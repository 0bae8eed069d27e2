//! Checks that no top-level modules of a crate are in a dependency cycle, and that no crate is too large.

mod cycles;
mod known;
mod references;

use super::Outcome;
use crate::workspace::Workspace;
use anyhow::{Context, Result};
use known::{CYCLIC, LARGE, LARGEST};
use references::References;
use std::{collections::BTreeMap, path::Path};

pub(super) fn run(workspace: &Workspace) -> Result<Outcome> {
    let folder = workspace.root().join("crates");
    let sizes = sizes(&folder)?;
    let mut troubles = size_troubles(&sizes, &LARGE);
    for name in sizes.keys() {
        let sources = folder.join(name).join("src");
        let cyclic = CYCLIC.iter().find(|(of, _)| of == name).map_or(&[][..], |(_, modules)| modules);
        troubles.extend(cycle_troubles(name, &references::read(&sources)?, cyclic));
    }
    let all = CYCLIC.iter().map(|(name, _)| name).chain(LARGE.iter().map(|(name, _)| name));
    troubles
        .extend(all.filter(|name| !sizes.contains_key(**name)).map(|name| format!("{name}: is no crate")));
    println!("{}", table(&sizes));
    for trouble in &troubles {
        println!("{trouble}");
    }
    Ok(match troubles.len() {
        0 => Outcome::Passed,
        count => Outcome::Failed(format!("{count} findings, listed above")),
    })
}

/// Returns what is wrong with the cycles of a crate, given the modules that are known to be in one.
fn cycle_troubles(name: &str, references: &References, known: &[&str]) -> Vec<String> {
    let cycles = cycles::find(references);
    let mut troubles = Vec::new();
    for cycle in &cycles {
        if cycle.iter().any(|module| !known.contains(&module.as_str())) {
            troubles.push(format!("{name}: a cycle of {}", cycle.join(", ")));
            for ((from, to), places) in references {
                if cycle.contains(from) && cycle.contains(to) {
                    let places: Vec<_> = places.iter().map(String::as_str).collect();
                    troubles.push(format!("  {from} names {to}: {}", places.join(", ")));
                }
            }
        }
    }
    let is_cyclic = |module: &&&str| cycles.iter().flatten().any(|found| found == **module);
    let stale = known.iter().filter(|module| !is_cyclic(module));
    troubles.extend(stale.map(|module| {
        format!("{name}: {module} is in no cycle any more: take it out of the list in known.rs")
    }));
    troubles
}

/// Returns what is wrong with the sizes of crates, given those that are known to be large.
fn size_troubles(sizes: &BTreeMap<String, usize>, large: &[(&str, f64)]) -> Vec<String> {
    let total: usize = sizes.values().sum();
    let mut troubles = Vec::new();
    for (name, lines) in sizes {
        let part = percent(*lines, total);
        let known = large.iter().find(|(of, _)| of == name).map(|(_, part)| *part);
        if part > known.unwrap_or(LARGEST) {
            troubles.push(format!("{name}: {part:.1} % of the lines of all crates"));
        }
        if known.is_some() && part <= LARGEST {
            troubles.push(format!("{name}: is not large any more: take it out of the list in known.rs"));
        }
    }
    troubles
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
