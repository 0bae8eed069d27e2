//! Runs collectives between processes, one rank each, and checks all results: on GPUs, over NCCL or RCCL.
//!
//! ```sh
//! cargo build --release -p gpumem-integration --example collective_ranks --features cuda,collectives
//! target/release/examples/collective_ranks --device cuda:0 --ranks 2
//! ```
//!
//! Ranks that share a GPU are made to look like ranks of several machines, which NCCL connects through sockets. Ends with
//! status 1 if anything was wrong. Options:
//!
//! * `--device NAME[,NAME ..]`: the devices of the ranks, in turn; by default `cuda:0`.
//! * `--ranks N` (2).
//! * `--phase NAME`: one phase; by default each of them, with new processes.
//! * `--rounds N`: calls in the phase `many` (100000).
//! * `--threads`: ranks are threads of one process, on any device; without the phases about processes.
#![allow(clippy::unwrap_used, clippy::panic, clippy::expect_used, reason = "a test")]

mod capture;
mod cases;
mod failures;
mod graphs;
mod ranks;
mod speed;

use ranks::Rank;
use std::{
    env,
    path::PathBuf,
    process::{Command, ExitCode},
    thread,
    time::{Duration, Instant},
};

type Phase = fn(&Rank);

/// The phases, each with what it does and how long it may take.
const PHASES: [(&str, Phase, u64); 12] = [
    ("operations", cases::operations, 300),
    ("groups", cases::groups, 120),
    ("split", cases::split, 120),
    ("order", cases::order, 120),
    ("many", failures::many, 300),
    ("late", failures::late, 120),
    ("flood", failures::flood, 120),
    ("killed", failures::killed, 120),
    ("mismatch", failures::mismatch, 120),
    ("graphs", graphs::graphs, 120),
    ("capture", capture::capture, 120),
    ("speed", speed::speed, 120),
];

struct Options {
    devices: Vec<String>,
    ranks: usize,
    phases: Vec<String>,
    rounds: usize,
    are_threads: bool,
}

fn options() -> Options {
    let mut options = Options {
        devices: vec!["cuda:0".to_owned()],
        ranks: 2,
        phases: PHASES.iter().map(|(name, ..)| (*name).to_owned()).collect(),
        rounds: 100_000,
        are_threads: false,
    };
    let mut words = env::args().skip(1);
    while let Some(word) = words.next() {
        let mut next = || words.next().unwrap_or_else(|| panic!("{word} needs a value"));
        match word.as_str() {
            "--device" => options.devices = next().split(',').map(str::to_owned).collect(),
            "--ranks" => options.ranks = next().parse().unwrap(),
            "--phase" => options.phases = vec![next()],
            "--rounds" => options.rounds = next().parse().unwrap(),
            "--threads" => options.are_threads = true,
            other => panic!("there is no option {other}"),
        }
    }
    options
}

fn phase(name: &str) -> (Phase, Duration) {
    let found = PHASES.iter().find(|(known, ..)| *known == name);
    let (_, phase, seconds) = found.unwrap_or_else(|| panic!("there is no phase {name}"));
    (*phase, Duration::from_secs(*seconds))
}

fn main() -> ExitCode {
    let options = options();
    if let Ok(rank) = env::var("COLLECTIVE_RANK") {
        let folder = PathBuf::from(env::var_os("COLLECTIVE_FOLDER").unwrap());
        let rank = rank.parse().unwrap();
        let name = &options.phases[0];
        let own = rank_of(&options, rank, folder, name);
        phase(name).0(&own);
        eprintln!("{name} rank {rank}: the phase is over");
        drop(own);
        eprintln!("{name} rank {rank}: the device is dropped, main returns");
        return ExitCode::SUCCESS;
    }
    let mut failed = 0;
    for name in &options.phases {
        if options.are_threads && ["late", "flood", "killed", "speed"].contains(&name.as_str()) {
            println!("phase {name}: skipped, as it is about processes");
            continue;
        }
        let begin = Instant::now();
        let folder = env::temp_dir().join(format!("collective-ranks-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let problems = match options.are_threads {
            true => threads(&options, name, &folder),
            false => processes(&options, name, &folder),
        };
        std::fs::remove_dir_all(&folder).unwrap();
        let seconds = begin.elapsed().as_secs_f64();
        println!("phase {name}: {} in {seconds:.1} s", if problems == 0 { "passed" } else { "FAILED" });
        failed += usize::from(problems > 0);
    }
    println!("{} phases passed, {failed} failed", options.phases.len() - failed);
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn rank_of(options: &Options, rank: usize, folder: PathBuf, phase: &str) -> Rank {
    let device = &options.devices[rank % options.devices.len()];
    Rank::new((rank, options.ranks), device, folder, options.rounds, phase)
}

fn threads(options: &Options, name: &str, folder: &std::path::Path) -> usize {
    thread::scope(|scope| {
        let ranks: Vec<_> = (0..options.ranks)
            .map(|rank| scope.spawn(move || phase(name).0(&rank_of(options, rank, folder.into(), name))))
            .collect();
        ranks.into_iter().filter_map(|rank| rank.join().err()).count()
    })
}

/// Starts a process for each rank, and waits for all. One that a phase kills is expected to be killed.
fn processes(options: &Options, name: &str, folder: &std::path::Path) -> usize {
    let share = options.devices.len() < options.ranks;
    let start = |rank: usize| {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(env::args().skip(1)).args(["--phase", name]);
        command.env("COLLECTIVE_RANK", rank.to_string()).env("COLLECTIVE_FOLDER", folder);
        command.env("NCCL_NVLS_ENABLE", "0");
        if share {
            command.env("NCCL_HOSTID", format!("machine-{rank}")).env("NCCL_SOCKET_IFNAME", "lo");
            command.env("NCCL_NET", "Socket").env("NCCL_IB_DISABLE", "1");
        }
        command.spawn().unwrap()
    };
    let mut children: Vec<_> = (0..options.ranks).map(start).collect();
    let (begin, limit) = (Instant::now(), phase(name).1);
    let mut problems = 0;
    for (rank, child) in children.iter_mut().enumerate() {
        let status = loop {
            match child.try_wait().unwrap() {
                Some(status) => break Some(status),
                None if begin.elapsed() > limit => break None,
                None => thread::sleep(Duration::from_millis(20)),
            }
        };
        let is_victim = name == "killed" && rank == options.ranks - 1;
        match status {
            Some(status) if status.success() || is_victim => {}
            Some(status) => {
                println!("rank {rank} ended with {status}");
                problems += 1;
            }
            None => {
                println!("rank {rank} did not end within {limit:?}");
                let _ = child.kill();
                let _ = child.wait();
                problems += 1;
            }
        }
    }
    problems
}
