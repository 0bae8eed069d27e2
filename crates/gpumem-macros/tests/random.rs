//! Random kernels give the same from the body that is split at its barriers as from the one that awaits them, which check mode
//! runs, with waves of 32 and of 64.
//!
//! The kernels are written anew each time, and compiled as separate programs. `GPUMEM_KERNELS` says how many there are,
//! and `GPUMEM_SEED` which is the first. With `GPUMEM_KERNELS_ON_GPUS` they run on the GPUs of the machine too. Some of the hostile
//! ones run on AMD's simulated GPU each time.
#![allow(clippy::unwrap_used)] // helpers of tests

#[path = "random/generate.rs"]
mod generate;
#[allow(dead_code)] // the checks of other tests
mod gpus;

use cargo_metadata::{Message, TargetKind};
use std::{
    env, fs,
    io::BufReader,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// Kernels of one program.
const BATCH: u64 = 250;

/// What the programs use.
const LIBRARIES: [&str; 3] = ["gpumem", "gpumem_cuda", "gpumem_roc"];

/// The arguments with which rustc finds the libraries, as cargo has built them for the tests of the workspace: building them once more
/// takes minutes.
fn libraries() -> Vec<String> {
    let arguments =
        ["test", "--workspace", "--no-run", "--test", "random", "--quiet", "--message-format", "json"];
    let mut cargo = Command::new(env!("CARGO")).args(arguments).stdout(Stdio::piped()).spawn().unwrap();
    let mut found = Vec::new();
    for message in Message::parse_stream(BufReader::new(cargo.stdout.take().unwrap())) {
        let Message::CompilerArtifact(artifact) = message.unwrap() else { continue };
        let name = artifact.target.name.as_str();
        if !LIBRARIES.contains(&name) || !artifact.target.kind.contains(&TargetKind::Lib) {
            continue;
        }
        let file = artifact.filenames.iter().find(|file| file.extension() == Some("rlib")).unwrap();
        found.extend(["--extern".to_owned(), format!("{name}={file}")]);
        found.extend(["-L".to_owned(), format!("dependency={}", file.parent().unwrap().join("deps"))]);
        found.extend(["-L".to_owned(), format!("dependency={}", file.parent().unwrap())]);
    }
    assert!(cargo.wait().unwrap().success());
    assert_eq!(found.len(), 6 * LIBRARIES.len(), "{found:?}");
    found
}

fn run(program: &Path, libraries: &[String]) {
    let executable = program.with_extension("");
    let mut rustc = Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.args(["--edition", "2024", "-o"]).args([&executable, program]).args(libraries);
    let compiled = rustc.output().unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let ran = Command::new(&executable).output().unwrap();
    let said = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
    println!("{}", said(&ran.stdout));
    assert!(ran.status.success(), "{}: {}", program.display(), said(&ran.stderr));
    fs::remove_file(executable).unwrap();
}

fn number(name: &str, or: u64) -> u64 {
    env::var(name).map_or(or, |text| text.parse().unwrap())
}

#[test]
fn both_bodies_of_random_kernels_agree() {
    let (mut seed, mut left) = (number("GPUMEM_SEED", 0), number("GPUMEM_KERNELS", 80));
    let simulator = gpus::simulator().inspect_err(|why| println!("skipped: no simulated GPU: {why}")).ok();
    let libraries = libraries();
    while left > 0 {
        let count = left.min(BATCH);
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("random_{seed}.rs"));
        fs::write(&path, generate::program(seed..seed + count, simulator.as_deref())).unwrap();
        run(&path, &libraries);
        (seed, left) = (seed + count, left - count);
    }
}
