//! The workshop: `cargo xtask <command>`, run anywhere in the workspace.

mod archive;
mod artifacts;
mod bench;
mod bindings;
mod ci;
#[cfg(test)]
mod hidden_table;
mod libtest;
mod links;
mod miri;
mod nightly;
mod performance;
mod readme;
mod rocm;
mod sanitizers;
mod shell;
#[cfg(test)]
mod static_locks;
mod steps;
mod summary;
mod test_all;
mod tools;
#[cfg(test)]
mod unsafe_table;
mod workspace;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Tests, checks and benches of gpumem")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run every test, on every backend that this machine has
    TestAllBackends(test_all::Options),
    /// Run the benches in release and compare ours with the reference
    Bench(bench::Options),
    /// Run the checks of the continuous integration, or some of them
    Ci(ci::Options),
    /// Run the tests that take too long for the continuous integration, or some of them
    Nightly(nightly::Options),
    /// Make the declarations of HIP, HSA and NCCL from their headers
    Bindings(bindings::Options),
    /// Build tests, examples and benches for a machine without cargo, with a script that runs them
    Archive(archive::Options),
    /// Called by the script in an archive
    #[command(hide = true)]
    RunArchived(archive::RunOptions),
    /// Write the tables of the performance page from reports of the benches
    Performance(performance::Options),
    /// Fetch the libraries of newer versions of ROCm beside the system, for the simulated GPU
    Rocm(rocm::Options),
    /// Write the READMEs from the crate documentation
    Readme(readme::Options),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::TestAllBackends(options) => test_all::run(&options),
        Command::Bench(options) => bench::run(&options),
        Command::Ci(options) => ci::run(&options),
        Command::Nightly(options) => nightly::run(&options),
        Command::Bindings(options) => bindings::run(&options),
        Command::Archive(options) => archive::run(&options),
        Command::RunArchived(options) => archive::run_archived(&options),
        Command::Performance(options) => performance::run(&options),
        Command::Rocm(options) => rocm::run(&options),
        Command::Readme(options) => readme::run(&options),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
