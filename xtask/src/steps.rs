//! Named steps of one command, each of which passes, fails or is skipped.

use crate::{shell::Finished, summary::Summary};
use anyhow::Result;
use clap::ValueEnum;
use comfy_table::{Table, presets::ASCII_MARKDOWN};
use std::time::Instant;

/// How a step ended.
pub(crate) enum Outcome {
    Passed,
    Failed(String),
    Skipped(String),
}

impl Outcome {
    /// Passed if the command succeeded, else failed with these words.
    pub(crate) fn of(done: &Finished, what: &str) -> Self {
        if done.success { Outcome::Passed } else { Outcome::Failed(format!("{what}: {}", done.status)) }
    }

    pub(crate) fn is_passed(&self) -> bool {
        matches!(self, Outcome::Passed)
    }
}

/// The name of a step on the command line.
pub(crate) fn name(step: &impl ValueEnum) -> String {
    step.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// Runs all steps, whatever failed before, and prints a table and `<command>: N passed, N failed, N skipped`.
pub(crate) fn run<S: ValueEnum>(
    command: &str,
    what: &str,
    steps: &[S],
    no_skip: bool,
    run: impl Fn(&S) -> Result<Outcome>,
) -> Result<bool> {
    let mut counts = Summary::default();
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN).set_header([what, "result", "seconds", "reason"]);
    for step in steps {
        let name = name(step);
        println!("\n==> {name}");
        let start = Instant::now();
        // A step that cannot be carried out has failed; the others still run.
        let outcome = run(step).unwrap_or_else(|error| Outcome::Failed(format!("{error:#}")));
        let (word, reason) = match outcome {
            Outcome::Passed => ("passed", String::new()),
            Outcome::Skipped(reason) if no_skip => ("FAILED", format!("skipped: {reason}")),
            Outcome::Skipped(reason) => ("skipped", reason),
            Outcome::Failed(reason) => ("FAILED", reason),
        };
        match word {
            "passed" => counts.passed += 1,
            "skipped" => counts.skipped += 1,
            _ => counts.failed += 1,
        }
        table.add_row([name, word.to_owned(), format!("{:.1}", start.elapsed().as_secs_f64()), reason]);
    }
    println!("\n{table}\n\n{command}: {counts}");
    Ok(counts.failed == 0)
}
