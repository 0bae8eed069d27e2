//! Cases for a real device, through the trait and [`CudaExt`](gpumem_cuda::CudaExt) only.
//!
//! Without a device every case is listed as skipped, with the reason. `GPUMEM_REQUIRE_CUDA=1` makes that a failure.
//! Arguments are those of the standard test programs as far as runners need them: `--list`, `--exact`, and parts of
//! names.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a case fails by panicking")]

mod cache;
mod captures;
mod contexts;
mod copies;
mod devices;
mod faults;
mod fills;
mod fixture;
mod foreign;
mod graphs;
mod interleavings;
mod kernels;
mod libraries;
mod memory;
mod order;
mod peers;
mod processes;
mod scoped;
mod streams;
mod uploads;

use fixture::Lab;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    process::ExitCode,
};

/// Why a case has nothing to do on this machine.
type Skip = &'static str;
type Case = (&'static str, fn(&Lab) -> Result<(), Skip>);

/// A role that a case starts this binary with, as a child process.
type Part = (&'static str, fn(&Lab));

fn main() -> ExitCode {
    let parts = [cache::PARTS, faults::PARTS, graphs::PARTS, processes::PARTS].concat();
    if let Ok(name) = std::env::var(processes::PART) {
        if name == processes::LISTING {
            processes::list_only();
            return ExitCode::SUCCESS;
        }
        if name == processes::EXIT {
            processes::end();
            return ExitCode::SUCCESS;
        }
        let (_, part) = parts.iter().find(|(part, _)| *part == name).expect("a part of that name");
        part(&Lab::open().expect("a device, as in the parent"));
        return ExitCode::SUCCESS;
    }
    let cases: Vec<Case> = [
        devices::CASES,
        memory::CASES,
        copies::CASES,
        fills::CASES,
        streams::CASES,
        captures::CASES,
        order::CASES,
        kernels::CASES,
        cache::CASES,
        foreign::CASES,
        contexts::CASES,
        libraries::CASES,
        interleavings::CASES,
        scoped::CASES,
        peers::CASES,
        faults::CASES,
        graphs::CASES,
        processes::CASES,
    ]
    .concat();
    run(&cases, &std::env::args().skip(1).collect::<Vec<_>>())
}

fn run(cases: &[Case], arguments: &[String]) -> ExitCode {
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    let wanted: Vec<&String> =
        arguments.iter().filter(|argument| !argument.starts_with('-') && *argument != "terse").collect();
    let matches = |name: &str| {
        wanted.is_empty()
            || wanted.iter().any(|part| if has("--exact") { name == *part } else { name.contains(*part) })
    };
    let cases: Vec<&Case> = cases.iter().filter(|(name, _)| matches(name) && !has("--ignored")).collect();
    if has("--list") {
        cases.iter().for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    let lab = match Lab::open() {
        Ok(lab) => lab,
        Err(reason) => {
            cases.iter().for_each(|(name, _)| println!("skipped: {name}: there is no device"));
            println!("\nall skipped: {reason}");
            closing_line(0, 0, cases.len());
            let required = std::env::var_os("GPUMEM_REQUIRE_CUDA").is_some();
            return if required { ExitCode::FAILURE } else { ExitCode::SUCCESS };
        }
    };
    println!("running {} cases on {:?}", cases.len(), lab.device);
    let (mut passed, mut skipped, mut failed) = (0, 0, Vec::new());
    for (name, case) in cases {
        match catch_unwind(AssertUnwindSafe(|| case(&lab))) {
            Ok(Ok(())) => {
                passed += 1;
                println!("ok: {name}");
            }
            Ok(Err(reason)) => {
                skipped += 1;
                println!("skipped: {name}: {reason}");
            }
            Err(_) => {
                failed.push(*name);
                println!("FAILED: {name}");
            }
        }
    }
    closing_line(passed, failed.len(), skipped);
    failed.iter().for_each(|name| println!("    {name}"));
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The closing line of Rust's own test programs, which runners add up.
fn closing_line(passed: usize, failed: usize, skipped: usize) {
    let verdict = if failed == 0 { "ok" } else { "FAILED" };
    println!(
        "\ntest result: {verdict}. {passed} passed; {failed} failed; {skipped} ignored; 0 measured; 0 filtered out"
    );
}
