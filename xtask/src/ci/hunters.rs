//! Tools that find what tests alone do not: races, undefined behaviour, invalid accesses.

use super::{Outcome, tools};
use crate::{shell::Shell, workspace::Workspace};
use anyhow::Result;

/// What Miri runs: a package and targets of it. What calls a driver or starts many threads is not for it.
const MIRI: &[(&str, &[&str])] = &[
    ("gpumem-core", &["--lib"]),
    ("gpumem-host", &["--lib"]),
    ("gpumem-nccl-sys", &["--lib"]),
    ("gpumem-runtime", &["--lib", "--test", "pointers", "--test", "layout_chains"]),
];

/// The packages that AddressSanitizer watches: those that touch memory of the host through pointers.
const ASAN: &[&str] = &["gpumem-host", "gpumem-runtime", "gpumem"];

/// What safe code could once break, which it watches as well: a package and the arguments that choose its test.
const ASAN_SOUNDNESS: [&str; 4] = ["--package", "gpumem-integration", "--test", "soundness"];

/// A build with a sanitizer names its target, so that build scripts and macros go without.
const TARGET: &str = "x86_64-unknown-linux-gnu";

pub(super) fn loom(workspace: &Workspace) -> Result<Outcome> {
    if !workspace.has_test("gpumem-runtime", "loom") {
        return Ok(Outcome::Skipped("gpumem-runtime has no test `loom` yet".to_owned()));
    }
    let done = Shell::new(workspace.root())
        .env("RUSTFLAGS", "--cfg loom")
        .env("CARGO_TARGET_DIR", workspace.target("loom"))
        .run("cargo", &["test", "--package", "gpumem-runtime", "--profile", "loom", "--test", "loom"])?;
    Ok(Outcome::of(&done, "loom"))
}

pub(super) fn miri(workspace: &Workspace) -> Result<Outcome> {
    if let Some(reason) = tools::missing(workspace, "Miri (nightly)", &["+nightly", "miri", "--version"]) {
        return Ok(Outcome::Skipped(reason));
    }
    let shell = Shell::new(workspace.root())
        .env("CARGO_TARGET_DIR", workspace.target("miri"))
        // Commands of the host backend carry addresses, as a driver's do; without this every one is warned about.
        .env("MIRIFLAGS", "-Zmiri-permissive-provenance");
    let mut absent = Vec::new();
    for (package, targets) in MIRI {
        let there = workspace.package(package).is_some()
            && targets.windows(2).all(|pair| pair[0] != "--test" || workspace.has_test(package, pair[1]));
        if !there {
            absent.push(format!("{package} {}", targets.join(" ")));
            continue;
        }
        let arguments = [&["+nightly", "miri", "test", "--package", package], *targets].concat();
        let outcome = Outcome::of(&shell.run("cargo", &arguments)?, package);
        if !outcome.is_passed() {
            return Ok(outcome);
        }
    }
    Ok(if absent.is_empty() {
        Outcome::Passed
    } else {
        Outcome::Skipped(format!("the rest passed; not there yet: {}", absent.join(", ")))
    })
}

pub(super) fn asan(workspace: &Workspace) -> Result<Outcome> {
    if let Some(reason) = tools::missing_package(workspace, ASAN) {
        return Ok(Outcome::Skipped(reason));
    }
    if cfg!(not(all(target_arch = "x86_64", target_os = "linux"))) {
        return Ok(Outcome::Skipped(format!("this is not {TARGET}")));
    }
    if let Some(reason) = tools::missing(workspace, "the nightly toolchain", &["+nightly", "--version"]) {
        return Ok(Outcome::Skipped(reason));
    }
    // No examples of the documentation: nightly gives some compile errors other numbers.
    let mut arguments = vec!["+nightly", "test", "--lib", "--tests", "--target", TARGET];
    arguments.extend(ASAN.iter().flat_map(|package| ["--package", package]));
    let shell = Shell::new(workspace.root())
        // The second lets the host backend poison what a pool holds and has not lent.
        .env("RUSTFLAGS", "-Zsanitizer=address --cfg gpumem_asan")
        .env("RUSTDOCFLAGS", "-Zsanitizer=address")
        // Tests that forget guards on purpose leak by design; others ask for more memory than there is, and are to be
        // told so, not to be ended.
        .env("ASAN_OPTIONS", "detect_leaks=0:allocator_may_return_null=1")
        // AMD's compiler frees what the C++ library of its own allocated, before the sanitizer knows of it.
        .env("GPUMEM_HIPRTC", "off")
        // NVIDIA's opens a library beside itself, where the sanitizer's dlopen does not look.
        .env("GPUMEM_NVRTC", "off")
        .env(super::NO_BROWSER.0, super::NO_BROWSER.1)
        .env("CARGO_TARGET_DIR", workspace.target("asan"));
    let outcome = Outcome::of(&shell.run("cargo", &arguments)?, "AddressSanitizer");
    if !outcome.is_passed() {
        return Ok(outcome);
    }
    let soundness = [&["+nightly", "test", "--target", TARGET][..], &ASAN_SOUNDNESS].concat();
    Ok(Outcome::of(&shell.run("cargo", &soundness)?, "AddressSanitizer over the soundness tests"))
}
