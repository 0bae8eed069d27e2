//! `cargo xtask performance`: the tables of the page of measurements, which are the reports in `docs/benchmarks/reports`.
//!
//! A report `h100.json` (`cargo xtask bench --device cuda:0 --report docs/benchmarks/reports/h100.json`) replaces the
//! part of a page between the lines `<!-- report: h100 cuda/ memory/ -->` and `<!-- end of report -->`: its rows
//! whose names begin with `cuda/` or `memory/`, or all rows if no prefix is given.

use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use clap::Args;
use serde::Deserialize;
use std::{fmt::Write, path::Path};

/// Options of `cargo xtask performance`.
#[derive(Args)]
pub(crate) struct Options {
    /// Write nothing; fail if a page would change
    #[arg(long)]
    check: bool,
    /// Print all rows of this report instead
    report: Option<String>,
}

/// The book's page, with the rows that users ask for.
const PAGE: &str = "docs/src/performance.md";
const REPORTS: &str = "docs/benchmarks/reports";
const BEGIN: &str = "<!-- report: ";
const END: &str = "<!-- end of report -->";

/// A report of `cargo xtask bench --report`.
#[derive(Deserialize)]
struct Report {
    device: String,
    driver: Option<String>,
    processor: Option<String>,
    processors: usize,
    date: String,
    command: String,
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    name: String,
    ours: f64,
    reference: f64,
    reference_name: String,
    unit: String,
    ratio: Option<f64>,
    spread: f64,
}

pub(crate) fn run(options: &Options) -> Result<bool> {
    let workspace = Workspace::load()?;
    if let Some(report) = &options.report {
        print!("{}", section(&read(workspace.root(), report)?, &[])?);
        return Ok(true);
    }
    let is_stale = write(workspace.root(), options.check)?;
    if is_stale {
        let what = if options.check { "is not up to date: run `cargo xtask performance`" } else { "written" };
        println!("{PAGE} {what}");
    }
    Ok(!is_stale || !options.check)
}

fn read(root: &Path, report: &str) -> Result<Report> {
    let file = root.join(REPORTS).join(report).with_extension("json");
    let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    serde_json::from_str(&text).with_context(|| file.display().to_string())
}

/// Writes the page, or with `check` only compares. Returns whether it was out of date.
pub(crate) fn write(root: &Path, check: bool) -> Result<bool> {
    let path = root.join(PAGE);
    let old = std::fs::read_to_string(&path).context(PAGE)?;
    let new = render(&old, |wanted| {
        let mut words = wanted.split_whitespace();
        let report = read(root, words.next().unwrap_or_default())?;
        section(&report, &words.collect::<Vec<_>>())
    })?;
    if new != old && !check {
        std::fs::write(&path, &new).context(PAGE)?;
    }
    Ok(new != old)
}

/// Returns the page with each report's section replaced by the result of `section` for the words of its first line.
fn render(page: &str, mut section: impl FnMut(&str) -> Result<String>) -> Result<String> {
    let mut new = String::with_capacity(page.len());
    let mut rest = page;
    while let Some((before, after)) = rest.split_once(BEGIN) {
        let (name, after) = after.split_once(" -->\n").context("the first line of a report does not end")?;
        let Some((_, after)) = after.split_once(END) else { bail!("the report {name} has no line `{END}`") };
        write!(new, "{before}{BEGIN}{name} -->\n{}{END}", section(name)?)?;
        rest = after;
    }
    Ok(new + rest)
}

/// Writes the origin of the numbers, and a table of the rows whose names begin with one of `beginnings`; all rows if
/// there are none.
fn section(report: &Report, beginnings: &[&str]) -> Result<String> {
    let Report { device, driver, processor, processors, date, command, rows } = report;
    let driver = driver.as_ref().map(|driver| format!(", driver {driver}")).unwrap_or_default();
    let processor = processor.as_deref().unwrap_or("unnamed");
    let mut text =
        format!("\n`{command}`, {date}: {device}{driver}, {processors} processors ({processor}).\n\n");
    text += "| bench | gpumem | reference | unit | ratio | spread | reference is |\n|---|--:|--:|---|--:|--:|---|\n";
    let is_wanted = |row: &&Row| {
        beginnings.is_empty() || beginnings.iter().any(|beginning| row.name.starts_with(beginning))
    };
    for row in rows.iter().filter(is_wanted) {
        let ratio = row.ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"));
        writeln!(
            text,
            "| {} | {} | {} | {} | {ratio} | {:.0} % | {} |",
            row.name,
            digits(row.ours),
            digits(row.reference),
            row.unit,
            row.spread * 100.0,
            row.reference_name
        )?;
    }
    text.push('\n');
    Ok(text)
}

/// Three digits where there are any after the point.
fn digits(value: f64) -> String {
    let decimals = match value.abs() {
        0.0 => 0,
        magnitude if magnitude >= 100.0 => 0,
        magnitude if magnitude >= 10.0 => 1,
        magnitude if magnitude >= 1.0 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = r#"{"device": "cuda:0 (a GPU)", "driver": "580.1", "processor": null, "processors": 16,
        "date": "2026-11-23", "command": "cargo xtask bench", "rows": [{"name": "copy", "ours": 55.04,
        "reference": 0.0, "reference_name": "the driver", "unit": "GB/s", "ratio": null, "spread": 0.012}]}"#;

    #[test]
    fn a_report_replaces_the_text_between_its_lines() {
        let page = "before\n<!-- report: a -->\nold\n<!-- end of report -->\nafter\n";
        let new = render(page, |name| Ok(format!("new {name}\n"))).unwrap();
        assert_eq!(new, "before\n<!-- report: a -->\nnew a\n<!-- end of report -->\nafter\n");
        assert_eq!(render(&new, |name| Ok(format!("new {name}\n"))).unwrap(), new);
    }

    #[test]
    fn a_report_without_its_last_line_is_an_error() {
        assert!(render("<!-- report: a -->\nold\n", |_| Ok(String::new())).is_err());
    }

    #[test]
    fn the_section_has_the_machine_and_a_row_for_each_bench() {
        let report = serde_json::from_str(REPORT).unwrap();
        let text = section(&report, &[]).unwrap();
        let wanted =
            "`cargo xtask bench`, 2026-11-23: cuda:0 (a GPU), driver 580.1, 16 processors (unnamed).";
        assert!(text.contains(wanted), "{text}");
        let row = "| copy | 55.0 | 0 | GB/s | - | 1 % | the driver |";
        assert!(text.contains(row), "{text}");
        assert_eq!(section(&report, &["co"]).unwrap(), text);
        assert!(!section(&report, &["fill", "opy"]).unwrap().contains(row));
    }
}
