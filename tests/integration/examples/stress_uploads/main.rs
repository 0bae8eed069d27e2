//! Looks for arrays that arrive with other elements than were sent, while many threads, and several processes, use one
//! device and give its memory back all the time.
//!
//! ```sh
//! cargo build --release -p gpumem-integration --example stress_uploads --features host,cuda
//! target/release/examples/stress_uploads --device cuda:0 --processes 4 --threads 100 --rounds 10000
//! ```
//!
//! Ends with status 1 if anything was wrong. Options:
//!
//! * `--device NAME`: by default the device in `GPUMEM_DEVICE`, or else `host`.
//! * `--mode N`: one way of sending, 1 to 10; every way by default.
//! * `--threads N` (100), `--rounds N` of each thread (100).
//! * `--processes N` (1) that run at the same time.
//! * `--no-flush`: no thread calls `flush`; by default each does after one round in twenty.
//! * `--synchronize`: each thread waits for the device after one round in ten.
#![allow(clippy::unwrap_used, clippy::panic, clippy::expect_used, reason = "a test")]

mod stress;

use gpumem::Device;
use std::{
    env,
    process::{Command, ExitCode},
    time::Instant,
};
use stress::{MODES, Plan};

struct Options {
    device: String,
    modes: Vec<u32>,
    plan: Plan,
    processes: usize,
}

fn options() -> Options {
    let mut options = Options {
        device: env::var("GPUMEM_DEVICE").unwrap_or_else(|_| "host".to_owned()),
        modes: (1..=MODES).collect(),
        plan: Plan { mode: 1, threads: 100, rounds: 100, flushes: true, synchronizes: false },
        processes: 1,
    };
    let mut words = env::args().skip(1);
    while let Some(word) = words.next() {
        let mut next = || words.next().unwrap_or_else(|| panic!("{word} needs a value"));
        match word.as_str() {
            "--device" => options.device = next(),
            "--mode" => options.modes = vec![next().parse().unwrap()],
            "--threads" => options.plan.threads = next().parse().unwrap(),
            "--rounds" => options.plan.rounds = next().parse().unwrap(),
            "--processes" => options.processes = next().parse().unwrap(),
            "--no-flush" => options.plan.flushes = false,
            "--synchronize" => options.plan.synchronizes = true,
            other => panic!("there is no option {other}"),
        }
    }
    options
}

fn main() -> ExitCode {
    let options = options();
    if options.processes > 1 {
        return several(options.processes);
    }
    let mut wrong = 0;
    for mode in options.modes {
        // A new one for each mode, so that leftovers of one do not reach the next.
        let device = Device::open(&options.device).unwrap();
        let begin = Instant::now();
        let outcome = stress::run(&device, &Plan { mode, ..options.plan });
        let seconds = begin.elapsed().as_secs_f64();
        println!(
            "{} mode {mode:2}: {} arrays in {seconds:.1} s, {} wrong",
            options.device, outcome.arrays, outcome.wrong
        );
        outcome.first.iter().for_each(|line| println!("    {line}"));
        wrong += outcome.wrong;
    }
    if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Starts the program so many times, and waits for all.
fn several(processes: usize) -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let start = |_| {
        // The last value counts.
        Command::new(env::current_exe().unwrap()).args(&arguments).args(["--processes", "1"]).spawn().unwrap()
    };
    let children: Vec<_> = (0..processes).map(start).collect();
    let failed =
        children.into_iter().filter_map(|mut child| (!child.wait().unwrap().success()).then_some(()));
    let failed = failed.count();
    println!("{failed} of {processes} processes found something wrong");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
