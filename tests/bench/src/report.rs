//! The printed table and the JSON report.

use crate::environment::Environment;
use anyhow::{Context, Result};
use comfy_table::{CellAlignment, Table, presets::ASCII_MARKDOWN};
use serde::Serialize;
use std::path::Path;

/// The numbers of one bench.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Name of the bench.
    pub name: String,
    /// Median of gpumem's routine, in `unit`.
    pub ours: f64,
    /// Median of the reference, in `unit`.
    pub reference: f64,
    /// Name of the reference.
    pub reference_name: &'static str,
    /// `GB/s`, `ns` or `count`.
    pub unit: &'static str,
    /// Ours divided by the reference: 1 if both are zero, nothing if only the reference is.
    pub ratio: Option<f64>,
    /// Half the distance between the quartiles of the rounds' ratios, as a part of their median.
    pub spread: f64,
}

/// The numbers of one run, with its environment.
#[derive(Debug, Serialize)]
pub struct Report<'a> {
    /// The machine, the driver and the date.
    #[serde(flatten)]
    pub environment: &'a Environment,
    /// The numbers, in the order in which they were measured.
    pub rows: &'a [Row],
}

impl Row {
    pub(crate) fn new(
        name: String,
        reference_name: &'static str,
        unit: &'static str,
        ours: f64,
        reference: f64,
        spread: f64,
    ) -> Self {
        let ratio = match (ours == 0.0, reference == 0.0) {
            (true, true) => Some(1.0),
            (false, true) => None,
            _ => Some(ours / reference),
        };
        Self { name, ours, reference, reference_name, unit, ratio, spread }
    }
}

/// The rows as a table that is Markdown as well.
pub fn table(rows: &[Row]) -> Table {
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN);
    table.set_header(["bench", "ours", "reference", "unit", "ratio", "spread", "reference is"]);
    for row in rows {
        table.add_row([
            row.name.clone(),
            number(row.ours),
            number(row.reference),
            row.unit.to_owned(),
            row.ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.3}")),
            format!("{:.1} %", row.spread * 100.0),
            row.reference_name.to_owned(),
        ]);
    }
    for column in [1, 2, 4, 5] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// Four digits where there are any after the point.
fn number(value: f64) -> String {
    let decimals = match value.abs() {
        0.0 => 0,
        magnitude if magnitude >= 1000.0 => 0,
        magnitude if magnitude >= 100.0 => 1,
        magnitude if magnitude >= 10.0 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

/// Writes the report as one JSON object: the fields of [`Environment`], and `rows`, a list of objects with `name`,
/// `ours`, `reference`, `reference_name`, `unit`, `ratio` and `spread`.
///
/// # Errors
/// Returns the file system's error if the file cannot be written.
pub fn write_json(path: &Path, report: &Report<'_>) -> Result<()> {
    let text = serde_json::to_string_pretty(report)? + "\n";
    std::fs::write(path, text).with_context(|| format!("{} cannot be written", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<Row> {
        let row = |name: &str, unit, ours, reference| {
            Row::new(name.to_owned(), "the driver", unit, ours, reference, 0.012)
        };
        vec![row("copy", "GB/s", 55.0, 50.0), row("events", "count", 3.0, 0.0)]
    }

    #[test]
    fn the_report_has_the_agreed_keys_and_no_infinities() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bench.json");
        let environment = Environment::new("host:0 (a processor)".to_owned(), "bench --quick".to_owned());
        write_json(&path, &Report { environment: &environment, rows: &rows() }).unwrap();
        let report: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let keys: Vec<_> = report.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, ["command", "date", "device", "driver", "processor", "processors", "rows"]);
        let list = &report["rows"];
        let keys: Vec<_> = list[0].as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, ["name", "ours", "ratio", "reference", "reference_name", "spread", "unit"]);
        assert_eq!(list[0]["ratio"], 1.1);
        assert_eq!(list[1]["ratio"], serde_json::Value::Null);
    }

    #[test]
    fn the_table_names_the_reference_and_the_spread() {
        let text = table(&rows()).to_string();
        for wanted in ["55.00", "1.100", "1.2 %", "the driver"] {
            assert!(text.contains(wanted), "{wanted:?} is missing in\n{text}");
        }
    }

    #[test]
    fn numbers_have_four_digits() {
        let texts = [0.0, 0.1234, 12.345, 123.45, 12345.6].map(number);
        assert_eq!(texts, ["0", "0.123", "12.35", "123.5", "12346"].map(str::to_owned));
    }
}
