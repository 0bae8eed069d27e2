//! The results of all backends, as a table and as JSON.

use crate::summary::Summary;
use comfy_table::{Table, presets::ASCII_MARKDOWN};
use serde::Serialize;

/// The results of one backend.
#[derive(Debug, Serialize)]
pub(crate) struct BackendResult {
    pub(crate) name: &'static str,
    /// Which of several machines it ran on; `None` for the machine as it is.
    pub(crate) machine: Option<&'static str>,
    pub(crate) device: Option<String>,
    pub(crate) ran_on: Option<String>,
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
    pub(crate) reason: Option<String>,
}

impl BackendResult {
    /// A backend that could not run.
    pub(crate) fn absent(name: &'static str, reason: &str) -> Self {
        let reason = Some(reason.to_owned());
        Self { name, machine: None, device: None, ran_on: None, passed: 0, failed: 0, skipped: 1, reason }
    }

    /// A backend whose program failed as a whole.
    pub(crate) fn failed(name: &'static str, reason: String) -> Self {
        Self { skipped: 0, failed: 1, ..Self::absent(name, &reason) }
    }

    /// The name of its row.
    pub(crate) fn label(&self) -> String {
        self.machine.map_or_else(|| self.name.to_owned(), |machine| format!("{} ({machine})", self.name))
    }

    pub(crate) fn is_absent(&self) -> bool {
        self.passed == 0 && self.failed == 0 && self.reason.is_some()
    }

    /// Makes an absence a failure.
    pub(crate) fn require(&mut self) {
        if self.is_absent() {
            let reason = self.reason.take().unwrap_or_default();
            self.fail(format!("required, but absent: {reason}"));
        }
    }

    /// Counts at least one failure, and says which.
    pub(crate) fn fail(&mut self, reason: String) {
        self.failed = self.failed.max(1);
        self.reason = Some(reason);
    }
}

/// Everything that ran.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) backends: Vec<BackendResult>,
    pub(crate) workspace: Summary,
}

impl Report {
    pub(crate) fn total(&self) -> Summary {
        let mut total = self.workspace;
        for backend in &self.backends {
            total += Summary { passed: backend.passed, failed: backend.failed, skipped: backend.skipped };
        }
        total
    }

    pub(crate) fn table(&self) -> Table {
        let or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        let mut table = Table::new();
        table.load_style(ASCII_MARKDOWN);
        table.set_header(["name", "device", "ran on", "passed", "failed", "skipped", "reason"]);
        for row in &self.backends {
            table.add_row([
                row.label(),
                or_dash(&row.device),
                or_dash(&row.ran_on),
                row.passed.to_string(),
                row.failed.to_string(),
                row.skipped.to_string(),
                row.reason.clone().unwrap_or_default(),
            ]);
        }
        let Summary { passed, failed, skipped } = self.workspace;
        let numbers = [passed, failed, skipped].map(|number| number.to_string());
        let mut row = vec!["workspace".to_owned(), "-".to_owned(), "host".to_owned()];
        row.extend(numbers);
        row.push(String::new());
        table.add_row(row);
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closing_line_counts_everything() {
        let backends = vec![
            BackendResult { passed: 5, reason: None, skipped: 2, ..BackendResult::absent("host", "") },
            BackendResult::absent("cuda", "no driver"),
            BackendResult::failed("roc", "no report".to_owned()),
        ];
        let report = Report { backends, workspace: Summary { passed: 10, failed: 0, skipped: 1 } };
        assert_eq!(report.total().to_string(), "15 passed, 1 failed, 4 skipped");
        let table = report.table().to_string();
        assert!(table.contains("no driver") && table.contains("no report"), "{table}");
    }
}
