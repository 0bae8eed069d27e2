//! Runs the benches: `cargo xtask bench`.

use anyhow::Result;
use clap::Parser;
use gpumem_bench::{
    Effort, Environment, Report, Row, Unavailable, benches,
    collectives::{self, Line},
    device, measure, table, use_device, write_json,
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
    /// `collectives`: the number of ranks; by default one for each device (`--device cuda:0,cuda:1`), two on the host
    #[arg(long)]
    ranks: Option<usize>,
    /// `collectives`: each rank is a process
    #[arg(long)]
    processes: bool,
    /// `collectives`: the largest size
    #[arg(long, value_name = "BYTES")]
    largest: Option<usize>,
}

/// The filter that stands for the table of operations of several ranks.
const COLLECTIVES: &str = "collectives";

fn main() -> Result<ExitCode> {
    let options = Options::parse();
    if options.filters == [COLLECTIVES] && !options.list {
        return several_ranks(&options);
    }
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
        if is_wanted(COLLECTIVES) {
            println!("{COLLECTIVES}");
        }
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

/// Prints the table of operations of several ranks.
fn several_ranks(options: &Options) -> Result<ExitCode> {
    let mut chosen = collectives::Options::new(&options.device, options.ranks, options.processes);
    chosen.quick = options.quick;
    chosen.largest = options.largest;
    if collectives::as_child(&chosen)? {
        return Ok(ExitCode::SUCCESS);
    }
    let kind = if chosen.processes { "processes" } else { "threads of one process" };
    println!("# {} ranks, {kind}, on {}", chosen.ranks, options.device);
    let mut has_head = false;
    let lines = collectives::run(&chosen, |line| {
        if !std::mem::replace(&mut has_head, true) {
            println!("{}", Line::head(&line.raw_name));
        }
        println!("{}", line.text());
    })?;
    let wrong: usize = lines.iter().map(|line| line.wrong).sum();
    println!("# {} lines, {wrong} wrong elements", lines.len());
    if let Some(path) = &options.report {
        let rows: Vec<Row> = lines.iter().flat_map(Line::rows).collect();
        use_device(&chosen.devices[0])?;
        let ranks = format!("--ranks {}{}", chosen.ranks, if chosen.processes { " --processes" } else { "" });
        let command = format!("cargo xtask bench --device {} {COLLECTIVES} -- {ranks}", options.device);
        let environment = Environment::new(device()?.info().to_string(), command);
        write_json(path, &Report { environment: &environment, rows: &rows })?;
    }
    Ok(if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
