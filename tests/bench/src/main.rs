//! Runs the benches: `cargo xtask bench`.

use anyhow::Result;
use clap::Parser;
use gpumem_bench::{
    Effort, Environment, Report, Unavailable, benches, device, measure, table, use_device, write_json,
};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

#[derive(Parser)]
#[command(name = "gpumem-bench")]
struct Options {
    /// Only benches whose name contains one of these
    filters: Vec<String>,
    /// Write the numbers there as JSON
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// The device to measure
    #[arg(long, value_name = "NAME", default_value = "host")]
    device: String,
    /// Few short rounds: shows that the benches run, not how fast anything is
    #[arg(long)]
    quick: bool,
    /// Most seconds that one bench is measured
    #[arg(long, value_name = "SECONDS")]
    limit: Option<f64>,
    /// Only print the names
    #[arg(long)]
    list: bool,
}

fn main() -> Result<ExitCode> {
    let options = Options::parse();
    let filters = options.filters;
    let is_wanted = |name: &str| filters.is_empty() || filters.iter().any(|filter| name.contains(filter));
    let mut effort = if options.quick { Effort::QUICK } else { Effort::FULL };
    if let Some(limit) = options.limit {
        effort.limit = Duration::try_from_secs_f64(limit)?;
    }
    if cfg!(debug_assertions) && !options.list {
        eprintln!("warning: built without optimisation; `cargo xtask bench` builds in release");
    }
    if !options.list {
        use_device(&options.device)?;
    }
    let mut rows = Vec::new();
    let (mut skipped, mut failed) = (0, 0);
    for bench in benches::all(&options.device).into_iter().filter(|bench| is_wanted(&bench.name)) {
        let name = bench.name.clone();
        if options.list {
            println!("{name}");
            continue;
        }
        match measure(bench, effort) {
            Ok(row) => rows.push(row),
            Err(error) if error.is::<Unavailable>() => {
                skipped += 1;
                eprintln!("{name}: skipped: {error}");
            }
            Err(error) => {
                failed += 1;
                eprintln!("{name}: failed: {error:#}");
            }
        }
    }
    if options.list {
        return Ok(ExitCode::SUCCESS);
    }
    println!("{}\n\n{} measured, {failed} failed, {skipped} skipped", table(&rows), rows.len());
    if let Some(path) = &options.report {
        let quoted = filters.iter().map(|filter| format!(" '{filter}'"));
        let command = format!("cargo xtask bench --device {}{}", options.device, quoted.collect::<String>());
        let environment = Environment::new(device()?.info().to_string(), command);
        write_json(path, &Report { environment: &environment, rows: &rows })?;
    }
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
