//! The report.

use serde::{Serialize, Serializer};

/// The device of the cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RanOn {
    /// The processor.
    Host,
    /// A real device.
    Hardware,
    /// The simulated AMD GPU.
    Rocsim,
    /// HIP's interface on top of the CUDA driver.
    HipOnCuda,
}

/// The outcome of one case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It passed, or failed as expected.
    Passed,
    /// It failed; the text says why.
    Failed(String),
    /// It did not run; the text says why.
    Skipped(String),
}

/// The outcomes of all cases.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Name of the backend.
    pub backend: String,
    /// Name of the device; `None` if none could be opened.
    pub device: Option<String>,
    /// The device of the cases; `None` if they did not run.
    pub ran_on: Option<RanOn>,
    /// Number of cases that passed.
    pub passed: usize,
    /// Number of cases that failed.
    pub failed: usize,
    /// Number of cases that were skipped.
    pub skipped: usize,
    /// Why nothing ran.
    pub reason: Option<String>,
    /// Name and message of every failure.
    pub failures: Vec<String>,
    /// Every chosen case, in order, with its outcome.
    #[serde(serialize_with = "names_only")]
    pub outcomes: Vec<(String, Outcome)>,
}

/// The names of the skipped ones, with the reasons: passes are only counted.
fn names_only<S: Serializer>(outcomes: &[(String, Outcome)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(outcomes.iter().filter_map(|(name, outcome)| match outcome {
        Outcome::Skipped(reason) => Some(format!("{name}: skipped: {reason}")),
        Outcome::Failed(message) => Some(format!("{name}: failed: {message}")),
        Outcome::Passed => None,
    }))
}

impl Report {
    pub(crate) fn new(backend: &str) -> Self {
        Self {
            backend: backend.to_owned(),
            device: None,
            ran_on: None,
            passed: 0,
            failed: 0,
            skipped: 0,
            reason: None,
            failures: Vec::new(),
            outcomes: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, name: &str, outcome: Outcome) {
        match &outcome {
            Outcome::Passed => self.passed += 1,
            Outcome::Skipped(_) => self.skipped += 1,
            Outcome::Failed(message) => {
                self.failed += 1;
                self.failures.push(format!("{name}: {message}"));
            }
        }
        self.outcomes.push((name.to_owned(), outcome));
    }

    /// The closing line of Rust's own test programs, which runners add up.
    pub fn closing_line(&self, left_out: usize) -> String {
        let Self { passed, failed, skipped, .. } = self;
        let verdict = if *failed == 0 { "ok" } else { "FAILED" };
        format!(
            "test result: {verdict}. {passed} passed; {failed} failed; {skipped} ignored; 0 measured; \
             {left_out} filtered out"
        )
    }
}
