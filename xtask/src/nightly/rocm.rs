//! The simulated AMD GPU on all versions of ROCm and all architectures: its own tests of machine code, and the device tests and the
//! suite of the ROCm backend.

use crate::{
    rocm::{self, Version},
    steps::Outcome,
    summary::Summary,
    test_all::{
        CONFORMANCE, DEVICE, Machine, Options, Programs, SIMULATED, build, device_tests, judge_tests,
        on_rocm, program, simulated, start_on,
    },
    workspace::Workspace,
};
use anyhow::{Context, Result};
use clap::ValueEnum;
use comfy_table::{Table, presets::ASCII_MARKDOWN};
use std::time::Instant;

/// One GPU of each architecture that all versions compile for.
const OLDER: [Machine; 3] = [
    simulated("gfx906", &[("ROCSIM_GFX", "gfx906")]),
    simulated("gfx90a", &[("ROCSIM_GFX", "gfx90a")]),
    simulated("gfx1030", &[("ROCSIM_GFX", "gfx1030")]),
];

/// Those that only newer versions compile for.
const NEWER: [Machine; 3] = [
    simulated("gfx942", &[("ROCSIM_GFX", "gfx942")]),
    simulated("gfx1100", &[("ROCSIM_GFX", "gfx1100")]),
    simulated("gfx1201", &[("ROCSIM_GFX", "gfx1201")]),
];

/// The machine of the simulator's own tests, which are about all architectures.
const ALL: Machine = simulated("all architectures", &[("ROCSIM_REQUIRE", "1")]);

/// What is built: the simulator's own tests, and those of the ROCm backend.
const BUILT: &[&str] =
    &["--package", "rocsim", "--package", "gpumem-roc", "--lib", "--test", DEVICE, "--test", CONFORMANCE];

/// The rows of a table.
struct Rows {
    table: Table,
    failed: Vec<String>,
}

impl Rows {
    /// Carries out a run and adds its row.
    fn add(&mut self, rocm: &str, tests: &str, machine: &Machine, run: impl FnOnce() -> Result<Summary>) {
        let start = Instant::now();
        let (counts, reason) = match run() {
            Ok(counts) => (counts, String::new()),
            Err(error) => (Summary { failed: 1, ..Summary::default() }, format!("{error:#}")),
        };
        if counts.failed > 0 {
            self.failed.push(format!("ROCm {rocm}, {tests}, {}", machine.name));
        }
        let numbers = [counts.passed, counts.failed, counts.skipped].map(|number| number.to_string());
        let seconds = format!("{:.0}", start.elapsed().as_secs_f64());
        let row = [rocm, tests, machine.name].map(str::to_owned).into_iter();
        let row: Vec<_> = row.chain(numbers).chain([seconds, reason]).collect();
        println!("\n| {} |", row.join(" | "));
        self.table.add_row(row);
    }
}

pub(super) fn run(workspace: &Workspace) -> Result<Outcome> {
    let programs = build(workspace, BUILT)?;
    let mut rows = Rows { table: Table::new(), failed: Vec::new() };
    rows.table.load_style(ASCII_MARKDOWN);
    rows.table.set_header(["ROCm", "tests", "machine", "passed", "failed", "skipped", "seconds", "reason"]);
    let mut absent = Vec::new();
    // The newest first.
    for version in Version::value_variants().iter().rev().copied().map(Some).chain([None]) {
        if let Some(version) = version
            && let Outcome::Skipped(why) | Outcome::Failed(why) = rocm::fetch(workspace, version)?
        {
            absent.push(format!("ROCm {}: {why}", version.name()));
            continue;
        }
        on_version(workspace, &programs, version, &mut rows)?;
    }
    println!("\n{}", rows.table);
    Ok(if !rows.failed.is_empty() {
        Outcome::Failed(rows.failed.join("; "))
    } else if !absent.is_empty() {
        Outcome::Skipped(absent.join("; "))
    } else {
        Outcome::Passed
    })
}

/// All runs on one version; `None` is the system's.
fn on_version(
    workspace: &Workspace,
    programs: &Programs,
    version: Option<Version>,
    rows: &mut Rows,
) -> Result<()> {
    let name = version.map_or("5.2", Version::name);
    let unit_tests = program(programs, "rocsim", "rocsim").context("the simulator has no tests")?;
    rows.add(name, "machine code", &ALL, || {
        let done = start_on(workspace, version, &ALL, unit_tests, &["isa::"])?;
        Ok(judge_tests(&done.context("ROCm was removed meanwhile")?))
    });
    let newer = if version.is_some() { &NEWER[..] } else { &[] };
    let [.., two_gpus] = &SIMULATED;
    for machine in newer.iter().chain(&OLDER).chain([two_gpus]) {
        rows.add(name, "device", machine, || {
            let result = device_tests(workspace, programs, version, machine)?;
            Ok(Summary { passed: result.passed, failed: result.failed, skipped: result.skipped })
        });
    }
    // On the system's version every commit runs it.
    if version.is_none() {
        return Ok(());
    }
    let suite = program(programs, "gpumem-roc", CONFORMANCE).context("the suite is not built")?;
    for machine in newer.iter().chain(&OLDER).chain(&SIMULATED) {
        rows.add(name, "suite", machine, || {
            let result = on_rocm(workspace, suite, version, machine, &Options::default())?;
            Ok(Summary { passed: result.passed, failed: result.failed, skipped: result.skipped })
        });
    }
    Ok(())
}
