//! A backend's program: options in, lines and a report out.

use crate::{Outcome, Selection, Suite};
use clap::Parser;
use gpumem_core::{Backend, DeviceSelector};
use std::{fs, path::PathBuf, process::ExitCode};

/// Holds a backend of gpumem to the conformance suite.
#[derive(Debug, Parser)]
struct Options {
    /// Part of the name of the cases to run
    filter: Vec<String>,
    /// Write a report as JSON
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Run on this device (cuda:1, a PCI address or a UUID after the colon)
    #[arg(long, value_name = "SELECTOR")]
    device: Option<DeviceSelector>,
    /// Run the cases up to this level (1 to 13), for bringing up a new backend
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=13))]
    level: Option<u8>,
    /// List the cases instead of running them
    #[arg(long)]
    list: bool,
    /// Filters are whole names
    #[arg(long)]
    exact: bool,
    #[command(flatten)]
    harness: Harness,
}

/// Arguments that runners pass to every test program. They have no effect here, apart from `--ignored`: no case is
/// ignored.
#[derive(Debug, clap::Args)]
struct Harness {
    #[arg(long, hide = true)]
    ignored: bool,
    #[arg(long, hide = true)]
    include_ignored: bool,
    #[arg(long, alias = "no-capture", hide = true)]
    nocapture: bool,
    #[arg(long, hide = true)]
    show_output: bool,
    #[arg(long, short, hide = true)]
    quiet: bool,
    #[arg(long, hide = true)]
    test_threads: Option<usize>,
    #[arg(long, hide = true)]
    format: Option<String>,
    #[arg(long, hide = true)]
    color: Option<String>,
}

impl<B: Backend> Suite<B> {
    /// The whole program: reads the options, runs, prints, writes the report. Ends with success if nothing failed; a
    /// device that cannot be opened skips everything, with the reason.
    pub fn main(mut self) -> ExitCode {
        let options = Options::parse();
        if let Some(device) = options.device {
            self.selector = device;
        }
        let selection = Selection { level: options.level, filters: options.filter, exact: options.exact };
        let (mut chosen, mut lines) = (0, Vec::new());
        for case in self.cases.iter().filter(|case| selection.takes(&case.name, case.level)) {
            chosen += 1;
            lines.push(format!("{}: test", case.name));
        }
        if options.list || options.harness.ignored {
            if !options.harness.ignored {
                println!("{}", lines.join("\n"));
            }
            return ExitCode::SUCCESS;
        }
        println!("\nrunning {chosen} tests of {} on {}", self.backend, self.selector);
        let report = self.run(&selection, |name, outcome| match outcome {
            Outcome::Passed => println!("test {name} ... ok"),
            Outcome::Skipped(reason) => println!("test {name} ... ignored, {reason}"),
            Outcome::Failed(message) => println!("test {name} ... FAILED\n    {message}"),
        });
        if let (None, Some(reason)) = (&report.device, &report.reason) {
            println!("all skipped: {reason}");
        }
        println!("\n{}\n", report.closing_line(self.cases.len() - chosen));
        if let Some(file) = options.report
            && let Err(error) = write(&file, &report)
        {
            eprintln!("the report cannot be written to {}: {error}", file.display());
            return ExitCode::FAILURE;
        }
        if report.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

fn write(file: &std::path::Path, report: &crate::Report) -> std::io::Result<()> {
    fs::write(file, serde_json::to_string_pretty(report)?)
}
