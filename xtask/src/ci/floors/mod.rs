//! Checks that no top-level modules of a crate are in a dependency cycle, and that no crate has more lines than its budget.

mod cycles;
mod references;

use super::Outcome;
use crate::workspace::Workspace;
use anyhow::{Context, Result};
use references::References;
use std::{collections::BTreeMap, path::Path};

/// The part of the lines of all crates that one may have, in percent.
const LARGEST: f64 = 20.0;
/// The most lines that each crate may have, a name and a number a row. A change that needs more says so in this file.
const BUDGETS: &str = "xtask/lines.txt";

/// Lines by the name of a crate.
type Lines = BTreeMap<String, usize>;

pub(super) fn run(workspace: &Workspace) -> Result<Outcome> {
    let folder = workspace.root().join("crates");
    let sizes = sizes(&folder)?;
    let text = std::fs::read_to_string(workspace.root().join(BUDGETS)).context(BUDGETS)?;
    let budgets = budgets(&text)?;
    let mut troubles = size_troubles(&sizes, &budgets);
    for name in sizes.keys() {
        let sources = folder.join(name).join("src");
        troubles.extend(cycle_troubles(name, &references::read(&sources)?));
    }
    println!("{}", table(&sizes, &budgets));
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

/// Lists the crates that are too large, those without a budget, and budgets of no crate.
fn size_troubles(sizes: &Lines, budgets: &Lines) -> Vec<String> {
    let total: usize = sizes.values().sum();
    let mut troubles = Vec::new();
    for (name, lines) in sizes {
        let part = percent(*lines, total);
        if part > LARGEST {
            troubles.push(format!("{name}: {part:.1} % of the lines of all crates"));
        }
        match budgets.get(name) {
            Some(budget) if lines > budget => {
                troubles.push(format!("{name}: {lines} lines, and {BUDGETS} allows {budget}"));
            }
            Some(_) => {}
            None => troubles.push(format!("{name}: has no row in {BUDGETS}")),
        }
    }
    let gone = budgets.keys().filter(|name| !sizes.contains_key(*name));
    troubles.extend(gone.map(|name| format!("{name}: is in {BUDGETS}, and no crate")));
    troubles
}

/// Reads the rows of the file of budgets.
fn budgets(text: &str) -> Result<Lines> {
    let row = |line: &str| {
        let (name, lines) = line.split_once(' ').with_context(|| format!("{BUDGETS}: {line}"))?;
        Ok((name.to_owned(), lines.parse().with_context(|| format!("{BUDGETS}: {line}"))?))
    };
    text.lines().map(row).collect()
}

fn percent(part: usize, of: usize) -> f64 {
    part as f64 * 100.0 / of.max(1) as f64
}

fn table(sizes: &Lines, budgets: &Lines) -> String {
    let total: usize = sizes.values().sum();
    let row = |(name, lines): (&String, &usize)| {
        let budget = budgets.get(name).copied().unwrap_or_default();
        format!("{name:<18} {lines:>6} lines of {budget:>6} {:>5.1} %", percent(*lines, total))
    };
    sizes.iter().map(row).collect::<Vec<_>>().join("\n")
}

/// Lines of the sources of each crate, without declarations that are generated from C.
fn sizes(folder: &Path) -> Result<Lines> {
    let mut sizes = Lines::new();
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
    file.ends_with("bindings.rs")
}

#[cfg(test)]
mod tests;
